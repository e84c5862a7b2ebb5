"""The whole text of a kernel: programs of the grid on cores, tiles at addresses of UB."""

from __future__ import annotations

import re
from dataclasses import dataclass

from opkit.chips import Chip

from . import atomics, control, elementwise, memory, products, reductions, shapes  # noqa: F401
from .lowering import Lowering
from .products import product_tiling, product_types
from .ttir import Module
from .values import COMPUTED, STORED, Scalar
from .writer import place_buffers

__all__ = ["KernelText", "kernel_text"]

# What Select takes at the end of UB for itself.
_RESERVED_BYTES = 8 * 1024


@dataclass(frozen=True)
class KernelText:
    """A kernel as Ascend C."""

    name: str
    source: str
    parameters: tuple[str, ...]
    """The element of each scalar argument; `pointer` for memory: its region and an offset."""
    mode: str
    """A key of `opkit.toolchain.MODES`."""
    needs_library: bool
    """Whether more than the basic API is called."""
    ub_bytes: int
    """How much of UB its tiles take."""
    workspace_bytes: int
    """Global memory that each vector core needs for itself."""
    is_in_turns: bool
    """Whether one core runs all programs, in order."""
    notes: tuple[str, ...]
    """What goes element by element, or in turns, with file and line."""


def kernel_text(module: Module, chip: Chip) -> KernelText:
    """Return the Ascend C of a module's kernel: one program of the grid is a task of a core.

    Raises:
        TritonError: something in it has no kernel here; with file and line.
    """
    lowering = Lowering(module)
    function = module.kernel
    name = re.sub(r"\W", "_", function.attributes["sym_name"].strip('"'))
    blocks = function.regions[0]
    given, parameters = [], []
    for index, (argument, kind) in enumerate(blocks[0].arguments):
        text = f"a{index}"
        lowering.values[argument] = Scalar(kind, text)
        given.append(f"{'int64_t' if kind.is_pointer else COMPUTED[lowering.element(kind)]} {text}")
        parameters.append("pointer" if kind.is_pointer else kind.element)
    lowering.operation = function
    control.lower_function(lowering, blocks, None)
    writer = lowering.writer
    room = chip.count("memory.ub_bytes") - _RESERVED_BYTES
    addresses, used = place_buffers(writer, (), room)
    grid = [f"{start}_{axis}" for start in ("program", "grid") for axis in "xyz"]
    head = ", ".join([*given, *(f"int32_t {each}" for each in grid)])
    if lowering.products:
        head += ", Products& products"
    lines = [
        '#include "kernel_operator.h"',
        '#include "tile.h"',
        *(['#include "lib/matmul_intf.h"'] if lowering.products else []),
        "using namespace AscendC;",
        "using namespace opkit_tile;",
        "namespace {",
        *_products(lowering),
        f"__aicore__ inline void program({head}) {{",
        *(f"  {kind} {variable};" for kind, variable in writer.variables),
    ]
    for each, address in addresses.items():
        buffer = writer.buffers[each]
        stored = STORED[buffer.element]
        count = buffer.size_bytes // _size(stored)
        lines.append(f"  LocalTensor<{stored}> {each}(TPosition::VECCALC, {address}, {count});")
    lines += writer.lines
    lines += ["}", "}  // namespace", *_entry(name, parameters, lowering)]
    return KernelText(
        name=name,
        source="\n".join(lines) + "\n",
        parameters=tuple(parameters),
        mode="mix 1:2" if lowering.products else "vector",
        needs_library=lowering.needs_library,
        ub_bytes=used,
        workspace_bytes=lowering.workspace_bytes,
        is_in_turns=lowering.is_in_turns,
        notes=tuple(writer.notes),
    )


def _size(stored: str) -> int:
    return {"uint8_t": 1, "int8_t": 1, "int16_t": 2, "half": 2, "bfloat16_t": 2, "int64_t": 8}.get(
        stored, 4
    )


def _products(lowering: Lowering) -> list[str]:
    """Return what the matrix products of a kernel share: their objects, and a core's workspace."""
    if not lowering.products:
        return []
    lines = ["struct Products {", "  int64_t work;"]
    for (element, *_), name in lowering.products.items():
        lines.append(f"  {product_types(element)} {name};")
    lines.append("};")
    for (element, m, n, k), name in lowering.products.items():
        lines.append(f"__aicore__ inline TCubeTiling tiling_of_{name}() {{")
        lines.append("  TCubeTiling tiling;")
        lines += [f"  tiling.{field}" for field in product_tiling(element, m, n, k)]
        lines += ["  return tiling;", "}"]
    return lines


def _entry(name: str, parameters: list[str], lowering: Lowering) -> list[str]:
    head, given = [], []
    for index, parameter in enumerate(parameters):
        if parameter == "pointer":
            head += [f"GM_ADDR m{index}", f"int64_t o{index}"]
            given.append(f"reinterpret_cast<int64_t>(m{index}) + o{index}")
        else:
            head.append(f"{COMPUTED[parameter]} s{index}")
            given.append(f"s{index}")
    head += [f"int32_t grid_{axis}" for axis in "xyz"]
    given += [
        "static_cast<int32_t>(task % grid_x)",
        "static_cast<int32_t>(task / grid_x % grid_y)",
        "static_cast<int32_t>(task / grid_x / grid_y)",
        *("grid_x", "grid_y", "grid_z"),
    ]
    cores = "GetBlockNum()"
    objects: list[str] = []
    end: list[str] = []
    if lowering.products:
        head += ["GM_ADDR system", "GM_ADDR work"]
        given.append("products")
        cores = "GetBlockNum() * GetTaskRation()"
        names = []
        objects = ["  TPipe pipe;", "  SetSysWorkspace(system);", "  Products products;"]
        for each in lowering.products.values():
            objects.append(f"  const TCubeTiling tiling_{each} = tiling_of_{each}();")
            names += [f"products.{each}", f"&tiling_{each}"]
            end.append(f"  products.{each}.End();")
        objects.append(f"  REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), {', '.join(names)});")
        offset = f"GetBlockIdx() * {lowering.workspace_bytes}LL"
        objects.append(f"  products.work = reinterpret_cast<int64_t>(work) + {offset};")
    tasks = "static_cast<int64_t>(grid_x) * grid_y * grid_z"
    if lowering.is_in_turns:
        tasks, cores = f"GetBlockIdx() == 0 ? {tasks} : 0", "1"
    return [
        '#line 1 "the grid"',
        f'extern "C" __global__ __aicore__ void {name}({", ".join(head)}) {{',
        *objects,
        f"  const int64_t tasks = {tasks};",
        f"  for (int64_t task = GetBlockIdx(); task < tasks; task += {cores}) {{",
        f"    program({', '.join(given)});",
        "    barrier();",
        "  }",
        *end,
        "}",
    ]
