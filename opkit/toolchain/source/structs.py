"""Which struct GET_TILING_DATA reads in each instance of a kernel template.

ASCENDC_TPL_TILING_STRUCT_SEL names the struct of a combination of template arguments; where it is
left out, REGISTER_TILING_DEFAULT does.
Source: Ascend C API, utilities, tiling template programming, definition of the parameters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from opkit.errors import BuildError
from opkit.toolchain.source.kernel_templates import Instance

__all__ = ["tiling_structs"]

_TYPE_PARAMETER = re.compile(r"(?:typename|class)\b")
_NAME = re.compile(r"\w[\s*&]+(\w+)\s*(?:=.*)?$", re.DOTALL)
_NO_NAMES = frozenset({"auto", "bool", "char", "int", "long", "short", "signed", "unsigned"})


def tiling_structs(
    preprocessed: str, kernel: str, instances: Sequence[Instance]
) -> tuple[str, str]:
    """Return what a kernel's unit says of its structs, in front of the source and behind it.

    Both are empty where no combination names a struct.

    Args:
        preprocessed: the kernel's source, preprocessed.
        kernel: the function's name.
        instances: what its source declares.
    Raises:
        BuildError: structs differ, and the kernel's template parameters cannot be read.
    """
    structs = {instance.tiling_struct for instance in instances}
    if structs == {None}:
        return "", ""
    if len(structs) == 1:
        return f"#define OPKIT_TILING_SELECTED {structs.pop()}\n", ""
    parameters = list(_parameters(preprocessed, kernel))
    kinds = ", ".join("typename" if is_type else "uint64_t" for is_type, _ in parameters)
    arguments = ", ".join(
        name if is_type else f"static_cast<uint64_t>({name})" for is_type, name in parameters
    )
    before = (
        "#include <cstdint>\n"
        "namespace opkit {\n"
        f"template <typename Default, {kinds}>\n"
        "struct TilingOfInstance {\n  using type = Default;\n};\n"
        "}  // namespace opkit\n"
        "#define OPKIT_TILING_SELECTED"
        f" typename ::opkit::TilingOfInstance<OpkitTilingDefault, {arguments}>::type\n"
    )
    chosen = "".join(
        f"template <typename Default>\n"
        f"struct TilingOfInstance<Default, {', '.join(instance.arguments)}> {{\n"
        f"  using type = ::{instance.tiling_struct.removeprefix('::')};\n}};\n"
        for instance in instances
        if instance.tiling_struct is not None
    )
    return before, f"namespace opkit {{\n{chosen}}}  // namespace opkit\n"


def _parameters(preprocessed: str, kernel: str) -> Iterator[tuple[bool, str]]:
    """Yield whether it is a type, and its name, of each template parameter of a function."""
    heads = re.findall(
        rf"\btemplate\s*<((?:[^<>]|<[^<>]*>)*)>[^;{{}}()<>]*\b{re.escape(kernel)}\s*\(",
        preprocessed,
    )
    if not heads:
        raise _unreadable(kernel, "its template parameters are not found")
    for text in _split(heads[-1]):
        name = _NAME.search(text)
        if name is None or name[1] in _NO_NAMES:
            raise _unreadable(kernel, f"its template parameter {text!r} has no name")
        yield bool(_TYPE_PARAMETER.match(text)), name[1]


def _split(text: str) -> Iterator[str]:
    depth = start = 0
    for position, character in enumerate(f"{text},"):
        depth += (character in "<(") - (character in ">)")
        if character == "," and depth == 0:
            yield text[start:position].strip()
            start = position + 1


def _unreadable(kernel: str, what: str) -> BuildError:
    return BuildError(
        f"{kernel}: ASCENDC_TPL_TILING_STRUCT_SEL names several structs, and {what}",
        help="name the struct where it is read: GET_TILING_DATA_WITH_STRUCT",
    )
