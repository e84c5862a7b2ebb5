"""Launches of the kernels that the device's library has too: ordering, places, whole numbers' sums,
random numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from opkit import kernels
from opkit.chips import Chip

from ..codegen import (
    HEAD,
    PLACED_TYPES,
    KernelClass,
    Text,
    TilingValue,
    class_of,
    element_bytes,
    pack_tiling,
    placing_of,
    placing_values,
    write_placing,
)
from ..ir import GraphError, Location, Node
from ..ops import MOST_SORTED
from ..passes import Group
from ..stages import Stages
from .launch import Argument, Code, Draw, Launch, Room, Sized, TensorArgument, sized
from .library_calls import LibraryCall, library_call, plan_layout
from .movements import whole_copy_launch
from .placed_moves import placed_move

__all__ = ["HOMES", "library_launches"]

HOMES = {
    "sort_lines": ("order.h", "LinePlan"),
    "fold_lines": ("order.h", "LinePlan"),
    "extreme_lines": ("order.h", "LinePlan"),
    "random_uniform": ("philox.h", "RandomPlan"),
    "move_by_index": ("elements.h", "ElementsPlan"),
}
"""The header of each function, and what tells it what to do."""
_ACCESSES = ("GetValue(", "SetValue(", "DataCopyPad(")


def library_launches(
    stages: Stages, group: Group, sizes: Mapping[str, int], scalars: Mapping[str, float]
) -> tuple[Launch, ...]:
    """Return the launches of a kernel of the library; none where it writes nothing.

    Raises:
        GraphError: a line is longer than what a core sorts, or a seed is no number of the launch.
    """
    results = [sized(stages, node.output.name, sizes) for node in group.nodes]
    if not all(result.size for result in results):
        return ()
    node = group.nodes[0]
    uniform = stages.fused.uniform
    operands = [sized(stages, name, sizes) for name in node.inputs]
    first: tuple[Launch, ...] = ()
    if group.kind in ("put_along", "join_along"):
        placed = _placed(node, operands, results[0], stages.chip)
        if placed is not None:
            return (placed,)
        first = (whole_copy_launch(node, operands[0], results[0], stages.chip),)
        if operands[2].size == 0:
            return first
    if group.kind == "sort":
        _check_lines(node, operands[0])
    call = library_call(group, operands, results, uniform, stages.chip)
    return (*first, _launch(node, call, scalars, stages.chip))


def _placed(node: Node, operands: Sequence[Sized], result: Sized, chip: Chip) -> Launch | None:
    """Return the launch whose cores look for what belongs to their parts of the result; None where
    another is better, or the shapes or the data type do not fit."""
    x, index, source = operands
    size, axis = element_bytes(result.dtype), node.settings.axis(len(x.shape))
    placing = placing_of(x.shape, index.shape, source.shape, axis, result.dtype)
    if node.operator == "join_along":
        join = node.settings.text("join")
    else:
        join = "add" if node.settings["add"] else "put"
    has_kernel = size <= 4 and (join == "put" or result.dtype in PLACED_TYPES)
    if placing is None or not has_kernel:
        return None
    if placing.inner > 1 and not placing.has_rows:
        move = placed_move(node, x.shape, index.shape, source.shape, size)
        if join == "put" and move.is_by_masks(size) and move.block_width(size, result.dtype, 1)[0]:
            return None
    available = chip.count("cores.aiv") or chip.count("cores.aic")
    cores, values = placing_values(placing, size, available, chip)
    name = f"{join}_{'rows' if placing.has_rows else 'elements'}_{result.dtype}"

    def write() -> KernelClass:
        return write_placing(
            *(name, join, result.dtype, size),
            has_rows=placing.has_rows,
            location=node.location,
        )

    def source_text() -> str:
        return HEAD + write().whole().render(with_lines=True, file=f"{name}.cpp")

    code = Code(name, source_text, location=node.location, part=write)
    tensors = (TensorArgument(each.name) for each in (*operands, result))
    return Launch(code, (*tensors, pack_tiling(values)), cores)


def _check_lines(node: Node, x: Sized) -> None:
    axis = node.settings.axis(len(x.shape))
    if x.shape[axis] > MOST_SORTED:
        raise GraphError(
            f"{x.shape[axis]} elements do not fit a core that sorts them: at most {MOST_SORTED}",
            location=node.location,
            help="topk takes longer axes of fixed sizes",
        )


def _launch(node: Node, call: LibraryCall, scalars: Mapping[str, float], chip: Chip) -> Launch:
    """Return the launch of a function of the library, as a kernel that takes the tensors that there
    are."""
    available = chip.count("cores.aiv") or chip.count("cores.aic")
    cores, values = call.rule(available, lambda extent: extent, scalars)
    arguments: dict[str, Argument] = {
        parameter: TensorArgument(name) for parameter, name in call.tensors.items()
    }
    if any(each.member == "parts" and each.value > 1 for each in values):
        arguments["space"] = Room(4 * cores, "int64")
    given = [name for name in call.parameters if name in arguments]
    name = "_".join([call.function, *given])
    code = Code(
        name,
        lambda: _source(name, call.function, given, call.parameters, node.location),
        location=node.location,
        # Workspace is for the cores that a launch by itself has.
        part=None
        if "space" in arguments
        else lambda: _class(name, call.function, given, call.parameters, node.location),
    )
    return Launch(code, (*(arguments[each] for each in given), _plan(call, values)), cores)


def _plan(call: LibraryCall, values: Sequence[TilingValue]) -> bytes | Draw:
    """Return the plan that tells a function what to do."""
    if call.function == "random_uniform":
        return Draw(*(each.value for each in values))
    known = dict(call.constants)
    known |= {call.member_of_plan.get(each.member, each.member): each.value for each in values}
    return pack_tiling(
        [TilingValue(name, kind, known.get(name, 0)) for name, kind in plan_layout(call.function)]
    )


def _class(
    name: str,
    function: str,
    given: Sequence[str],
    parameters: Sequence[str],
    location: Location | None,
) -> KernelClass:
    """Return a function as a class, for a launch that it shares with other kernels."""
    struct = f"opkit::kernels::{HOMES[function][1]}"
    passed = ", ".join([*(each if each in given else "nullptr" for each in parameters), "plan"])
    out = Text()
    out(f"class {class_of(name)} {{")
    out("public:")
    declared = ", ".join(f"GM_ADDR {each}Given" for each in given)
    out(f"__aicore__ inline void Init({declared}, const {struct}& given)")
    out("{")
    for each in given:
        out(f"{each} = {each}Given;")
    out("plan = given;")
    out("}")
    out()
    out("__aicore__ inline void Process()")
    out("{")
    out("// What the scalar unit has read before may have been written since.")
    out("GlobalTensor<uint8_t> memory;")
    out(f"memory.SetGlobalBuffer(reinterpret_cast<__gm__ uint8_t*>({given[0]}));")
    out(
        "DataCacheCleanAndInvalid<uint8_t, CacheLine::ENTIRE_DATA_CACHE,"
        " DcciDst::CACHELINE_OUT>(memory);"
    )
    out(f"opkit::kernels::{function}({passed});")
    out("}")
    out()
    out("private:")
    for each in given:
        out(f"GM_ADDR {each} = nullptr;")
    out(f"{struct} plan;")
    out("};")
    header = _header(function, location)
    return KernelClass(name, class_of(name), struct, header, out, tuple(given), takes_all=True)


def _header(function: str, location: Location | None) -> Text:
    out = Text()
    for line in kernels.header_text(HOMES[function][0]).splitlines():
        # What touches global memory is the user's line: faults name it.
        out(line.strip(), location if any(word in line for word in _ACCESSES) else None)
    return out


def _source(
    name: str,
    function: str,
    given: Sequence[str],
    parameters: Sequence[str],
    location: Location | None,
) -> str:
    plan = HOMES[function][1]
    declared = ", ".join([*(f"GM_ADDR {each}" for each in given), f"opkit::kernels::{plan} plan"])
    passed = ", ".join([*(each if each in given else "nullptr" for each in parameters), "plan"])
    out = Text()
    out.extend(_header(function, location))
    out(f'extern "C" __global__ __aicore__ void {name}({declared})')
    out("{")
    out(f"opkit::kernels::{function}({passed});")
    out("}")
    return out.render(with_lines=True, file=f"{name}.cpp")
