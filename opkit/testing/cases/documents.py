"""What an operator's documents say of its inputs and of ties: axes of the first input, values.

Host code need not check what the documents exclude, so a case beyond them tells nothing.

Sources: README.md and the pages of docs/ beside each operator of the vendor's public libraries,
whose tables have a row a parameter, with a column 维度(shape), and which say in sentences which
axes there are (形状为) and what is taken only (仅支持).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from opkit.schema import TensorSpec, snake_case
from opkit.testing.cases.values import Source
from opkit.testing.numbers import is_float

__all__ = ["documented_ranks", "documented_rounding", "documented_values"]

_MOST_AXES = 8
"""What the chip's operators take; of the same documents."""
# A page of docs/ is on one of the functions that an operator serves.
_OVERVIEW, _FUNCTIONS = "README.md", ("docs/*.md", "doc/*.md")
_HTML_ROW = re.compile(r"<tr[^>]*>(.*?)</tr>", re.DOTALL | re.IGNORECASE)
_HTML_CELL = re.compile(r"<t[hd][^>]*>(.*?)(?=<t[hd]\b|</t[hd]>|$)", re.DOTALL | re.IGNORECASE)
_TAG = re.compile(r"<[^>]+>")
_NUMBERS = {"一": 1, "二": 2, "两": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7, "八": 8}
_NUMBER = rf"([0-8{''.join(_NUMBERS)}])"
_TO = r"\s*维?\s*[-~～—–到至或]\s*"
_AXES = r"\s*(?:维|[Dd](?![a-z]))"
_HEADING = re.compile(r"^维度")
_ONLY_A_RANGE = re.compile(rf"{_NUMBER}{_TO}{_NUMBER}\s*维?")
_ONLY_ONE = re.compile(rf"{_NUMBER}\s*维?")
# Axes by their names, `(batch, m, k)`; numbers alone are a range, and dots any number of axes.
_NAMED = re.compile(r"[\[(（](?=[^\])）]*[A-Za-z])([\w\s,，]*)[\])）]")
# Sentences that name the axes, as `shape为(N, C)或者(C)`.
_SHAPES = re.compile(
    rf"(?:shape|形状)\s*(?:是|为)\s*({_NAMED.pattern}(?:\s*(?:或者?|、|/)\s*{_NAMED.pattern})*)(?!\s*或)"
)
# Sentences, such as those of `仅支持2维`, `维度为4维` and `支持2-8维`.
_RANGE = re.compile(rf"支持\s*{_NUMBER}{_TO}{_NUMBER}\s*维")
_ONE = re.compile(
    rf"(?:(?:仅|只|shape)支持|维度为)\s*{_NUMBER}{_AXES}(?!\s*(?:或|、|和|以上|及|[-~]))"
)
# One sentence for an operator that keeps its input's shape stands at its output.
_SAME_SHAPE = ("一致", "相同")
_INPUT, _OUTPUT = "输入", "输出"
# What values are, as in `取值 {0, 1}`, `元素应为 1 或 -1`, `值域为[0, 1]`, `数值为非负数`.
_OF_VALUES = r"(?:取值|值域|元素|数值|范围|值)(?!的?个?数[^值])[^。；;，\d+{\[(（-]{0,8}"
_BIT = r"\s*`?\s*([+-]?1|0)\s*`?\s*"
_EITHER = re.compile(rf"{_OF_VALUES}\{{?{_BIT}(?:或|和|,|，|、|/){_BIT}(?![\d.])")
_FRACTION = r"\s*(-?\d+(?:\.\d+)?)\s*"
_WITHIN = re.compile(rf"{_OF_VALUES}[\[(（]{_FRACTION}[,，、]{_FRACTION}[\])）]")
_NOT_BELOW = re.compile(
    rf"(?:{_OF_VALUES}(?:非负|不小于\s*0|大于等于\s*0|大于\s*0|正数)|非负方差)(?![\d.])"
)
# Of shapes the same is said.
_OF_SHAPES = re.compile(r"维|shape|轴|[Dd]im|大小|数量|个数")
# A half goes away from zero, where nothing says that it goes to an even number.
_HALF_AWAY, _HALF_TO_EVEN = "四舍五入", re.compile("偶|成双|六入")
_ROUNDED = re.compile(r"torch\.round\((?P<x>\w+)(?:, decimals=(?P<decimals>\w+))?\)")
_NEVER_BELOW = {True: (0.125, 2.0), False: (1.0, 9.0)}


def documented_ranks(folder: Path, inputs: Sequence[str]) -> tuple[int, int] | None:
    """Return the fewest and the most axes of an operator's first input; None where nothing says.

    Args:
        folder: the operator's.
        inputs: names of its inputs, as its OpDef has them.
    """
    overview = folder / _OVERVIEW
    said = _ranks_of_page(overview, inputs) if overview.is_file() else None
    if said is None:
        pages = _function_pages(folder)
        known = [ranks for page in pages if (ranks := _ranks_of_page(page, inputs)) is not None]
        said = (min(r[0] for r in known), max(r[1] for r in known)) if known else None
    return said if said != (0, _MOST_AXES) else None


def documented_values(folder: Path, inputs: Sequence[TensorSpec]) -> dict[str, Source]:
    """Return where values come from, by inputs of which a document says which ones they may have.

    Args:
        folder: the operator's.
        inputs: as its OpDef has them.
    """
    found: dict[str, Source] = {}
    for page in (folder / _OVERVIEW, *_function_pages(folder)):
        if not page.is_file():
            continue
        text = page.read_text(encoding="utf-8", errors="replace")
        rows = [row for row in _rows(text) if _is_of(row, _INPUT)]
        for tensor, row in _rows_of_inputs(rows, inputs):
            source = _values_of(" ".join(row[2:]), tensor)
            if source is not None:
                found.setdefault(tensor.name, source)
    return found


def documented_rounding(folder: Path, expression: str) -> str:
    """Return a reference that rounds a tensor, as the operator's overview says of halves.

    Torch rounds them to even.
    """
    said = folder / _OVERVIEW
    rounded = _ROUNDED.fullmatch(expression)
    if rounded is None or not said.is_file():
        return expression
    text = said.read_text(encoding="utf-8", errors="replace")
    if _HALF_AWAY not in text or _HALF_TO_EVEN.search(text):
        return expression
    x, places = rounded["x"], f"10.0 ** {rounded['decimals'] or 0}"
    return f"torch.sign({x}) * torch.floor(torch.abs({x}) * {places} + 0.5) / {places}"


def _function_pages(folder: Path) -> list[Path]:
    return [page for pattern in _FUNCTIONS for page in sorted(folder.glob(pattern))]


def _rows_of_inputs(
    rows: Sequence[list[str]], inputs: Sequence[TensorSpec]
) -> list[tuple[TensorSpec, list[str]]]:
    """Return each input with its row: of its name or, where no name is known, in their order."""
    by_name = {_parameter(row): row for row in reversed(rows)}
    named = [(t, by_name[snake_case(t.name)]) for t in inputs if snake_case(t.name) in by_name]
    if named or len(rows) < len(inputs):
        return named
    placed = list(zip(inputs, rows, strict=False))
    of_its_type = all(
        re.search(rf"(?i)\b{tensor.dtypes[0].ge.removeprefix('DT_')}", " ".join(row))
        for tensor, row in placed
    )
    return placed if of_its_type else []


def _values_of(sentence: str, tensor: TensorSpec) -> Source | None:
    for pattern, distribution in ((_EITHER, "either"), (_WITHIN, "uniform")):
        said = pattern.search(sentence)
        if said and not _is_of_shapes(sentence, said):
            low, high = sorted((float(said[1]), float(said[2])))
            return Source(distribution, low, high) if low < high else None
    said = _NOT_BELOW.search(sentence)
    if said and not _is_of_shapes(sentence, said):
        return Source("uniform", *_NEVER_BELOW[is_float(tensor.dtypes[0])])
    return None


def _is_of_shapes(sentence: str, said: re.Match[str]) -> bool:
    clause = re.split(r"[。；;，,]", sentence[: said.start()])[-1]
    return _OF_SHAPES.search(clause + said[0]) is not None


def _ranks_of_page(page: Path, inputs: Sequence[str]) -> tuple[int, int] | None:
    text = page.read_text(encoding="utf-8", errors="replace")
    rows = list(_rows(text))
    heads = [row for row in rows if any(_HEADING.match(cell) for cell in row)]
    column = next((n for n, cell in enumerate(heads[0]) if _HEADING.match(cell)), 0) if heads else 0
    own = [row for row in rows if inputs and _parameter(row) == snake_case(inputs[0])]
    # Pages of functions have other names for what the operator takes, in its order.
    first = own or [row for row in rows if _is_of(row, _INPUT)][:1]
    for row in first:
        said = _ranks_of_cell(row[column]) if 0 < column < len(row) else None
        sentence = " ".join(row[1:])
        said = said or _ranks_of_shapes(sentence) or _ranks_of_sentence(sentence)
        if said is not None:
            return said
    for row in rows:
        if _is_of(row, _OUTPUT):
            sentence = " ".join(row[1:])
            said = _ranks_of_sentence(sentence)
            if said is not None and any(word in sentence for word in _SAME_SHAPE):
                return said
    # Of several sentences each may be on another parameter.
    prose = "\n".join(
        line for line in text.splitlines() if not line.lstrip().startswith(("|", "<"))
    )
    said_of_all = {_ranks_of_sentence(sentence) for sentence in re.split(r"[。\n]", prose)} - {None}
    return said_of_all.pop() if len(inputs) == 1 and len(said_of_all) == 1 else None


def _rows(text: str) -> Iterator[list[str]]:
    """Yield the cells of every row of a page's tables."""
    for row in _HTML_ROW.findall(text):
        yield [_TAG.sub("", cell).strip() for cell in _HTML_CELL.findall(row)]
    for line in text.splitlines():
        if line.lstrip().startswith("|"):
            yield [cell.strip().strip("`") for cell in line.strip().strip("|").split("|")]


def _is_of(row: Sequence[str], kind: str) -> bool:
    # The heading names all kinds.
    return len(row) > 1 and row[1].startswith(kind) and "/" not in row[1]


def _parameter(row: Sequence[str]) -> str:
    return snake_case(re.split(r"[（(\s]", row[0])[0]) if row and row[0] else ""


def _ranks_of_cell(cell: str) -> tuple[int, int] | None:
    between = _ONLY_A_RANGE.fullmatch(cell)
    if between:
        return _number(between[1]), _number(between[2])
    one = _ONLY_ONE.fullmatch(cell)
    if one:
        return (_number(one[1]),) * 2
    named = [_NAMED.fullmatch(part.strip()) for part in cell.split("或")]
    ranks = [len(re.findall(r"\w+", shape[1], re.ASCII)) for shape in named if shape]
    return (min(ranks), max(ranks)) if len(ranks) == len(named) else None


def _ranks_of_shapes(sentence: str) -> tuple[int, int] | None:
    shapes = [shape for said in _SHAPES.finditer(sentence) for shape in _NAMED.findall(said[1])]
    ranks = [len(re.findall(r"\w+", shape, re.ASCII)) for shape in shapes]
    return (min(ranks), max(ranks)) if ranks else None


def _ranks_of_sentence(sentence: str) -> tuple[int, int] | None:
    between = _RANGE.search(sentence)
    if between:
        return _number(between[1]), _number(between[2])
    found = {_number(text) for text in _ONE.findall(sentence)}
    return (found.pop(),) * 2 if len(found) == 1 else None


def _number(text: str) -> int:
    return _NUMBERS.get(text) or int(text)
