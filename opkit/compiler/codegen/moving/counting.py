"""The kernel that writes 0, 1, 2, ... and its tiling data."""

from __future__ import annotations

from typing import Any

from ...ir import Location
from ..kernel_class import KernelClass, TilingValue, class_of, struct_of
from ..launch_numbers import divide_up, least, most
from ..text import Text

__all__ = ["count_values", "write_count"]

_PART = 2048
"""Elements that are written at once."""


def write_count(name: str, kind: str, location: Location | None = None) -> KernelClass:
    """Return a kernel of `y[i] = i` for a type of C++, which the user's line asks for."""
    struct_name, class_name = struct_of(name), class_of(name)
    declaration, out = Text(), Text()
    words = {"CLASS": class_name, "STRUCT": struct_name, "TYPE": kind, "PART": str(_PART)}
    for text, lines in ((declaration, _STRUCT), (out, _CLASS)):
        for line in lines.strip().splitlines():
            for word, given in words.items():
                line = line.replace(word, given)
            text(line)
    out.mark(location, "CreateVecIndex(", "DataCopyPad(")
    return KernelClass(name, class_name, struct_name, declaration, out, ("y",))


def count_values(count: Any, cores: Any) -> tuple[Any, list[TilingValue]]:
    """Return the cores and the tiling data for so many elements, of the cores that there are."""
    used = most(1, least(cores, divide_up(count, _PART)))
    return used, [
        TilingValue("count", "int64_t", count),
        TilingValue("step", "int64_t", used * _PART),
    ]


_STRUCT = """
struct STRUCT {
int64_t count;
int64_t step;  // elements that all cores write in a turn
};
"""
_CLASS = """
// The cores take parts of the numbers in turn.
class CLASS {
public:
__aicore__ inline void Init(GM_ADDR y, const STRUCT& given)
{
tiling = given;
const int64_t block = GetBlockIdx();
first = block * LENGTH;
yGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ TYPE*>(y), tiling.count);
pipe.InitBuffer(queue, 2, LENGTH * sizeof(TYPE));
}

__aicore__ inline void Process()
{
for (int64_t begin = first; begin < tiling.count; begin += tiling.step) {
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
int64_t first = 0;
STRUCT tiling;
};
"""
