"""Programs in Python files: functions whose parameters say what tensors they are."""

from __future__ import annotations

import inspect
import re
import runpy
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from opkit.dtypes import find_dtype
from opkit.errors import OpkitError, SetupError, UsageError

from ..ir import MISTAKES, Dimension, Graph, GraphError, Location, dimension, raised_at
from .builder import TensorSpec, trace

__all__ = ["load_program", "run_program_file", "tensor_spec"]

_SPEC = re.compile(r"^\s*(\w+)\s*\[(.*)\]\s*$")
_LIST = re.compile(r"^(.*\])\s*\*\s*(\d+)\s*$")


def run_program_file(path: Path) -> dict[str, Any]:
    """Return the names that a Python file has when it has run.

    Raises:
        SetupError: it imports what is not installed.
        GraphError: it does not run; at the line.
    """
    try:
        return runpy.run_path(str(path))
    except SyntaxError as err:
        raise GraphError(f"{err.msg}", location=Location(str(path), err.lineno or 1)) from err
    except OpkitError:
        raise
    except ModuleNotFoundError as err:
        raise SetupError(f"{path}: {err}", help=f"pip install {err.name}") from err
    except MISTAKES as err:
        line = raised_at(err, str(path))
        if line is None:
            raise
        raise GraphError(f"{type(err).__name__}: {err}", location=line) from err


def load_program(path: Path, function: str | None = None) -> Graph:
    """Return the graph of a function in a Python file.

    Its parameters are annotated with their data types and extents, as text: `x: "float16[M,
    4096]"`; names are sizes known at launch, and `"float16[M] * 3"` is a list of three. Without a
    name the file's only such function is taken.

    Raises:
        UsageError: there is no such file or function.
        SetupError: it imports what is not installed.
        GraphError: the file does not run, or the function cannot be traced; at the line.
    """
    if path.is_dir():
        raise UsageError(
            f"{path} is a folder, expected a Python file with a function of tensors",
            help='of a program of torch: torch.compile(backend="opkit"), or opkit.graph.build;'
            " a benchmark's task has proto.yaml, golden.py and cases.yaml",
        )
    if not path.is_file():
        raise UsageError(f"{path}: no such file")
    names = run_program_file(path)
    found = {
        name: value
        for name, value in names.items()
        if inspect.isfunction(value)
        and Path(value.__code__.co_filename) == path
        and _is_program(value)
    }
    if function is None and len(found) == 1:
        function = next(iter(found))
    if function is None or function not in found:
        what = f'no function "{function}"' if function else f"{len(found)} programs"
        known = ", ".join(found) or "none"
        raise UsageError(
            f"{path} has {what}",
            help=f"programs are functions with annotations such as x: 'float16[M, 4096]'; there"
            f" is {known}"
            if not found
            else f"name one: {path}:{next(iter(found))} ({known})",
        )
    return trace(found[function], _specs(found[function], path), name=function)


def _is_program(function: Callable[..., Any]) -> bool:
    parameters = inspect.signature(function).parameters.values()
    return bool(parameters) and all(
        isinstance(p.annotation, str) and _SPEC.match(_element(p.annotation)[0]) for p in parameters
    )


def _element(annotation: str) -> tuple[str, int]:
    """Return the text of a tensor, and how many are in a list of them; 0 for a single one."""
    text = annotation.strip("'\"")
    match = _LIST.match(text)
    return (match[1], int(match[2])) if match else (text, 0)


def _specs(function: Callable[..., Any], path: Path) -> list[TensorSpec | Sequence[TensorSpec]]:
    place = Location(str(path), function.__code__.co_firstlineno)
    found: list[TensorSpec | Sequence[TensorSpec]] = []
    for name, parameter in inspect.signature(function).parameters.items():
        text, count = _element(parameter.annotation)
        if count:
            found.append([tensor_spec(f"{name}{at}", text, place) for at in range(count)])
        else:
            found.append(tensor_spec(name, text, place))
    return found


def tensor_spec(name: str, text: str, place: Location | None = None) -> TensorSpec:
    """Return an input from text such as `float16[M, 4096]`.

    Raises:
        GraphError: the text is no data type and extents.
    """
    match = _SPEC.match(text)
    row = find_dtype(match[1]) if match else None
    if match is None or row is None:
        raise GraphError(
            f'"{name}" is {text!r}', location=place, help='write it as "float16[M, 4096]"'
        )
    shape: list[Dimension] = []
    for part in filter(None, (each.strip() for each in match[2].split(","))):
        if part.isdigit() and int(part) > 0:
            shape.append(int(part))
        elif part.isidentifier():
            shape.append(dimension(part))
        else:
            raise GraphError(
                f'"{name}" has the extent {part!r}', location=place, help="a number or a name"
            )
    return TensorSpec(name, tuple(shape), row.name)
