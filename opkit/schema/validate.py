"""Check a parsed prototype against op.schema.json and say what is wrong in the user's words."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable
from importlib import resources
from typing import TYPE_CHECKING, cast

from opkit.errors import SpecError
from opkit.schema.json_text import Json, JsonDocument, escape_pointer
from opkit.schema.names import quoted_choice

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

__all__ = ["json_schema", "validate"]

# msopgen knows these too; a name from here is not a typing mistake, so no nearest name is offered.
# fmt: off
_FOREIGN_TYPES = frozenset((
    "uint1", "int2", "qint8", "qint16", "qint32", "quint8", "quint16", "quint32", "string",
    "resource", "complex32", "complex64", "complex128", "numbertype", "realnumbertype",
    "quantizedtype", "all", "BasicType", "IndexNumberType",
))
_FOREIGN_ATTRIBUTE_TYPES = frozenset(("type", "list_string", "tensor", "list_tensor", "list_type"))
# fmt: on


@functools.cache
def json_schema() -> dict[str, Json]:
    """Return the published schema of a prototype file (JSON Schema, draft 2020-12)."""
    text = resources.files("opkit.schema").joinpath("op.schema.json").read_text(encoding="utf-8")
    return cast("dict[str, Json]", json.loads(text))


def validate(document: JsonDocument) -> None:
    """Check the document's shape.

    Raises:
        SpecError: the first violation in the text's own order.
    """
    from jsonschema import Draft202012Validator

    errors = list(Draft202012Validator(json_schema()).iter_errors(document.value))
    if not errors:
        return
    raise min(
        (_describe(document, error) for error in errors),
        key=lambda error: (error.line or 0, error.pointer),
    )


def _describe(document: JsonDocument, error: ValidationError) -> SpecError:
    pointer = _pointer(error.absolute_path)
    value = error.instance
    shown = _shown(value)
    if error.validator == "additionalProperties":
        known = tuple(error.schema["properties"])
        unknown = next(key for key in value if key not in known)
        return document.error(
            f'"{unknown}" is not a known field',
            f"{pointer}/{escape_pointer(unknown)}",
            help=quoted_choice(unknown, known),
            key=True,
        )
    if error.validator == "required":
        missing = next(key for key in error.validator_value if key not in value)
        other = next((key for key in value if key.lower() == missing), None)
        return document.error(
            f'"{missing}" is missing',
            pointer,
            help=f'write "{missing}" for "{other}"'
            if other
            else f'add "{missing}": docs/operators.md',
        )
    if error.validator == "enum":
        return _describe_enum(document, error, pointer, shown)
    if error.validator == "pattern":
        return document.error(f"{shown} is not a legal name", pointer, help=_name_help(error))
    if error.validator in ("minItems", "minLength"):
        return document.error("is empty", pointer, help="give at least one entry")
    if error.validator == "type":
        expected = error.validator_value
        wanted = expected if isinstance(expected, str) else " or ".join(expected)
        return document.error(f"{shown} is {_kind(value)}, expected {wanted}", pointer)
    return document.error(error.message, pointer)


def _describe_enum(
    document: JsonDocument, error: ValidationError, pointer: str, shown: str
) -> SpecError:
    choices = [choice for choice in error.validator_value if isinstance(choice, str)]
    value = error.instance
    what = _enum_subject(pointer)
    if not isinstance(value, str):
        return document.error(
            f"{shown} is {_kind(value)}, expected {what}", pointer, help=quoted_choice("", choices)
        )
    if value in _FOREIGN_TYPES and what == "a data type":
        return document.error(
            f"{shown} is a data type that opkit does not support",
            pointer,
            help=quoted_choice("", choices),
        )
    if value in _FOREIGN_ATTRIBUTE_TYPES and what == "an attribute type":
        return document.error(
            f"{shown} attributes are not supported: an OpDef has no setter for them",
            pointer,
            help=quoted_choice("", choices),
        )
    return document.error(f"{shown} is not {what}", pointer, help=quoted_choice(value, choices))


def _enum_subject(pointer: str) -> str:
    steps = pointer.split("/")
    field = next((step for step in reversed(steps) if not step.isdigit()), "")
    if field == "type":
        return "an attribute type" if "attr" in steps else "a data type"
    return {"format": "a format", "param_type": "a param_type", "language": "a language"}.get(
        field, "one of the choices"
    )


def _name_help(error: ValidationError) -> str:
    if error.absolute_path and error.absolute_path[-1] == "op":
        return "an operator type is UpperCamelCase: a capital, then letters and digits"
    return "a name is a C identifier: letters, digits and _, not starting with a digit"


def _pointer(path: Iterable[str | int]) -> str:
    return "".join(f"/{escape_pointer(str(step))}" for step in path)


def _kind(value: Json) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, (int, float)):
        return "a number"
    if isinstance(value, str):
        return "a string"
    return "a list" if isinstance(value, list) else "an object"


def _shown(value: Json) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}..."
