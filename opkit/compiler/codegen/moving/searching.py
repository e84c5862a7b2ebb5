"""The kernel that looks for numbers in sorted ones: the vector unit halves the rest of the edges for
all numbers of a tile at once."""

from __future__ import annotations

from opkit.chips import Chip

from ...ir import Location
from ..core_count import fair_cores
from ..kernel_class import KernelClass, TilingValue, class_of, struct_of
from ..text import Text
from .tiles import COPY_ROWS, ORDER, OWN_UNITS, filled

__all__ = ["search_values", "write_search"]

_TILE = 2048
"""Numbers that are looked for at once."""
_STEP_CYCLES = 19 / 64
"""Vector unit's cycles for a number, each time that half of the edges are left."""


def search_values(
    lines: int, edges: int, count: int, cores: int, chip: Chip
) -> tuple[int, list[TilingValue]]:
    """Return the cores and the tiling data of a launch.

    Args:
        lines: of edges, and of numbers.
        edges: of a line.
        count: numbers of a line.
        cores: that the chip has.
    """
    steps = edges.bit_length()
    worth: int = fair_cores(
        *(chip, lines * count, cores),
        vector_cycles=_STEP_CYCLES * steps,
        read_bytes=4,
        written_bytes=4,
    )
    # Some numbers for each core, whole repeats of the vector unit.
    part = -(-count * lines // worth)
    tile = max(64, min(_TILE, -(-min(part, count) // 64) * 64))
    units = lines * -(-count // tile)
    used = -(-units // -(-units // min(worth, units)))
    values = {
        "perBlock": units // used,
        "extra": units % used,
        "lines": lines,
        "edges": edges,
        "half": 1 << max(steps - 1, 0),
        "count": count,
        "tile": tile,
    }
    return used, [TilingValue(name, "int64_t", value) for name, value in values.items()]


def write_search(name: str, is_right: bool, location: Location | None = None) -> KernelClass:
    """Return a kernel of `y[a, j]`, how many of `edges[a]` are less than `x[a, j]`, which the
    user's line asks for.

    Args:
        is_right: those that are equal count, too.
    """
    struct_name, class_name = struct_of(name), class_of(name)
    declaration = Text()
    declaration.all(
        [
            f"struct {struct_name} {{",
            "int64_t perBlock;  // tiles of every core",
            "int64_t extra;  // the first cores take one more",
            "int64_t lines;",
            "int64_t edges;  // of a line",
            "int64_t half;  // edges of the first step",
            "int64_t count;  // numbers of a line",
            "int64_t tile;  // of these at once",
            "};",
        ]
    )
    words = {
        "TYPE": "float",
        "CLASS": class_name,
        "STRUCT": struct_name,
        "BEHIND": "CMPMODE::GT" if is_right else "CMPMODE::GE",
        "BLOCK": "8",
        "COUNT": str(_TILE),
    }
    out = filled(_KERNEL, words)
    out.mark(location, "DataCopyPad(")
    return KernelClass(name, class_name, struct_name, declaration, out, ("edges", "x", "y"))


_KERNEL = f"""
// A line's edges lie in the core, with infinity behind them, as many as steps reach.
class CLASS {{
public:
__aicore__ inline void Init(GM_ADDR edges, GM_ADDR x, GM_ADDR y, const STRUCT& given)
{{
tiling = given;
{OWN_UNITS}
edgesGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(edges), tiling.lines * tiling.edges);
xGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(x), tiling.lines * tiling.count);
yGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(y), tiling.lines * tiling.count);
pipe.InitBuffer(queueIn, 2, COUNT * sizeof(float));
pipe.InitBuffer(queueOut, 2, COUNT * sizeof(float));
pipe.InitBuffer(tableBuffer, static_cast<uint32_t>((tiling.half < 32 ? 64 : 2 * tiling.half) * sizeof(float)));
pipe.InitBuffer(placeBuffer, COUNT * sizeof(float));
pipe.InitBuffer(probeBuffer, COUNT * sizeof(float));
pipe.InitBuffer(foundBuffer, COUNT * sizeof(float));
pipe.InitBuffer(zeroBuffer, COUNT * sizeof(float));
pipe.InitBuffer(maskBuffer, COUNT / 8);
}}

__aicore__ inline void Process()
{{
Duplicate(zeroBuffer.Get<float>(), 0.0f, COUNT);
for (int32_t i = 0; i < 2; ++i) {{
// Comparisons take whole repeats.
const LocalTensor<float> numbers = queueIn.AllocTensor<float>();
Duplicate(numbers, 0.0f, COUNT);
queueIn.FreeTensor(numbers);
}}
const int64_t across = (tiling.count + tiling.tile - 1) / tiling.tile;
int64_t line = -1;  // whose edges the core has
for (int64_t unit = first; unit < last; ++unit) {{
if (unit / across != line) {{
line = unit / across;
Load(line);
}}
const int64_t from = unit % across * tiling.tile;
const int64_t count = Less(tiling.tile, tiling.count - from);
const int64_t at = line * tiling.count + from;
LocalTensor<float> numbers = queueIn.AllocTensor<float>();
CopyPart(numbers, xGlobal[at], 1, count, count, static_cast<int64_t>(Blocks(count)) * BLOCK);
queueIn.EnQue(numbers);
Find(static_cast<int32_t>(count));
CopyBack(yGlobal[at], 1, count, count, static_cast<int64_t>(Blocks(count)) * BLOCK);
}}
}}

private:
__aicore__ inline void Load(int64_t line)
{{
const LocalTensor<float> table = tableBuffer.Get<float>();
PipeBarrier<PIPE_V>();
Duplicate(table, __builtin_inff(), static_cast<int32_t>(2 * tiling.half));
Order<HardEvent::V_MTE2>();
CopyPart(table, edgesGlobal[line * tiling.edges], 1, tiling.edges, tiling.edges,
         static_cast<int64_t>(Blocks(tiling.edges)) * BLOCK);
Order<HardEvent::MTE2_V>();
const uint32_t rest = static_cast<uint32_t>(tiling.edges % BLOCK);
if (rest != 0) {{
// What has come with the last block's edges.
uint64_t mask[2] = {{0xff & ~((uint64_t{{1}} << rest) - 1), 0}};
Duplicate(table[tiling.edges - rest], __builtin_inff(), mask, 1, 1, 8);
PipeBarrier<PIPE_V>();
}}
}}

// Places count bytes until they are found. A number that is none goes behind all edges.
__aicore__ inline void Find(int32_t count)
{{
const LocalTensor<float> numbers = queueIn.DeQue<float>();
const LocalTensor<float> place = placeBuffer.Get<float>();
const LocalTensor<float> probe = probeBuffer.Get<float>();
const LocalTensor<float> found = foundBuffer.Get<float>();
const LocalTensor<uint8_t> mask = maskBuffer.Get<uint8_t>();
const int32_t whole = (count + 63) / 64 * 64;
Duplicate(place, 0.0f, whole);
PipeBarrier<PIPE_V>();
for (int64_t step = tiling.half; step > 0; step /= 2) {{
Adds(probe, place, static_cast<float>((step - 1) * sizeof(float)), whole);
PipeBarrier<PIPE_V>();
Cast(probe.ReinterpretCast<int32_t>(), probe, RoundMode::CAST_RINT, whole);
PipeBarrier<PIPE_V>();
Gather(found, tableBuffer.Get<float>(), probe.ReinterpretCast<uint32_t>(), 0, static_cast<uint32_t>(whole));
PipeBarrier<PIPE_V>();
Compare(mask, found, numbers, BEHIND, static_cast<uint32_t>(whole));
PipeBarrier<PIPE_V>();
Select(found, mask, zeroBuffer.Get<float>(), static_cast<float>(step * sizeof(float)), SELMODE::VSEL_TENSOR_SCALAR_MODE,
       static_cast<uint32_t>(whole));
PipeBarrier<PIPE_V>();
Add(place, place, found, whole);
PipeBarrier<PIPE_V>();
}}
queueIn.FreeTensor(numbers);
const LocalTensor<float> to = queueOut.AllocTensor<float>();
Muls(place, place, 1.0f / sizeof(float), whole);
PipeBarrier<PIPE_V>();
Mins(place, place, static_cast<float>(tiling.edges), whole);
PipeBarrier<PIPE_V>();
Cast(to.ReinterpretCast<int32_t>(), place, RoundMode::CAST_RINT, whole);
queueOut.EnQue(to);
}}
{COPY_ROWS}
{ORDER}

TPipe pipe;
TQue<QuePosition::VECIN, 2> queueIn;
TQue<QuePosition::VECOUT, 2> queueOut;
TBuf<QuePosition::VECCALC> tableBuffer;
TBuf<QuePosition::VECCALC> placeBuffer;
TBuf<QuePosition::VECCALC> probeBuffer;
TBuf<QuePosition::VECCALC> foundBuffer;
TBuf<QuePosition::VECCALC> zeroBuffer;
TBuf<QuePosition::VECCALC> maskBuffer;
GlobalTensor<float> edgesGlobal;
GlobalTensor<float> xGlobal;
GlobalTensor<float> yGlobal;
int64_t first = 0;
int64_t last = 0;
STRUCT tiling;
}};
"""
