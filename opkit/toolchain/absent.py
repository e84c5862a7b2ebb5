"""Functions that an operator's host code names and that no source of its chip defines.

The vendor links the host code of a library's operators for one chip without asking for every
function, so sources may name what only another chip's sources define, behind a question for the
chip. Here such functions are there and end the call that reaches them, by name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["absent_functions", "absent_source"]

_UNDEFINED = re.compile(r"undefined reference to [`'\"](\w+)['\"]")
# Tables and descriptions of classes, and what is no C++: nothing to call in their place.
_NO_FUNCTION = re.compile(r"_ZT|_ZGV|(?!_Z)")


def absent_functions(log: str) -> tuple[str, ...]:
    """Return the undefined functions of a linker's log, as it was told not to demangle them.

    None at all where something else is undefined, too, which nothing can stand for.
    """
    names = tuple(dict.fromkeys(_UNDEFINED.findall(log)))
    return () if any(_NO_FUNCTION.match(name) for name in names) else names


def absent_source(names: Sequence[str]) -> str:
    """Return C++ that defines functions of these linker names, each of which throws."""
    functions = "".join(
        f'[[noreturn]] void absent_{index}() __asm__("{name}");\n'
        f'void absent_{index}() {{ refuse("{name}"); }}\n'
        for index, name in enumerate(names)
    )
    return f"""#include <cxxabi.h>

#include <stdexcept>
#include <string>

namespace {{
[[noreturn]] void refuse(const char* name) {{
  int status = 0;
  const char* readable = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  throw std::runtime_error(std::string(readable == nullptr ? name : readable) +
                           " is defined by no source that was built for this chip");
}}
}}  // namespace

{functions}"""
