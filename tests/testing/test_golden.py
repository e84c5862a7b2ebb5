"""Reading a project's golden.py."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from opkit.errors import OperatorError
from opkit.schema import OpSpec
from opkit.testing import Golden, default_cases, find_reference, load_golden, make_inputs

WriteGolden = Callable[[str], Path]


def loaded(path: Path) -> Golden:
    golden = load_golden(path)
    assert golden is not None
    return golden


def test_a_missing_file_is_no_golden(tmp_path: Path) -> None:
    assert load_golden(tmp_path / "golden.py") is None


def test_a_function_gets_wide_arrays_and_attributes(write_golden: WriteGolden) -> None:
    golden = loaded(write_golden("def scale(x, *, factor=1.0): return factor * x"))
    assert golden.has("scale") and not golden.has("other")
    (y,) = golden.reference("scale", [np.array([1.0, 2.0])], attrs={"factor": 3.0})
    assert y.tolist() == [3.0, 6.0]


def test_several_outputs_come_as_a_tuple(write_golden: WriteGolden) -> None:
    golden = loaded(write_golden("def both(x): return x + 1, x.max()"))
    first, second = golden.reference("both", [np.array([1.0, 2.0])], attrs={})
    assert first.tolist() == [2.0, 3.0]
    assert second.shape == ()


def test_the_package_around_it_is_not_imported(write_golden: WriteGolden) -> None:
    path = write_golden("def scale(x): return x")
    (path.parent / "__init__.py").write_text("raise RuntimeError('imported')")
    assert loaded(path).has("scale")
    assert path.parent.name not in sys.modules


def test_an_operators_own_shape_rule_is_taken_first(
    write_golden: WriteGolden, norm: OpSpec, scale: OpSpec
) -> None:
    golden = loaded(
        write_golden(
            """
            def input_shapes(shape): return {"gamma": shape[-1:], "elsewhere": shape}
            def scale_input_shapes(shape): return {"x": (7,)}
            """
        )
    )
    own, common = golden.shape_rule(scale), golden.shape_rule(norm)
    assert own is not None and common is not None
    assert own((2, 3)) == {"x": (7,)}
    assert common((2, 3)) == {"gamma": (3,)}


def test_no_rule_is_none(write_golden: WriteGolden, scale: OpSpec) -> None:
    assert loaded(write_golden("def scale(x): return x")).shape_rule(scale) is None


def test_a_rule_must_return_a_dict(write_golden: WriteGolden, scale: OpSpec) -> None:
    rule = loaded(write_golden("def input_shapes(shape): return 3")).shape_rule(scale)
    assert rule is not None
    with pytest.raises(OperatorError, match="expected a dict"):
        rule((1,))


@pytest.mark.parametrize("text", ["def scale(x:\n", "import nothing_of_the_kind\n"])
def test_a_file_that_does_not_load_is_the_users_error_with_its_line(
    write_golden: WriteGolden, text: str
) -> None:
    path = write_golden(text)
    with pytest.raises(OperatorError, match=r"golden\.py:1: "):
        load_golden(path)


# Every command that looks at it went on without an end.
def test_a_file_that_never_loads_is_the_users_error(
    write_golden: WriteGolden, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("opkit.testing.cases.golden._LOAD_SECONDS", 0.1)
    with pytest.raises(OperatorError, match=r"not loaded after 0\.1 s"):
        load_golden(write_golden("while True: pass"))


def test_a_function_that_fails_is_the_users_error_with_its_line(write_golden: WriteGolden) -> None:
    golden = loaded(write_golden("def scale(x):\n    y = 1\n    return x[y, y, y]\n"))
    with pytest.raises(OperatorError, match=r"golden\.py:3: IndexError"):
        golden.reference("scale", [np.ones(2)], attrs={})


def test_overflow_in_a_reference_warns_nobody(
    write_golden: WriteGolden, recwarn: pytest.WarningsRecorder
) -> None:
    golden = loaded(write_golden("import numpy as np\ndef scale(x): return np.exp(x)"))
    golden.reference("scale", [np.array([1e4])], attrs={})
    assert len(recwarn) == 0


# It ran for 120 s and ten times the limit of a launch, and was then said to be the kernel's.
@pytest.mark.parametrize("loop", ["while True: pass", "time.sleep(1000)"])
def test_a_function_that_gives_no_result_is_the_users_error(
    write_golden: WriteGolden, scale: OpSpec, loop: str
) -> None:
    golden = loaded(write_golden(f"import time\ndef scale(x, *, factor):\n    {loop}"))
    (case, *_) = default_cases(scale)
    reference = find_reference(case, scale, golden, wants_second=False, seconds=0.2)
    assert reference is not None
    with pytest.raises(OperatorError, match=r"golden.py: scale: no result after 0.2 s"):
        reference.whole(make_inputs(case))


def test_a_rule_that_gives_no_result_is_the_users_error(
    write_golden: WriteGolden, scale: OpSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The command itself asks for shapes, and hung.
    monkeypatch.setattr("opkit.testing.cases.golden._RULE_SECONDS", 0.2)
    rule = loaded(write_golden("def input_shapes(shape):\n    while True: pass")).shape_rule(scale)
    assert rule is not None
    with pytest.raises(OperatorError, match=r"input_shapes\(1,\) gives no result after 0.2 s"):
        rule((1,))
