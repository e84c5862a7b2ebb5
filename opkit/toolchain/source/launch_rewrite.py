"""Kernel launches, `kernel<T...><<<blocks, l2ctrl, stream>>>(args...)`, rewritten to plain C++.

The rewrite works on tokens and adds text only within a line, so every line keeps its number; a
`#line` directive in front names the user's file. What a launch becomes is in
`opkit/launch_entry.h`: `launch_kernel` for a kernel or a pointer to one, `launch_template` with a
lambda around it where template arguments are still to be deduced.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from opkit.errors import BuildError, Diagnostic
from opkit.toolchain.source.tokens import (
    Token,
    TokenKind,
    matching_close,
    matching_open,
    significant,
    tokenize,
)

__all__ = [
    "ASK_KERNEL",
    "MIXED",
    "PLAIN_DIALECT",
    "TASK_TYPES",
    "VECTOR",
    "Dialect",
    "Edit",
    "Kernel",
    "Rewritten",
    "all_kernels",
    "apply_edits",
    "body_edits",
    "expression_edits",
    "launch_edits",
    "library_edits",
    "print_edits",
    "scan_kernels",
    "task_type_of",
]

VECTOR = "::opkit::KernelMode::Vector"
MIXED = "::opkit::KernelMode::Mix12"
# The launch asks the kernel, which body_edits() has taught to answer.
ASK_KERNEL = "::opkit::AskKernel()"
# Source: programming guide, kernel type settings; the task types of arch 2201.
TASK_TYPES = {
    "KERNEL_TYPE_AIV_ONLY": VECTOR,
    "KERNEL_TYPE_MIX_AIV_1_0": VECTOR,
    "KERNEL_TYPE_MIX_VECTOR_CORE": VECTOR,
    "KERNEL_TYPE_AIC_ONLY": "::opkit::KernelMode::Cube",
    "KERNEL_TYPE_MIX_AIC_1_0": "::opkit::KernelMode::Cube",
    "KERNEL_TYPE_MIX_AIC_1_1": "::opkit::KernelMode::Mix11",
    "KERNEL_TYPE_MIX_AIC_1_2": MIXED,
}
_TEMPLATE_PREFIX = "ASCENDC_TPL_"


def task_type_of(word: str) -> str | None:
    """Return the key of `TASK_TYPES` that a word names, as itself or as a template's task type
    (`ASCENDC_TPL_AIC_ONLY`); None for any other word."""
    name = word
    if word.startswith(_TEMPLATE_PREFIX):
        name = f"KERNEL_TYPE_{word.removeprefix(_TEMPLATE_PREFIX)}"
    return name if name in TASK_TYPES else None


# How many cube and vector cores a block has, as a word or as an attribute.
_RATIOS = ("__mix__", "core_ratio")
_ATTRIBUTES = {"aiv": VECTOR, "aic": "::opkit::KernelMode::Cube"}
_MAYBE_LAUNCH = "<<<"
_MAYBE_KERNEL = "__global__"
_STATEMENT_ENDS = {";", "{", "}"}
_DIRECTIVE = re.compile(r"^[ \t]*#.*", re.MULTILINE)
_CONDITION = re.compile(
    r"^[ \t]*#[ \t]*(?:if|ifdef|ifndef|elif|else|endif)\b(?:.*\\\n)*.*", re.MULTILINE
)
_OTHER_BRANCH = re.compile(r"^[ \t]*#[ \t]*(?:else|elif)\b", re.MULTILINE)


@dataclass(frozen=True)
class Dialect:
    """What the files of a translation unit say about all of its kernels."""

    markers: frozenset[str] = frozenset({_MAYBE_KERNEL})
    """What stands in front of kernels: `__global__`, and macros that have it."""
    unmarked: str = VECTOR
    """The mode of a kernel of which nothing else says it."""


PLAIN_DIALECT = Dialect()


@dataclass(frozen=True)
class Kernel:
    """One kernel function as a source declares it."""

    name: str
    """Without namespaces."""
    mode: str
    """Its `opkit::KernelMode` as a C++ expression."""
    is_template: bool
    body: int | None = None
    """Offset behind the `{` of its definition; None for a declaration."""
    end: int | None = None
    """Offset behind the `}` of its definition; None for a declaration."""
    keyed_modes: tuple[tuple[str, str], ...] = ()
    """(tiling key, mode) of each KERNEL_TASK_TYPE in its body, as C++ expressions."""
    workspace: str | None = None
    """The parameter marked `__kfc_workspace__`: the system workspace of Matmul objects."""
    head: int = 0
    """Offset of its first token."""
    is_branch: bool = False
    """Whether branches of a conditional declare it with different modes."""
    branches: str = ""
    """Lines that define `mode_in_scope` in the body of a template whose modes stand in branches."""
    name_start: int = 0
    """Offset of its name."""
    parameters: str = ""
    """What stands between its parentheses."""
    is_overloaded: bool = False
    """Whether other functions have its name, so that only arguments or parameters tell it."""

    @property
    def cast(self) -> str:
        """What picks it among functions of its name: C++ in front of their name; or nothing."""
        return f"static_cast<void (*)({self.parameters})>" if self.is_overloaded else ""

    @property
    def mode_in_scope(self) -> str:
        """The mode as code behind the head writes it: the compiler knows which branch holds."""
        return f"opkit_mode_of_{self.name}" if self.is_branch else self.mode


@dataclass(frozen=True)
class Edit:
    """One replacement of text[start:end]; insertions have start == end."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Rewritten:
    """A source after its edits, and the way back to the user's columns."""

    text: str
    edits: tuple[Edit, ...]
    """In order of `start`."""
    line_starts: tuple[int, ...]
    """Offset of each line in the user's text."""

    def user_column(self, line: int, column: int) -> int:
        """Return the column in the user's text of a column of ours; both count from 1."""
        if not 0 < line <= len(self.line_starts):
            return column
        begin = self.line_starts[line - 1]
        end = self.line_starts[line] if line < len(self.line_starts) else None
        wanted = column - 1
        shift = 0
        for edit in self.edits:
            if edit.start < begin or (end is not None and edit.start >= end):
                continue
            place = edit.start - begin + shift
            if wanted < place:
                break
            if wanted < place + len(edit.text):
                return edit.start - begin + 1
            shift += len(edit.text) - (edit.end - edit.start)
        return wanted - shift + 1


def scan_kernels(text: str, dialect: Dialect = PLAIN_DIALECT) -> tuple[Kernel, ...]:
    """Return the kernels that `text` declares or defines, each name once.

    The mode is taken from `__vector__`, `__cube__`, `__mix__(cube, vector)` or the attributes that
    these stand for, else from a KERNEL_TASK_TYPE macro in the body. Else a kernel with a
    `__kfc_workspace__` parameter has Matmul objects, so its blocks are a cube and two vector
    cores, and any other is what the dialect says, vector by default.
    """
    kernels: dict[str, Kernel] = {}
    for kernel in all_kernels(text, dialect):
        known = kernels.get(kernel.name)
        # A forward declaration may say less than the definition. A function beside a template may
        # be in a branch that is not compiled, which only what is preprocessed tells.
        is_hidden = known is not None and known.is_template and not kernel.is_template
        if known is None or (known.mode == VECTOR and not is_hidden):
            kernels[kernel.name] = kernel
    return tuple(kernels.values())


def body_edits(text: str, dialect: Dialect = PLAIN_DIALECT, *, asks_mode: bool) -> tuple[Edit, ...]:
    """Return what each kernel defined in `text` has to do first.

    Where launches ask for the mode, it tells; a marked workspace becomes the system workspace.
    """
    edits: list[Edit] = []
    bodies: set[int] = set()
    for kernel in all_kernels(text, dialect):
        if kernel.is_branch and not kernel.branches:
            constant = f"constexpr ::opkit::KernelMode {kernel.mode_in_scope} = {kernel.mode}; "
            edits.append(Edit(kernel.head, kernel.head, constant))
        statements = ""
        if kernel.branches and kernel.body is not None:
            line = text.count("\n", 0, kernel.body) + 1
            statements = f"\n{kernel.branches}#line {line}\n"
        if asks_mode:
            statements += f" if (::opkit::tells_mode({kernel.mode_in_scope})) return;"
        if kernel.workspace is not None:
            pointer = f"reinterpret_cast<uint8_t*>({kernel.workspace})"
            statements += f" ::opkit::set_system_workspace({pointer});"
        # Heads in branches of a conditional may share one body.
        if kernel.body is not None and statements and kernel.body not in bodies:
            bodies.add(kernel.body)
            edits.append(Edit(kernel.body, kernel.body, statements))
    return tuple(edits)


def library_edits(
    text: str, dialect: Dialect = PLAIN_DIALECT, kernels: Iterable[Kernel] = ()
) -> tuple[Edit, ...]:
    """Return the edits that enter each kernel defined in `text` into the library's list.

    An entry stands right behind its kernel, in the same namespace. Templates have none: which of
    their kernels are wanted, name expressions say.

    Args:
        kernels: those of the unit, the overloaded ones marked.
    """
    overloaded = {kernel.name for kernel in kernels if kernel.is_overloaded}
    ends = {
        kernel.end: replace(kernel, is_overloaded=kernel.name in overloaded)
        for kernel in all_kernels(text, dialect)
        if kernel.end is not None and not kernel.is_template
    }
    return tuple(
        Edit(end, end, _library_entry(kernel.name, kernel.name, kernel.mode_in_scope, kernel.cast))
        for end, kernel in ends.items()
    )


def print_edits(text: str, dialect: Dialect = PLAIN_DIALECT) -> tuple[Edit, ...]:
    """Return the edits that make a plain `printf` print as kernels do, where a kernel calls it.

    Only in a text with kernels: `<cstdio>` declares a function of the same name, which would
    otherwise win over the kernel's. `std::printf` and `AscendC::printf` say which one they are.
    """
    if "printf" not in text or not _may_have_kernels(text, dialect):
        return ()
    tokens = significant(tokenize(text))
    edits = []
    for index, token in enumerate(tokens[:-1]):
        if token.text != "printf" or token.kind is not TokenKind.IDENTIFIER:
            continue
        start = _plain_start(tokens, index)
        if tokens[index + 1].text == "(" and start is not None:
            edits.append(Edit(start, token.end, "::opkit::print_here"))
    return tuple(edits)


def _plain_start(tokens: Sequence[Token], index: int) -> int | None:
    """Return where a name begins that is called without a scope, or with the global one."""
    before = tokens[index - 1] if index else None
    if before is None:
        return tokens[index].start
    if before.text == "::":
        has_scope = index >= 2 and tokens[index - 2].text != ")" and _continues(tokens, index - 2)
        return None if has_scope else before.start
    declares = before.kind is TokenKind.IDENTIFIER and _continues(tokens, index - 1)
    is_other = before.text in (".", "->", "*", "&", "~") or declares
    return None if is_other else tokens[index].start


def expression_edits(
    text: str, expressions: Sequence[str], kernels: Iterable[Kernel]
) -> tuple[Edit, ...]:
    """Return the edits that enter what each expression names, such as `ns::add<float>`.

    They stand behind the end of `text`, which is a source; `kernels` are those of its unit.
    """
    modes = {kernel.name: kernel.mode for kernel in kernels}
    parts = []
    for number, expression in enumerate(expressions):
        name = _expression_name(expression)
        entry = _library_entry(str(number), expression, modes.get(name, VECTOR))
        place = _quoted(Path(f"name expression {expression}"))
        parts.append(f'\n#line 1 "{place}"\n{entry}\n')
    return (Edit(len(text), len(text), "".join(parts)),) if parts else ()


def _library_entry(label: str, function: str, mode: str, cast: str = "") -> str:
    quoted = function.replace("\\", "\\\\").replace('"', '\\"')
    address = f"{cast}(&{function})" if cast else f"&{function}"
    return (
        f" namespace {{ const ::opkit::AddLibraryKernel<{address}> "
        f'opkit_library_entry_{label}("{quoted}", {mode}); }}'
    )


def _expression_name(expression: str) -> str:
    """Return the kernel's own name in an expression: without namespaces and template arguments."""
    tokens = significant(tokenize(expression))
    last = len(tokens) - 1
    if last >= 0 and tokens[last].text in (">", ">>>"):
        last = (matching_open(tokens, last) or 0) - 1
    return tokens[last].text if last >= 0 else ""


def _may_have_kernels(text: str, dialect: Dialect) -> bool:
    return any(marker in text for marker in dialect.markers)


def all_kernels(text: str, dialect: Dialect = PLAIN_DIALECT) -> list[Kernel]:
    """Return every head of a kernel in `text`, in branches of conditionals too."""
    if not _may_have_kernels(text, dialect):
        return []
    tokens = _outside_conditions(significant(tokenize(text)), text)
    found = [
        kernel
        for index, token in enumerate(tokens)
        if token.text in dialect.markers and token.kind is TokenKind.IDENTIFIER
        for kernel in _kernels_at(text, tokens, index, dialect)
    ]
    return _with_branches(found, text)


def _outside_conditions(tokens: Sequence[Token], text: str) -> list[Token]:
    """Return the tokens that are no part of an #if, #else or #endif."""
    kept = []
    end = 0
    conditions = _CONDITION.finditer(text)
    condition = next(conditions, None)
    for token in tokens:
        while condition is not None and condition.start() <= token.start:
            end = condition.end()
            condition = next(conditions, None)
        if token.start >= end:
            kept.append(token)
    return kept


def _with_branches(kernels: Sequence[Kernel], text: str) -> list[Kernel]:
    """Mark the kernels whose mode depends on the branch of a conditional that is compiled."""
    by_name: dict[str, list[Kernel]] = {}
    for kernel in kernels:
        by_name.setdefault(kernel.name, []).append(kernel)
    branches = {
        name
        for name, heads in by_name.items()
        if len({head.mode for head in heads}) > 1
        and all(_OTHER_BRANCH.search(text, a.head, b.head) for a, b in pairwise(heads))
    }
    return [
        replace(kernel, is_branch=kernel.is_branch or kernel.name in branches) for kernel in kernels
    ]


def _kernels_at(
    text: str, tokens: Sequence[Token], index: int, dialect: Dialect
) -> tuple[Kernel, ...]:
    """Return the kernel whose marker is `tokens[index]`.

    More than once where branches of a conditional behind the marker give it different modes.
    """
    begin = _head_begin(text, tokens, index)
    template = _template_begin(tokens, index)
    is_template = template is not None
    # (offset, mode) of each word that says one, up to the __global__ of another branch.
    modes: list[tuple[int, str]] = []
    is_other_head = False
    position = begin
    while position < len(tokens):
        token = tokens[position]
        if token.text in _STATEMENT_ENDS and not (token.text == "{" and position < index):
            return ()
        has_parenthesis = position + 1 < len(tokens) and tokens[position + 1].text == "("
        said = ""
        if token.text in dialect.markers and position > index:
            is_other_head = True
        elif token.text == "__vector__":
            said = VECTOR
        elif token.text == "__cube__":
            said = "::opkit::KernelMode::Cube"
        elif has_parenthesis and token.kind is TokenKind.IDENTIFIER:
            close = matching_close(tokens, position + 1)
            if close is None:
                return ()
            if token.text in _RATIOS:
                inner = _source_of(tokens[position + 2 : close])
                said = f"::opkit::mix_mode({inner})"
            elif token.text == "__attribute__":
                words = (inner.text for inner in tokens[position + 2 : close])
                said = next((_ATTRIBUTES[word] for word in words if word in _ATTRIBUTES), "")
            elif position > index and token.text != "alignas":
                is_defined = close + 1 < len(tokens) and tokens[close + 1].text == "{"
                last = matching_close(tokens, close + 1) if is_defined else None
                workspace = _marked_workspace(tokens[position + 2 : close])
                unmarked = dialect.unmarked if workspace is None else MIXED
                kernel = Kernel(
                    token.text,
                    modes[-1][1] if modes else _task_type(tokens, close) or unmarked,
                    is_template,
                    body=tokens[close + 1].end if is_defined else None,
                    end=tokens[last].end if last is not None else None,
                    keyed_modes=_keyed_modes(tokens[close + 1 : last]) if last else (),
                    workspace=workspace,
                    head=tokens[begin].start,
                    name_start=token.start,
                    parameters=text[tokens[position + 1].end : tokens[close].start].strip(),
                )
                if template is not None and template < kernel.head:
                    # No declaration may stand between the parameters of a template and its head.
                    found = _conditional_modes(text, tokens, template, position)
                    return (replace(kernel, is_branch=bool(found), branches=found),)
                if not _say_branches(text, modes):
                    return (kernel,)
                return tuple(replace(kernel, head=head, mode=mode) for head, mode in modes)
            position = close
        if said and not is_other_head:
            modes.append((token.start, said))
        position += 1
    return ()


def _template_begin(tokens: Sequence[Token], index: int) -> int | None:
    """Return where the template begins that `tokens[index]` is part of; None where it is none."""
    while index > 0 and tokens[index - 1].text not in _STATEMENT_ENDS:
        index -= 1
        # No template has C's linkage: its head stands in the other branch of a conditional.
        if tokens[index].text == "extern":
            return None
        if tokens[index].text == "template":
            return tokens[index].start
    return None


def _conditional_modes(text: str, tokens: Sequence[Token], begin: int, name: int) -> str:
    """Return the conditionals of a template's head with its modes as constants, one a line."""
    places: list[tuple[int, str]] = [
        (item.start(), item.group().strip())
        for item in _CONDITION.finditer(text, begin, tokens[name].start)
    ]
    constant = f"constexpr ::opkit::KernelMode opkit_mode_of_{tokens[name].text} = "
    count = len(places)
    for position in range(name):
        token = tokens[position]
        if token.start < begin:
            continue
        if token.text == "__vector__":
            places.append((token.start, f"{constant}{VECTOR};"))
        elif token.text == "__cube__":
            places.append((token.start, f"{constant}::opkit::KernelMode::Cube;"))
        elif token.text == "__mix__":
            close = matching_close(tokens, position + 1)
            inner = _source_of(tokens[position + 2 : close]) if close is not None else ""
            places.append((token.start, f"{constant}::opkit::mix_mode({inner});"))
    if count == 0 or len(places) - count < 2:
        return ""
    return "".join(f"{line}\n" for _, line in sorted(places))


def _say_branches(text: str, modes: Sequence[tuple[int, str]]) -> bool:
    """Whether each of some words that say a mode stands in a branch of its own."""
    return len(modes) > 1 and all(
        _OTHER_BRANCH.search(text, first, second) for (first, _), (second, _) in pairwise(modes)
    )


def _head_begin(text: str, tokens: Sequence[Token], index: int) -> int:
    """Return the first token of the declaration that `tokens[index]` is part of."""
    begin = index
    while begin > 0 and tokens[begin - 1].text not in _STATEMENT_ENDS:
        begin -= 1
    *_, directive = (None, *_DIRECTIVE.finditer(text, tokens[begin].start, tokens[index].start))
    while directive is not None and tokens[begin].start < directive.end():
        begin += 1
    return begin


def _marked_workspace(parameters: Sequence[Token]) -> str | None:
    """Return the name of the parameter that `__kfc_workspace__` stands with."""
    names = [token.text for token in parameters]
    if "__kfc_workspace__" not in names:
        return None
    end = names.index("__kfc_workspace__")
    while end < len(names) and names[end] != ",":
        end += 1
    return names[end - 1]


def _task_type(tokens: Sequence[Token], close: int) -> str | None:
    """Return the mode that the body behind parameter list `tokens[close]` asks for."""
    body = close + 1
    if body >= len(tokens) or tokens[body].text != "{":
        return None
    end = matching_close(tokens, body) or len(tokens)
    words = [token.text for token in tokens[body:end]]
    named = next((TASK_TYPES[word] for word in words if word in TASK_TYPES), None)
    # Where nothing is said, Matmul objects need both kinds of cores.
    return named or (MIXED if "REGIST_MATMUL_OBJ" in words else None)


def _keyed_modes(body: Sequence[Token]) -> tuple[tuple[str, str], ...]:
    found = []
    for index, token in enumerate(body[:-1]):
        if token.text != "KERNEL_TASK_TYPE" or body[index + 1].text != "(":
            continue
        close = matching_close(body, index + 1)
        if close is not None and body[close - 1].text in TASK_TYPES and body[close - 2].text == ",":
            key = _source_of(body[index + 2 : close - 2])
            found.append((key, TASK_TYPES[body[close - 1].text]))
    return tuple(found)


def launch_edits(text: str, *, file: Path, kernels: Iterable[Kernel] = ()) -> tuple[Edit, ...]:
    """Return the edits that turn every launch in `text` into a call.

    Args:
        file: the user's file, for errors.
        kernels: the kernels of the translation unit.
    Raises:
        BuildError: a launch lacks its `>>>` or its argument list.
    """
    if _MAYBE_LAUNCH not in text:
        return ()
    known = {kernel.name: kernel for kernel in kernels}
    tokens = significant(tokenize(text))
    edits: list[Edit] = []
    for index, token in enumerate(tokens):
        if token.text == _MAYBE_LAUNCH and token.kind is TokenKind.PUNCTUATION:
            edits.extend(_edits_of_launch(text, tokens, index, known, file))
    return tuple(edits)


def _edits_of_launch(
    text: str,
    tokens: Sequence[Token],
    index: int,
    known: dict[str, Kernel],
    file: Path,
) -> list[Edit]:
    begin = _callee_begin(tokens, index)
    if begin is None:
        return []  # not a launch: `operator<<<T>`, say; the compiler judges it
    name = _callee_name(tokens, begin, index)
    close = _configuration_end(tokens, index)
    if close is None:
        raise _launch_error(text, file, tokens[index], f"the launch of {name} has no >>>")
    opening = close + 1
    if opening >= len(tokens) or tokens[opening].text != "(":
        raise _launch_error(
            text, file, tokens[close], f"the launch of {name} has no argument list behind >>>"
        )
    if matching_close(tokens, opening) is None:
        raise _launch_error(
            text, file, tokens[opening], f"the argument list of the launch of {name} has no end"
        )
    if close == index + 1:
        raise _launch_error(
            text, file, tokens[index], f"the launch of {name} does not say how many blocks"
        )
    kernel = known.get(name)
    mode = _common_mode(known)
    if kernel is not None:
        mode = ASK_KERNEL if kernel.is_branch else kernel.mode
    is_template = tokens[index - 1].text in (">", ">>>") or (
        kernel and (kernel.is_template or kernel.is_overloaded)
    )
    before = "::opkit::launch_kernel("
    after = ""
    if is_template:
        before = "::opkit::launch_template([=](auto... opkit_arguments) { "
        after = "(opkit_arguments...); }"
    quoted = name.replace("\\", "\\\\").replace('"', '\\"')
    head = f'{after}, ::opkit::LaunchConfig("{quoted}", {mode}, '
    has_arguments = tokens[opening + 1].text != ")"
    return [
        Edit(tokens[begin].start, tokens[begin].start, before),
        Edit(tokens[index].start, tokens[index].end, head),
        Edit(tokens[close].start, tokens[close].end, ")"),
        Edit(tokens[opening].start, tokens[opening].end, ", " if has_arguments else ""),
    ]


def _callee_begin(tokens: Sequence[Token], index: int) -> int | None:
    """Return where the expression in front of `<<<` begins."""
    position = index - 1
    while position >= 0:
        token = tokens[position]
        if token.text in (">", ">>>", ")", "]"):
            opening = matching_open(tokens, position)
            if opening is None:
                return None
            position = opening
            if token.text == ")" and not _continues(tokens, position - 1):
                return position
            position -= 1
            continue
        if token.kind is not TokenKind.IDENTIFIER or token.text == "operator":
            return None
        if position > 0 and tokens[position - 1].text == "template":
            position -= 1
        if position == 0 or tokens[position - 1].text not in ("::", ".", "->"):
            return position
        if not _continues(tokens, position - 2):
            # A leading "::", the global namespace.
            return position - 1
        position -= 2
    return None


def _continues(tokens: Sequence[Token], position: int) -> bool:
    """Whether the token ends an operand that what follows belongs to."""
    if position < 0:
        return False
    token = tokens[position]
    if token.kind is TokenKind.IDENTIFIER:
        return token.text not in ("return", "else", "do", "if", "while", "for", "case")
    return token.text in (">", ">>>", ")", "]")


def _callee_name(tokens: Sequence[Token], begin: int, index: int) -> str:
    last = index - 1
    if tokens[last].text in (">", ">>>"):
        last = (matching_open(tokens, last) or begin) - 1
    if tokens[last].kind is TokenKind.IDENTIFIER:
        return tokens[last].text
    return _source_of(tokens[begin:index])


def _configuration_end(tokens: Sequence[Token], index: int) -> int | None:
    position = index + 1
    while position < len(tokens):
        token = tokens[position]
        if token.text == ">>>" and token.kind is TokenKind.PUNCTUATION:
            return position
        if token.text in ("(", "[", "{"):
            close = matching_close(tokens, position)
            if close is None:
                return None
            position = close
        elif token.text in (";", "<<<", ")", "}"):
            return None
        position += 1
    return None


def _common_mode(known: dict[str, Kernel]) -> str:
    """Return the mode of a callee that is no kernel's name: a pointer or a macro's parameter."""
    modes = {kernel.mode for kernel in known.values()} or {VECTOR}
    return modes.pop() if len(modes) == 1 else ASK_KERNEL


def _source_of(tokens: Sequence[Token]) -> str:
    parts = []
    for before, token in zip([None, *tokens], tokens, strict=False):
        if before is not None and before.end != token.start:
            parts.append(" ")
        parts.append(token.text)
    return "".join(parts)


def _launch_error(text: str, file: Path, token: Token, message: str) -> BuildError:
    line = text.count("\n", 0, token.start) + 1
    column = token.start - text.rfind("\n", 0, token.start)
    source_line = text.splitlines()[line - 1]
    diagnostic = Diagnostic(file, line, column, "error", message, source_line)
    return BuildError(f"{file}: a launch cannot be read", diagnostics=(diagnostic,))


_LINE_BREAK = re.compile(r"\n")


def apply_edits(text: str, edits: Iterable[Edit], *, file: Path) -> Rewritten:
    """Return `text` after `edits`, behind a `#line` directive that names `file`."""
    ordered = tuple(sorted(edits, key=lambda edit: (edit.start, edit.end)))
    parts = [f'#line 1 "{_quoted(file)}"\n']
    position = 0
    for edit in ordered:
        parts.append(text[position : edit.start])
        parts.append(edit.text)
        position = edit.end
    parts.append(text[position:])
    starts = (0, *(found.end() for found in _LINE_BREAK.finditer(text)))
    return Rewritten(text="".join(parts), edits=ordered, line_starts=starts)


def _quoted(file: Path) -> str:
    return str(file).replace("\\", "\\\\").replace('"', '\\"')
