"""Functions that an operator's host code names and that no source of its chip defines.

The vendor links the host code of a library's operators for one chip without asking for every
function, so sources may name what only another chip's sources define, behind a question for the
chip. Here such functions are there and end the call that reaches them, by name. What reaches them
while the library is loaded registers something with the vendor's own libraries, which nothing here
will ask for: it does nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["absent_functions", "absent_source"]

_UNDEFINED = re.compile(r"undefined reference to [`'\"](\w+)['\"]")
# Other tables of classes, and what is no C++: nothing can stand for it.
_NEITHER = re.compile(r"_ZT(?![VI])|_ZGV|(?!_Z)")
_TABLE = "_ZTV"
_DESCRIPTION = "_ZTI"
# More virtual functions than any class here has.
_ENTRIES = 128


def absent_functions(log: str) -> tuple[str, ...]:
    """Return the undefined functions of a linker's log, as it was told not to demangle them.

    Among them are the tables of virtual functions, and descriptions, of classes all of whose
    functions are absent. None at all where something else is undefined, too, which nothing can
    stand for.
    """
    names = tuple(dict.fromkeys(_UNDEFINED.findall(log)))
    return () if any(_NEITHER.match(name) for name in names) else names


def absent_source(names: Sequence[str]) -> str:
    """Return C++ that defines functions of these linker names, which throw once all is loaded.

    It is to be linked last, as the objects of a library are initialised in their order.
    """
    functions = "".join(_definition(index, name) for index, name in enumerate(names))
    return f"""#include <cxxabi.h>

#include <stdexcept>
#include <string>

namespace {{
bool is_loaded = false;
[[maybe_unused]] const bool marks = is_loaded = true;

void* refuse(const char* name) {{
  if (!is_loaded) return nullptr;
  int status = 0;
  const char* readable = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  throw std::runtime_error(std::string(readable == nullptr ? name : readable) +
                           " is defined by no source that was built for this chip");
}}
}}  // namespace

{functions}"""


def _definition(index: int, name: str) -> str:
    if name.startswith(_DESCRIPTION):
        # As the C++ ABI has it for a class without bases.
        table = "_ZTVN10__cxxabiv117__class_type_infoE"
        return (
            f'extern "C" void* {table}[];\n'
            f'extern void* const absent_{index}[2] __asm__("{name}");\n'
            f"void* const absent_{index}[2] = {{{table} + 2, "
            f'const_cast<char*>("{name.removeprefix(_DESCRIPTION)}")}};\n'
        )
    if name.startswith(_TABLE):
        entry = f"reinterpret_cast<void*>(entry_{index})"
        # Before the functions stand an offset and the class's description.
        entries = f"nullptr, nullptr, {', '.join([entry] * _ENTRIES)}"
        return (
            f'static void* entry_{index}() {{ return refuse("{name}"); }}\n'
            f'extern void* const absent_{index}[{_ENTRIES + 2}] __asm__("{name}");\n'
            f"void* const absent_{index}[{_ENTRIES + 2}] = {{{entries}}};\n"
        )
    return (
        f'void* absent_{index}() __asm__("{name}");\n'
        f'void* absent_{index}() {{ return refuse("{name}"); }}\n'
    )
