"""Choosing a precision for each operator."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from opkit import graph  # noqa: E402
from opkit.errors import UsageError  # noqa: E402


@pytest.fixture(scope="module")
def model() -> Any:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(64, 2048), nn.ReLU(), nn.Linear(2048, 1024)).eval()


@pytest.fixture(scope="module")
def x() -> Any:
    torch.manual_seed(4)
    return torch.randn(256, 64)


def _error(built: Any, model: Any, x: Any) -> float:
    (found,) = built.create_context().run([x.numpy()])
    with torch.no_grad():
        wanted = model(x).numpy()
    return float(np.linalg.norm(found - wanted) / np.linalg.norm(wanted))


@pytest.mark.slow
@pytest.mark.parametrize(("bound", "last"), [(0.05, "int8"), (2e-3, "float16"), (1e-6, "float32")])
def test_operators_take_the_cheapest_precision_that_keeps_the_bound(
    model: Any, x: Any, bound: float, last: str
) -> None:
    built = graph.build(model, (x,), precision="auto", max_error=bound, calibration=[(x,)])
    assert built.notes[-1]["compute"] == last
    assert _error(built, model, x) < bound
    kept = {tensor.dtype for tensor in built.plan.constants if len(tensor.shape) == 2}
    assert last in kept


@pytest.mark.slow
def test_an_operator_that_costs_too_much_precision_computes_in_float32() -> None:
    """Sums in which much cancels lose their value where the parts are rounded."""

    class Parts(nn.Module):
        def forward(self, x: Any) -> Any:
            return (x + 8.0).reshape(2, 128).sin() * 1.5 + 0.25

    torch.manual_seed(0)
    x = torch.rand(4, 64)
    built = graph.build(Parts(), (x,), precision="auto", max_error=1e-3, calibration=[(x,)])
    assert {note["memory"] for note in built.notes} == {"float16", "float32"}
    assert _error(built, Parts(), x) < 1e-3
    assert _error(graph.build(Parts(), (x,)), Parts(), x) > 1e-3


@pytest.mark.slow
def test_a_schedule_is_a_table_and_a_document(model: Any, x: Any) -> None:
    found = graph.schedule(model, (x,), [(x,)], max_error=0.05)
    document = json.loads(json.dumps(found.to_json()))
    assert [row["node"] for row in document["decisions"]] == [d.node for d in found.decisions]
    assert document["error"] <= document["max_error"] == 0.05
    product = found.decisions[-1]
    assert [option.compute for option in product.options] == [
        *("float32", "bfloat16", "float16", "int8")
    ]
    # Rounding to fewer digits costs more, and multiplying 8 bits takes less time than 32.
    errors = {option.compute: option.error for option in product.options}
    assert 0 == errors["float32"] < errors["float16"] < errors["bfloat16"] < errors["int8"]
    assert product.gain is not None and product.gain > 1
    assert str(found).splitlines()[1].startswith("addmm (addmm)")


def test_what_a_schedule_lacks_is_named(model: Any, x: Any) -> None:
    for settings, message in (
        ({"precision": "auto", "calibration": [(x,)]}, "takes a max_error"),
        ({"precision": "float16", "max_error": 0.1}, "takes no max_error"),
        ({"precision": "auto", "max_error": 0.1}, "needs calibration"),
        ({"precision": "auto", "max_error": 0.0, "calibration": [(x,)]}, "a number above 0"),
        ({"precision": "fp8"}, "there is float32, float16, bfloat16, int8, auto"),
    ):
        with pytest.raises(UsageError) as caught:
            graph.build(model, (x,), **settings)
        assert message in f"{caught.value} {caught.value.help}"


@pytest.mark.slow
def test_convolutions_are_scheduled_too() -> None:
    torch.manual_seed(5)
    model = nn.Sequential(
        *(nn.Conv2d(16, 256, 3, padding=1), nn.BatchNorm2d(256), nn.ReLU()),
        nn.Conv2d(256, 256, 3, padding=1),
    ).eval()
    x = torch.randn(1, 16, 16, 16)
    built = graph.build(model, (x,), precision="auto", max_error=0.02, calibration=[(x,)])
    notes = [note for note in built.notes if "convolution" in note["operator"]]
    assert notes[-1]["compute"] == "int8"
    assert [option["compute"] for option in notes[-1]["options"]][-1] == "int8"
    assert any(array.dtype == np.int8 for array in built.constants)
    assert _error(built, model, x) < 0.02
