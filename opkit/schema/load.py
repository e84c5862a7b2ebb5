"""Read a prototype file into `OpSpec`s; errors name the file, the JSON pointer and the line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar, cast

from opkit.dtypes import DType, find_dtype
from opkit.errors import SpecError, UsageError
from opkit.schema.attributes import parse_default
from opkit.schema.axes import axis_names, check_axes, read_axes
from opkit.schema.documents import as_json_text, parse_document
from opkit.schema.familiar import familiar
from opkit.schema.formula_lines import read_formula, with_other_outputs
from opkit.schema.gradients import check_gradients
from opkit.schema.implied_axes import with_implied_axes
from opkit.schema.json_text import Json, JsonDocument
from opkit.schema.names import FRAMEWORK_CLASSES, is_reserved, operator_name
from opkit.schema.shape_rule import parse_shape_rule
from opkit.schema.spec import AttrSpec, OpSpec, TensorSpec
from opkit.schema.validate import validate

__all__ = ["load", "parse", "prototype_entries", "prototype_text", "with_line"]

# A prototype is a few kilobytes; msopgen's own limit is 10 MB.
_MAX_FILE_BYTES = 10 * 1024 * 1024

_Entry = dict[str, Json]
_T = TypeVar("_T")


def load(path: Path) -> tuple[OpSpec, ...]:
    """Return the operators of a prototype, JSON, TOML or YAML, in the file's order.

    Raises:
        UsageError: there is no such file, or it cannot be read.
        SpecError: its content is wrong.
    """
    return parse(_read(path), file=path)


def prototype_text(path: Path) -> str:
    """Return a prototype file as JSON, the form in which projects keep it.

    Raises:
        UsageError: there is no such file, or it cannot be read.
        SpecError: it is not TOML or YAML, as its name says.
    """
    return as_json_text(_read(path), file=path)


def prototype_entries(path: Path) -> list[dict[str, Json]]:
    """Return the operators of a prototype file as they stand there, comments left out.

    Raises:
        UsageError: there is no such file, or it cannot be read.
        SpecError: its content is wrong.
    """
    document = parse_document(_read(path), file=path)
    validate(document)
    entries = document.value if isinstance(document.value, list) else [document.value]
    return cast("list[_Entry]", entries)


def parse(text: str, *, file: Path) -> tuple[OpSpec, ...]:
    """Return the operators that `text` describes; `file` is where errors say it came from.

    Raises:
        SpecError: the text is not JSON (TOML, YAML by the file's ending), or not a prototype.
    """
    document = parse_document(text, file=file)
    validate(document)
    if isinstance(document.value, list):
        entries = [(f"/{index}", entry) for index, entry in enumerate(document.value)]
    else:
        entries = [("", document.value)]
    specs = tuple(_operator(document, pointer, cast("_Entry", entry)) for pointer, entry in entries)
    _check_unique_operators(document, [pointer for pointer, _ in entries], specs)
    check_gradients(document, specs)
    return specs


def with_line(error: SpecError) -> SpecError:
    """Return an error with the line of what its pointer points at, read from its file again.

    For what is found out about an operator after it was read, such as a wrong formula.
    """
    if error.file is None or error.line is not None:
        return error
    try:
        lines = parse_document(_read(error.file), file=error.file).lines
    except UsageError:
        return error
    # A field that was left out has no line of its own: its owner's is the nearest.
    pointer = error.pointer
    while pointer and pointer not in lines:
        pointer = pointer.rpartition("/")[0]
    return SpecError(
        error.message,
        file=error.file,
        pointer=error.pointer,
        line=lines.get(pointer),
        help=error.help,
    )


def _read(path: Path) -> str:
    if path.is_dir():
        raise UsageError(f"{path} is a directory, expected a prototype JSON file")
    try:
        size_bytes = path.stat().st_size
        if size_bytes > _MAX_FILE_BYTES:
            raise SpecError(f"{size_bytes} bytes are too many for a prototype", file=path)
        data = path.read_bytes()
    except FileNotFoundError:
        raise UsageError(
            f"{path}: there is no such file", help="give the path of a prototype JSON"
        ) from None
    except (OSError, ValueError) as err:
        raise UsageError(f"{path}: cannot be read: {err}") from err
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as err:
        raise SpecError(
            f"byte {data[err.start]:#04x} is not UTF-8",
            file=path,
            line=data.count(b"\n", 0, err.start) + 1,
            help="save the file as UTF-8",
        ) from err


def _operator(document: JsonDocument, pointer: str, entry: _Entry) -> OpSpec:
    op = cast(str, entry["op"])
    name = cast(str, entry.get("kernel_name", operator_name(op)))
    if is_reserved(name):
        raise document.error(
            f'"{name}" is a reserved word and cannot name a kernel', f"{pointer}/kernel_name"
        )
    if is_reserved(op) or op in FRAMEWORK_CLASSES:
        raise document.error(
            f'"{op}" cannot name an operator: Python or the framework has a class of that name',
            f"{pointer}/op",
            help=f'choose another name, such as "{op}Custom"',
        )
    variants = _variant_count(document, pointer, entry)
    inputs = _tensors(document, f"{pointer}/input_desc", entry["input_desc"], variants)
    has_bits = any("int" in dtype.name for tensor in inputs for dtype in tensor.dtypes)
    outputs = _tensors(
        document, f"{pointer}/output_desc", entry["output_desc"], variants, has_bits=has_bits
    )
    attrs = _attributes(document, f"{pointer}/attr", entry.get("attr", []))
    _check_unique_names(document, pointer, entry)
    _check_lists(document, pointer, inputs, outputs)
    outputs = with_other_outputs(document, f"{pointer}/output_desc", outputs)
    check_axes(document, pointer, inputs, outputs, attrs)
    axes = {tensor.name: tensor.axes or () for tensor in inputs}
    outputs = tuple(
        replace(tensor, formula=tensor.formula and familiar(tensor.formula, axes))
        for tensor in outputs
    )
    inputs = with_implied_axes(inputs, outputs, attrs)
    outputs = tuple(
        _with_shape(document, f"{pointer}/output_desc/{index}", tensor, output, inputs, attrs)
        for index, (tensor, output) in enumerate(
            zip(cast("list[_Entry]", entry["output_desc"]), outputs, strict=True)
        )
    )
    return OpSpec(
        op,
        name,
        inputs,
        outputs,
        attrs,
        document.file or Path(),
        pointer,
        gradient=cast("str | bool | None", entry.get("gradient")),
        fast_math=cast(bool, entry.get("fast_math", False)),
    )


def _as_list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else [value]


def _variant_count(document: JsonDocument, pointer: str, entry: _Entry) -> int:
    """Return how many combinations the lists describe; all lists have that length.

    What is no list stands for all, and a list of one format does: of types msopgen wants as many.
    """
    count, first = 1, ""
    short: list[str] = []
    for kind in ("input_desc", "output_desc"):
        for index, tensor in enumerate(cast("list[_Entry]", entry[kind])):
            for field in ("type", "format"):
                length = len(_as_list(tensor.get(field, "ND")))
                where = f"{pointer}/{kind}/{index}/{field}"
                if length == 1 and field == "type" and isinstance(tensor[field], list):
                    short.append(where)
                if length in (1, count):
                    continue
                if count == 1:
                    count, first = length, where
                    continue
                raise document.error(
                    f"has {length} entries, but {first} has {count}",
                    where,
                    help="types and formats match vertically: every list has the same length, or is"
                    " one value without brackets",
                )
    if count > 1 and short:
        raise document.error(
            f"has 1 entry, but {first} has {count}",
            short[0],
            help="types match vertically: write as many, or the one without brackets where it"
            " stands for all",
        )
    return count


def _repeat(values: Sequence[_T], count: int) -> tuple[_T, ...]:
    return tuple(values) * count if len(values) == 1 else tuple(values)


def _tensors(
    document: JsonDocument, pointer: str, entries: Json, variants: int, *, has_bits: bool = False
) -> tuple[TensorSpec, ...]:
    """Return tensors; where none of them has bits, `x^2` in a formula is a power."""
    result = []
    for index, tensor in enumerate(cast("list[_Entry]", entries)):
        _check_parameter_name(document, f"{pointer}/{index}/name", cast(str, tensor["name"]))
        dtypes = [_dtype(document, pointer, name) for name in _as_list(tensor["type"])]
        formats = [cast(str, name) for name in _as_list(tensor.get("format", "ND"))]
        formula = None
        if "formula" in tensor:
            given = tensor["formula"]
            if not has_bits and isinstance(given, list):
                given = [str(line).replace("^", "**") for line in given]
            elif not has_bits:
                given = str(given).replace("^", "**")
            formula = read_formula(document, f"{pointer}/{index}/formula", given)
        result.append(
            TensorSpec(
                name=cast(str, tensor["name"]),
                param_type=cast(str, tensor.get("param_type", "required")),
                dtypes=_repeat(dtypes, variants),
                formats=_repeat(formats, variants),
                formula=formula,
                axes=read_axes(document, f"{pointer}/{index}", tensor),
            )
        )
    return tuple(result)


def _with_shape(
    document: JsonDocument,
    pointer: str,
    entry: _Entry,
    output: TensorSpec,
    inputs: Sequence[TensorSpec],
    attrs: Sequence[AttrSpec],
) -> TensorSpec:
    """Return an output with the rule that its `shape` spells."""
    if "shape" not in entry:
        return output
    here = f"{pointer}/shape"
    if output.formula is not None and _names_axes(entry["shape"], inputs):
        # What is said twice has to agree: axes of length 1 may be more or fewer.
        axes = "".join(f"{axis}, " for axis in cast("list[str | int]", entry["shape"]))
        return replace(output, formula=f"with_shape({output.formula.strip()}, ({axes}))")
    if output.formula is not None:
        raise document.error(
            "the formula says which shape the output has", here, help="leave `shape` out"
        )
    try:
        rule = parse_shape_rule(
            entry["shape"],
            inputs=[(tensor.name, tensor.param_type) for tensor in inputs],
            attrs=[(attr.name, attr.type) for attr in attrs],
        )
    except ValueError as err:
        raise document.error(str(err), here) from err
    if output.is_list:
        raise document.error(
            "the tensors of a dynamic output have the shapes of the first dynamic input's",
            here,
            help="leave `shape` out",
        )
    return replace(output, shape=rule)


def _names_axes(shape: Json, inputs: Sequence[TensorSpec]) -> bool:
    """Whether an output's `shape` is made of the axes that inputs name, and of lengths."""
    names = {name for tensor in inputs for axis in tensor.axes or () for name in axis_names(axis)}
    return (
        bool(names)
        and isinstance(shape, list)
        and all(
            type(axis) is int or (isinstance(axis, str) and {*axis_names(axis)} <= names)
            for axis in shape
        )
        and all(axis_names(axis) for axis in shape if isinstance(axis, str))
    )


def _dtype(document: JsonDocument, pointer: str, name: Json) -> DType:
    row = find_dtype(cast(str, name))
    if row is None:
        raise document.error(f'"{name}" is not a data type', pointer)
    return row


def _attributes(document: JsonDocument, pointer: str, entries: Json) -> tuple[AttrSpec, ...]:
    result = []
    for index, attr in enumerate(cast("list[_Entry]", entries)):
        here = f"{pointer}/{index}"
        name = cast(str, attr["name"])
        attr_type = cast(str, attr["type"])
        required = attr.get("param_type", "required") == "required"
        _check_parameter_name(document, f"{here}/name", name)
        if "default_value" not in attr:
            if not required:
                raise document.error(
                    f'the optional attribute "{name}" has no default_value',
                    here,
                    help=f"add a default_value of type {attr_type}, or make it required",
                )
            result.append(AttrSpec(name, attr_type, required))
            continue
        try:
            default = parse_default(attr_type, attr["default_value"])
        except ValueError as err:
            raise document.error(
                f"{attr['default_value']!r} is not a default for {attr_type}: {err}",
                f"{here}/default_value",
            ) from err
        result.append(AttrSpec(name, attr_type, required, default))
    return tuple(result)


def _check_parameter_name(document: JsonDocument, pointer: str, name: str) -> None:
    if is_reserved(name):
        raise document.error(
            f'"{name}" is a reserved word in the generated C++ or Python',
            pointer,
            help=f'choose another name, such as "{name}_value"',
        )


def _check_unique_names(document: JsonDocument, pointer: str, entry: _Entry) -> None:
    """Inputs, outputs and attributes become parameters of one kernel: no name may repeat."""
    seen: dict[str, str] = {}
    macros: dict[str, str] = {}
    for kind in ("input_desc", "output_desc", "attr"):
        for index, item in enumerate(cast("list[_Entry]", entry.get(kind, []))):
            name, here = cast(str, item["name"]), f"{pointer}/{kind}/{index}/name"
            if name in seen:
                raise document.error(
                    f'the name "{name}" is taken', here, help=f"it is used at {seen[name]}"
                )
            seen[name] = here
            if kind == "attr":
                continue
            macro = f"DTYPE_{name.upper()}"
            if macros.setdefault(macro, name) != name:
                raise document.error(
                    f'"{name}" and "{macros[macro]}" differ in case only, and kernels know both'
                    f" types as {macro}",
                    here,
                )


def _check_lists(
    document: JsonDocument,
    pointer: str,
    inputs: Sequence[TensorSpec],
    outputs: Sequence[TensorSpec],
) -> None:
    """A dynamic output has a tensor for each of the first dynamic input's."""
    if any(tensor.is_list for tensor in inputs):
        return
    for index, tensor in enumerate(outputs):
        if tensor.is_list:
            raise document.error(
                f'the output "{tensor.name}" is a list, but no input is: how long would it be?',
                f"{pointer}/output_desc/{index}/param_type",
                help="make an input dynamic, or give each output an entry of its own",
            )


def _check_unique_operators(
    document: JsonDocument, pointers: Sequence[str], specs: Sequence[OpSpec]
) -> None:
    seen: dict[str, str] = {}
    for pointer, spec in zip(pointers, specs, strict=True):
        for name in {spec.op, spec.name}:
            if name in seen:
                raise document.error(
                    f'the operator "{name}" is described twice',
                    f"{pointer}/op",
                    help=f"the first is {seen[name] or 'the document'}",
                )
        seen[spec.op] = seen[spec.name] = pointer
