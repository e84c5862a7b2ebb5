"""Prototypes by the ending of their file: JSON, TOML (`.toml`) and YAML (`.yaml`, `.yml`)."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opkit.errors import SpecError
from opkit.schema.json_text import Json, JsonDocument, escape_pointer, parse_json

if TYPE_CHECKING:
    from yaml.nodes import Node

__all__ = ["as_json_text", "parse_document"]

_MAX_DEPTH = 64
_HEADER = re.compile(r"\s*(\[\[?)\s*([\w.-]+)\s*\]")
_KEY = re.compile(r"\s*([\w-]+)\s*=")
_WORDS: dict[str, Json] = {"null": None, "~": None, "": None, "true": True, "false": False}
_YAML_NUMBER = re.compile(r"[-+]?(?:\d+|\d*\.\d+|\d+\.)(?:[eE][-+]?\d+)?")


def parse_document(text: str, *, file: Path | None) -> JsonDocument:
    """Return what a prototype says, in the form that its file's ending names.

    Raises:
        SpecError: the text is not of that form; with the line where the form tells it.
    """
    ending = file.suffix.lower() if file is not None else ""
    if ending == ".toml":
        return _parse_toml(text, file)
    if ending in (".yaml", ".yml"):
        return _parse_yaml(text, file)
    return parse_json(text, file=file)


def as_json_text(text: str, *, file: Path) -> str:
    """Return a prototype as JSON, which projects keep: as it stands where it is JSON."""
    if file.suffix.lower() not in (".toml", ".yaml", ".yml"):
        return text
    value = parse_document(text, file=file).value
    return json.dumps(value, indent=4, ensure_ascii=False) + "\n"


def _parse_toml(text: str, file: Path | None) -> JsonDocument:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib  # type: ignore[import-not-found,unused-ignore]
    try:
        value: Any = tomllib.loads(text)
    except tomllib.TOMLDecodeError as err:
        place = re.search(r"line (\d+)", str(err))
        raise SpecError(
            f"not TOML: {err}",
            file=file,
            line=int(place[1]) if place else len(text.splitlines()) or 1,
            help="docs/operators.md shows a prototype",
        ) from err
    return JsonDocument(value, _lines_of_toml(text), file)


def _lines_of_toml(text: str) -> dict[str, int]:
    """Return the lines of tables and keys; what stands in a table on one line has that line's."""
    lines, counts, table = {"": 1}, dict[str, int](), ""
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line):
            table = "/" + header[2].replace(".", "/")
            if header[1] == "[[":
                counts[table] = counts.get(table, -1) + 1
                lines.setdefault(table, number)
                table = f"{table}/{counts[table]}"
            lines.setdefault(table, number)
        elif key := _KEY.match(line):
            lines.setdefault(f"{table}/{key[1]}", number)
    return lines


def _parse_yaml(text: str, file: Path | None) -> JsonDocument:
    import yaml

    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as err:
        mark = getattr(err, "problem_mark", None)
        problem = getattr(err, "problem", None) or str(err).splitlines()[0]
        raise SpecError(
            f"not YAML: {problem}",
            file=file,
            line=mark.line + 1 if mark is not None else 1,
            help="docs/operators.md shows a prototype",
        ) from err
    lines: dict[str, int] = {"": 1}
    value = None if node is None else _value_of(node, "", lines, file)
    return JsonDocument(value, lines, file)


def _value_of(
    node: Node, pointer: str, lines: dict[str, int], file: Path | None, depth: int = 0
) -> Json:
    """Return a node's value, by the names of YAML 1.2: `no` and `on` are text."""
    from yaml.nodes import MappingNode, SequenceNode

    lines[pointer] = node.start_mark.line + 1
    if depth > _MAX_DEPTH:
        raise SpecError(
            f"nested deeper than {_MAX_DEPTH} levels", file=file, pointer=pointer, line=1
        )
    if isinstance(node, SequenceNode):
        return [
            _value_of(each, f"{pointer}/{at}", lines, file, depth + 1)
            for at, each in enumerate(node.value)
        ]
    if isinstance(node, MappingNode):
        found: dict[str, Json] = {}
        for key, value in node.value:
            name = str(key.value)
            here = f"{pointer}/{escape_pointer(name)}"
            line = key.start_mark.line + 1
            if name in found:
                raise SpecError(
                    f'the key "{name}" appears twice',
                    file=file,
                    pointer=here,
                    line=line,
                    help=f"keep one; the first is on line {lines[f'{here}#']}",
                )
            lines[f"{here}#"] = line
            found[name] = _value_of(value, here, lines, file, depth + 1)
        return found
    text = str(node.value)
    if node.style is not None:
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _YAML_NUMBER.fullmatch(text):
        return int(text) if re.fullmatch(r"[-+]?\d+", text) else float(text)
    return text
