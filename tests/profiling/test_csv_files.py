"""The CSV files of msprof op: names, columns, figures."""

from __future__ import annotations

import csv
import io
from typing import Any

from opkit.profiling import csv_texts
from opkit.profiling.shown import read_timeline


def table(record: dict[str, Any], name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(csv_texts(read_timeline(record))[name])))


def test_the_files_have_the_tools_names(record: dict[str, Any]) -> None:
    metrics = "ArithmeticUtilization L2Cache Memory MemoryL0 MemoryUB OpBasicInfo"
    metrics += " PipeUtilization ResourceConflictRatio code_exe instr_exe"
    assert set(csv_texts(read_timeline(record))) == {f"{name}.csv" for name in metrics.split()}


def test_the_task_is_in_the_basic_information(record: dict[str, Any]) -> None:
    (row,) = table(record, "OpBasicInfo.csv")
    assert (row["Op Name"], row["Op Type"], row["Block Dim"]) == ("gelu_custom", "vector", "2")
    assert float(row["Task Duration(us)"]) == 3.0


def test_each_core_has_a_row_with_its_pipes(record: dict[str, Any]) -> None:
    first, second = table(record, "PipeUtilization.csv")
    assert (first["block_id"], first["sub_block_id"]) == ("0", "vector0")
    assert float(first["aiv_time(us)"]) == 2.0
    assert float(first["aiv_vec_time(us)"]) == 1.5
    assert float(first["aiv_vec_ratio"]) == 0.75
    assert float(second["aiv_mte2_ratio"]) == 1.0


def test_columns_of_the_other_kind_of_core_say_so(record: dict[str, Any]) -> None:
    row = table(record, "PipeUtilization.csv")[0]
    assert row["aic_time(us)"] == row["aic_cube_time(us)"] == row["aic_mte1_ratio"] == "NA"


def test_no_file_names_a_column_twice_or_leaves_one_empty(record: dict[str, Any]) -> None:
    for text in csv_texts(read_timeline(record)).values():
        head, *rows = list(csv.reader(io.StringIO(text)))
        assert len(set(head)) == len(head)
        for row in rows:
            assert len(row) == len(head)
            assert all(row)


def test_hit_rates_are_of_what_was_read(record: dict[str, Any]) -> None:
    row = table(record, "L2Cache.csv")[0]
    assert float(row["aiv_read_hit_rate(%)"]) == 25.0
    assert row["aiv_r0_read_cache_hit"] == str(1024 // 128)


def test_a_core_without_writes_has_a_write_hit_rate_of_zero(record: dict[str, Any]) -> None:
    assert float(table(record, "L2Cache.csv")[0]["aiv_write_hit_rate(%)"]) == 0.0


def test_a_cube_core_fills_the_cube_columns(record: dict[str, Any]) -> None:
    record["cores"][0] |= {"kind": "aic", "busy_cycles": {"M": 1000.0, "FIX": 500.0}}
    record["lines"].append({**record["lines"][1], "instruction": "Mmad", "pipe": "M"})
    row = table(record, "PipeUtilization.csv")[0]
    assert row["sub_block_id"] == "cube0"
    assert float(row["aic_cube_time(us)"]) == 1.0
    assert float(row["aic_fixpipe_ratio"]) == 0.25
    assert row["aiv_vec_time(us)"] == "NA"
    assert table(record, "OpBasicInfo.csv")[0]["Op Type"] == "mix"


def test_lines_are_listed_with_their_cycles(record: dict[str, Any]) -> None:
    row = table(record, "code_exe.csv")[0]
    assert (row["code"], row["call_count"], row["cycles"]) == ("op_kernel/gelu.cpp:20", "3", "1500")
    assert table(record, "instr_exe.csv")[0]["instr"] == "Add"


def test_a_launch_of_nothing_leaves_every_file_with_its_columns(record: dict[str, Any]) -> None:
    nothing = {**record, "cores": [], "lines": [], "events": [], "total_cycles": 0.0}
    texts = csv_texts(read_timeline(nothing))
    assert texts["code_exe.csv"] == "code,call_count,cycles,running_time(us)\n"
    assert texts["PipeUtilization.csv"].startswith("block_id,sub_block_id,aic_time(us),")
