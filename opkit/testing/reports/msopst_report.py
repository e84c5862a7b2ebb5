"""The files that msOpST leaves and scripts read: st_report.json and CSVs of wrong elements.

Source: msOpST user guide, test report (Ascend/msopgen, tools/msopst): field and column names.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path

from opkit.errors import cannot_write
from opkit.files import written_aside
from opkit.testing.run import CaseResult, OutputResult, PrecisionReport, Verdict

__all__ = ["ERROR_ROWS", "error_csv", "st_report_json", "write_st_report"]

# Rows of an error CSV at the most.
ERROR_ROWS = 50000


def st_report_json(report: PrecisionReport, command: Sequence[str]) -> str:
    """Return the report as msOpST writes st_report.json."""
    passed = sum(result.verdict.passed for result in report.results)
    document = {
        "run_cmd": " ".join(command),
        "report_list": [_case(result, command) for result in report.results],
        "summary": {
            "test case count": len(report.results),
            "success count": passed,
            "failed count": len(report.results) - passed,
        },
    }
    return json.dumps(document, indent=4) + "\n"


def _case(result: CaseResult, command: Sequence[str]) -> dict[str, object]:
    case = result.case
    status = "success" if result.verdict.passed else "failed"
    ran = "failed" if result.verdict in (Verdict.FAULT, Verdict.ERROR) else "success"
    tensors = [
        {"name": name, "type": dtype.name, "shape": shape}
        for name, dtype, shape in zip(case.input_names, case.dtypes, case.shapes, strict=False)
    ]
    figures = "; ".join(f"{output.name}: {output.comparison}" for output in result.outputs)
    stages = [
        {"status": ran, "result": result.message, "stage_name": "run", "cmd": " ".join(command)},
        {
            "status": status,
            "result": figures or result.verdict.value,
            "stage_name": "compare",
            "cmd": "",
        },
    ]
    return {
        "case_name": case.name,
        "status": status,
        "expect": "failed" if case.expects_failure else "success",
        "trace_detail": {
            "st_case_info": {"op": case.op, "input_desc": tensors, "attr": dict(case.attrs)},
            "stage_result": stages,
        },
    }


def error_csv(output: OutputResult, shape: tuple[int, ...]) -> str:
    """Return an output's worst elements as CSV with msOpST's columns, the worst first.

    `shape` is the output's: Index counts elements from its first one.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["Index", "ExpectOut", "RealOut", "FpDiff", "RateDiff"])
    for worst in output.comparison.worst_elements:
        difference = abs(float(worst.actual) - float(worst.golden))
        rate = difference / (abs(float(worst.golden)) + 1e-7)
        flat = 0
        for size, index in zip(shape, worst.index, strict=True):
            flat = flat * size + index
        writer.writerow(
            [flat, repr(worst.golden), repr(worst.actual), f"{difference:.9g}", f"{rate:.9g}"]
        )
    return text.getvalue()


def write_st_report(folder: Path, report: PrecisionReport, command: Sequence[str]) -> None:
    """Write st_report.json and st_error_reports/<case>_error_report.csv below a folder.

    Raises:
        UsageError: the folder cannot be written.
    """
    files = {"st_report.json": st_report_json(report, command)}
    for result in report.results:
        wrong = [output for output in result.outputs if not output.comparison.passed]
        for output in wrong:
            name = (
                result.case.name
                if len(result.outputs) == 1
                else f"{result.case.name}_{output.name}"
            )
            files[f"st_error_reports/{name}_error_report.csv"] = error_csv(
                output, output.comparison.shape
            )
    for name, text in files.items():
        path = folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with written_aside(path) as aside:
                aside.write_text(text, encoding="utf-8")
        except OSError as error:
            raise cannot_write(path, error) from error
