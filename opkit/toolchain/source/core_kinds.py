"""Sources written for a compiler that compiles kernels once for each kind of core, edited for one.

Here a kernel is compiled once and asks at run time which core it runs on, so what such sources
decide while they are compiled has to be decided later:

    template <int KIND = g_coreType> void run(P p);     a function that calls one of the two below
    template <> void run<AscendC::AIC>(P p) {...}       a template for this value alone
    if constexpr (g_coreType == AscendC::AIV)           if
    Flags<MODE, g_coreType>::ID                         a choice of two

Classes' members may be specialised within them in C++17, which GCC before 14 does not know: they
become templates that C++11 has. The vendor's attributes go, such as `[host, aicore]`.
Source: programming guide, kernels of both kinds of cores; C++ core language issue 727.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from opkit.toolchain.source.launch_rewrite import Edit
from opkit.toolchain.source.tokens import (
    Token,
    TokenKind,
    matching_close,
    matching_open,
    significant,
    tokenize,
)

__all__ = ["asks_core_kind", "core_kind_edits"]

_KIND = "g_coreType"
_KINDS = ("AIC", "AIV")
_ENGINES = {"host", "aicore"}
_ATTRIBUTES = {"aic", "aiv"}
_SIGNS = (_KIND, "aic", "aiv", "bisheng", "template <>", "template<>")
_CLASS_WORDS = {"struct", "class"}
_STATEMENT_ENDS = {";", "{", "}"}


def asks_core_kind(text: str) -> bool:
    """Whether a source decides by the kind of core, so its kernels run on both unless they say."""
    return _KIND in text


def core_kind_edits(text: str) -> tuple[Edit, ...]:
    """Return the edits that make `text` one for a compiler that compiles kernels once."""
    if not any(word in text for word in _SIGNS):
        return ()
    tokens = significant(tokenize(text))
    edits = [*_attribute_edits(tokens), *_condition_edits(tokens), *_argument_edits(tokens)]
    members = list(_members(tokens))
    for member in members:
        if member.is_full:
            primary = _primary_of(member, members)
            if primary is not None:
                edits += _specialisation_edits(tokens, member, primary, members)
    edits += [
        edit
        for member in members
        if not member.is_full and any(_primary_of(other, members) is member for other in members)
        for edit in _primary_edits(tokens, member, members)
    ]
    unique = {(edit.start, edit.end): edit for edit in edits}
    return tuple(unique.values())


@dataclass(frozen=True)
class _Member:
    """A template of a class, or a specialisation of one, by indices of tokens."""

    scope: int
    """The `{` of the class."""
    begin: int
    """Its word `template`."""
    name: int
    arguments: tuple[int, int] | None
    """The `<` and the `>` behind the name."""
    close: int
    """The `>` of `template <...>`."""
    is_class: bool
    text: str
    """The name as it is compared: `operator()` is one."""
    opening: int
    """The `(` of a function's parameters; a class's name."""

    @property
    def is_full(self) -> bool:
        """Whether it is a specialisation without parameters."""
        return self.close == self.begin + 2 and self.arguments is not None


def _attribute_edits(tokens: Sequence[Token]) -> Iterator[Edit]:
    for index, token in enumerate(tokens):
        if token.text == "__attribute__":
            words = [part.text for part in tokens[index + 1 : index + 6]]
            if words[:2] == ["(", "("] and words[2] in _ATTRIBUTES and words[3:] == [")", ")"]:
                yield Edit(token.start, tokens[index + 5].end, "")
        elif token.text == "bisheng" and [t.text for t in tokens[index - 2 : index]] == ["[", "["]:
            close = matching_close(tokens, index - 2)
            if close is not None:
                yield Edit(tokens[index - 2].start, tokens[close].end, "")
        if token.text != "aicore" or token.kind is not TokenKind.IDENTIFIER:
            continue
        begin = index
        while begin > 0 and tokens[begin - 1].text in (*_ENGINES, ","):
            begin -= 1
        end = index
        while end + 1 < len(tokens) and tokens[end + 1].text in (*_ENGINES, ","):
            end += 1
        if begin > 0 and tokens[begin - 1].text == "[" and tokens[end + 1].text == "]":
            yield Edit(tokens[begin - 1].start, tokens[end + 1].end, " ")


def _condition_edits(tokens: Sequence[Token]) -> Iterator[Edit]:
    """Return the edits of `if constexpr` whose condition asks for the kind of core."""
    for index in range(len(tokens) - 2):
        words = [token.text for token in tokens[index : index + 3]]
        if words != ["if", "constexpr", "("]:
            continue
        close = matching_close(tokens, index + 2)
        if close and any(token.text == _KIND for token in tokens[index + 2 : close]):
            yield Edit(tokens[index + 1].start, tokens[index + 1].end, "")


def _argument_edits(tokens: Sequence[Token]) -> Iterator[Edit]:
    """Return the edits of `Name<..., g_coreType>::value`: both values, and a choice."""
    for index, token in enumerate(tokens[:-3]):
        if token.text != _KIND or tokens[index + 1].text != ">":
            continue
        opening = matching_open(tokens, index + 1)
        if not opening or tokens[index - 1].text == "=" or tokens[index + 2].text != "::":
            continue
        begin, end = opening - 1, index + 3
        while tokens[begin - 1].text == "::" and tokens[begin - 2].kind is TokenKind.IDENTIFIER:
            begin -= 2
        before = "".join(part.text for part in tokens[begin:index])
        behind = "".join(part.text for part in tokens[index + 1 : end + 1])
        cube, vector = (f"{before}::AscendC::{kind}{behind}" for kind in _KINDS)
        choice = f"({_KIND} == ::AscendC::AIC ? {cube} : {vector})"
        yield Edit(tokens[begin].start, tokens[end].end, choice)
        statement = begin
        while statement > 0 and tokens[statement - 1].text not in _STATEMENT_ENDS:
            statement -= 1
        if tokens[statement].text == "constexpr":
            yield Edit(tokens[statement].start, tokens[statement].end, "const")


def _members(tokens: Sequence[Token]) -> Iterator[_Member]:
    """Return the templates that stand directly within classes."""
    open_braces: list[int] = []
    for index, token in enumerate(tokens):
        if token.text == "{":
            open_braces.append(index)
        elif token.text == "}" and open_braces:
            open_braces.pop()
        elif token.text == "template" and open_braces and tokens[index + 1].text == "<":
            scope = open_braces[-1]
            if _opens_class(tokens, scope):
                member = _member_at(tokens, index, scope)
                if member is not None:
                    yield member


def _opens_class(tokens: Sequence[Token], brace: int) -> bool:
    position = brace - 1
    while position >= 0 and tokens[position].text not in _STATEMENT_ENDS:
        if tokens[position].text in (")", "="):
            return False
        if tokens[position].text in _CLASS_WORDS:
            # That of a template's parameter says nothing.
            return tokens[position - 1].text not in ("<", ",") if position else True
        position -= 1
    return False


def _closing_angle(tokens: Sequence[Token], index: int) -> int | None:
    """Return the index of the `>` that closes the `<` at `index`."""
    depth = 0
    for position in range(index, len(tokens)):
        text = tokens[position].text
        if text == "<":
            depth += 1
        elif text in (">", ">>>"):
            depth -= len(text)
            if depth <= 0:
                return position if depth == 0 and text == ">" else None
        elif text in (";", "{", "}"):
            return None
    return None


def _member_at(tokens: Sequence[Token], begin: int, scope: int) -> _Member | None:
    close = _closing_angle(tokens, begin + 1)
    if close is None or close + 2 >= len(tokens):
        return None
    if tokens[close + 1].text in _CLASS_WORDS:
        name = close + 2
        arguments = _arguments_at(tokens, name + 1)
        return _Member(scope, begin, name, arguments, close, True, tokens[name].text, name)
    position = close + 1
    while position + 3 < len(tokens) and tokens[position].text not in _STATEMENT_ENDS:
        text = tokens[position].text
        if text in ("__attribute__", "alignas"):
            position = matching_close(tokens, position + 1) or len(tokens)
        elif text == "operator" and [t.text for t in tokens[position + 1 : position + 3]] == [
            "(",
            ")",
        ]:
            return _function_at(tokens, begin, close, scope, position, position + 3, "operator()")
        elif tokens[position].kind is TokenKind.IDENTIFIER:
            arguments = _arguments_at(tokens, position + 1)
            behind = arguments[1] + 1 if arguments else position + 1
            if tokens[behind].text == "(":
                return _function_at(tokens, begin, close, scope, position, position + 1, text)
            position = behind - 1
        position += 1
    return None


def _function_at(
    tokens: Sequence[Token], begin: int, close: int, scope: int, name: int, behind: int, text: str
) -> _Member | None:
    arguments = _arguments_at(tokens, behind)
    opening = arguments[1] + 1 if arguments else behind
    if tokens[opening].text != "(":
        return None
    return _Member(scope, begin, name, arguments, close, False, text, opening)


def _arguments_at(tokens: Sequence[Token], index: int) -> tuple[int, int] | None:
    if index >= len(tokens) or tokens[index].text != "<":
        return None
    close = _closing_angle(tokens, index)
    return None if close is None else (index, close)


def _primary_of(member: _Member, members: Sequence[_Member]) -> _Member | None:
    """Return the template that a full specialisation is of."""
    if not member.is_full:
        return None
    for other in members:
        same = (other.scope, other.text, other.is_class) == (
            member.scope,
            member.text,
            member.is_class,
        )
        if same and other.arguments is None:
            return other
    return None


def _is_by_kind(tokens: Sequence[Token], primary: _Member) -> bool:
    head = tokens[primary.begin : primary.close]
    return any(token.text == _KIND for token in head)


def _specialisation_edits(
    tokens: Sequence[Token], member: _Member, primary: _Member, members: Sequence[_Member]
) -> list[Edit]:
    assert member.arguments is not None
    begin, end = member.arguments
    values = "".join(token.text for token in tokens[begin + 1 : end])
    head = (tokens[member.begin].start, tokens[member.close].end)
    if member.is_class:
        return [
            Edit(*head, "template <typename OpkitFull>"),
            Edit(tokens[end].start, tokens[end].start, ", OpkitFull"),
        ]
    if not _is_by_kind(tokens, primary):
        return []
    wanted = f"::std::enable_if_t<opkit_kind == ({values}), int>"
    return [
        Edit(*head, f"template <int opkit_kind, {wanted} = 0>"),
        Edit(tokens[begin].start, tokens[end].end, ""),
    ]


def _primary_edits(
    tokens: Sequence[Token], primary: _Member, members: Sequence[_Member]
) -> list[Edit]:
    head = (tokens[primary.begin].start, tokens[primary.close].end)
    if primary.is_class:
        place = tokens[primary.close].start
        return [Edit(place, place, ", typename OpkitFull = void")]
    if not _is_by_kind(tokens, primary):
        return []
    close = matching_close(tokens, primary.opening)
    if close is None:
        return []
    names = ", ".join(_parameter_names(tokens[primary.opening + 1 : close]))
    written = {
        tokens[other.arguments[1] - 1].text
        for other in members
        if other.arguments is not None and _primary_of(other, members) is primary
    }
    calls = "".join(
        f"if ({_KIND} == ::AscendC::{kind}) "
        f"return this->template {primary.text}<::AscendC::{kind}>({names}); "
        for kind in _KINDS
        if kind in written
    )
    behind = tokens[close + 1]
    if behind.text == ";":
        return [Edit(*head, ""), Edit(behind.start, behind.end, f" {{ {calls}}}")]
    if behind.text == "{":
        return [Edit(*head, ""), Edit(behind.end, behind.end, f" {calls}")]
    return []


def _parameter_names(tokens: Sequence[Token]) -> list[str]:
    """Return the names in a function's parameters; all have one where they are used."""
    names = []
    depth = 0
    for token, behind in zip(tokens, [*tokens[1:], None], strict=True):
        depth += (token.text in ("<", "(", "[")) - (token.text in (">", ")", "]"))
        is_last = behind is None or (behind.text == "," and depth == 0)
        if is_last and token.kind is TokenKind.IDENTIFIER:
            names.append(token.text)
    return names
