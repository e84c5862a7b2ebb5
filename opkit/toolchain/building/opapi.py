"""The aclnn functions of a project: the text of libcust_opapi.so, its headers and its prototypes.

Pure functions. An operator `AddCustom` gets `aclnnAddCustomGetWorkspaceSize` and `aclnnAddCustom`
in `aclnn_add_custom.h`, with the parameters that the vendor's generator gives them: inputs,
attributes, outputs, then the size of the workspace and the executor.

Source: public programming guide, calling single operators; OpParamDef: Scalar, ValueDepend.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from opkit.schema import ATTR_SETTERS, AttrSpec, snake_case
from opkit.toolchain.building.described import DescribedOperator, DescribedTensor

__all__ = ["OPAPI_LIBRARY", "api_header", "api_source", "header_name", "proto_header"]

OPAPI_LIBRARY = "libcust_opapi.so"

_ATTRIBUTE_PARAMETERS = {
    "int": "int64_t",
    "float": "double",
    "bool": "bool",
    "string": "char*",
    "list_int": "const aclIntArray*",
    "list_float": "const aclFloatArray*",
    "list_bool": "const aclBoolArray*",
}
_INTEGERS = frozenset(("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"))


_FOLDER_OF_LIBRARY = """
namespace {

/// Any function of this library, which lies in an artifact folder.
const void* opkit_folder() { return reinterpret_cast<const void*>(&opkit_folder); }

}  // namespace
"""


@dataclass(frozen=True)
class _Parameter:
    """One parameter of a first-phase function, and how its value is passed on."""

    type: str
    """Empty where another parameter carries the value."""
    name: str
    statement: str


def header_name(op: str) -> str:
    """Return the header of an operator's aclnn functions."""
    return f"aclnn_{snake_case(op)}.h"


def api_header(operator: DescribedOperator) -> str:
    """Return the text of `aclnn_<op>.h`."""
    op = operator.op
    guard = f"ACLNN_{snake_case(op).upper()}_H_"
    return f"""#ifndef {guard}
#define {guard}

#include "acl/acl.h"
#include "aclnn/acl_meta.h"
#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {{
#endif

/// Checks the arguments of {op}, computes its tiling and says how much workspace it needs.
{_visible(_first_phase(operator))};

/// Queues the call that the executor holds on a stream. An executor serves one call.
{_visible(_second_phase(op))};

#ifdef __cplusplus
}}
#endif

#endif  // {guard}
"""


def api_source(
    operators: Sequence[DescribedOperator], *, packed: Mapping[str, Path] | None = None
) -> str:
    """Return the source of the aclnn functions.

    Args:
        packed: files of an artifact folder that the functions' library carries inside, by their
            names there; None where the library lies in the folder.
    """
    parts = ['#include "opkit/aclnn_call.h"\n']
    parts += [f'#include "{header_name(operator.op)}"\n' for operator in operators]
    parts.append(_FOLDER_OF_LIBRARY if packed is None else _folder_inside(packed))
    for operator in operators:
        statements = "".join(f"  {p.statement}\n" for p in _parameters(operator) if p.statement)
        name = f"aclnn{operator.op}"
        parts.append(f"""
{_first_phase(operator)} {{
  opkit::aclnn::Call call("{name}GetWorkspaceSize", opkit_folder(), "{operator.op}");
{_combinations(operator)}{statements}  return call.prepare(workspaceSize, executor);
}}

{_second_phase(operator.op)} {{
  return opkit::aclnn::run("{name}", workspace, workspaceSize, executor, stream);
}}
""")
    return "".join(parts)


def _folder_inside(packed: Mapping[str, Path]) -> str:
    """Return the definition of `opkit_folder()` for a library that carries these files inside.

    The assembler reads them; its labels are local, so a program may link several such libraries.
    """
    assembly, labels, rows = [], [], []
    for index, (name, path) in enumerate(packed.items()):
        label = f"opkit_packed_{index}"
        assembly.append(f"{label}:\n.incbin {_quoted(str(path))}\n{label}_end:\n")
        labels.append(f"extern const char {label}[], {label}_end[];\n")
        rows.append(f"      {{{_quoted(name)}, {label}, {label}_end}},\n")
    text = "".join(_quoted(line) for part in assembly for line in part.splitlines(keepends=True))
    return f"""
asm(".pushsection .rodata\\n" {text} ".popsection\\n");
extern "C" {{
#pragma GCC visibility push(hidden)
{"".join(labels)}#pragma GCC visibility pop
}}

namespace {{

/// The artifact folder, which this library carries inside.
const opkit::aclnn::PackedFolder& opkit_folder() {{
  static const opkit::aclnn::PackedFile files[] = {{
{"".join(rows)}  }};
  static const opkit::aclnn::PackedFolder all{{files, sizeof files / sizeof files[0]}};
  return all;
}}

}}  // namespace
"""


def _quoted(text: str) -> str:
    """Return a string as C and the assembler write it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def proto_header(operators: Sequence[DescribedOperator]) -> str:
    """Return the text of `op_proto.h`: the operators' graph prototypes."""
    blocks = []
    for operator in operators:
        lines = [f"REG_OP({operator.op})\n"]
        for kind, tensors in (("INPUT", operator.inputs), ("OUTPUT", operator.outputs)):
            for tensor in tensors:
                prefix = {"required": "", "optional": "OPTIONAL_", "dynamic": "DYNAMIC_"}
                word = (
                    prefix[tensor.param_type]
                    if kind == "INPUT" or tensor.param_type == "dynamic"
                    else ""
                )
                types = ", ".join(dict.fromkeys(row.ge for row in tensor.dtypes))
                lines.append(f"    .{word}{kind}({tensor.name}, TensorType({{{types}}}))\n")
        for attr in operator.attrs:
            lines.append(f"    .{_proto_attribute(attr)}\n")
        lines.append(f"    .OP_END_FACTORY_REG({operator.op});\n")
        blocks.append("".join(lines))
    return (
        "#ifndef OP_PROTO_H_\n#define OP_PROTO_H_\n\n"
        '#include "graph/operator_reg.h"\n\nnamespace ge {\n\n'
        + "\n".join(blocks)
        + "\n}  // namespace ge\n\n#endif  // OP_PROTO_H_\n"
    )


def _first_phase(operator: DescribedOperator) -> str:
    parameters = [f"{p.type} {p.name}" for p in _parameters(operator) if p.type]
    parameters += ["uint64_t* workspaceSize", "aclOpExecutor** executor"]
    return f"aclnnStatus aclnn{operator.op}GetWorkspaceSize({', '.join(parameters)})"


def _second_phase(op: str) -> str:
    return (
        f"aclnnStatus aclnn{op}(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,"
        " aclrtStream stream)"
    )


def _visible(signature: str) -> str:
    return f'__attribute__((visibility("default"))) {signature}'


def _combinations(operator: DescribedOperator) -> str:
    """Return what names the data types of all inputs, where scalars take theirs from them."""
    if not any(tensor.is_scalar for tensor in operator.inputs):
        return ""
    columns = zip(*(tensor.dtypes for tensor in operator.inputs), strict=True)
    numbers = [str(dtype.ge_value) for column in columns for dtype in column]
    return (
        f"  static const int32_t combinations[] = {{{', '.join(numbers)}}};\n"
        f"  call.combinations(combinations, {len(numbers)});\n"
    )


def _parameters(operator: DescribedOperator) -> Iterator[_Parameter]:
    outputs = {tensor.name for tensor in operator.outputs}
    for tensor in operator.inputs:
        yield _input(tensor, is_reference=tensor.name in outputs)
    for attr in operator.attrs:
        kind = _ATTRIBUTE_PARAMETERS.get(attr.type)
        if kind is None:
            # No aclnn type carries it: calls take the OpDef's default.
            continue
        name = f"{attr.name}{'' if attr.required else 'Optional'}"
        passed = f"static_cast<const char*>({name})" if attr.type == "string" else name
        yield _Parameter(kind, name, f'call.attr("{attr.name}", {passed});')
    inputs = {tensor.name for tensor in operator.inputs}
    for tensor in operator.outputs:
        if tensor.name in inputs:
            # Written in place: the parameter of the input stands for both.
            reference = f"{tensor.name}Ref"
            yield _Parameter("", "", _output_statement(tensor, reference))
            continue
        kind = "const aclTensorList*" if tensor.param_type == "dynamic" else "const aclTensor*"
        name = f"{tensor.name}Out"
        yield _Parameter(kind, name, _output_statement(tensor, name))


def _input(tensor: DescribedTensor, *, is_reference: bool) -> _Parameter:
    is_list = tensor.param_type == "dynamic"
    optional = "true" if tensor.param_type == "optional" else "false"
    suffix = "Ref" if is_reference else ("Optional" if tensor.param_type == "optional" else "")
    name = f"{tensor.name}{suffix}"
    if tensor.is_scalar:
        kind = "const aclScalarList*" if is_list or tensor.is_scalar_list else "const aclScalar*"
        last = str(tensor.dtypes[0].ge_value)
    elif tensor.is_value_dependent and (array := _array_of(tensor)) is not None:
        kind, last = f"const {array[0]}*", str(array[1])
    else:
        kind = "const aclTensorList*" if is_list else "const aclTensor*"
        last = "true" if tensor.is_contiguous_made else "false"
    return _Parameter(kind, name, f'call.input("{tensor.name}", {name}, {optional}, {last});')


def _array_of(tensor: DescribedTensor) -> tuple[str, int] | None:
    """Return the array type of a value-dependent input, and the data type that it becomes."""
    names = {row.name for row in tensor.dtypes}
    by_name = {row.name: row.ge_value for row in tensor.dtypes}
    if names == {"float32"}:
        return "aclFloatArray", by_name["float32"]
    if names == {"bool"}:
        return "aclBoolArray", by_name["bool"]
    if names <= _INTEGERS:
        return "aclIntArray", by_name.get("int64", tensor.dtypes[0].ge_value)
    return None


def _output_statement(tensor: DescribedTensor, name: str) -> str:
    optional = "true" if tensor.param_type == "optional" else "false"
    contiguous = "true" if tensor.is_contiguous_made else "false"
    return f'call.output("{tensor.name}", {name}, {optional}, {contiguous});'


def _proto_attribute(attr: AttrSpec) -> str:
    kind = ATTR_SETTERS[attr.type]
    if attr.required:
        return f"REQUIRED_ATTR({attr.name}, {kind})"
    return f"ATTR({attr.name}, {kind}, {_proto_value(attr.default)})"


def _proto_value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return "{" + ", ".join(_proto_value(item) for item in value) + "}"
    if isinstance(value, str):
        return _quoted(value)
    return "{}" if value is None else repr(value)
