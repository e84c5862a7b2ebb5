"""Functions of a vector kernel's class that its steps call: each is written out only where it is used."""

from __future__ import annotations

from collections.abc import Mapping

from .steps import Program

__all__ = ["HELPERS", "SLOT_LENGTH", "helper_lines", "needed_helpers"]

_HEADER = "__aicore__ inline"
SLOT_LENGTH = "tiling.tileLength + 64"
"""Elements from one slot to the next, where slots lie close together."""

_BASE: Mapping[str, str] = {
    "RowsAt": """
        // Rows of the tile that begins at a row.
        __aicore__ inline uint32_t RowsAt(int64_t row)
        {
        const int64_t rest = lastRow - row;
        return rest < tiling.rowsPerTile ? static_cast<uint32_t>(rest) : tiling.rowsPerTile;
        }
    """,
    "RowsAtBatch": """
        // Rows of the tile that begins at a row: no more than its batch has.
        __aicore__ inline uint32_t RowsAt(int64_t row)
        {
        const int64_t inBatch = tiling.rowsPerBatch - row % tiling.rowsPerBatch;
        const int64_t rest = lastRow - row < inBatch ? lastRow - row : inBatch;
        return rest < tiling.rowsPerTile ? static_cast<uint32_t>(rest) : tiling.rowsPerTile;
        }
    """,
    "RowsDown": """
        // Rows of the tile that begins at a row.
        __aicore__ inline uint32_t RowsAt(int64_t row)
        {
        const int64_t rest = tiling.rowsPerBatch - row;
        return rest < tiling.rowsPerTile ? static_cast<uint32_t>(rest) : tiling.rowsPerTile;
        }
    """,
    "LoadDown": """
        // A part of some rows, `stride` elements apart in the buffer.
        template <typename T>
        __aicore__ inline void Load(const LocalTensor<T>& to, const GlobalTensor<T>& from, uint32_t rows, uint32_t length)
        {
        const uint32_t bytes = length * sizeof(T);
        const uint32_t skipped = rows > 1 ? (tiling.columns - length) * sizeof(T) : 0;
        const uint32_t gap = rows > 1 ? stride * sizeof(T) / 32 - (bytes + 31) / 32 : 0;
        DataCopyPad(to, from, DataCopyExtParams{static_cast<uint16_t>(rows), bytes, skipped, gap, 0},
                    DataCopyPadExtParams<T>());
        }
    """,
    "StoreDown": """
        template <typename T>
        __aicore__ inline void Store(const GlobalTensor<T>& to, const LocalTensor<T>& from, uint32_t rows, uint32_t length)
        {
        const uint32_t bytes = length * sizeof(T);
        const uint32_t skipped = rows > 1 ? (tiling.columns - length) * sizeof(T) : 0;
        const uint32_t gap = rows > 1 ? stride * sizeof(T) / 32 - (bytes + 31) / 32 : 0;
        DataCopyPad(to, from, DataCopyExtParams{static_cast<uint16_t>(rows), bytes, gap, skipped, 0});
        }
    """,
    "CountOf": """
        // Elements of a tile: the last of a row may be short.
        __aicore__ inline uint32_t CountOf(int64_t tile)
        {
        const int64_t rest = tiling.columns - tile % tiling.partsPerRow * tiling.tileLength;
        return rest < tiling.tileLength ? static_cast<uint32_t>(rest) : tiling.tileLength;
        }
    """,
    "CountOfSingle": """
        // Elements of a tile: the last may be short.
        __aicore__ inline uint32_t CountOf(int64_t tile)
        {
        const int64_t rest = tiling.columns - tile * tiling.tileLength;
        return rest < tiling.tileLength ? static_cast<uint32_t>(rest) : tiling.tileLength;
        }
    """,
    "Load": """
        // Each row begins on a 32-byte boundary of the buffer; DataCopyPad fills up its end.
        template <typename T>
        __aicore__ inline void Load(const LocalTensor<T>& to, const GlobalTensor<T>& from, uint32_t rows, uint32_t length)
        {
        const uint32_t bytes = length * sizeof(T);
        DataCopyPad(to, from, DataCopyExtParams{static_cast<uint16_t>(rows), bytes, 0, 0, 0}, DataCopyPadExtParams<T>());
        }
    """,
    "LoadWithGap": """
        // Rows lie `stride` elements apart in the buffer, whatever their type.
        template <typename T>
        __aicore__ inline void Load(const LocalTensor<T>& to, const GlobalTensor<T>& from, uint32_t rows, uint32_t length)
        {
        const uint32_t bytes = length * sizeof(T);
        const uint32_t gap = rows > 1 ? stride * sizeof(T) / 32 - (bytes + 31) / 32 : 0;
        DataCopyPad(to, from, DataCopyExtParams{static_cast<uint16_t>(rows), bytes, 0, gap, 0}, DataCopyPadExtParams<T>());
        }
    """,
    "LoadLine": """
        // Any number of elements: DataCopyPad fills up the last 32 bytes of the buffer.
        template <typename T>
        __aicore__ inline void Load(const LocalTensor<T>& to, const GlobalTensor<T>& from, uint32_t length)
        {
        const DataCopyExtParams copy{1, static_cast<uint32_t>(length * sizeof(T)), 0, 0, 0};
        DataCopyPad(to, from, copy, DataCopyPadExtParams<T>());
        }
    """,
    "StoreLine": """
        template <typename T>
        __aicore__ inline void Store(const GlobalTensor<T>& to, const LocalTensor<T>& from, uint32_t length)
        {
        DataCopyPad(to, from, DataCopyExtParams{1, static_cast<uint32_t>(length * sizeof(T)), 0, 0, 0});
        }
    """,
    "LoadRows": """
        // The rows of a tile; one row for all fills each buffer once, and stays there.
        template <typename T>
        __aicore__ inline void LoadRows(const LocalTensor<T>& to, const GlobalTensor<T>& from, int64_t step, int64_t row, uint32_t rows)
        {
        if (step > 0) {
        Load(to, from, rows, columns);
        return;
        }
        for (uint32_t i = 0; row < firstRow + BUFFERS * tiling.rowsPerTile && i < rows; ++i) {
        Load(to[i * stride], from, 1, columns);
        }
        }
    """,
    "Store": """
        template <typename T>
        __aicore__ inline void Store(const GlobalTensor<T>& to, const LocalTensor<T>& from, uint32_t rows, uint32_t length)
        {
        const uint32_t bytes = length * sizeof(T);
        DataCopyPad(to, from, DataCopyExtParams{static_cast<uint16_t>(rows), bytes, 0, 0, 0});
        }
    """,
    "StoreWithGap": """
        template <typename T>
        __aicore__ inline void Store(const GlobalTensor<T>& to, const LocalTensor<T>& from, uint32_t rows, uint32_t length)
        {
        const uint32_t bytes = length * sizeof(T);
        const uint32_t gap = rows > 1 ? stride * sizeof(T) / 32 - (bytes + 31) / 32 : 0;
        DataCopyPad(to, from, DataCopyExtParams{static_cast<uint16_t>(rows), bytes, gap, 0, 0});
        }
    """,
    "LoadPart": """
        // Rows of a part of a tensor, which lie `step` elements apart there.
        template <typename T>
        __aicore__ inline void LoadPart(const LocalTensor<T>& to, const GlobalTensor<T>& from, uint32_t rows, uint32_t length, int64_t step)
        {
        const uint32_t bytes = length * sizeof(T);
        const uint32_t skipped = rows > 1 ? static_cast<uint32_t>(step - length) * sizeof(T) : 0;
        const uint32_t gap = rows > 1 ? stride * sizeof(T) / 32 - (bytes + 31) / 32 : 0;
        DataCopyPad(to, from, DataCopyExtParams{static_cast<uint16_t>(rows), bytes, skipped, gap, 0}, DataCopyPadExtParams<T>());
        }
    """,
    "StorePart": """
        // Rows of a part of a tensor, which lie `step` elements apart there.
        template <typename T>
        __aicore__ inline void StorePart(const GlobalTensor<T>& to, const LocalTensor<T>& from, uint32_t rows, uint32_t length, int64_t step)
        {
        const uint32_t bytes = length * sizeof(T);
        const uint32_t skipped = rows > 1 ? static_cast<uint32_t>(step - length) * sizeof(T) : 0;
        const uint32_t gap = rows > 1 ? stride * sizeof(T) / 32 - (bytes + 31) / 32 : 0;
        DataCopyPad(to, from, DataCopyExtParams{static_cast<uint16_t>(rows), bytes, gap, skipped, 0});
        }
    """,
    "FillTail": """
        // Comparisons read whole repeats: past what was loaded they meet zeros.
        template <typename T>
        __aicore__ inline void FillTail(const LocalTensor<T>& tile, uint32_t loaded, uint32_t end)
        {
        const uint32_t begin = RoundUp(loaded, 32 / sizeof(T));
        if (begin < end) {
        Duplicate(tile[begin].template ReinterpretCast<int16_t>(), static_cast<int16_t>(0), (end - begin) * sizeof(T) / 2);
        }
        }
    """,
    "ClearInput": """
        // Rows of narrow types end before the next one begins: what lies between them holds zeros.
        __aicore__ inline void ClearInput()
        {
        for (int32_t i = 0; i < BUFFERS; ++i) {
        LocalTensor<uint8_t> input = inputQueue.AllocTensor<uint8_t>();
        Duplicate(input.ReinterpretCast<int16_t>(), static_cast<int16_t>(0), WORDS);
        inputQueue.FreeTensor(input);
        }
        }
    """,
    "ClearOutput": """
        // Whole repeats are read of what is written row by row: past a short tile they meet defined values.
        __aicore__ inline void ClearOutput()
        {
        for (int32_t i = 0; i < BUFFERS; ++i) {
        LocalTensor<uint8_t> output = outputQueue.AllocTensor<uint8_t>();
        Duplicate(output.ReinterpretCast<int16_t>(), static_cast<int16_t>(0), WORDS);
        outputQueue.FreeTensor(output);
        }
        }
    """,
    "SlotLength": f"""
        // Elements from one slot to the next: neighbours lie in different groups of banks.
        __aicore__ inline uint32_t SlotLength()
        {{
        return {SLOT_LENGTH};
        }}
    """,
    "MaskBytes": """
        // Bytes of one bit for each element of a tile.
        __aicore__ inline uint32_t MaskBytes()
        {
        return RoundUp(tiling.tileLength, 256) / 8;
        }
    """,
    "RoundUp": """
        static __aicore__ inline uint32_t RoundUp(uint32_t value, uint32_t multiple)
        {
        return (value + multiple - 1) / multiple * multiple;
        }
    """,
    "Order": """
        // What the first pipe has done is done before the second goes on.
        template <HardEvent event>
        __aicore__ inline void Order()
        {
        const int32_t id = static_cast<int32_t>(pipe.FetchEventID(event));
        SetFlag<event>(id);
        WaitFlag<event>(id);
        }
    """,
    "ReadScalar": """
        template <typename T>
        __aicore__ inline T ReadScalar(const LocalTensor<T>& value)
        {
        Order<HardEvent::V_S>();
        const T number = value.GetValue(0);
        Order<HardEvent::S_V>();
        return number;
        }
    """,
    "ChunkMask": """
        // Elements of a row that a repeat from a column on covers.
        static __aicore__ inline uint64_t ChunkMask(uint32_t length, uint32_t column)
        {
        return length - column < 64 ? length - column : 64;
        }
    """,
    "MaskNot": """
        __aicore__ inline void MaskNot(const LocalTensor<uint8_t>& to, const LocalTensor<uint8_t>& a, uint32_t count)
        {
        Not(to.ReinterpretCast<uint16_t>(), a.ReinterpretCast<uint16_t>(), count / 16);
        }
    """,
    "BitsNot": """
        __aicore__ inline void BitsNot(const LocalTensor<int32_t>& to, const LocalTensor<int32_t>& a, uint32_t count)
        {
        Not(to.ReinterpretCast<int16_t>(), a.ReinterpretCast<int16_t>(), count * 2);
        }
    """,
    "LengthAt": """
        // Columns of the part that begins at one.
        __aicore__ inline uint32_t LengthAt(uint32_t column)
        {
        const uint32_t rest = tiling.columns - column;
        return rest < tiling.partLength ? rest : tiling.partLength;
        }
    """,
    "TileLength": """
        // Elements of the tile that is computed, with what lies between its rows.
        __aicore__ inline uint32_t TileLength(uint32_t rows, uint32_t column)
        {
        columns = LengthAt(column);
        stride = (columns + tiling.unit - 1) / tiling.unit * tiling.unit;
        return rows * stride;
        }
    """,
    "TakeInput": """
        __aicore__ inline void TakeInput()
        {
        CopyIn();
        input = inputQueue.DeQue<uint8_t>();
        }
    """,
    "TakeInputAgain": """
        // Whole rows are taken once, parts by each pass.
        __aicore__ inline void TakeInput(bool isFirst)
        {
        if (isFirst || InParts()) {
        CopyIn();
        input = inputQueue.DeQue<uint8_t>();
        }
        }
    """,
    "FreeInput": """
        __aicore__ inline void FreeInput(bool isLast)
        {
        if (isLast || InParts()) {
        inputQueue.FreeTensor(input);
        }
        }
    """,
    "InParts": """
        __aicore__ inline bool InParts()
        {
        return tiling.partLength < tiling.columns;
        }
    """,
    "LoadRowsOfLines": """
        // The rows of a tile; one row for all fills each buffer once, and stays there where all of it fits.
        template <typename T>
        __aicore__ inline void LoadRows(const LocalTensor<T>& to, const GlobalTensor<T>& from, int64_t step, uint32_t rows, uint32_t length)
        {
        if (step > 0) {
        Load(to, from, rows, length);
        return;
        }
        for (uint32_t i = 0; (InParts() || nextRow < firstRow + BUFFERS * tiling.rowsPerTile) && i < rows; ++i) {
        Load(to[i * tiling.stride], from, 1, length);
        }
        }
    """,
    "Copy": """
        template <typename To>
        __aicore__ inline void Copy(const LocalTensor<To>& to, const LocalTensor<float>& from, uint32_t count)
        {
        if constexpr (std::is_same<To, float>::value) {
        Muls(to, from, 1.0f, count);
        } else {
        Cast(to, from, RoundMode::CAST_RINT, count);
        }
        }
    """,
    "Computed": """
        // A tensor itself where it has the type that is computed in, else room for it in that type.
        template <typename From>
        __aicore__ inline LocalTensor<COMPUTED> Computed(const LocalTensor<From>& tensor, const LocalTensor<COMPUTED>& room)
        {
        if constexpr (std::is_same<From, COMPUTED>::value) {
        return tensor;
        } else {
        return room;
        }
        }
    """,
    "Loaded": """
        // Where what is loaded lies until it is converted: there for good where it has the type that is computed in.
        template <typename To>
        __aicore__ inline LocalTensor<To> Loaded(const LocalTensor<COMPUTED>& kept, const LocalTensor<COMPUTED>& room)
        {
        return (std::is_same<To, COMPUTED>::value ? kept : room).template ReinterpretCast<To>();
        }
    """,
    "Convert": """
        template <typename To, typename From>
        __aicore__ inline void Convert(const LocalTensor<To>& to, const LocalTensor<From>& from, RoundMode mode, uint32_t count)
        {
        if constexpr (!std::is_same<To, From>::value) {
        Cast(to, from, mode, count);
        }
        }
    """,
    "FillRow": """
        // Every row of the tile from its own number.
        template <typename T>
        __aicore__ inline void FillRow(const LocalTensor<T>& to, const LocalTensor<T>& values, uint32_t rows)
        {
        Order<HardEvent::V_S>();
        for (uint32_t row = 0; row < rows; ++row) {
        Duplicate(to[row * stride], values.GetValue(row), stride);
        }
        Order<HardEvent::S_V>();
        }
    """,
    "FillColumn": """
        // Every row of the tile the same.
        template <typename T>
        __aicore__ inline void FillColumn(const LocalTensor<T>& to, const LocalTensor<T>& values, uint32_t rows)
        {
        for (uint32_t row = 0; row < rows; ++row) {
        Adds(to[row * stride], values, static_cast<T>(0), stride);
        }
        }
    """,
}

_MASK_PAIR = """
        __aicore__ inline void Mask{name}(const LocalTensor<uint8_t>& to, const LocalTensor<uint8_t>& a,
                                       const LocalTensor<uint8_t>& b, uint32_t count)
        {{
        {name}(to.ReinterpretCast<uint16_t>(), a.ReinterpretCast<uint16_t>(), b.ReinterpretCast<uint16_t>(), count / 16);
        }}
"""
_BITS_PAIR = """
        __aicore__ inline void Bits{name}(const LocalTensor<int32_t>& to, const LocalTensor<int32_t>& a,
                                       const LocalTensor<int32_t>& b, uint32_t count)
        {{
        {name}(to.ReinterpretCast<int16_t>(), a.ReinterpretCast<int16_t>(), b.ReinterpretCast<int16_t>(), count * 2);
        }}
"""
_BY_ROW = """
        // Each row with its own number, spread over a block. Short rows: a repeat takes 64 columns of a row, and the next
        // repeat the next row; long ones: an instruction a row.
        template <typename T>
        __aicore__ inline void {name}Row(const LocalTensor<T>& to, const LocalTensor<T>& from, const LocalTensor<T>& values,
                                      uint32_t rows)
        {{
        const LocalTensor<T> spread = blocks.template ReinterpretCast<T>();
        Brcb(spread, values, (rows + 7) / 8, {{1, 8}});
        if (tiling.byChunk != 0) {{
        const uint8_t step = stride / 8;
        for (uint32_t column = 0; column < stride; column += 64) {{
        {name}(to[column], from[column], spread, ChunkMask(stride, column), rows, {{1, 1, 0, step, step, 1}});
        }}
        return;
        }}
        for (uint32_t row = 0; row < rows; ++row) {{
        uint32_t at = row * stride;
        for (uint32_t left = stride / 64; left > 0;) {{
        const uint32_t repeats = left < 248 ? left : 248;
        {name}(to[at], from[at], spread[row * 8], static_cast<uint64_t>(64), repeats, {{1, 1, 0, 8, 8, 0}});
        at += repeats * 64;
        left -= repeats;
        }}
        if (stride % 64 > 0) {{
        {name}(to[at], from[at], spread[row * 8], static_cast<uint64_t>(stride % 64), 1, {{1, 1, 0, 8, 8, 0}});
        }}
        }}
        }}
"""
_BY_COLUMN = """
        // Each row with the same numbers, one a column.
        template <typename T>
        __aicore__ inline void {name}Column(const LocalTensor<T>& to, const LocalTensor<T>& from, const LocalTensor<T>& values,
                                         uint32_t rows)
        {{
        if (tiling.byChunk != 0) {{
        const uint8_t step = stride / 8;
        for (uint32_t column = 0; column < stride; column += 64) {{
        {name}(to[column], from[column], values[column], ChunkMask(stride, column), rows, {{1, 1, 1, step, step, 0}});
        }}
        return;
        }}
        for (uint32_t row = 0; row < rows; ++row) {{
        {name}(to[row * stride], from[row * stride], values, stride);
        }}
        }}
"""
_ROWS = """
        // One number for each row of the tile.
        __aicore__ inline void {name}Rows(const LocalTensor<float>& to, const LocalTensor<float>& from,
                                       const LocalTensor<float>& work, uint32_t rows)
        {{
        const uint32_t step = stride / 8;
        if (columns <= 64) {{
        WholeReduce{name}(to, from, static_cast<int32_t>(columns), rows, 1, 1, step{order});
        }} else if (tiling.byChunk != 0) {{
        // 64 columns of every row an instruction, then eight to one, and again.
        const uint8_t apart = step;
        Adds(work, from, 0.0f, 64, rows, {{1, 1, 8, apart}});
        for (uint32_t column = 64; column < columns; column += 64) {{
        {pair}(work, work, from[column], ChunkMask(columns, column), rows, {{1, 1, 1, 8, 8, apart}});
        }}
        BlockReduce{name}(blocks, work, rows, 64, 1, 1, 8);
        BlockReduce{name}(to, blocks, (rows + 7) / 8, 64, 1, 1, 8);
        }} else if (stride % 512 == 0 && columns == stride && stride <= 4096) {{
        // Whole rows behind one another: eight to one for all of them, twice, then each row's rest.
        const LocalTensor<float> eighths = work[rows * stride / 8];
        BlockRepeats{name}(work, from, rows * stride / 64);
        BlockRepeats{name}(eighths, work, rows * stride / 512);
        WholeReduce{name}(to, eighths, static_cast<int32_t>(stride / 64), rows, 1, 1, stride / 512{order});
        }} else {{
        for (uint32_t row = 0; row < rows; ++row) {{
        {name}Row(to[row], from[row * stride], work, columns);
        }}
        }}
        }}
"""
_PART = """
        __aicore__ inline void {name}Part(const LocalTensor<float>& to, const LocalTensor<float>& from,
                                       const LocalTensor<float>& work)
        {{
        {name}Row(to, from, work, tiling.columns < tiling.tileLength ? tiling.columns : tiling.tileLength);
        }}
"""
_ROWS_ONE_BY_ONE = """
        // One number for each row of the tile: this chip gives extremes of several rows with their places only.
        __aicore__ inline void {name}Rows(const LocalTensor<float>& to, const LocalTensor<float>& from,
                                       const LocalTensor<float>& work, uint32_t rows)
        {{
        for (uint32_t row = 0; row < rows; ++row) {{
        Reduce{name}(blocks, from[row * stride], work, static_cast<int32_t>(columns));
        to.SetValue(row, ReadScalar(blocks));
        }}
        Order<HardEvent::S_V>();
        }}
"""
_PART_AT_ONCE = """
        __aicore__ inline void {name}Part(const LocalTensor<float>& to, const LocalTensor<float>& from,
                                       const LocalTensor<float>& work)
        {{
        Reduce{name}(to, from, work,
                     static_cast<int32_t>(tiling.columns < tiling.tileLength ? tiling.columns : tiling.tileLength));
        }}
"""
_ROW = """
        // Eight to one, until one repeat holds the rest.
        __aicore__ inline void {name}Row(const LocalTensor<float>& to, const LocalTensor<float>& from,
                                      const LocalTensor<float>& work, uint32_t count)
        {{
        LocalTensor<float> source = from;
        LocalTensor<float> target = work;
        while (count > 64) {{
        const uint32_t repeats = count / 64;
        const uint32_t rest = count % 64;
        BlockRepeats{name}(target, source, repeats);
        if (rest > 0) {{
        WholeReduce{name}(target[repeats * 8], source[repeats * 64], static_cast<int32_t>(rest), 1, 1, 1, 8{order});
        }}
        count = repeats * 8 + (rest > 0 ? 1 : 0);
        source = target;
        target = target[(count + 7) / 8 * 8];
        }}
        WholeReduce{name}(to, source, static_cast<int32_t>(count), 1, 1, 1, 8{order});
        }}
"""
_REPEATS = """
        __aicore__ inline void BlockRepeats{name}(const LocalTensor<float>& to, const LocalTensor<float>& from,
                                               uint32_t repeats)
        {{
        for (uint32_t done = 0; done < repeats; done += 248) {{
        const uint32_t some = repeats - done < 248 ? repeats - done : 248;
        BlockReduce{name}(to[done * 8], from[done * 64], some, 64, 1, 1, 8);
        }}
        }}
"""
_DOWN = """
        // One number for each column: the lower half of the rows onto the upper, until one is left.
        __aicore__ inline void {name}Down(const LocalTensor<float>& to, const LocalTensor<float>& from)
        {{
        uint32_t rows = RowsAt(0);
        while (rows > 1) {{
        const uint32_t half = rows / 2;
        {pair}(from, from, from[(rows - half) * stride], half * stride);
        rows -= half;
        }}
        Adds(to, from, 0.0f, stride);
        }}
"""
_ACCUMULATE = """
        __aicore__ inline void Accumulate{name}(const LocalTensor<float>& to, const LocalTensor<float>& value, uint32_t count,
                                             bool isFirst)
        {{
        if (isFirst) {{
        Adds(to, value, 0.0f, count);
        }} else {{
        {pair}(to, to, value, count);
        }}
        }}
"""
_BLOCKS = """
        // Rows of whole blocks of 32 bytes: this chip copies no others.
        template <typename T>
        __aicore__ inline void {name}(const {to}<T>& to, const {source}<T>& from, uint32_t rows, uint32_t length)
        {{
        const uint16_t blocks = length * sizeof(T) / 32;
        const uint16_t gap = {gap};
        const uint16_t skipped = {skipped};
        DataCopy(to, from, DataCopyParams{{static_cast<uint16_t>(rows), blocks, {gaps}}});
        }}
"""
_IN_BUFFER = "rows > 1 ? stride * sizeof(T) / 32 - blocks : 0"
_IN_MEMORY = "rows > 1 ? (tiling.columns - length) * sizeof(T) / 32 : 0"
_PAIRS = {"Sum": "Add", "Max": "Max", "Min": "Min"}


def helper_lines(text: str) -> list[str]:
    """Return a function's lines, and an empty one."""
    return [*(line.strip() for line in text.strip().splitlines()), ""]


def _build() -> dict[str, list[str]]:
    texts = dict(_BASE)
    for name in ("And", "Or"):
        texts[f"Mask{name}"] = _MASK_PAIR.format(name=name)
        texts[f"Bits{name}"] = _BITS_PAIR.format(name=name)
    for name in ("Add", "Sub", "Mul", "Max", "Min"):
        texts[f"{name}Row"] = _BY_ROW.format(name=name)
        texts[f"{name}Column"] = _BY_COLUMN.format(name=name)
    for name, pair in _PAIRS.items():
        order = "" if name == "Sum" else ", ReduceOrder::ORDER_ONLY_VALUE"
        parts = {"name": name, "pair": pair, "order": order}
        texts[f"{name}Rows"] = _ROWS.format(**parts)
        texts[f"{name}Part"] = _PART.format(**parts)
        texts[f"{name}RowsOneByOne"] = _ROWS_ONE_BY_ONE.format(**parts)
        texts[f"{name}PartAtOnce"] = _PART_AT_ONCE.format(**parts)
        texts[f"{name}OfRow"] = _ROW.format(**parts).replace(f"{name}Row(", f"{name}OfRow(")
        texts[f"BlockRepeats{name}"] = _REPEATS.format(**parts)
        texts[f"{name}Down"] = _DOWN.format(**parts)
        texts[f"Accumulate{name}"] = _ACCUMULATE.format(**parts)
        for caller in (f"{name}Rows", f"{name}Part"):
            texts[caller] = texts[caller].replace(f"{name}Row(", f"{name}OfRow(")
    for way, gap, skipped in (
        ("", "0", "0"),
        ("WithGap", _IN_BUFFER, "0"),
        ("Down", _IN_BUFFER, _IN_MEMORY),
    ):
        parts = {"gap": gap, "skipped": skipped}
        texts[f"LoadBlocks{way}"] = _BLOCKS.format(
            name="Load", to="LocalTensor", source="GlobalTensor", gaps="skipped, gap", **parts
        )
        texts[f"StoreBlocks{way}"] = _BLOCKS.format(
            name="Store", to="GlobalTensor", source="LocalTensor", gaps="gap, skipped", **parts
        )
    return {name: helper_lines(text) for name, text in texts.items()}


HELPERS: Mapping[str, list[str]] = _build()
"""The lines of each function, its indent left to the writer."""


def needed_helpers(program: Program, *, copies_blocks: bool = False) -> frozenset[str]:
    """Return the functions that a program's steps call; `blocks` stands for the buffer that some share.

    A chip that copies whole blocks only has no WholeReduceMax of values alone either.
    """
    found: set[str] = set()
    for section in program.sections:
        for step in section.steps:
            name = step.operation
            is_extreme = step.mode in ("Max", "Min")
            if name == "Reduce" and program.schedule == "lines":
                found |= {"ChunkMask", "blocks"}
            elif name == "Reduce" and is_extreme and copies_blocks:
                found |= {f"{step.mode}RowsOneByOne", "ReadScalar", "Order", "blocks"}
            elif name == "Reduce":
                mode = step.mode
                found |= {
                    f"{mode}Rows",
                    f"{mode}OfRow",
                    f"BlockRepeats{mode}",
                    "ChunkMask",
                    "blocks",
                }
            elif name == "Fold" and is_extreme and copies_blocks and program.schedule != "down":
                found.add(f"{step.mode}PartAtOnce")
            elif name == "Fold" and program.schedule != "down":
                found |= {f"{step.mode}Part", f"{step.mode}OfRow", f"BlockRepeats{step.mode}"}
            elif name == "Accumulate":
                found.add(f"Accumulate{step.mode}")
            elif name == "Read":
                found |= {"ReadScalar", "Order"}
            elif name == "Fill":
                found |= {"FillRow", "FillColumn", "Order"}
            elif name in HELPERS and name != "Load":
                if not (name.endswith("Row") and program.schedule == "lines"):
                    found.add(name)
                if name.endswith("Row"):
                    found |= {"ChunkMask", "blocks"}
                if name.endswith("Column"):
                    found.add("ChunkMask")
            if name in ("Compare", "CompareScalar"):
                found.add("RoundUp")
            if name == "Load" and section.name == "prepare":
                found.add("Order")
            if name == "Fold":
                found.add("Order")
            if step.target.kind == "mask":
                found.add("RoundUp")
    return frozenset(found)
