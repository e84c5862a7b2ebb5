"""What a candidate without host code of an operator exposes: a function named like the operator.

Its parameters say by their names what it takes. Of a direct-launch source:

    extern "C" void add(uint8_t* x, uint8_t* y, uint8_t* z, int64_t x_elements, void* stream)

For a program of PyPTO or Triton, in which names of tensors stand for arrays:

    def add(x, y): ...
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opkit.errors import UsageError
from opkit.schema import OpSpec
from opkit.toolchain import Token, TokenKind, matching_close, significant, tokenize

__all__ = [
    "MARK_INTERFACE",
    "PARTS",
    "WORKSPACE_BYTES",
    "Entry",
    "Parameter",
    "call_program",
    "find_entry",
]

PARTS = ("elements", "bytes", "rank", "shape", "dtype")
"""What can be asked of a tensor `x`, as `x_elements` and so on."""
_OWN = ("stream", "workspace", "workspace_bytes")
WORKSPACE_BYTES = 64 << 20
"""Memory of the device that each launch finds at `workspace`."""
MARK_INTERFACE = "the entry: "
"""In front of errors about what a candidate exposes."""
_NUMBERS = {
    **dict.fromkeys(("int64_t", "long", "long long", "ptrdiff_t"), "c_int64"),
    **dict.fromkeys(("uint64_t", "size_t", "unsigned long", "unsigned long long"), "c_uint64"),
    **dict.fromkeys(("int32_t", "int"), "c_int32"),
    **dict.fromkeys(("uint32_t", "unsigned", "unsigned int"), "c_uint32"),
    **dict.fromkeys(("int16_t", "short"), "c_int16"),
    **dict.fromkeys(("uint16_t", "unsigned short"), "c_uint16"),
    **dict.fromkeys(("int8_t", "char"), "c_int8"),
    "uint8_t": "c_uint8",
    "float": "c_float",
    "double": "c_double",
    "bool": "c_bool",
}
_POINTERS = ("GM_ADDR", "aclrtStream")
_SILENT = frozenset(("const", "__gm__", "__restrict__", "__restrict", "struct", "volatile"))


@dataclass(frozen=True)
class Parameter:
    """One parameter of an entry in C."""

    name: str
    kind: str
    """`pointer`, or the type of ctypes for a number."""


@dataclass(frozen=True)
class Entry:
    """A function in C that launches an operator's kernels."""

    name: str
    parameters: tuple[Parameter, ...]


def find_entry(texts: Mapping[str, str], spec: OpSpec) -> Entry:
    """Return the entry of direct-launch sources, whose names all mean something of the operator.

    Args:
        texts: sources by their names.
    Raises:
        UsageError: there is none, or it takes something that the operator does not have.
    """
    for file, text in texts.items():
        tokens = significant(tokenize(text))
        for at in range(1, len(tokens) - 1):
            if tokens[at].text in (spec.name, spec.op) and tokens[at + 1].text == "(":
                close = matching_close(tokens, at + 1)
                if close is None or close + 1 >= len(tokens) or tokens[close + 1].text != "{":
                    continue
                if _is_function_of_the_host(tokens, at):
                    return _entry(tokens, at, close, spec, file)
    raise UsageError(
        f'{MARK_INTERFACE}no source defines extern "C" void {spec.name}(...)',
        help=_help(spec),
    )


def _is_function_of_the_host(tokens: Sequence[Token], at: int) -> bool:
    """Whether what stands before a name makes it a definition, and no kernel's."""
    before = []
    for token in reversed(tokens[max(0, at - 8) : at]):
        if token.text in (";", "{", "}"):
            break
        before.append(token.text)
    return "void" in before and not {"__global__", "__aicore__"} & set(before)


def _entry(tokens: Sequence[Token], at: int, close: int, spec: OpSpec, file: str) -> Entry:
    rows: list[list[Token]] = [[]]
    for token in tokens[at + 2 : close]:
        if token.text == ",":
            rows.append([])
        else:
            rows[-1].append(token)
    known = _known_names(spec)
    found = []
    for row in rows:
        if not row or [token.text for token in row] == ["void"]:
            continue
        name, kind = row[-1].text, _kind(row[:-1])
        if row[-1].kind is not TokenKind.IDENTIFIER or name not in known:
            raise UsageError(
                f'{MARK_INTERFACE}{file}: the parameter "{name}" of {tokens[at].text} is none that'
                f" {spec.op} has",
                help=_help(spec),
            )
        is_pointer = known[name]
        if kind is None or (kind == "pointer") != is_pointer:
            raise UsageError(
                f'{MARK_INTERFACE}{file}: the parameter "{name}" of {tokens[at].text} is to be'
                f" {'a pointer' if is_pointer else 'a number'}",
                help=_help(spec),
            )
        found.append(Parameter(name, kind))
    return Entry(tokens[at].text, tuple(found))


def _kind(row: Sequence[Token]) -> str | None:
    words = [token.text for token in row if token.text not in _SILENT]
    if "*" in words or words in ([each] for each in _POINTERS):
        return "pointer" if words.count("*") <= 1 else None
    return _NUMBERS.get(" ".join(word for word in words if word not in ("std", "::")))


def _known_names(spec: OpSpec) -> dict[str, bool]:
    """Return the names that mean something, and whether what they stand for is a pointer."""
    known = dict.fromkeys(_OWN, True) | {"workspace_bytes": False}
    for tensor in (*spec.inputs, *spec.outputs):
        known[tensor.name] = True
        known |= {f"{tensor.name}_{part}": part == "shape" for part in PARTS}
    for attr in spec.attrs:
        is_list = attr.type.startswith("list") or attr.type == "string"
        known[attr.name] = is_list
        if is_list:
            known[f"{attr.name}_count"] = False
    return known


def _help(spec: OpSpec) -> str:
    tensors = ", ".join(tensor.name for tensor in (*spec.inputs, *spec.outputs))
    attrs = ", ".join(attr.name for attr in spec.attrs)
    return (
        f"its parameters go by name: {tensors}{', ' if attrs else ''}{attrs}, stream, workspace;"
        f" of a tensor also {', '.join(f'{spec.inputs[0].name}_{part}' for part in PARTS)}"
        if spec.inputs
        else "its parameters go by name; see docs/judge.md"
    )


def call_program(function: Callable[..., Any], spec: OpSpec, values: Mapping[str, Any]) -> Any:
    """Call a program's function with what its parameters name.

    Args:
        values: inputs, outputs and attributes by name; outputs go only to who names them.
    Raises:
        UsageError: it takes something that the operator does not have.
    """
    outputs = {tensor.name for tensor in spec.outputs} - {tensor.name for tensor in spec.inputs}
    given = {name: value for name, value in values.items() if name not in outputs}
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return function(**given)
    rows = signature.parameters.values()
    if any(row.kind is inspect.Parameter.VAR_KEYWORD for row in rows):
        return function(**given)
    chosen = {}
    for row in rows:
        if row.name in values:
            chosen[row.name] = values[row.name]
        elif row.default is inspect.Parameter.empty and row.kind is not row.VAR_POSITIONAL:
            raise UsageError(
                f'{MARK_INTERFACE}the parameter "{row.name}" of {spec.name} is none that {spec.op}'
                f" has: {', '.join(values)}",
                help=f"def {spec.name}({', '.join(given)})",
            )
    return function(**chosen)
