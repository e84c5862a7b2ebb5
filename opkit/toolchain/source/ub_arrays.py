"""Arrays that kernels declare in UB, which the chip's compiler places there.

    __ubuf__ float x[64];      ::opkit::UbArray< float [64]> opkit_ub_x; auto& x = *opkit_ub_x;

Text is added and taken away within a line, so every line keeps its number. Only declarations in
functions are: elsewhere the word stands before pointers, which need no place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opkit.toolchain.source.launch_rewrite import Edit
from opkit.toolchain.source.tokens import (
    Token,
    TokenKind,
    matching_close,
    significant,
    tokenize,
)

__all__ = ["ub_array_edits"]

_WORD = "__ubuf__"
_OPENING = "::opkit::UbArray<"


def ub_array_edits(text: str) -> tuple[Edit, ...]:
    """Return the edits that have arrays in UB lie there; none where there are none."""
    if _WORD not in text:
        return ()
    tokens = significant(tokenize(text))
    edits: list[Edit] = []
    for index in _declarations(tokens):
        edits.extend(_edits_of(text, tokens, index))
    return tuple(edits)


def _declarations(tokens: Sequence[Token]) -> Iterator[int]:
    """Yield where the word begins a statement of a function."""
    is_code = [False]
    for index, token in enumerate(tokens):
        if token.kind is TokenKind.PUNCTUATION:
            if token.text == "{":
                before = tokens[index - 1].text if index > 0 else ""
                is_code.append(is_code[-1] or before in (")", "else", "do", "const", "noexcept"))
            elif token.text == "}" and len(is_code) > 1:
                is_code.pop()
        elif token.text == _WORD and is_code[-1] and tokens[index - 1].text in ("{", "}", ";"):
            yield index


def _edits_of(text: str, tokens: Sequence[Token], word: int) -> list[Edit]:
    """Return the edits of a declaration; none if it declares anything but arrays."""
    name = _first_name(tokens, word + 1)
    if name is None:
        return []
    element = text[tokens[word + 1].start : tokens[name - 1].end]
    edits = [Edit(tokens[word].start, tokens[word].end, _OPENING)]
    while True:
        if tokens[name].kind is not TokenKind.IDENTIFIER or tokens[name + 1].text != "[":
            return []
        closing = matching_close(tokens, name + 1)
        if closing is None or closing + 1 >= len(tokens):
            return []
        array = tokens[name].text
        edits.append(Edit(tokens[name].start, tokens[name].end, ""))
        named = f"> opkit_ub_{array}; auto& {array} = *opkit_ub_{array}"
        edits.append(Edit(tokens[closing].end, tokens[closing].end, named))
        behind = tokens[closing + 1]
        if behind.text == ";":
            return edits
        if behind.text != ",":
            return []
        edits.append(Edit(behind.start, behind.end, f"; {_OPENING} {' '.join(element.split())} "))
        name = closing + 2


def _first_name(tokens: Sequence[Token], start: int) -> int | None:
    """Return where the first declared name stands: before the first `[` outside of `<...>`."""
    depth = 0
    for index in range(start, len(tokens)):
        text = tokens[index].text
        if text == "[" and depth == 0:
            return index - 1 if index - 1 > start else None
        if text in (";", "{", "}", "(", "*", "&", "="):
            return None
        depth += text.count("<") - text.count(">")
    return None
