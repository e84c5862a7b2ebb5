"""The host's C++ launches a kernel as Python does."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from opkit import compiler as oc
from opkit.chips import find_chip
from opkit.compiler import TensorSpec as Spec
from opkit.compiler.codegen.kernel_class import pack_tiling
from opkit.compiler.codegen.vector import DoesNotFit, launch_for
from opkit.compiler.ir.dimensions import evaluate

CHIP = find_chip("Ascend910B2")
B, M, N = oc.dimension("B"), oc.dimension("M"), oc.dimension("N")
PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[oc.TensorSpec, ...]]] = {
    "norm": (
        lambda x, w: x * (x.apply("square").mean(axis=-1, keepdims=True) + 1e-6).apply("rsqrt") * w,
        (Spec("x", (M, N), "float16"), Spec("w", (N,), "float16")),
    ),
    "flat": (lambda x: x.apply("erf"), (Spec("x", (M,), "float32"),)),
    "pointwise": (lambda x: x.apply("gelu"), (Spec("x", (M, N), "float16"),)),
    "down": (lambda x: x.sum(axis=0), (Spec("x", (M, N), "float16"),)),
    "fixed": (lambda x: x.apply("softmax"), (Spec("x", (M, 4096), "float32"),)),
    "batches": (
        lambda x, y: (x + y).max(axis=1),
        (Spec("x", (B, M, N), "float16"), Spec("y", (B, 1, N), "float16")),
    ),
}
MOVEMENTS: dict[str, tuple[Callable[..., Any], tuple[oc.TensorSpec, ...]]] = {
    "turned": (lambda x: x.T, (Spec("x", (M, N), "float16"),)),
    "batched": (lambda x: x.transpose(0, 2, 1, 3), (Spec("x", (M, 5, N, 7), "float32"),)),
    "parted": (lambda x: x[1:, 2::3], (Spec("x", (M + 1, N + 2), "int64"),)),
    "joined": (
        lambda x, y: x.builder.apply("concat", x, y, axis=1),
        (Spec("x", (M, N), "float16"), Spec("y", (M, 3), "float16")),
    ),
    "padded": (
        lambda x: x.apply("pad", widths=((1, 2), (0, 3)), value=1.5),
        (Spec("x", (M, N), "float32"),),
    ),
    "found": (
        lambda x, i: x.apply("take", i, axis=1),
        (Spec("x", (3, M, 9), "float16"), Spec("i", (N, 2), "int32")),
    ),
    "sorted_down": (lambda x: x.apply("sort", axis=0), (Spec("x", (M, N), "float16"),)),
    "largest": (lambda x: x.apply("topk", k=1), (Spec("x", (M, 3, N), "float32"),)),
    "placed": (lambda x: x.apply("argmax", axis=1), (Spec("x", (M, N, 4), "int32"),)),
    "summed": (lambda x: x.sum(axis=1), (Spec("x", (M, N), "int32"),)),
    "counted": (
        lambda x: x.builder.apply("arange", count=x.shape[0] * x.shape[1]),
        (Spec("x", (M, N), "float16"),),
    ),
}
K = oc.dimension("K")
PRODUCTS: dict[str, tuple[Callable[..., Any], tuple[oc.TensorSpec, ...]]] = {
    "blocks": (lambda x, w: x @ w, (Spec("x", (M, K), "float16"), Spec("w", (K, N), "float16"))),
    "batches": (
        lambda x, w: x @ w.transpose(0, 2, 1),
        (Spec("x", (B, M, K), "bfloat16"), Spec("w", (B, N, K), "bfloat16")),
    ),
    "whole": (lambda x, w: x @ w.T, (Spec("x", (M, K), "int8"), Spec("w", (N, K), "int8"))),
    "object": (lambda x, w: x @ w, (Spec("x", (M, K), "float32"), Spec("w", (K, N), "float32"))),
    "linear": (
        lambda x, w, b: (x @ w + b).apply("relu"),
        (Spec("x", (M, K), "float16"), Spec("w", (K, N), "float16"), Spec("b", (N,), "float16")),
    ),
    "single": (
        lambda x, w, b: (x @ w + b).apply("relu"),
        (Spec("x", (M, K), "float32"), Spec("w", (K, N), "float32"), Spec("b", (N,), "float32")),
    ),
}
SIZES = [1, 2, 3, 7, 31, 48, 49, 64, 65, 255, 1000, 2040, 4099, 50021]
HELPER = "inline int64_t DivideUp(int64_t value, int64_t by) { return (value + by - 1) / by; }\n"


def _loaded(texts: list[str], folder: Path) -> ctypes.CDLL:
    """Return the library of some C++."""
    source = folder / "launches.cpp"
    headers = ("algorithm", "cmath", "cstdint", "tuple", "vector")
    head = "".join(f"#include <{header}>\n" for header in headers)
    source.write_text("".join([head, HELPER, *texts]))
    library = folder / "launches.so"
    subprocess.run(
        ["c++", "-std=c++17", "-Wall", "-Werror", "-shared", "-fPIC", source, "-o", library],
        check=True,
    )
    return ctypes.CDLL(str(library))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", MOVEMENTS)
def test_movements_have_the_same_tiling_data_too(name: str, tmp_path: Path) -> None:
    function, specs = MOVEMENTS[name]
    stages = oc.compile_stages(oc.trace(function, specs, name=name), CHIP)
    names = oc.sizes_of(stages.fused)
    for group in (each for each in stages.fused.groups if each.kind != "view"):
        (kernel,) = oc.operator_kernels(stages, group)
        assert isinstance(kernel, oc.HostedKernel)
        text = oc.launch_function(kernel, stages.fused, CHIP, "go", {})
        folder = tmp_path / group.name
        folder.mkdir()
        library = _loaded([kernel.text.declaration.render(), 'extern "C" ', text], folder)
        for first in SIZES:
            for second in SIZES:
                sizes = dict(zip(names, (first, second), strict=False))
                _compare(kernel, library, sizes, names)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_are_cut_as_python_cuts_them(name: str, tmp_path: Path) -> None:
    function, specs = PRODUCTS[name]
    graph = oc.trace(function, specs, name=name)
    stages = oc.compile_stages(graph, CHIP, hosted=True)
    (group,) = stages.fused.groups
    (kernel,) = oc.operator_kernels(stages, group)
    assert isinstance(kernel, oc.HostedKernel)
    text = oc.launch_function(kernel, stages.fused, CHIP, "go", {})
    parts = [oc.CUT_CPP, kernel.text.declaration.render(), 'extern "C" ', text]
    library = _loaded(parts, tmp_path)
    names = oc.sizes_of(stages.fused)
    for first in SIZES[:-1]:
        for second in SIZES[:-1]:
            for depth in (1, 31, 600):
                known = {"M": first, "N": second, "K": depth, "B": 3}
                sizes = {each: known[each] for each in names}
                _compare(kernel, library, sizes, names)


def _compare(
    kernel: oc.HostedKernel, library: ctypes.CDLL, sizes: dict[str, int], names: tuple[str, ...]
) -> None:
    available = CHIP.count("cores.aic" if kernel.counts_cube else "cores.aiv")
    blocks, values = kernel.launch(available, lambda extent: evaluate(extent, sizes), {})
    wanted = pack_tiling(values)
    data = ctypes.create_string_buffer(len(wanted))
    given = [ctypes.c_int64(sizes[each]) for each in names]
    cores = library.go(*given, ctypes.c_int64(available), data)
    assert (cores, data.raw) == (blocks, wanted), sizes
    for room in kernel.rooms:
        (size,) = [each.value for each in values if each.member == "productSize"]
        assert size <= room.size, sizes


def test_tiling_data_and_cores_are_the_same_for_every_size(tmp_path: Path) -> None:
    texts: list[str] = []
    rows = []
    for name, (function, specs) in PROGRAMS.items():
        stages = oc.compile_stages(oc.trace(function, specs, name=name), CHIP)
        for kernels in stages.kernels.values():
            for kernel in kernels:
                text = oc.launch_function(kernel, stages.fused, CHIP, f"go_{kernel.name}", {})
                texts += [kernel.text.declaration.render(), 'extern "C" ', text]
                rows.append((kernel, oc.sizes_of(stages.fused)))
    loaded = _loaded(texts, tmp_path)
    compared = 0
    for kernel, names in rows:
        function = loaded[f"go_{kernel.name}"]
        for at, first in enumerate(SIZES):
            for second in SIZES[at % 3 :: 3]:
                sizes = dict(zip(names, (first, second, 5), strict=False))
                data = ctypes.create_string_buffer(1024)
                given = [ctypes.c_int64(sizes[name]) for name in names]
                cores = function(*given, ctypes.c_int64(CHIP.count("cores.aiv")), data)
                try:
                    launch = launch_for(kernel.layout, CHIP, sizes, {"t0": 0.0, **_scalars(kernel)})
                except DoesNotFit:
                    assert cores == 0, (kernel.name, sizes)
                    continue
                assert cores == launch.block_dim, (kernel.name, sizes)
                wanted = _without_scalars(kernel, launch.data)
                found = _without_scalars(kernel, data.raw[: len(launch.data)])
                assert found == wanted, (kernel.name, sizes)
                compared += 1
    assert compared > 200


def test_rows_that_one_repeat_covers_get_no_room_to_fold_them() -> None:
    # Tiles of many short rows used to ask for 64 numbers a row that no instruction uses, which the
    # largest tile leaves no room for.
    shape = (oc.dimension("R"), oc.dimension("C"))
    graph = oc.formula_graph(
        "norm", [Spec("x", shape)], [oc.FormulaOutput("y", "x - mean(x, axis=-1)", "float32")]
    )
    kernel = next(iter(oc.compile_stages(graph, CHIP).kernels.values()))[0]
    short, long = (
        launch_for(kernel.layout, CHIP, {"R": 5000, "C": columns}, _scalars(kernel)).values
        for columns in (40, 72)
    )
    assert short["workLength"] < 64 * short["rowsPerTile"]
    assert long["workLength"] >= 64 * long["rowsPerTile"]


def _scalars(kernel: oc.VectorKernel) -> dict[str, float]:
    return dict.fromkeys(kernel.layout.field_of, 0.0)


def _without_scalars(kernel: oc.VectorKernel, data: bytes) -> bytes:
    """Return tiling data but for the numbers that come with a launch, which are given as 0 here."""
    sizes = {"q": 8}
    place, kept = 0, b""
    for field in kernel.layout.fields:
        count = sizes.get(field.code, 4)
        if field.name not in kernel.layout.field_of.values():
            kept += data[place : place + count]
        place += count
    return kept


def test_a_function_without_cpp_is_named() -> None:
    builder = oc.GraphBuilder("scaled")
    x = builder.input("x", (M,), "int32")
    bits = builder.attribute("bits", "int")
    builder.output("y", x * (bits & 3))
    stages = oc.compile_stages(builder.graph(), CHIP)
    (kernels,) = stages.kernels.values()
    with pytest.raises(oc.GraphError, match="is not written in host code"):
        oc.launch_function(kernels[0], stages.fused, CHIP, "go", {"bits": "bits"})


def test_random_numbers_have_the_same_tiling_data_for_every_seed(tmp_path: Path) -> None:
    builder = oc.GraphBuilder("random")
    builder.input("x", (M, N), "float16")
    seed = builder.attribute("seed", "int")
    builder.output("y", seed.apply("random_uniform", shape=(M, N), stream=3))
    stages = oc.compile_stages(builder.graph(), CHIP)
    (group,) = stages.fused.groups
    (kernel,) = oc.operator_kernels(stages, group)
    assert isinstance(kernel, oc.HostedKernel)
    text = oc.launch_function(kernel, stages.fused, CHIP, "go", {"seed": "seed"})
    library = _loaded([kernel.text.declaration.render(), 'extern "C" ', text], tmp_path)
    for first, second in ((1, 1), (31, 255), (1000, 4099)):
        for given in (0, 7, -3, 1 << 40):
            sizes = {"M": first, "N": second}
            scalars = dict.fromkeys(stages.fused.uniform, float(given))
            available = CHIP.count("cores.aiv")
            blocks, values = kernel.launch(available, lambda e, s=sizes: evaluate(e, s), scalars)
            wanted = pack_tiling(values)
            data = ctypes.create_string_buffer(len(wanted))
            numbers = [ctypes.c_int64(each) for each in (first, second)]
            cores = library.go(*numbers, ctypes.c_double(given), ctypes.c_int64(available), data)
            assert (cores, data.raw) == (blocks, wanted)
