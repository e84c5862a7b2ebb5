"""Kernels that share one launch: side by side, or one behind another's barrier.

A launch takes some microseconds before its first instruction, more with each core. A stage's
kernels do not read each other's results, so that each has cores of its own where there are enough;
between stages every core waits for all others. Products on cube cores share launches side by side.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from ..codegen import HEAD, KernelClass, Text

__all__ = ["MOST_CLASSES", "SharedLaunch", "share_launch", "share_products"]

MOST_CLASSES = 8
"""Different kernels that one launch holds at most: more are more text than time saved."""
_BLOCK = "const int64_t block = GetBlockIdx();"


@dataclass(frozen=True)
class SharedLaunch:
    """Several kernels as one."""

    source: str
    """Its Ascend C. It takes addresses, tiling data and cores of each kernel in turn."""
    block_dim: int
    cores: tuple[bytes, ...]
    """Which cores run each kernel, in the order of the stages."""


def share_launch(
    name: str, stages: Sequence[Sequence[tuple[KernelClass, int]]], cores: int
) -> SharedLaunch:
    """Return one kernel that does the work of several.

    Args:
        name: of its entry point.
        stages: classes, each with the number of its cores; those of a stage wait for those of all
            stages before.
        cores: vector cores of the chip.
    """
    spaces: dict[tuple[str, str], str] = {}
    body, classes, parameters = Text(), Text(), []
    shares: list[tuple[int, int | None]] = []
    widest = 1
    for number, stage in enumerate(stages):
        if number:
            body("SyncAll();")
        begin = 0
        for kernel, count in stage:
            begin = begin if begin + count <= cores and not kernel.takes_all else 0
            widest = max(widest, begin + count)
            at = len(shares)
            shares.append((begin, None if kernel.takes_all else count))
            begin += 0 if kernel.takes_all else count
            space = _space(classes, spaces, kernel)
            addresses = [f"x{at}_{index}" for index in range(len(kernel.parameters))]
            parameters += [f"GM_ADDR {each}" for each in addresses]
            parameters += [f"{space}::{kernel.struct} tiling{at}", f"Cores cores{at}"]
            body(f"if (cores{at}.Has(block)) {{")
            body(f"{space}::{kernel.class_name} op;")
            own = "" if kernel.takes_all else f", block - cores{at}.first"
            body(f"op.Init({', '.join(addresses)}, tiling{at}{own});")
            body("op.Process();")
            body("// What follows takes the memory from which this one may still be copying.")
            body("PipeBarrier<PIPE_ALL>();")
            body("}")
    source = _source(name, "__aicore__", parameters, classes, body)
    packed = (struct.pack("=II", first, count or widest) for first, count in shares)
    return SharedLaunch(source, widest, tuple(packed))


def share_products(name: str, products: Sequence[tuple[KernelClass, int]]) -> SharedLaunch:
    """Return one kernel of cube cores that does the work of several products.

    Args:
        name: of its entry point.
        products: classes, each with the number of its cores; they do not read each other's results.
    """
    spaces: dict[tuple[str, str], str] = {}
    body, classes, parameters = Text(), Text(), []
    packed: list[bytes] = []
    begin = 0
    for at, (kernel, count) in enumerate(products):
        space = _space(classes, spaces, kernel, of_cube=True)
        addresses = [f"x{at}_{index}" for index in range(len(kernel.parameters))]
        parameters += [f"GM_ADDR {each}" for each in addresses]
        parameters += [f"{space}::{kernel.struct} tiling{at}", f"Cores cores{at}"]
        body(f"if (cores{at}.Has(block)) {{")
        body(f"{space}::{kernel.class_name} op;")
        core = f"block - cores{at}.first, cores{at}.count"
        body(f"op.Init({', '.join(addresses)}, tiling{at}, {core});")
        body("op.Process();")
        body("}")
        packed.append(struct.pack("=II", begin, count))
        begin += count
    return SharedLaunch(_source(name, "__cube__", parameters, classes, body), begin, tuple(packed))


def _source(name: str, mode: str, parameters: Sequence[str], classes: Text, body: Text) -> str:
    out = Text()
    out.all(
        [
            "// The cores that run one of the kernels.",
            "struct Cores {",
            "uint32_t first;",
            "uint32_t count;",
            "",
            "__aicore__ inline bool Has(int64_t block) const",
            "{",
            "return block >= first && block < first + count;",
            "}",
            "};",
            "",
        ]
    )
    out.extend(classes)
    out(f'extern "C" __global__ {mode} void {name}({", ".join(parameters)})')
    out("{")
    out("const int64_t block = GetBlockIdx();")
    out.extend(body)
    out("}")
    return HEAD + out.render(with_lines=True, file=f"{name}.cpp")


def _space(
    classes: Text,
    spaces: dict[tuple[str, str], str],
    kernel: KernelClass,
    *,
    of_cube: bool = False,
) -> str:
    """Return the namespace of a class, written where no kernel before has the same one."""
    key = (kernel.declaration.render(), kernel.definition.render(with_lines=True))
    if key not in spaces:
        spaces[key] = f"kernel{len(spaces)}"
        classes(f"namespace {spaces[key]} {{")
        classes.extend(kernel.declaration)
        own = kernel.definition
        if of_cube:
            own = own.with_words("& given)", "& given, int64_t block, int64_t count)")
            own = own.with_words("tiling = given;", "tiling = given; core = block; cores = count;")
        elif not kernel.takes_all:
            own = own.with_words(_BLOCK, "").with_words("& given)", "& given, int64_t block)")
        classes.extend(own)
        classes("}")
        classes()
    return spaces[key]
