"""Names: which are legal, and what an operator is called in files, kernels and Python."""

from __future__ import annotations

import difflib
import keyword
import re
from collections.abc import Iterable

__all__ = ["camel_case", "is_reserved", "nearest", "quoted_choice", "snake_case"]

# Keywords and alternative tokens of ISO C++17 [lex.key]: tensors become parameters of the kernel.
# fmt: off
_CPP_KEYWORDS = frozenset((
    "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "break",
    "case", "catch", "char", "char16_t", "char32_t", "class", "compl", "const", "const_cast",
    "constexpr", "continue", "decltype", "default", "delete", "do", "double", "dynamic_cast",
    "else", "enum", "explicit", "export", "extern", "false", "float", "for", "friend", "goto",
    "if", "inline", "int", "long", "mutable", "namespace", "new", "noexcept", "not", "not_eq",
    "nullptr", "operator", "or", "or_eq", "private", "protected", "public", "register",
    "reinterpret_cast", "return", "short", "signed", "sizeof", "static", "static_assert",
    "static_cast", "struct", "switch", "template", "this", "thread_local", "throw", "true", "try",
    "typedef", "typeid", "typename", "union", "unsigned", "using", "virtual", "void", "volatile",
    "wchar_t", "while", "xor", "xor_eq",
))
# fmt: on

# The kernel's own parameters and types, which a tensor of the same name would hide.
_KERNEL_NAMES = frozenset({"workspace", "tiling", "half", "bfloat16_t", "tiling_data", "self"})

_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def snake_case(op: str) -> str:
    """Return the file and kernel name of an operator type: `AbcAAc` is `abc_a_ac`.

    A capital starts a word after a lower-case letter or a digit (`Conv2D` is `conv2_d`), and when a
    lower-case letter follows the last of several capitals (`GRUCell` is `gru_cell`).

    Source: CANN operator development guide, naming conversion table.
    """
    return _WORD_START.sub("_", op).lower()


def camel_case(name: str) -> str:
    """Return the class name for a snake_case name: `gelu_custom` is `GeluCustom`."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_") if part)


def is_reserved(name: str) -> bool:
    """Return whether no parameter in C++ or Python could have this name."""
    return name in _CPP_KEYWORDS or name in _KERNEL_NAMES or keyword.iskeyword(name)


def nearest(value: str, choices: Iterable[str]) -> str | None:
    """Return the choice most like `value`, or None when none is near."""
    by_lower = {choice.lower(): choice for choice in choices}
    found = difflib.get_close_matches(value.lower(), by_lower, n=1, cutoff=0.5)
    return by_lower[found[0]] if found else None


def quoted_choice(value: str, choices: Iterable[str]) -> str:
    """Return the help line for a wrong `value`: the nearest choice, or all of them."""
    choices = tuple(choices)
    best = nearest(value, choices)
    if best is not None:
        return f'did you mean "{best}"?'
    return "use one of " + ", ".join(f'"{choice}"' for choice in choices)
