"""Cases whose values tell wrong kernels from right ones, and which operators get them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opkit.errors import OperatorError
from opkit.schema import AttrSpec, OpSpec, ShapeRule, TensorSpec
from opkit.testing import Case, Golden, load_golden, make_inputs, run_cases
from opkit.testing.probing import probing_cases

from .conftest import FakeLibrary, dtypes, tensor

Kernel = Callable[..., list[np.ndarray[Any, Any]]]
Array = np.ndarray[Any, Any]


def spec(inputs: list[TensorSpec], *outputs: TensorSpec) -> OpSpec:
    return OpSpec("Probe", "probe", tuple(inputs), outputs, (), Path("probe.json"))


@pytest.fixture
def probe(
    write_golden: Callable[[str], Path], make_project: Callable[..., Any]
) -> Callable[..., dict[str, Any]]:
    """The verdicts of a kernel in the probing cases of an operator, by their values."""

    def judged(operator: OpSpec, golden: str, kernel: Kernel) -> dict[str, Any]:
        loaded = load_golden(write_golden(golden))
        cases = probing_cases(operator, loaded)
        report = run_cases(
            make_project(operator), cases, library=FakeLibrary(kernel), golden=loaded
        )
        return {
            r.case.name.rpartition("-")[2].removesuffix("_rows"): r.verdict.passed
            for r in report.results
        }

    return judged


@pytest.fixture
def cases_for(write_golden: Callable[[str], Path]) -> Callable[[OpSpec, str], tuple[Case, ...]]:
    def cases(operator: OpSpec, golden: str) -> tuple[Case, ...]:
        return probing_cases(operator, load_golden(write_golden(golden)))

    return cases


def whole(name: str = "int32") -> OpSpec:
    return spec([tensor("x", name), tensor("y", name)], tensor("z", name))


SUM = "def probe(x, y):\n    return x + 3 * y\n"
PRODUCT = "def probe(x, y):\n    return x * y\n"


@pytest.mark.parametrize("golden", [SUM, PRODUCT])
def test_int32_through_float32_is_wrong_and_in_int32_right(
    golden: str, probe: Callable[..., dict[str, Any]]
) -> None:
    names: dict[str, Any] = {}
    exec(golden, names)

    def through(kind: type) -> Kernel:
        return lambda x, y: [names["probe"](x.astype(kind), y.astype(kind)).astype(np.int32)]

    assert probe(whole(), golden, through(np.int32)) == {"wide": True}
    assert probe(whole(), golden, through(np.float32)) == {"wide": False}


@pytest.mark.parametrize("name", ["int8", "uint8", "int16", "int32", "int64", "uint32"])
def test_a_copy_gets_both_ends_of_its_type(
    name: str, cases_for: Callable[[OpSpec, str], tuple[Case, ...]]
) -> None:
    operator = spec([tensor("x", name)], tensor("y", name))
    (case,) = cases_for(operator, "def probe(x):\n    return x\n")
    values = make_inputs(case)[0]
    assert isinstance(values, np.ndarray)
    limits = np.iinfo(name)
    bits = min(limits.bits - (limits.min < 0), 62)
    assert values.max() == 2**bits - 1
    assert values.min() == (-(2**bits) if limits.min else 0)


# What is computed on the way stays in the type too, and exact where it goes through floats.
@pytest.mark.parametrize(
    ("golden", "most"),
    [
        ("def probe(x, y):\n    return x * x // (abs(y) + 1)\n", 2**15.5),
        ("def probe(x, y):\n    return np.floor(x * 0.5).astype(np.int64) + y\n", 2**24),
        ("def probe(x, y):\n    return np.sum(x * y, axis=0, keepdims=True) + 0 * x\n", 2**15),
    ],
)
def test_whole_numbers_grow_as_far_as_the_way_to_the_result_allows(
    golden: str, most: float, cases_for: Callable[[OpSpec, str], tuple[Case, ...]]
) -> None:
    (case,) = cases_for(whole(), f"import numpy as np\n{golden}")
    largest = max(np.abs(array.astype(np.int64)).max() for array in make_inputs(case)[:1])
    assert 100 < largest <= most


# Places, counts and lengths are no numbers of any size.
@pytest.mark.parametrize(
    "golden",
    [
        "def probe(x):\n    return np.arange(40)[x + 11]\n",
        "def probe(x):\n    return np.zeros(x.max() + 12)\n",
        "def probe(x):\n    if abs(x).max() > 11:\n        raise ValueError\n    return x\n",
    ],
)
def test_what_takes_small_numbers_gets_no_large_ones(
    golden: str, cases_for: Callable[[OpSpec, str], tuple[Case, ...]]
) -> None:
    operator = spec([tensor("x", "int32")], tensor("y", "int32"))
    assert cases_for(operator, f"import numpy as np\n{golden}") == ()


def test_what_takes_places_gets_large_numbers_elsewhere(
    cases_for: Callable[[OpSpec, str], tuple[Case, ...]],
) -> None:
    golden = "import numpy as np\ndef probe(x, y):\n    return np.arange(40)[x + 11] * 0 + y\n"
    (case,) = cases_for(whole(), golden)
    x, y = make_inputs(case)
    assert isinstance(x, np.ndarray) and isinstance(y, np.ndarray)
    assert np.abs(x).max() <= 11
    assert y.max() == 2**31 - 1


RELU = "import numpy as np\ndef probe(x):\n    return np.maximum(x, 0)\n"


def test_a_kernel_that_clamps_nan_or_infinity_away_is_wrong(
    probe: Callable[..., dict[str, Any]],
) -> None:
    relu = spec([tensor("x", "float32")], tensor("y", "float32"))
    assert probe(relu, RELU, lambda x: [np.maximum(x, 0)])["nonfinite"]
    assert not probe(relu, RELU, lambda x: [np.fmax(x, 0)])["nonfinite"]
    assert not probe(relu, RELU, lambda x: [np.minimum(np.maximum(x, 0), 3e38)])["nonfinite"]


def test_whole_results_are_not_asked_for_nan(
    cases_for: Callable[[OpSpec, str], tuple[Case, ...]],
) -> None:
    operator = spec([tensor("x", "float32")], tensor("y", "int8"))
    golden = "import numpy as np\ndef probe(x):\n    return np.clip(np.rint(x), -128, 127)\n"
    assert not any("nonfinite" in case.name for case in cases_for(operator, golden))


@pytest.mark.parametrize("result", ["int8", "float32"])
def test_halves_that_are_rounded_the_wrong_way_are_wrong(
    result: str, probe: Callable[..., dict[str, Any]]
) -> None:
    operator = spec([tensor("x", "float32"), tensor("scale", "float32")], tensor("y", result))
    golden = "import numpy as np\ndef probe(x, scale):\n    return np.rint(x / scale)\n"
    to = np.dtype(result)
    small = np.float32(1e-30)

    def rounding(function: Callable[[Array], Array]) -> Kernel:
        return lambda x, scale: [np.clip(function(x / (scale + small)), -128, 127).astype(to)]

    wrong = rounding(lambda v: np.sign(v) * np.floor(np.abs(v) + 0.5))
    with np.errstate(all="ignore"):
        assert probe(operator, golden, rounding(np.rint))["halves"]
        assert not probe(operator, golden, wrong)["halves"]


def test_a_scale_that_is_no_power_of_two_is_1_where_halves_are_rounded(
    cases_for: Callable[[OpSpec, str], tuple[Case, ...]],
) -> None:
    # By a scale of 0.05 no value is half way: a quantiser that rounded away from 0 passed.
    scale = AttrSpec("scale", "float", required=False, default=0.05)
    operator = dataclasses.replace(
        spec([tensor("x", "float32")], tensor("y", "int8")), attrs=(scale,)
    )
    golden = "import numpy as np\ndef probe(x, scale):\n    return np.rint(x / scale)\n"
    found = {case.name: case for case in cases_for(operator, golden) if "halves" in case.name}
    assert [dict(case.attrs)["scale"] for case in found.values()] == [0.05, 1.0]
    assert [case.may_be_refused for case in found.values()] == [False, True]


@pytest.mark.parametrize("to", ["float16", "bfloat16"])
def test_a_cast_that_cuts_digits_off_is_wrong(
    to: str, probe: Callable[..., dict[str, Any]]
) -> None:
    operator = spec([tensor("x", "float32")], tensor("y", to))
    bits = 16 if to == "bfloat16" else 13

    def cut(x: Array, keeps: int) -> list[Array]:
        words = x.view(np.uint32).astype(np.uint64)
        odd = (words >> bits) & 1
        words = (words + keeps * ((1 << (bits - 1)) - 1 + odd)) >> bits << bits
        short = words.astype(np.uint32).view(np.float32)
        if to == "float16":
            return [short.astype(np.float16)]
        return [(short.view(np.uint32) >> 16).astype(np.uint16)]

    golden = "def probe(x):\n    return x\n"
    assert probe(operator, golden, lambda x: cut(x, 1))["halves"]
    assert not probe(operator, golden, lambda x: cut(x, 0))["halves"]


def test_rows_have_one_such_value_each(norm: OpSpec, write_golden: Callable[[str], Path]) -> None:
    golden = load_golden(
        write_golden(
            "import numpy as np\ndef norm(x, gamma):\n"
            "    return x / np.sqrt((x * x).mean(-1, keepdims=True)) * gamma\n"
            "def norm_input_shapes(shape):\n    return {'gamma': shape[-1:]}\n"
        )
    )
    assert isinstance(golden, Golden)
    case, rare = probing_cases(norm, golden, shape_rule=golden.shape_rule(norm))
    assert not case.may_be_refused and rare.may_be_refused
    x, gamma = make_inputs(case)
    assert isinstance(x, np.ndarray) and isinstance(gamma, np.ndarray)
    assert ((~np.isfinite(x) | (x == 0)).sum(axis=-1) == 1).all() and np.isfinite(gamma).all()


def test_without_a_golden_there_are_none(norm: OpSpec) -> None:
    assert probing_cases(norm, None) == ()


def test_a_golden_that_never_ends_gets_none(
    write_golden: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("opkit.testing.probing._SECONDS", 0.2)
    golden = "def probe(x):\n    while abs(x).max() > 11:\n        pass\n    return x\n"
    operator = spec([tensor("x", "int32")], tensor("y", "int32"))
    assert probing_cases(operator, load_golden(write_golden(golden))) == ()


def test_the_type_of_each_output_counts(
    cases_for: Callable[[OpSpec, str], tuple[Case, ...]],
) -> None:
    types = dtypes("int32")
    operator = dataclasses.replace(
        whole(),
        outputs=(tensor("z", "int32"), TensorSpec("small", "required", dtypes("int16"), ("ND",))),
    )
    assert types
    (case,) = cases_for(operator, "def probe(x, y):\n    return x + y, x\n")
    x, y = make_inputs(case)
    assert isinstance(x, np.ndarray) and isinstance(y, np.ndarray)
    assert np.abs(x).max() < 2**15 < np.abs(y).max()


STEP = "import numpy as np\ndef probe(x):\n    return np.where(x > 0.5, x, 0.0)\n"
BOUNDED = "import numpy as np\ndef probe(x):\n    return np.clip(np.rint(x * 4), -128, 127)\n"


def test_a_kernel_that_takes_equal_for_larger_is_wrong(
    probe: Callable[..., dict[str, Any]],
) -> None:
    step = spec([tensor("x", "float16")], tensor("y", "float16"))
    assert probe(step, STEP, lambda x: [np.where(x > 0.5, x, np.float16(0))])["thresholds"]
    assert not probe(step, STEP, lambda x: [np.where(x >= 0.5, x, np.float16(0))])["thresholds"]


def test_inputs_that_are_compared_meet_each_other(probe: Callable[..., dict[str, Any]]) -> None:
    less = spec([tensor("x", "float32"), tensor("y", "float32")], tensor("z", "int8"))
    golden = "def probe(x, y):\n    return (x < y) * 1\n"
    assert probe(less, golden, lambda x, y: [(x < y).astype(np.int8)])["thresholds"]
    assert not probe(less, golden, lambda x, y: [(x <= y).astype(np.int8)])["thresholds"]


@pytest.mark.parametrize(("low", "high", "passes"), [(-128, 127, True), (-127, 127, False)])
def test_what_bounds_its_results_gets_numbers_beyond_the_bounds(
    low: int, high: int, passes: bool, probe: Callable[..., dict[str, Any]]
) -> None:
    quantiser = spec([tensor("x", "float32")], tensor("y", "int8"))
    verdicts = probe(
        quantiser, BOUNDED, lambda x: [np.clip(np.rint(x * 4), low, high).astype(np.int8)]
    )
    assert verdicts == {"halves": True, "thresholds": passes}


def test_a_number_that_the_type_rounds_is_no_threshold(
    cases_for: Callable[[OpSpec, str], tuple[Case, ...]],
) -> None:
    operator = spec([tensor("x", "float32")], tensor("y", "float32"))
    golden = "import numpy as np\ndef probe(x):\n    return np.where(x > 0.1, x, 2 * x)\n"
    (case,) = [c for c in cases_for(operator, golden) if "thresholds" in c.name]
    assert set(np.unique(make_inputs(case)[0])) == {-1.0, 0.0, 1.0}  # type: ignore[call-overload]


def test_a_reciprocal_of_nothing_is_no_nothing(probe: Callable[..., dict[str, Any]]) -> None:
    operator = spec([tensor("x", "float32")], tensor("y", "float32"))
    golden = "import numpy as np\ndef probe(x):\n    return 1.0 / x\n"
    safe = np.float32(1e-30)
    with np.errstate(all="ignore"):
        assert probe(operator, golden, lambda x: [1 / x])["nonfinite"]
        assert not probe(operator, golden, lambda x: [np.where(x == 0, 0, 1 / (x + safe))])[
            "nonfinite"
        ]


NORMS = {
    "variance": "np.mean((x - np.mean(x, -1, keepdims=True)) ** 2, -1)",
    "norm": "(x - np.mean(x, -1, keepdims=True)) / np.std(x, -1, keepdims=True)",
}


def _one_pass(x: Array, mean: Callable[[Array], Array]) -> tuple[Array, Array]:
    centre = mean(x)
    return centre, mean(x * x) - centre * centre


def _two_passes(x: Array, mean: Callable[[Array], Array]) -> tuple[Array, Array]:
    centre = mean(x)
    return centre, mean((x - centre) ** 2)


def _one_by_one(x: Array) -> Array:
    return np.cumsum(x, -1, dtype=np.float32)[..., -1:] / np.float32(x.shape[-1])


def _in_pairs(x: Array) -> Array:
    return np.mean(x, -1, dtype=np.float32, keepdims=True)


@pytest.mark.parametrize("name", NORMS)
@pytest.mark.parametrize("mean", [_one_by_one, _in_pairs])
def test_a_variance_in_one_pass_is_wrong_and_in_two_right(
    name: str, mean: Callable[[Array], Array], probe: Callable[..., dict[str, Any]]
) -> None:
    output = TensorSpec("y", "required", dtypes("float32"), ("ND",), shape=None)
    if name == "variance":
        output = dataclasses.replace(
            output, shape=ShapeRule("reduce", ("x",), {"axis": (-1,), "keepdims": False})
        )
    operator = spec([tensor("x", "float32")], output)
    golden = f"import numpy as np\ndef probe(x):\n    return {NORMS[name]}\n"

    def by(passes: Callable[..., tuple[Array, Array]]) -> Kernel:
        def kernel(x: Array) -> list[Array]:
            with np.errstate(all="ignore"):
                centre, variance = passes(x, mean)
                found = variance[..., 0] if name == "variance" else (x - centre) / np.sqrt(variance)
            return [found.astype(np.float32)]

        return kernel

    assert probe(operator, golden, by(_two_passes))["offset"] is True
    assert probe(operator, golden, by(_one_pass))["offset"] is False


@pytest.mark.parametrize(
    "golden", ["x * x", "np.maximum(x, 0)", "np.mean(x, -1, keepdims=True) * x"]
)
def test_what_an_offset_changes_gets_none(
    golden: str, cases_for: Callable[[OpSpec, str], tuple[Case, ...]]
) -> None:
    operator = spec([tensor("x", "float32")], tensor("y", "float32"))
    found = cases_for(operator, f"import numpy as np\ndef probe(x):\n    return {golden}\n")
    assert not any(case.name.endswith("offset") for case in found)


@pytest.mark.parametrize(
    ("golden", "takes_none"),
    [("np.sum(x, -1)", True), ("np.max(x, -1)", False), ("np.mean(x, -1)", False)],
)
def test_rows_of_rare_shapes_are_those_of_which_the_golden_has_results(
    golden: str, takes_none: bool, cases_for: Callable[[OpSpec, str], tuple[Case, ...]]
) -> None:
    rule = ShapeRule("reduce", ("x",), {"axis": (-1,), "keepdims": False})
    output = dataclasses.replace(tensor("y", "float32"), shape=rule)
    text = f"import numpy as np\ndef probe(x):\n    return {golden}\n"
    found = [
        case
        for case in cases_for(spec([tensor("x", "float32")], output), text)
        if case.may_be_refused
    ]
    shapes = [(2, 1, 3, 2, 5), (5, 0), (65539, 1), (2, 20011)]
    assert [case.shape for case in found] == [s for s in shapes if s[-1] or takes_none]


def test_a_rule_for_shapes_gets_more_axes_than_four(
    write_golden: Callable[[str], Path],
) -> None:
    text = "def probe(x, y):\n    return x + y\n"
    operator = spec([tensor("x", "float32"), tensor("y", "float32")], tensor("z", "float32"))

    def rare(
        rule: Callable[[tuple[int, ...]], dict[str, tuple[int, ...]]],
    ) -> list[tuple[int, ...]]:
        found = probing_cases(operator, load_golden(write_golden(text)), shape_rule=rule)
        return [case.shape for case in found if case.may_be_refused]

    def of_two_axes(shape: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
        if len(shape) > 2:
            raise OperatorError("two axes at most")
        return {"y": shape[-1:]}

    assert rare(lambda shape: {"y": (*shape[:-2], 1, shape[-1])}) == [(2, 1, 3, 2, 5)]
    assert rare(of_two_axes) == []
