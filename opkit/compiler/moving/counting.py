"""The kernel that writes 0, 1, 2, ... and its tiling data."""

from __future__ import annotations

import struct

from opkit.chips import Chip

from ..graph import Location
from ..text import Text

__all__ = ["count_data", "write_count"]

_PART = 2048
"""Elements that are written at once."""


def write_count(name: str, kind: str, location: Location | None = None) -> Text:
    """Return the source of `y[i] = i` for a type of C++, which the user's line asks for."""
    struct_name = f"{name.title().replace('_', '')}Tiling"
    out = Text()
    words = {"NAME": name, "STRUCT": struct_name, "TYPE": kind, "PART": str(_PART)}
    for line in _TEXT.strip().splitlines():
        for word, text in words.items():
            line = line.replace(word, text)
        out(line)
    out.mark(location, "CreateVecIndex(", "DataCopyPad(")
    return out


def count_data(count: int, chip: Chip) -> tuple[int, bytes]:
    """Return the cores and the tiling data for so many elements."""
    parts = -(-count // _PART)
    return min(chip.count("cores.aiv") or chip.count("cores.aic"), parts), struct.pack("=q", count)


_TEXT = """
struct STRUCT {
int64_t count;
};

// The cores take parts of the numbers in turn.
class KernelOfSTRUCT {
public:
__aicore__ inline void Init(GM_ADDR y, const STRUCT& given)
{
tiling = given;
yGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ TYPE*>(y), tiling.count);
pipe.InitBuffer(queue, 2, LENGTH * sizeof(TYPE));
}

__aicore__ inline void Process()
{
for (int64_t begin = GetBlockIdx() * LENGTH; begin < tiling.count; begin += GetBlockNum() * LENGTH) {
const int64_t rest = tiling.count - begin;
const uint32_t length = static_cast<uint32_t>(rest < LENGTH ? rest : LENGTH);
LocalTensor<TYPE> buffer = queue.AllocTensor<TYPE>();
CreateVecIndex(buffer, static_cast<TYPE>(static_cast<float>(begin)), length);
queue.EnQue<TYPE>(buffer);
buffer = queue.DeQue<TYPE>();
const uint32_t bytes = length * sizeof(TYPE);
DataCopyPad(yGlobal[begin], buffer, DataCopyExtParams{1, bytes, 0, 0, 0});
queue.FreeTensor(buffer);
}
}

private:
static constexpr int64_t LENGTH = PART;
TPipe pipe;
TQue<QuePosition::VECOUT, 2> queue;
GlobalTensor<TYPE> yGlobal;
STRUCT tiling;
};

extern "C" __global__ __aicore__ void NAME(GM_ADDR y, STRUCT tiling)
{
KernelOfSTRUCT op;
op.Init(y, tiling);
op.Process();
}
"""
