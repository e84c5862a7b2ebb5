"""Which tiling keys cases take, and shapes for those that none takes; a function is the tiling."""

from __future__ import annotations

import dataclasses
import json
import struct
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from opkit.errors import UsageError
from opkit.schema import AttrSpec, OpSpec, load
from opkit.testing import (
    PrecisionReport,
    Untaken,
    branches,
    cases_of_branches,
    cases_of_keys,
    counts_text,
    default_cases,
    host_numbers,
    junit_xml,
    names_branches,
    report_object,
)

PROTOTYPE = {
    "op": "Centre",
    "input_desc": [{"name": "x", "type": ["float16", "float32"]}],
    "output_desc": [
        {"name": "y", "type": ["float16", "float32"], "formula": "x - mean(x, axis=-1)"}
    ],
}


@pytest.fixture
def spec(tmp_path: Path) -> OpSpec:
    (tmp_path / "centre.json").write_text(json.dumps(PROTOTYPE))
    (found,) = load(tmp_path / "centre.json")
    return found


def look(
    spec: OpSpec,
    monkeypatch: pytest.MonkeyPatch,
    tiling: Any,
    keys: set[int],
    variant: int = 1,
    numbers: tuple[int, ...] = (),
) -> tuple[tuple[Any, ...], Untaken | None]:
    """Return what is added to cases of short rows, and the keys that stay untaken."""

    def tile(op: str, inputs: Any, attrs: Any, dtypes: Any) -> tuple[int, int, bytes]:
        found = tiling(*inputs[0].shape, **attrs)
        key, *words = found if isinstance(found, tuple) else (int(found),)
        return key, 1, struct.pack(f"<{len(words)}I", *words)

    library = SimpleNamespace(tiling=tile)
    monkeypatch.setattr("opkit.runtime.open", lambda folder: library, raising=False)
    monkeypatch.setattr("opkit.runtime.configure", lambda chip: None, raising=False)
    monkeypatch.setattr(branches, "_keys", lambda folder, spec, dtypes: keys)
    cases = [c for c in default_cases(spec) if c.variant == variant and max(c.shape) < 5000]
    more = [c for c in cases_of_branches(spec) if c.variant == variant]
    last = [c for c in cases_of_keys(spec, numbers) if c.variant == variant]
    run = branches._begin("", {"artifact": Path()})
    asked = branches._Asked(spec, tuple(cases), (*more, *last), len(last))
    return branches._told(asked, run(asked))


def test_a_key_of_long_rows_gets_a_case_of_several_rows_a_core(
    spec: OpSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Four mutants of a kernel for long rows passed: no case took its tiling key.
    added, untaken = look(spec, monkeypatch, lambda *shape: shape[-1] > 16000, keys={0, 1})
    assert [case.shape for case in added] == [(97, 20011)]
    assert untaken is None


def test_a_key_that_no_shape_takes_is_named(spec: OpSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    def tiling(*shape: int) -> int:
        if shape[-1] == 67:
            raise UsageError("rows of 67 are refused")
        return 3 if shape[0] > 5000 else 0

    added, untaken = look(spec, monkeypatch, tiling, keys={0, 3, 8})
    assert [case.shape for case in added] == [(5003, 1)]
    assert untaken == Untaken("Centre", ("float32", "float32"), (8,), (0, 3))
    assert str(untaken) == "Centre, float32: no case takes the tiling key 8 (taken: 0, 3)"


def test_a_kernel_of_one_key_gets_no_further_case(
    spec: OpSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert look(spec, monkeypatch, lambda *shape: 1, keys={0}) == ((), None)


# A kernel was right for one tile a row and for whole blocks alone, and passed.
def test_each_kind_of_number_in_the_tiling_data_gets_a_case(
    spec: OpSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tiling(*shape: int) -> tuple[int, int, int]:
        return 0, max(1, shape[-1] // 10000), 40

    added, untaken = look(spec, monkeypatch, tiling, keys=set())
    assert [case.shape for case in added] == [(97, 20011)]
    assert untaken is None


def test_cases_for_tiling_data_are_few(spec: OpSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    def tiling(*shape: int) -> tuple[int, ...]:
        return 0, *((shape[-1] >> bit) & 1 for bit in range(20))

    added, _ = look(spec, monkeypatch, tiling, keys=set())
    assert len(added) == 4


# No usual shape has 640 columns, and none has another mode.
def test_a_key_behind_a_number_of_the_host_code_gets_its_shape(
    spec: OpSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tiling(*shape: int) -> int:
        return int(shape[-1] == 640)

    added, untaken = look(spec, monkeypatch, tiling, keys={0, 1}, numbers=(32, 640))
    assert [case.shape for case in added] == [(3, 640)]
    assert untaken is None
    added, untaken = look(spec, monkeypatch, tiling, keys={0, 1}, numbers=(32,))
    assert not added and untaken is not None and untaken.keys == (1,)


def test_a_key_of_an_attribute_gets_another_value_of_it(
    spec: OpSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes = AttrSpec("mode", "int", required=False, default=0)
    spec = dataclasses.replace(spec, attrs=(modes,))
    added, untaken = look(
        spec, monkeypatch, lambda *shape, mode: mode, keys={0, 1, 5}, numbers=(5, 100)
    )
    assert [dict(case.attrs)["mode"] for case in added] == [1, 5]
    assert untaken is None


def test_numbers_of_host_code_are_read_with_their_products(tmp_path: Path) -> None:
    source = tmp_path / "host.cpp"
    source.write_text(
        "// 77\nconstexpr int A = 4 * 160, B = 0x20U; // 1 << 30\nif (x > 5'000L) {}\n"
    )
    project = SimpleNamespace(sources=lambda folder: (source,))
    assert host_numbers(project) == (4, 32, 160, 640, 5000)  # type: ignore[arg-type]


def test_shapes_of_keys_fit_into_memory(spec: OpSpec) -> None:
    sizes = [case.shape[0] * case.shape[1] * 4 for case in cases_of_branches(spec)]
    assert sizes
    assert max(sizes) <= 1 << 27


def test_only_a_kernel_that_asks_for_its_key_is_looked_at(tmp_path: Path, spec: OpSpec) -> None:
    kernel = tmp_path / "centre.cpp"
    project = SimpleNamespace(kernel_source=lambda spec: kernel)
    assert not names_branches(project, spec)  # type: ignore[arg-type]
    kernel.write_text('#include "body.h"\n')
    (tmp_path / "body.h").write_text("void f() { if (TILING_KEY_IS(1)) {} }\n")
    assert names_branches(project, spec)  # type: ignore[arg-type]
    (tmp_path / "body.h").write_text("void f() { for (i = 0; i < tiling.tiles; ++i) {} }\n")
    assert not names_branches(project, spec)  # type: ignore[arg-type]
    (tmp_path / "body.h").write_text("void f() { if (i == tilingData.tiles - 1) {} }\n")
    assert names_branches(project, spec)  # type: ignore[arg-type]


def test_the_json_report_lists_keys_that_no_case_takes() -> None:
    untaken = Untaken("Centre", ("float32",), (8,), (0,))
    report = PrecisionReport("centre", "mixed", 0, (), untaken=(untaken,))
    assert report_object(report)["untaken_tiling_keys"] == [dataclasses.asdict(untaken)]
    assert report_object(report)["untested_tiling_keys"] == 1


def test_an_untested_key_counts_in_the_summary_and_in_junit() -> None:
    untaken = Untaken("Centre", ("float32", "float32"), (8, 9), (0,))
    report = PrecisionReport("centre", "mixed", 0, (), untaken=(untaken,))
    assert counts_text(report) == "2 tiling keys not tested"
    assert junit_xml(report).count("<skipped") == 2
    assert "tiling key 9, float32" in junit_xml(report)
