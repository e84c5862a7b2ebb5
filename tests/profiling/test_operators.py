"""operator_summary.csv and kernel_details.csv of launches whose times are known."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from opkit.profiling import (
    CoreTime,
    OperatorCount,
    Timeline,
    operator_files,
    write_operator_files,
)


def launch(kernel: str, task_us: float, *kinds: str) -> Timeline:
    cores = tuple(
        CoreTime(0, i, kind, 0.0, 1000.0, {"V": 250.0} if kind == "aiv" else {"M": 500.0})
        for i, kind in enumerate(kinds)
    )
    return Timeline(
        kernel=kernel,
        chip="Ascend910B2",
        block_dim=1,
        clock_mhz=1000.0,
        task_us=task_us,
        launch_us=0.5,
        total_cycles=1000.0,
        cores=cores,
        lines=(),
        events=(),
        events_dropped=0,
        gm_read_bytes=0,
        gm_write_bytes=0,
        l2_hit_bytes=0,
        hbm_read_bytes=0,
        hbm_write_bytes=0,
    )


LAUNCHES = (
    launch("add.out", 2.0, "aiv"),
    launch("aten::mm.out", 9.0, "aic"),
    launch("aten::add.out", 4.0, "aiv", "aiv"),
    launch("fused", 1.0, "aic", "aiv", "aiv"),
)
COUNTS = (
    OperatorCount("aten::add.out", 2, 0),
    OperatorCount("aten::mm.out", 1, 0),
    OperatorCount("aten::sort", 0, 3),
)


def tables() -> dict[str, list[dict[str, str]]]:
    texts = operator_files(LAUNCHES, COUNTS)
    return {name: list(csv.DictReader(io.StringIO(text))) for name, text in texts.items()}


def test_the_summary_has_a_row_an_operator_longest_first() -> None:
    rows = tables()["operator_summary.csv"]
    assert [row["Op Name"] for row in rows] == [
        *("aten::mm.out", "aten::add.out", "fused", "aten::sort"),
    ]
    add = rows[1]
    assert (add["OP Type"], add["Count"], add["Core Type"]) == ("add", "2", "AI_VECTOR_CORE")
    times = [add[f"{name}Duration(us)"] for name in ("", "Min ", "Avg ", "Max ")]
    assert times == ["6.000", "2.000", "3.000", "4.000"]
    assert add["Ratio(%)"] == "37.500"


def test_what_the_cpu_served_has_a_count_and_no_time() -> None:
    sort = tables()["operator_summary.csv"][-1]
    assert (sort["Core Type"], sort["Count"]) == ("HOST_CPU", "3")
    assert sort["Duration(us)"] == sort["Ratio(%)"] == ""


def test_the_details_have_a_row_a_launch_one_behind_the_other() -> None:
    rows = tables()["kernel_details.csv"]
    assert [row["Start Time(us)"] for row in rows] == ["0.000", "2.000", "11.000", "15.000"]
    assert [row["Accelerator Core"] for row in rows] == [
        *("AI_VECTOR_CORE", "AI_CORE", "AI_VECTOR_CORE", "MIX_AIC"),
    ]
    assert rows[1]["aic_mac_ratio"] == "0.5000"
    assert rows[1]["aiv_time(us)"] == "0.000"
    assert rows[2]["aiv_vec_time(us)"] == "0.250"
    assert rows[3]["Mix Block Dim"] == "2"


def test_no_launch_leaves_heads_alone() -> None:
    assert [text.count("\n") for text in operator_files(()).values()] == [1, 1]


def test_files_are_written_into_a_new_folder(tmp_path: Path) -> None:
    paths = write_operator_files(tmp_path / "a" / "b", LAUNCHES)
    assert all(path.is_file() for path in paths)
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        write_operator_files(tmp_path / "file", LAUNCHES)
