"""A precision report as table rows, as JSON, as JUnit XML, as text."""

from __future__ import annotations

import shlex

from opkit.junit import JunitCase, junit_text
from opkit.testing.run import CaseResult, OutputResult, PrecisionReport, Verdict

__all__ = [
    "CASE_COLUMNS",
    "cancellation_texts",
    "case_rows",
    "counts_text",
    "failure_text",
    "junit_xml",
    "report_object",
]

CASE_COLUMNS = ("case", "elements", "worst figure", "limit", "verdict")


def counts_text(report: PrecisionReport) -> str:
    """Return how many cases had each verdict, and how much has none."""
    counts = [f"{report.count(verdict)} {verdict.value}" for verdict in Verdict]
    counts = [text for text in counts if not text.startswith("0 ")]
    if report.untested:
        keys = "tiling key" if report.untested == 1 else "tiling keys"
        counts.append(f"{report.untested} {keys} not tested")
    return ", ".join(counts)


def case_rows(report: PrecisionReport) -> list[tuple[str, str, str, str, str]]:
    """Return one row a case, under `CASE_COLUMNS`: the figure that comes nearest its limit."""
    rows = []
    for result in report.results:
        figures = [figure for output in result.outputs for figure in output.comparison.figures]
        elements = sum(output.comparison.elements for output in result.outputs)
        if result.verdict is Verdict.CANCELLATION:
            # What the plain standard says: the figures of every element.
            figures = [
                f for output in result.outputs for f in output.comparison.figures_of_all
            ] or figures
        nearest = max(figures, key=lambda figure: _share(figure.value, figure.limit), default=None)
        rows.append(
            (
                result.case.name,
                str(elements) if result.outputs else "",
                f"{nearest.name} {nearest.value:.2e}" if nearest else "",
                f"{nearest.limit:.2e}" if nearest else "",
                result.verdict.value,
            )
        )
    return rows


def _share(value: float, limit: float) -> float:
    if limit > 0:
        return value / limit
    return float("inf") if value > 0 else 0.0


def failure_text(result: CaseResult, report: PrecisionReport) -> str:
    """Return what went wrong in one case, the line that runs it again, and the one that looks for
    the cause; "" where it passed and there is no more to say."""
    if result.verdict.passed and not result.message:
        return ""
    lines = [f"{result.case.name}: {result.verdict.value}"]
    lines += [f"  {line}" for line in result.message.splitlines()]
    for output in result.outputs:
        if not output.comparison.passed:
            lines.append(f"  {output.name}: {output.comparison}")
            if output.comparison.worst is not None:
                lines.append(f"  worst {output.comparison.worst}")
    case = result.case
    origin = [] if case.origin is None else ["--cases", str(case.origin)]
    named = ["--case", case.name]
    # Another one where it passes with the run's.
    seed = report.seed if case.origin is not None else case.seed
    again = ["opkit", "test", *named, "--seed", str(seed), *report.options, *origin]
    lines.append(f"  again: {shlex.join(again)}")
    # opkit debug draws a case's values as seed 0 does.
    if seed == 0 and result.verdict in (Verdict.FAIL, Verdict.FAULT):
        cause = ["opkit", "debug", *named, *report.options, *origin, "-e", "why"]
        lines.append(f"  cause: {shlex.join(cause)}")
    return "\n".join(lines)


def cancellation_texts(report: PrecisionReport) -> list[str]:
    """Return which outputs pass because the operator itself cancels or overflows; each once."""
    cases: dict[tuple[str, str, str], list[CaseResult]] = {}
    for result in report.results:
        for output in result.outputs if result.verdict is Verdict.CANCELLATION else ():
            if output.comparison.cancelled:
                place = output.comparison.cancellation.split(":", 2)[:2]
                key = (result.case.kernel, output.name, ":".join(place))
                cases.setdefault(key, []).append(result)
    texts = []
    for (kernel, name, _), results in cases.items():
        worst = max(
            (output.comparison for r in results for output in r.outputs if output.name == name),
            key=lambda comparison: comparison.cancelled,
        )
        lines = [
            f"{kernel}, {name}: pass (cancellation) in {len(results)} cases:"
            f" {worst.cancelled} of {worst.elements} elements are off by no more than rounding"
            " the inputs explains"
        ]
        if worst.cancellation:
            lines.append(f"  cancels: {worst.cancellation}")
        texts.append("\n".join(lines))
    return texts + _range_texts(report)


def _range_texts(report: PrecisionReport) -> list[str]:
    beyond: dict[tuple[str, str], list[int]] = {}
    for result in report.results:
        for output in result.outputs if result.verdict.passed else ():
            if output.comparison.out_of_range:
                key = (result.case.kernel, output.name)
                beyond.setdefault(key, []).append(output.comparison.out_of_range)
    return [
        f"{kernel}, {name}: in {len(counts)} cases up to {max(counts)} elements are not judged:"
        " float32 overflows on the way to them"
        for (kernel, name), counts in beyond.items()
    ]


def report_object(report: PrecisionReport) -> dict[str, object]:
    """Return the report as a JSON object: totals, then one object a case."""
    return {
        "project": report.project,
        "standard": report.standard,
        "seed": report.seed,
        "passed": report.passed,
        "counts": {verdict.value: report.count(verdict) for verdict in Verdict},
        "untested_tiling_keys": report.untested,
        "untaken_tiling_keys": [vars(one) for one in report.untaken],
        "cases": [_case_object(result) for result in report.results],
    }


def _case_object(result: CaseResult) -> dict[str, object]:
    case = result.case
    return {
        "name": case.name,
        "op": case.op,
        "dtypes": [dtype.name for dtype in case.dtypes],
        "shapes": case.shapes,
        "attrs": dict(case.attrs),
        "distribution": case.distribution,
        "verdict": result.verdict.value,
        "message": result.message,
        "seconds": result.seconds,
        "outputs": [_output_object(output) for output in result.outputs],
    }


def _output_object(output: OutputResult) -> dict[str, object]:
    comparison = output.comparison
    return {
        "name": output.name,
        "passed": comparison.passed,
        "worst": comparison.worst,
        **{name: value for name, value in vars(comparison).items() if name != "picture"},
    }


def junit_xml(report: PrecisionReport) -> str:
    """Return the report as one JUnit test suite; a case without a reference counts as skipped, and
    so does a tiling key that no case takes."""
    outcomes = {
        Verdict.FAIL: "failure",
        Verdict.FAULT: "failure",
        Verdict.ERROR: "error",
        Verdict.NO_REFERENCE: "skipped",
    }
    cases = []
    for result in report.results:
        outcome = outcomes.get(result.verdict, "")
        first = result.message.splitlines()[0] if result.message else result.verdict.value
        cases.append(
            JunitCase(
                f"{report.project}.{result.case.kernel}",
                result.case.name,
                result.seconds,
                outcome,
                first if outcome else "",
                failure_text(result, report) if outcome else "",
            )
        )
    cases += [
        JunitCase(
            f"{report.project}.{one.op}",
            f"tiling key {key}, {'-'.join(dict.fromkeys(one.dtypes))}",
            0.0,
            "skipped",
            "no case takes it",
            str(one),
        )
        for one in report.untaken
        for key in one.keys
    ]
    return junit_text(f"{report.project} precision ({report.standard})", cases)
