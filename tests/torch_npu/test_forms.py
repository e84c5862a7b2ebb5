"""Forms that write a given tensor, `f_(x)` and `f(x, out=y)`, beside the native function."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

COMPOSITES = ("ImplicitAutograd", "ExplicitAutograd", "ExplicitAutogradNonFunctional")
REASONS = {
    "native_batch_norm.out": "changes its running statistics as well",
}
"""Forms that go to the CPU, and why."""


def native(op: str) -> bool:
    from opkit.torch_npu.native import library

    return bool(json.loads(library().opkit_npu_which(f"aten::{op}".encode(), -1)))


def is_made(op: str) -> bool:
    """Whether PyTorch makes it of other operators; or knows it in scripts only."""
    try:
        has = torch._C._dispatch_has_kernel_for_dispatch_key
        return any(has(f"aten::{op}", f"Composite{kind}") for kind in COMPOSITES)
    except RuntimeError:
        return True


def schemas() -> dict[str, Any]:
    found = {}
    for schema in torch._C._jit_get_all_schemas():
        space, name = schema.name.split("::")
        if space == "aten":
            overload = f".{schema.overload_name}" if schema.overload_name else ""
            found[name + overload] = schema
    return found


def writes(schema: Any) -> bool:
    return any(a.alias_info is not None and a.alias_info.is_write for a in schema.arguments)


def taken(schema: Any) -> list[tuple[str, str]]:
    return [(a.name, str(a.type)) for a in schema.arguments if not a.is_out]


def test_forms_of_native_functions_are_native() -> None:
    # hardswish_ was the CPU's in 399 of 8,560 calls of MobileNetV3, though hardswish was not; so
    # were 21 others.
    known = schemas()
    missing = []
    for name, schema in known.items():
        if writes(schema) or not native(name):
            continue
        base = name.split(".")[0]
        for form, other in known.items():
            if form.split(".")[0] not in (base, base + "_") or not writes(other):
                continue
            if taken(other) == taken(schema) and not native(form) and not is_made(form):
                missing.append(form)
    assert sorted(missing) == sorted(REASONS)


X = (torch.arange(24.0).reshape(4, 6) - 11) / 3
POSITIVE = X.abs() + 0.5
PLACES = torch.tensor([2, 0, 1])

IN_PLACE: dict[str, Callable[[Any], Any]] = {
    "relu_": torch.relu_,
    "hardswish_": torch.ops.aten.hardswish_,
    "hardtanh_": torch.ops.aten.hardtanh_,
    "floor_divide_": lambda x: x.floor_divide_(0.7),
}
OUT: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "angle": (torch.angle, (X,)),
    "floor_divide": (torch.floor_divide, (X, POSITIVE)),
    "hardswish": (torch.ops.aten.hardswish.out, (X,)),
    "hardtanh": (torch.ops.aten.hardtanh.out, (X, -0.5, 2)),
    "huber_loss": (torch.ops.aten.huber_loss.out, (X, POSITIVE)),
    "index_select": (torch.index_select, (X, 1, PLACES)),
    "mse_loss_backward": (torch.ops.aten.mse_loss_backward.grad_input, (X[0, 0], X, POSITIVE, 1)),
    "masked_select": (torch.masked_select, (X, X > 1)),
    "max": (torch.max, (X,)),
    "min": (torch.min, (X,)),
    "nansum": (torch.nansum, (X, 1)),
    "nonzero": (torch.nonzero, (X > 1,)),
    "std": (torch.std, (X, 1)),
    "take": (torch.take, (X, PLACES)),
    "var": (torch.var, (X, 0)),
    "where": (torch.where, (X > 1, X, POSITIVE)),
}
ARGUMENT = {"hardswish": "out", "mse_loss_backward": "grad_input"}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", IN_PLACE)
def test_a_function_in_place_is_the_function(name: str, dtype: torch.dtype) -> None:
    for view in (lambda x: x, lambda x: x[:, ::2], lambda x: x.t()):
        here, there = X.to(dtype, copy=True), X.to(dtype, copy=True).to("npu")
        torch.npu.reset_fallbacks()
        given = view(there)
        assert IN_PLACE[name](given) is given
        assert not torch.npu.fallbacks(), str(torch.npu.fallbacks())
        IN_PLACE[name](view(here))
        torch.testing.assert_close(there.cpu(), here)


def called(name: str, device: str, out: Any) -> Any:
    function, given = OUT[name]
    moved = [x.to(device) if isinstance(x, torch.Tensor) else x for x in given]
    return function(*moved, **{ARGUMENT.get(name, "out"): out})


@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
@pytest.mark.parametrize("name", OUT)
def test_a_function_into_a_given_tensor_is_the_function(name: str) -> None:
    dtype = torch.int64 if name == "nonzero" else torch.float32
    for shape in ((0,), (4, 6), (3, 7)):
        here, there = torch.zeros(shape, dtype=dtype), torch.zeros(shape, dtype=dtype).to("npu")
        torch.npu.reset_fallbacks()
        got = called(name, "npu", there)
        assert not torch.npu.fallbacks(), str(torch.npu.fallbacks())
        assert got.data_ptr() == there.data_ptr()
        called(name, "cpu", here)
        torch.testing.assert_close(there.cpu(), here)


@pytest.mark.parametrize("name", [name for name in OUT if name not in ("nonzero", "where")])
def test_what_the_cpu_refuses_to_write_is_refused(name: str) -> None:
    outcomes = []
    for device in ("cpu", "npu"):
        try:
            called(name, device, torch.zeros(0, dtype=torch.int32).to(device))
            outcomes.append("")
        except Exception as error:
            outcomes.append(type(error).__name__)
    assert outcomes[0] == outcomes[1]


def test_complex_numbers_are_conjugated_in_place() -> None:
    # "DispatchStub: missing kernel for npu": PyTorch's own function looked in the CPU's table.
    x = torch.tensor([1 + 2j, 3 - 1j], device="npu")
    assert x.conj_physical_() is x
    assert x.tolist() == [1 - 2j, 3 + 1j]
    real = torch.ones(2, device="npu")
    assert real.conj_physical_().tolist() == [1, 1]
