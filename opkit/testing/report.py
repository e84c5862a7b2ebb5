"""A precision report as table rows, as JSON, as JUnit XML, as text."""

from __future__ import annotations

import shlex
from xml.etree import ElementTree

from opkit.testing.run import CaseResult, OutputResult, PrecisionReport, Verdict

__all__ = [
    "CASE_COLUMNS",
    "cancellation_texts",
    "case_rows",
    "failure_text",
    "junit_xml",
    "report_object",
]

CASE_COLUMNS = ("case", "elements", "worst figure", "limit", "verdict")


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
    """Return what went wrong in one case, and the line that runs it again; "" where it passed."""
    if result.verdict.passed:
        return ""
    lines = [f"{result.case.name}: {result.verdict.value}"]
    lines += [f"  {line}" for line in result.message.splitlines()]
    for output in result.outputs:
        if not output.comparison.passed:
            lines.append(f"  {output.name}: {output.comparison}")
            if output.comparison.worst is not None:
                lines.append(f"  worst {output.comparison.worst}")
    case = result.case
    again = ["opkit", "test", "--case", case.name, "--seed", str(report.seed), *report.options]
    if case.origin is not None:
        again += ["--cases", str(case.origin)]
    lines.append(f"  again: {shlex.join(again)}")
    return "\n".join(lines)


def cancellation_texts(report: PrecisionReport) -> list[str]:
    """Return which outputs pass because the operator itself cancels, and where; each once."""
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
    return texts


def report_object(report: PrecisionReport) -> dict[str, object]:
    """Return the report as a JSON object: totals, then one object a case."""
    return {
        "project": report.project,
        "standard": report.standard,
        "seed": report.seed,
        "passed": report.passed,
        "counts": {verdict.value: report.count(verdict) for verdict in Verdict},
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
    """Return the report as one JUnit test suite; a case without a reference counts as skipped."""
    suite = ElementTree.Element(
        "testsuite",
        name=f"{report.project} precision ({report.standard})",
        tests=str(len(report.results)),
        failures=str(report.count(Verdict.FAIL) + report.count(Verdict.FAULT)),
        errors=str(report.count(Verdict.ERROR)),
        skipped=str(report.count(Verdict.NO_REFERENCE)),
        time=f"{sum(result.seconds for result in report.results):.6f}",
    )
    elements = {
        Verdict.FAIL: "failure",
        Verdict.FAULT: "failure",
        Verdict.ERROR: "error",
        Verdict.NO_REFERENCE: "skipped",
    }
    for result in report.results:
        case = ElementTree.SubElement(
            suite,
            "testcase",
            classname=f"{report.project}.{result.case.kernel}",
            name=result.case.name,
            time=f"{result.seconds:.6f}",
        )
        if result.verdict in elements:
            text = failure_text(result, report)
            first = result.message.splitlines()[0] if result.message else result.verdict.value
            element = ElementTree.SubElement(case, elements[result.verdict], message=_clean(first))
            element.text = _clean(text)
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _clean(text: str) -> str:
    """Drop the characters that XML 1.0 cannot hold, which a kernel's own message may have."""
    return "".join(c for c in text if c in "\t\n" or ord(c) >= 0x20)
