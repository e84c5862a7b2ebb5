"""Where the right results come from: whole or in parts, double precision or the operator's own."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opkit.errors import OperatorError, PrecisionError, UsageError
from opkit.schema import OpSpec
from opkit.testing import (
    Verdict,
    find_standard,
    load_golden,
    make_case,
    make_inputs,
    run_case,
)
from opkit.testing.references import reference as references_module
from opkit.testing.references.reference import find_reference
from tests.testing.test_by_name import operator

GOLDEN = """
import numpy as np
def scale(x, *, factor): return factor * x
def norm(x, gamma): return gamma * x / np.sqrt(np.mean(x**2, axis=-1, keepdims=True))
"""


@pytest.fixture
def golden(write_golden: Callable[[str], Path]) -> Any:
    return load_golden(write_golden(GOLDEN))


@pytest.mark.parametrize("name", ["scale", "norm"])
def test_parts_are_the_whole(
    name: str, golden: Any, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    spec: OpSpec = request.getfixturevalue(name)
    monkeypatch.setattr(references_module, "PART", 100)
    rule = (lambda shape: {"gamma": shape[-1:]}) if name == "norm" else None
    case = make_case(spec, (33, 17), shape_rule=rule)
    reference = find_reference(case, spec, golden, wants_second=True)
    assert reference is not None
    inputs = make_inputs(case)
    parts = reference.parts(inputs)
    assert parts is not None
    listed = list(parts)
    assert len(listed) > 5
    _, whole = reference.whole(inputs)
    assert whole.second is not None
    joined = np.concatenate([part.golden[0] for part in listed])
    np.testing.assert_array_equal(joined, whole.golden[0])
    second = np.concatenate([part.second[0] for part in listed if part.second is not None])
    np.testing.assert_array_equal(second, whole.second[0])
    # One rounding to the type, or a few of float32: near, and not the same.
    np.testing.assert_allclose(second, joined, rtol=2e-3)
    assert name == "scale" or (second != joined).any()


def test_without_a_formula_there_is_only_the_whole(scale: OpSpec, golden: Any) -> None:
    from dataclasses import replace

    bare = replace(scale, outputs=tuple(replace(t, formula=None) for t in scale.outputs))
    case = make_case(bare, (1 << 21,))
    reference = find_reference(case, bare, golden, wants_second=False)
    assert reference is not None and reference.parts(make_inputs(case)) is None
    wanting = find_reference(make_case(bare, (4,)), bare, golden, wants_second=True)
    assert wanting is not None
    with pytest.raises(UsageError, match="scale: the standard needs a second reference"):
        wanting.whole(make_inputs(make_case(bare, (4,))))


def test_the_projects_own_second_reference_gets_float32(
    scale: OpSpec, write_golden: Callable[[str], Path], fake_library: Any
) -> None:
    text = GOLDEN + (
        "def scale_same_precision(x, *, factor):\n"
        "    assert x.dtype == np.float32\n    return factor * x + np.float32(1e-3)\n"
    )
    own = load_golden(write_golden(text))
    case = make_case(scale, (64,), variant=1)
    library = fake_library(lambda x: [2 * x + np.float32(1.5e-3)])
    # 1.5 times the error of a reference that is a thousandth off: within L0, outside L2.
    verdicts = {
        level: run_case(library, case, scale, own, find_standard(f"double_{level}")).verdict
        for level in ("l0", "l2")
    }
    assert verdicts == {"l0": Verdict.PASS, "l2": Verdict.FAIL}


def test_a_wrong_length_is_found_in_parts_too(
    scale: OpSpec, golden: Any, fake_library: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(references_module, "PART", 100)
    case = make_case(scale, (1000,), variant=1)
    library = fake_library(lambda x: [2 * x[:500]])
    result = run_case(library, case, scale, golden, find_standard("ecosystem"))
    assert result.verdict is Verdict.FAIL
    assert "500" in result.message


def test_a_large_case_holds_little_beside_its_tensors(
    scale: OpSpec, golden: Any, fake_library: Any
) -> None:
    case = make_case(scale, (8 << 20,), variant=0)
    library = fake_library(lambda x: [x + x])
    tracemalloc.start()
    try:
        result = run_case(library, case, scale, golden, find_standard("ecosystem"))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert result.verdict is Verdict.PASS
    tensor_bytes = 2 * (8 << 20)
    # Input, output, and parts of some 100 MB whatever the size of the case.
    assert peak < 2 * tensor_bytes + (128 << 20)


def test_an_unexpected_number_of_outputs_is_told(scale: OpSpec, golden: Any) -> None:
    from opkit.testing.run import judge

    case = make_case(scale, (4,))
    reference = find_reference(case, scale, golden, wants_second=False)
    assert reference is not None
    with pytest.raises(PrecisionError, match="has 1 outputs, the kernel gave 2"):
        judge(reference, make_inputs(case), [np.ones(4)] * 2, find_standard("ecosystem"))


@pytest.mark.torch
@pytest.mark.parametrize(
    ("value", "kind"), [("factor * x + 1j", "complex128"), ("'pass'", "str"), ("[b'1']", "bytes")]
)
def test_what_is_no_real_number_is_no_golden_of_one(
    scale: OpSpec, write_golden: Callable[[str], Path], value: str, kind: str
) -> None:
    # NumPy leaves the imaginary part out, and only warns.
    golden = load_golden(write_golden(f"def scale(x, *, factor): return {value}\n"))
    case = make_case(scale, (4,))
    reference = find_reference(case, scale, golden, wants_second=False)
    assert reference is not None
    with pytest.raises(OperatorError, match=f"y is float16, the reference gives {kind}"):
        reference.whole(make_inputs(case))


@pytest.mark.torch
def test_references_by_torch_take_unsigned_words() -> None:
    # torch selects no uint64: every case of that type was an error.
    spec = operator("MaskedSelectV3", "x:uint64 mask:bool", "y:uint64")
    x = np.array([7, 2**63 - 1, 3], np.uint64)
    call = replace(make_case(spec, (3,)), golden="torch.masked_select(x, mask)")
    reference = find_reference(call, spec, None, wants_second=False)
    assert reference is not None
    (found,), _ = reference.whole([x, np.array([False, True, True])])
    assert found.dtype == np.uint64
    assert found.tolist() == [2**63 - 1, 3]
