"""Kernels that share their name with a function: of the C library, or of the device beside them.

The vendor's compiler knows no C library on the device, so a kernel there may be called `pow`. The
host's headers declare it, so here such a kernel gets the linkage of C++, which makes it an
overload; whoever launches it says by its parameters which of the functions is meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from opkit.toolchain.source.launch_rewrite import (
    PLAIN_DIALECT,
    Dialect,
    Edit,
    Kernel,
    all_kernels,
)
from opkit.toolchain.source.tokens import TokenKind, significant, tokenize

__all__ = ["linkage_edits", "mark_overloaded"]

# What headers of the host that come with any C++ declare in C, as far as an operator may be called
# so. Source: the C17 standard, 7.12, 7.22, 7.24, 7.27; POSIX, <math.h>, <unistd.h>, <strings.h>.
_OF_THE_LIBRARY = frozenset(
    re.findall(
        r"\w+",
        """
        abs acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh div drem erf
        erfc exp exp10 exp2 expm1 fabs fdim finite floor fma fmax fmin fmod frexp gamma hypot
        ilogb isinf isnan j0 j1 jn labs ldexp ldiv lgamma llabs lldiv llrint llround log
        log10 log1p log2 logb lrint lround modf nan nearbyint nextafter nexttoward pow pow10
        remainder remquo rint round roundeven scalb scalbln scalbn significand sin sincos
        sinh sqrt tan tanh tgamma trunc y0 y1 yn abort access atexit atof atoi atol bcmp
        bcopy bsearch bzero calloc clock close connect dup exit ffs fork free getenv index
        link lseek malloc memchr memcmp memcpy memmove memset pause pipe printf puts qsort
        raise rand random read realloc remove rename rindex select send signal sleep socket
        srand step strcat strcmp strcpy strlen swab sync system time truncate unlink wait
        write
        """,
    )
)
_NO_TYPES = frozenset({"return", "else", "do", "new", "delete", "throw", "case", "goto"})


def linkage_edits(text: str, dialect: Dialect = PLAIN_DIALECT) -> tuple[Edit, ...]:
    """Return the edits that make overloads of the kernels that are named as a C function is."""
    edits = {}
    for kernel in all_kernels(text, dialect):
        if kernel.name not in _OF_THE_LIBRARY or kernel.is_template:
            continue
        head = text[kernel.head : kernel.name_start]
        language = head.find('"C"')
        if head.startswith("extern") and language >= 0:
            start = kernel.head + language
            edits[start] = Edit(start, start + len('"C"'), '"C++"')
        else:
            # It may stand in a block of C's linkage.
            edits[kernel.head] = Edit(kernel.head, kernel.head, 'extern "C++" ')
    return tuple(edits.values())


def mark_overloaded(
    kernels: Iterable[Kernel], texts: Iterable[str], dialect: Dialect = PLAIN_DIALECT
) -> tuple[Kernel, ...]:
    """Return kernels with those marked whose name is not theirs alone.

    Args:
        kernels: of a translation unit.
        texts: of its files.
    """
    names = {kernel.name for kernel in kernels if not kernel.is_template}
    shared = names & _OF_THE_LIBRARY
    for text in texts:
        if names - shared and any(name in text for name in names - shared):
            shared |= names & set(_functions(text, names, dialect))
    return tuple(
        replace(kernel, is_overloaded=True) if kernel.name in shared else kernel
        for kernel in kernels
    )


def _functions(text: str, names: set[str], dialect: Dialect) -> Iterator[str]:
    """Yield the names that the text gives to functions that are no kernels."""
    own = {kernel.name_start for kernel in all_kernels(text, dialect)}
    tokens = significant(tokenize(text))
    depth = 0
    for index, token in enumerate(tokens[1:-1], 1):
        depth += (token.text == "(") - (token.text == ")")
        if token.text not in names or token.start in own or depth != 0:
            continue
        before = tokens[index - 1]
        is_typed = before.text in ("*", "&", ">") or (
            before.kind is TokenKind.IDENTIFIER and before.text not in _NO_TYPES
        )
        if is_typed and tokens[index + 1].text == "(":
            yield token.text
