"""What the kernels share that order elements in a core's tiles."""

from __future__ import annotations

from collections.abc import Mapping

from ..text import Text

__all__ = [
    "BUFFER_BYTES",
    "COPY_IN",
    "COPY_ROWS",
    "FEW",
    "LONGEST_STEP_BYTES",
    "MOST_PLACES",
    "ORDER",
    "OWN_UNITS",
    "PICKED_CYCLES",
    "SPLIT",
    "TYPES",
    "filled",
]

BUFFER_BYTES = 32768
TYPES = {2: "uint16_t", 4: "uint32_t"}
"""Types that stand for elements, by bytes."""
LONGEST_STEP_BYTES = 512
"""From one picked element to the next: copying what lies in between costs less than a copy for
each."""
FEW = 16
"""Rows of fewer elements do not fill the blocks that are turned."""
MOST_PLACES = 4096
"""Elements that are picked at once: their places lie in the core."""
PICKED_CYCLES = 3 / 16
"""Vector unit's cycles for one element that is picked."""

COPY_IN = """
__aicore__ inline int64_t Less(int64_t a, int64_t b) { return a < b ? a : b; }

__aicore__ inline uint32_t Blocks(int64_t elements)
{
return static_cast<uint32_t>((elements + BLOCK - 1) / BLOCK);
}

// Copies rows that lie `step` elements apart to rows `pitch` apart. Whole blocks take less than a part of one: what
// comes behind a row's end in memory comes along.
__aicore__ inline void CopyRows(const LocalTensor<TYPE>& tile, const GlobalTensor<TYPE>& from, int64_t size, int64_t source,
                                int64_t rows, int64_t length, int64_t step, int64_t pitch)
{
const int64_t whole = static_cast<int64_t>(Blocks(length)) * BLOCK;
int64_t most = source + whole > size ? 0 : rows;
if (most > 1 && source + (rows - 1) * step + whole > size) {
most = (size - whole - source) / step + 1;
}
if (most > 0) {
CopyPart(tile, from[source], most, whole <= step || most == 1 ? whole : length, step, pitch);
}
if (most < rows) {
CopyPart(tile[most * pitch], from[source + most * step], rows - most, length, step, pitch);
}
}

__aicore__ inline void CopyPart(const LocalTensor<TYPE>& tile, const GlobalTensor<TYPE>& from, int64_t rows, int64_t length,
                                int64_t step, int64_t pitch)
{
const uint32_t bytes = static_cast<uint32_t>(length * sizeof(TYPE));
const uint32_t gap = rows > 1 ? static_cast<uint32_t>((step - length) * sizeof(TYPE)) : 0;
const uint32_t skip = static_cast<uint32_t>(pitch / BLOCK) - Blocks(length);
DataCopyPad(tile, from, DataCopyExtParams{static_cast<uint16_t>(rows), bytes, gap, skip, 0}, DataCopyPadExtParams<TYPE>());
}
"""
"""Functions of a kernel's class, of elements of TYPE, BLOCK of them a block of 32 bytes."""

COPY_ROWS = f"""{COPY_IN}
// Copies the next tile's rows, which lie `pitch` apart, to rows `step` elements apart.
__aicore__ inline void CopyBack(const GlobalTensor<TYPE>& to, int64_t rows, int64_t length, int64_t step, int64_t pitch)
{{
LocalTensor<TYPE> tile = queueOut.DeQue<TYPE>();
const uint32_t bytes = static_cast<uint32_t>(length * sizeof(TYPE));
const uint32_t gap = rows > 1 ? static_cast<uint32_t>((step - length) * sizeof(TYPE)) : 0;
const uint32_t skip = static_cast<uint32_t>(pitch / BLOCK) - Blocks(length);
DataCopyPad(to, tile, DataCopyExtParams{{static_cast<uint16_t>(rows), bytes, skip, gap, 0}});
queueOut.FreeTensor(tile);
}}
"""
"""The same, and one that copies what comes from the class's `queueOut`."""

SPLIT = """
// Which group of `width` each of `count` elements is in, and where in there.
__aicore__ inline void Split(const LocalTensor<float>& group, const LocalTensor<float>& within, float width, int32_t count)
{
CreateVecIndex(within, 0.0f, count);
PipeBarrier<PIPE_V>();
Adds(group, within, 0.5f, count);
PipeBarrier<PIPE_V>();
Muls(group, group, 1.0f / width, count);
PipeBarrier<PIPE_V>();
Cast(group.ReinterpretCast<int32_t>(), group, RoundMode::CAST_FLOOR, count);
PipeBarrier<PIPE_V>();
Cast(group, group.ReinterpretCast<int32_t>(), RoundMode::CAST_NONE, count);
PipeBarrier<PIPE_V>();
Axpy(within, group, -width, count);
PipeBarrier<PIPE_V>();
}
"""
"""A function of a kernel's class: of whole numbers below 2^24, which float holds."""


OWN_UNITS = """const int64_t block = GetBlockIdx();
first = block * tiling.perBlock + (block < tiling.extra ? block : tiling.extra);
last = first + tiling.perBlock + (block < tiling.extra ? 1 : 0);"""
"""Of the units that cores share, a core has those from `first` on, up to `last`."""

ORDER = """template <HardEvent event>
__aicore__ inline void Order()
{
const int32_t id = static_cast<int32_t>(pipe.FetchEventID(event));
SetFlag<event>(id);
WaitFlag<event>(id);
}"""
"""What the first pipe of an event has done is done before the second goes on."""


def filled(text: str, words: Mapping[str, str]) -> Text:
    """Return a kernel's text with what its words in capitals stand for, of one line or several."""
    out = Text()
    for line in text.strip().splitlines():
        for word, meaning in words.items():
            line = line.replace(word, meaning)
        out.all(line.splitlines() or [""])
    return out
