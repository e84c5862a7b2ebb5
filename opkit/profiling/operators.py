"""The launches of a whole program as tables: a row an operator, and a row a launch.

`operator_summary.csv` sums the launches of each operator; `kernel_details.csv` has the columns of
the file that torch_npu's profiler writes. Times are modelled. What no model has, such as the time
of an operator that the CPU served, is left empty, which pandas reads as NaN.

Source: profiling guides, output files of the PyTorch profiler: kernel_details.csv.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from opkit.files import written_aside
from opkit.profiling.timeline import Timeline

__all__ = ["OperatorCount", "operator_files", "write_operator_files"]

_EMPTY = ""
_NOT_AVAILABLE = "N/A"
_CORES = {"vector": "AI_VECTOR_CORE", "cube": "AI_CORE", "matmul": "AI_CORE", "mixed": "MIX_AIC"}
_PIPES = {
    "aic": (("mac", "M"), ("scalar", "S"), ("mte1", "MTE1"), ("mte2", "MTE2"), ("fixpipe", "FIX")),
    "aiv": (("vec", "V"), ("scalar", "S"), ("mte2", "MTE2"), ("mte3", "MTE3")),
}


@dataclass(frozen=True)
class OperatorCount:
    """How often an operator of a framework was called, and where it ran."""

    operator: str
    native: int
    """Calls that a kernel served."""
    fallback: int
    """Calls that the CPU served: they have no modelled time."""


def operator_files(
    timelines: Sequence[Timeline], counts: Sequence[OperatorCount] = ()
) -> dict[str, str]:
    """Return the text of each file by its name.

    Args:
        timelines: the launches, in their order.
        counts: of the framework that launched them, for operators that the CPU served.
    """
    # Some launches go by the operator's name without its namespace.
    full = {count.operator.rpartition("::")[2]: count.operator for count in counts}
    launches = [(full.get(timeline.kernel, timeline.kernel), timeline) for timeline in timelines]
    return {
        "operator_summary.csv": _summary(launches, counts),
        "kernel_details.csv": _details(launches),
    }


def _type(name: str) -> str:
    """Return an operator's type: its name without namespace and overload."""
    return name.rpartition("::")[2].partition(".")[0]


def write_operator_files(
    folder: Path, timelines: Sequence[Timeline], counts: Sequence[OperatorCount] = ()
) -> list[Path]:
    """Write the files into a folder, which is made where it is not there, and return their paths.

    Raises:
        OSError: the folder or a file cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, text in operator_files(timelines, counts).items():
        with written_aside(folder / name) as aside:
            aside.write_text(text, encoding="utf-8")
        paths.append(folder / name)
    return paths


def _summary(launches: Sequence[tuple[str, Timeline]], counts: Sequence[OperatorCount]) -> str:
    by_name: dict[str, list[Timeline]] = {}
    for name, timeline in launches:
        by_name.setdefault(name, []).append(timeline)
    total = sum(timeline.task_us for _, timeline in launches)
    rows: list[Mapping[str, object]] = []
    for name, group in sorted(by_name.items(), key=lambda item: -_sum(item[1])):
        times = [timeline.task_us for timeline in group]
        rows.append(
            {
                "Op Name": name,
                "OP Type": _type(name),
                "Core Type": _CORES[group[0].kernel_class],
                "Count": len(group),
                "Duration(us)": _time(sum(times)),
                "Min Duration(us)": _time(min(times)),
                "Avg Duration(us)": _time(sum(times) / len(times)),
                "Max Duration(us)": _time(max(times)),
                "Ratio(%)": f"{100 * sum(times) / total:.3f}" if total else _EMPTY,
                "Band(%)": max((t.band_percent() or 0.0) for t in group) or _EMPTY,
            }
        )
    for count in counts:
        if count.fallback:
            row = {"Op Name": count.operator, "OP Type": _type(count.operator)}
            rows.append({**row, "Core Type": "HOST_CPU", "Count": count.fallback})
    columns = (
        *("Op Name", "OP Type", "Core Type", "Count", "Duration(us)", "Min Duration(us)"),
        *("Avg Duration(us)", "Max Duration(us)", "Ratio(%)", "Band(%)"),
    )
    return _csv(columns, rows)


def _sum(group: Sequence[Timeline]) -> float:
    return sum(timeline.task_us for timeline in group)


def _details(launches: Sequence[tuple[str, Timeline]]) -> str:
    rows: list[Mapping[str, object]] = []
    start_us = 0.0
    for number, (name, timeline) in enumerate(launches):
        kinds = [core.kind for core in timeline.cores]
        row: dict[str, object] = {
            "Device_id": 0,
            "Model ID": _NOT_AVAILABLE,
            "Task ID": number,
            "Stream ID": 0,
            "Name": name,
            "Type": _type(name),
            "OP State": "dynamic",
            "Accelerator Core": _CORES[timeline.kernel_class],
            "Start Time(us)": _time(start_us),
            "Duration(us)": _time(timeline.task_us),
            # Launches of the model follow each other at once.
            "Wait Time(us)": _time(0.0),
            "Block Dim": timeline.block_dim,
            "Mix Block Dim": kinds.count("aiv") if timeline.kernel_class == "mixed" else 0,
            "HF32 Eligible": "NO",
            **dict.fromkeys(_TENSORS, _NOT_AVAILABLE),
            "Context ID": _NOT_AVAILABLE,
        }
        for kind, pipes in _PIPES.items():
            row |= _pipe_columns(timeline, kind, pipes)
        rows.append(row)
        start_us += timeline.task_us
    return _csv((*_HEAD, *_TENSORS, "Context ID", *_pipe_names()), rows)


_HEAD = (
    *("Device_id", "Model ID", "Task ID", "Stream ID", "Name", "Type", "OP State"),
    *("Accelerator Core", "Start Time(us)", "Duration(us)", "Wait Time(us)", "Block Dim"),
    *("Mix Block Dim", "HF32 Eligible"),
)
_TENSORS = (
    *("Input Shapes", "Input Data Types", "Input Formats"),
    *("Output Shapes", "Output Data Types", "Output Formats"),
)


def _total_names(kind: str) -> tuple[str, str]:
    return ("aicore_time(us)" if kind == "aic" else "aiv_time(us)", f"{kind}_total_cycles")


def _pipe_names() -> tuple[str, ...]:
    names: list[str] = []
    for kind, pipes in _PIPES.items():
        names += _total_names(kind)
        for name, _ in pipes:
            names += [f"{kind}_{name}_time(us)", f"{kind}_{name}_ratio"]
    return tuple(names)


def _pipe_columns(
    timeline: Timeline, kind: str, pipes: Sequence[tuple[str, str]]
) -> dict[str, object]:
    """Return mean times of the cores of a kind; zeros where the launch has none."""
    cores = [core for core in timeline.cores if core.kind == kind]
    time_name, cycles_name = _total_names(kind)
    cycles = sum(core.cycles for core in cores)
    mean = cycles / len(cores) if cores else 0.0
    row: dict[str, object] = {
        time_name: _time(mean / timeline.clock_mhz),
        cycles_name: round(cycles),
    }
    for name, pipe in pipes:
        busy = sum(core.busy_cycles.get(pipe, 0.0) for core in cores)
        own = busy / len(cores) if cores else 0.0
        row[f"{kind}_{name}_time(us)"] = _time(own / timeline.clock_mhz)
        row[f"{kind}_{name}_ratio"] = f"{busy / cycles:.4f}" if cycles else "0"
    return row


def _time(value_us: float) -> str:
    return f"{value_us:.3f}"


def _csv(columns: Sequence[str], rows: Sequence[Mapping[str, object]]) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, restval=_EMPTY, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()
