"""Functions of a kernel of whole rows and of parts of longer ones: rows to numbers, numbers to rows.

What several instructions have in common is said once, as a template over which of them it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .helpers import helper_lines

__all__ = ["fold_call", "fold_helpers", "spread_call", "spread_helpers"]

_PAIRS = {"Sum": "Add", "Max": "Max", "Min": "Min"}
_FOLD = """
        // Eight to one, until one repeat holds the rest.
        {begin}__aicore__ inline void {of_row}(const LocalTensor<float>& to, LocalTensor<float> from, uint32_t count)
        {{
        for (LocalTensor<float> target = work; count > 64; target = target[(count + 7) / 8 * 8]) {{
        const uint32_t repeats = count / 64;
        {block}(target, from, repeats, 64, 1, 1, 8);
        if (count % 64 > 0) {{
        {whole}(target[repeats * 8], from[repeats * 64], static_cast<int32_t>(count % 64), 1, 1, 1, 8{order});
        }}
        count = repeats * 8 + (count % 64 > 0 ? 1 : 0);
        from = target;
        }}
        {whole}(to, from, static_cast<int32_t>(count), 1, 1, 1, 8{order});
        }}

        // One number for each row of the tile; for a row in parts, of all its parts so far.
        {begin}__aicore__ inline void {rows}(const LocalTensor<float>& to, const LocalTensor<float>& from, uint32_t rows, bool isFirst)
        {{
        const uint8_t step = stride / 8;
        if (columns <= 64 && isFirst) {{
        {whole}(to, from, static_cast<int32_t>(columns), rows, 1, 1, stride / 8{order});
        }} else if (tiling.byChunk != 0) {{
        // 64 columns of every row an instruction, then eight to one, and again.
        Adds(work, from, 0.0f, 64, rows, {{1, 1, 8, step}});
        for (uint32_t column = 64; column < columns; column += 64) {{
        {pair}(work, work, from[column], ChunkMask(columns, column), rows, {repeats}{{1, 1, 1, 8, 8, step}});
        }}
        {block}(blocks, work, rows, 64, 1, 1, 8);
        {block}(to, blocks, (rows + 7) / 8, 64, 1, 1, 8);
        }} else if (isFirst) {{
        for (uint32_t row = 0; row < rows; ++row) {{
        {of_this_row}(to[row], from[row * stride], columns);
        }}
        }} else {{
        {of_this_row}(blocks, from, columns);
        {pair}(to, to, blocks, 1);
        }}
        }}
"""
_SPREAD = """
        // Each row with its own number, spread over a block. Short rows: a repeat takes 64 columns of a row, and the next
        // repeat the next row; long ones: an instruction a row.
        {begin}__aicore__ inline void {rows}(const LocalTensor<float>& to, const LocalTensor<float>& from, const LocalTensor<float>& values, uint32_t rows)
        {{
        Brcb(blocks, values, (rows + 7) / 8, {{1, 8}});
        const uint8_t step = stride / 8;
        for (uint32_t column = 0; tiling.byChunk != 0 && column < stride; column += 64) {{
        {each}(to[column], from[column], blocks, ChunkMask(stride, column), rows, {repeats}{{1, 1, 0, step, step, 1}});
        }}
        for (uint32_t row = 0; tiling.byChunk == 0 && row < rows; ++row) {{
        const uint32_t end = row * stride + stride / 64 * 64;
        if (stride >= 64) {{
        {each}(to[row * stride], from[row * stride], blocks[row * 8], static_cast<uint64_t>(64), stride / 64, {repeats}{{1, 1, 0, 8, 8, 0}});
        }}
        if (stride % 64 > 0) {{
        {each}(to[end], from[end], blocks[row * 8], static_cast<uint64_t>(stride % 64), 1, {repeats}{{1, 1, 0, 8, 8, 0}});
        }}
        }}
        }}
"""


def fold_call(mode: str, modes: Sequence[str]) -> str:
    """Return the function that makes a number of each row, of a kernel that does so in some ways."""
    return f"FoldRows<Fold::{mode}>" if len(modes) > 1 else f"{mode}Rows"


def fold_helpers(modes: Sequence[str]) -> list[str]:
    """Return the functions behind `fold_call`."""
    orders = {m: "" if m == "Sum" else ", ReduceOrder::ORDER_ONLY_VALUE" for m in modes}
    if len(modes) == 1:
        (mode,) = modes
        text = _FOLD.format(
            begin="",
            of_row=f"{mode}OfRow",
            of_this_row=f"{mode}OfRow",
            rows=f"{mode}Rows",
            block=f"BlockReduce{mode}",
            whole=f"WholeReduce{mode}",
            pair=_PAIRS[mode],
            order=orders[mode],
            repeats="",
        )
        return helper_lines(text)
    lines = [f"enum class Fold {{ {', '.join(modes)} }};", ""]
    lines += _chosen("Fold", "Pair", {m: f"{_PAIRS[m]}(given...)" for m in modes})
    lines += _chosen("Fold", "BlockReduce", {m: f"BlockReduce{m}(given...)" for m in modes})
    lines += _chosen(
        "Fold", "WholeReduce", {m: f"WholeReduce{m}(given...{orders[m]})" for m in modes}
    )
    text = _FOLD.format(
        begin="template <Fold WAY>\n",
        of_row="FoldRow",
        of_this_row="FoldRow<WAY>",
        rows="FoldRows",
        block="BlockReduce<WAY>",
        whole="WholeReduce<WAY>",
        pair="Pair<WAY>",
        order="",
        repeats="BinaryRepeatParams",
    )
    return lines + helper_lines(text)


def spread_call(name: str, operations: Sequence[str]) -> str:
    """Return the function that combines each row with its number, of a kernel that does so by some
    instructions."""
    return f"EachRow<Each::{name}>" if len(operations) > 1 else f"{name}Row"


def spread_helpers(operations: Sequence[str]) -> list[str]:
    """Return the functions behind `spread_call`."""
    if len(operations) == 1:
        (name,) = operations
        return helper_lines(_SPREAD.format(begin="", rows=f"{name}Row", each=name, repeats=""))
    lines = [f"enum class Each {{ {', '.join(operations)} }};", ""]
    lines += _chosen("Each", "Combine", {name: f"{name}(given...)" for name in operations})
    text = _SPREAD.format(
        begin="template <Each WAY>\n",
        rows="EachRow",
        each="Combine<WAY>",
        repeats="BinaryRepeatParams",
    )
    return lines + helper_lines(text)


def _chosen(kind: str, name: str, calls: Mapping[str, str]) -> list[str]:
    """Return a function that calls one of several instructions, as a parameter says."""
    lines = [
        f"template <{kind} WAY, typename... Arguments>",
        f"static __aicore__ inline void {name}(const Arguments&... given)",
        "{",
    ]
    *others, last = calls
    for at, each in enumerate(others):
        begin = "if" if at == 0 else "} else if"
        lines += [f"{begin} constexpr (WAY == {kind}::{each}) {{", f"{calls[each]};"]
    return [*lines, "} else {", f"{calls[last]};", "}", "}", ""]
