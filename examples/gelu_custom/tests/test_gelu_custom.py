"""GELUCustom on every data type it supports, on the shapes where kernels usually break."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from types import ModuleType

import numpy as np
import pytest
from opkit import runtime
from opkit.testing import assert_outputs, to_bfloat16

import gelu_custom as package
from gelu_custom import golden

# One element, around one 32-byte block, a prime, several dimensions, several tiles, nothing at all.
SHAPES = [(1,), (15,), (16,), (17,), (257,), (3, 5, 7), (2, 8192), (100_003,), (0,)]

# Data types of inputs, then outputs, one entry for each supported combination.
VARIANTS = {
    "gelu_custom": [
        ("float16", "float16"),
    ],
    "gelu_custom_grad": [
        ("float16", "float16", "float16"),
    ],
}

# The names of each operator's inputs, and the values of its attributes in these tests.
INPUTS = {
    "gelu_custom": ["x"],
    "gelu_custom_grad": ["grad_y", "x"],
}
ATTRIBUTES = {
    "gelu_custom": {},
    "gelu_custom_grad": {},
}

# Inputs that hold one value per row.
PER_ROW: dict[str, set[str]] = {
    "gelu_custom": set(),
    "gelu_custom_grad": set(),
}


# Inputs that are lists of tensors.
LISTS: dict[str, set[str]] = {
    "gelu_custom": set(),
    "gelu_custom_grad": set(),
}


def make_inputs(operator: str, dtypes: tuple[str, ...], shape: tuple[int, ...]) -> list:
    """Return random inputs, the same on every run."""
    random = np.random.default_rng(0)

    def make(dtype: str, size: tuple[int, ...]) -> np.ndarray:
        if dtype == "bfloat16":
            return to_bfloat16(random.uniform(-4, 4, size))
        if dtype.startswith("float"):
            return random.uniform(-4, 4, size).astype(dtype)
        if dtype == "bool":
            return random.integers(0, 2, size).astype(dtype)
        return random.integers(0 if dtype.startswith("u") else -100, 100, size).astype(dtype)

    arrays: list = []
    for name, dtype in zip(INPUTS[operator], dtypes):
        if name in LISTS[operator]:
            arrays.append([make(dtype, shape) for _ in range(2)])
        else:
            arrays.append(make(dtype, shape[:-1] if name in PER_ROW[operator] else shape))
    return arrays


CASES = [
    pytest.param(operator, dtypes, shape, id=f"{operator}-{'-'.join(dtypes)}-{shape}")
    for operator, variants in VARIANTS.items()
    for dtypes in variants
    for shape in SHAPES
]


@pytest.fixture(autouse=True, scope="module")
def _poisoned_device() -> Iterator[None]:
    """Outputs start as NaN, so that an element that the kernel never writes is seen."""
    runtime.configure(poison=True)
    yield
    runtime.configure(poison=False)


@pytest.mark.parametrize(("operator", "dtypes", "shape"), CASES)
def test_the_result_meets_the_precision_standard(
    operator: str, dtypes: tuple[str, ...], shape: tuple[int, ...]
) -> None:
    if not hasattr(golden, operator):
        pytest.skip(f"no reference given: write {operator} in gelu_custom/golden.py")
    inputs = make_inputs(operator, dtypes, shape)
    actual = getattr(package, operator)(*inputs, **ATTRIBUTES[operator])
    reference = getattr(golden, operator)
    assert_outputs(actual, reference, inputs, dtypes=dtypes, attributes=ATTRIBUTES[operator])


@pytest.fixture
def torch() -> ModuleType:
    """torch, with this project's operators registered; skips where torch is not installed."""
    module = pytest.importorskip("torch")
    importlib.import_module("gelu_custom._torch")
    return module


def to_torch(torch: ModuleType, array: np.ndarray, dtype: str):
    tensor = torch.from_numpy(array)
    return tensor.view(torch.bfloat16) if dtype == "bfloat16" else tensor


def torch_inputs(torch: ModuleType, dtypes: tuple[str, ...], shape: tuple[int, ...]) -> list:
    tensors = []
    for array, dtype in zip(make_inputs("gelu_custom", dtypes, shape), dtypes):
        if isinstance(array, list):
            tensors.append([to_torch(torch, each, dtype) for each in array])
        else:
            tensors.append(to_torch(torch, array, dtype))
    return tensors


TORCH_VARIANTS = [
    ("float16", "float16"),
]
ATTRIBUTE_VALUES = tuple(ATTRIBUTES["gelu_custom"].values())


@pytest.mark.parametrize("dtypes", TORCH_VARIANTS, ids="-".join)
def test_the_torch_operator_passes_opcheck(torch: ModuleType, dtypes: tuple[str, ...]) -> None:
    operator = torch.ops.gelu_custom.gelu_custom.default
    tensors = torch_inputs(torch, dtypes, (4, 33))
    for tensor in tensors:
        tensor.requires_grad_(tensor.is_floating_point())
    torch.library.opcheck(operator, (*tensors, *ATTRIBUTE_VALUES))


@pytest.mark.parametrize("dtypes", TORCH_VARIANTS, ids="-".join)
def test_torch_compiles_it_into_one_graph_for_any_shape(
    torch: ModuleType, dtypes: tuple[str, ...]
) -> None:
    operator = torch.ops.gelu_custom.gelu_custom
    compiled = torch.compile(
        lambda *tensors: operator(*tensors, *ATTRIBUTE_VALUES),
        fullgraph=True,
        dynamic=True,
        backend="aot_eager",
    )
    for shape in [(4, 33), (5, 34)]:
        tensors = torch_inputs(torch, dtypes, shape)
        expected = operator(*tensors, *ATTRIBUTE_VALUES)
        torch.testing.assert_close(compiled(*tensors), expected, equal_nan=True, rtol=0, atol=0)


def test_torch_exports_it(torch: ModuleType) -> None:
    module = package.GELUCustom(**ATTRIBUTES["gelu_custom"])
    tensors = tuple(torch_inputs(torch, TORCH_VARIANTS[0], (4, 33)))
    exported = torch.export.export(module, tensors).module()
    torch.testing.assert_close(exported(*tensors), module(*tensors), equal_nan=True, rtol=0, atol=0)


def test_torch_maps_it_over_a_batch(torch: ModuleType) -> None:
    operator = torch.ops.gelu_custom.gelu_custom
    samples = [torch_inputs(torch, TORCH_VARIANTS[0], (3, 20)) for _ in range(2)]
    batch = [torch.stack(tensors) for tensors in zip(*samples)]
    found = torch.vmap(lambda *tensors: operator(*tensors, *ATTRIBUTE_VALUES))(*batch)
    each = [operator(*tensors, *ATTRIBUTE_VALUES) for tensors in samples]
    if isinstance(found, tuple):
        expected = tuple(torch.stack(results) for results in zip(*each))
    else:
        expected = torch.stack(each)
    # Rows may fall into other tiles, where sums are taken in another order.
    torch.testing.assert_close(found, expected, equal_nan=True)


def test_the_torch_operator_takes_strided_tensors(torch: ModuleType) -> None:
    operator = torch.ops.gelu_custom.gelu_custom
    strided = [
        tensor if tensor.dim() < 2 else tensor.mT.contiguous().mT
        for tensor in torch_inputs(torch, TORCH_VARIANTS[0], (6, 10))
    ]
    expected = operator(*(tensor.contiguous() for tensor in strided), *ATTRIBUTE_VALUES)
    torch.testing.assert_close(
        operator(*strided, *ATTRIBUTE_VALUES), expected, equal_nan=True, rtol=0, atol=0
    )


def test_the_gradient_is_the_slope_of_the_reference() -> None:
    """Central differences of the forward reference in float64 against the backward reference."""
    random = np.random.default_rng(1)
    # Away from zero, where functions such as log and sqrt end.
    values = {
        name: random.uniform(0.5, 1.5, (3,) if name in PER_ROW["gelu_custom"] else (3, 5))
        for name in INPUTS["gelu_custom"]
    }
    attributes = ATTRIBUTES["gelu_custom"]

    def forward() -> tuple[np.ndarray, ...]:
        result = golden.gelu_custom(*values.values(), **attributes)
        return result if isinstance(result, tuple) else (result,)

    weights = [random.uniform(-1, 1, np.shape(output)) for output in forward()]
    names = INPUTS["gelu_custom_grad"]
    given = dict(values)
    given.update(zip(["grad_y"], weights))
    arguments = [given[name] for name in names]
    found = golden.gelu_custom_grad(*arguments, **ATTRIBUTES["gelu_custom_grad"])
    found = found if isinstance(found, tuple) else (found,)
    for name, gradient in zip(["grad_x"], found, strict=True):
        value = values[name.removeprefix("grad_")]
        slope = np.zeros_like(value)
        for index in np.ndindex(value.shape):
            kept, step = value[index], 1e-6
            value[index] = kept + step
            high = sum(float(np.sum(w * y)) for w, y in zip(weights, forward()))
            value[index] = kept - step
            low = sum(float(np.sum(w * y)) for w, y in zip(weights, forward()))
            value[index] = kept
            slope[index] = (high - low) / (2 * step)
        np.testing.assert_allclose(
            np.broadcast_to(gradient, slope.shape), slope, rtol=1e-5, atol=1e-7
        )


def test_torch_uses_the_generated_gradient(torch: ModuleType) -> None:
    dtypes = next((row for row in TORCH_VARIANTS if row[0].endswith(("float32", "float16"))), None)
    if dtypes is None:
        pytest.skip("no floating-point variant has a gradient")
    tensors = [
        tensor.requires_grad_(tensor.is_floating_point())
        for tensor in torch_inputs(torch, dtypes, (4, 33))
    ]
    result = torch.ops.gelu_custom.gelu_custom(*tensors, *ATTRIBUTE_VALUES)
    results = result if isinstance(result, tuple) else (result,)
    floating = [output for output in results if output.is_floating_point()]
    upstream = [torch.rand_like(output) for output in floating]
    torch.autograd.backward(floating, upstream)
    given = dict(zip(INPUTS["gelu_custom"], tensors))
    given.update(zip(["grad_y"], upstream))
    wanted = [given[name] for name in ["x"]]
    read = [given[name] for name in INPUTS["gelu_custom_grad"]]
    assert_outputs(
        [tensor.grad.numpy() for tensor in wanted],
        golden.gelu_custom_grad,
        [tensor.detach().numpy() for tensor in read],
        dtypes=[str(tensor.dtype).removeprefix("torch.") for tensor in (*read, *wanted)],
        attributes=ATTRIBUTES["gelu_custom_grad"],
    )


def test_torch_takes_the_second_derivative(torch: ModuleType) -> None:
    """The slope of the first derivative, by central differences of the reference in float64."""
    dtypes = next((row for row in TORCH_VARIANTS if set(row) == {"float32"}), None)
    if dtypes is None:
        pytest.skip("no variant is float32 throughout")
    tensors = [t.mul(0.1).add(1).requires_grad_() for t in torch_inputs(torch, dtypes, (3, 5))]
    given = dict(zip(INPUTS["gelu_custom"], tensors))
    result = torch.ops.gelu_custom.gelu_custom(*tensors, *ATTRIBUTE_VALUES)
    results = result if isinstance(result, tuple) else (result,)
    wanted = [given[name] for name in ["x"]]
    ones = [torch.ones_like(output) for output in results]
    first = torch.autograd.grad(results, wanted, ones, create_graph=True)
    second = torch.autograd.grad([g.sum() for g in first], wanted, allow_unused=True)

    values = {name: tensor.detach().double().numpy() for name, tensor in given.items()}

    def slope_sum() -> float:
        upstream = {f"grad_{name}": np.ones(tuple(o.shape)) for name, o in zip(["y"], results)}
        inputs = {**values, **upstream}
        found = golden.gelu_custom_grad(
            *(inputs[name] for name in INPUTS["gelu_custom_grad"]), **ATTRIBUTES["gelu_custom_grad"]
        )
        return sum(
            float(np.sum(each)) for each in (found if isinstance(found, tuple) else (found,))
        )

    for name, gradient in zip(["x"], second):
        value = values[name]
        for index in [(0,) * value.ndim, tuple(size - 1 for size in value.shape)]:
            kept, step = value[index], 1e-5
            value[index] = kept + step
            high = slope_sum()
            value[index] = kept - step
            low = slope_sum()
            value[index] = kept
            found = 0.0 if gradient is None else float(gradient[index])
            np.testing.assert_allclose(found, (high - low) / (2 * step), rtol=1e-3, atol=1e-3)
