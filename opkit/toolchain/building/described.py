"""What a host library says of itself: its operators' OpDefs and its tiling data classes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opkit import emulator
from opkit.dtypes import TENSOR_DTYPES, DType
from opkit.errors import BuildError
from opkit.schema import AttrSpec, AttrValue, OpSpec, TensorSpec, snake_case
from opkit.toolchain.own_command import WITHOUT_FOLDER

__all__ = [
    "DescribedOperator",
    "DescribedTensor",
    "HostDescription",
    "TilingStruct",
    "ask_host",
    "parse_description",
]

_DTYPE_BY_GE_VALUE = {row.ge_value: row for row in TENSOR_DTYPES}
_FORMAT = re.compile(r"#define FORMAT_(\w+) (\d+)")

# A process of its own: a host library runs code when it is loaded, and cannot be unloaded.
_PROGRAM = f"""{WITHOUT_FOLDER}
import json
from opkit.emulator import _emulator
try:
    text = json.dumps(_emulator.describe_host(sys.argv[1]))
except ValueError as err:
    sys.exit(str(err))
with open(sys.argv[2], "w") as answer:
    answer.write(text)
"""
_LOAD_SECONDS = 60.0
"""What loading a host library may take: it registers operators, and nothing else."""


@dataclass(frozen=True)
class DescribedTensor:
    """What an OpDef says of an input or output beyond what a prototype can."""

    name: str
    param_type: str
    """`required`, `optional` or `dynamic`."""
    is_value_dependent: bool
    """Host functions read its values, so aclnn functions take it as an array (ValueDepend)."""
    is_scalar: bool
    """aclnn functions take it as a scalar, or a list of them (Scalar, ScalarList)."""
    is_scalar_list: bool
    """As a list (ScalarList)."""
    is_contiguous_made: bool
    """aclnn functions copy a tensor with gaps (AutoContiguous, also of another input)."""
    dtypes: tuple[DType, ...]


@dataclass(frozen=True)
class DescribedOperator:
    """One operator as its OpDef has it, on one family of chips."""

    op: str
    inputs: tuple[DescribedTensor, ...]
    outputs: tuple[DescribedTensor, ...]
    attrs: tuple[AttrSpec, ...]
    spec: OpSpec
    """As a prototype; its combinations are those whose every data type opkit has."""
    configured_for: str | None
    """The family of chips whose AddConfig counts: this one, or where the OpDef has none for it one
    whose kernels the chips here run; None where there is neither."""
    op_file: str | None
    """The kernel's file without its suffix, where the OpDef names one."""
    unsupported: str | None
    """What its OpDef uses that opkit lacks, so that calls are refused."""
    skipped: tuple[str, ...]
    """Combinations that were left out, as text."""


@dataclass(frozen=True)
class TilingStruct:
    """One class of tiling data that a host file defines by macros."""

    op: str
    """The operator, with a tiling key behind it where several classes are registered."""
    class_name: str
    members: tuple[tuple[str, str, int], ...]
    """(type, name, array length or 0)."""

    @property
    def text(self) -> str:
        """The equivalent plain struct."""
        lines = [
            f"    {_last_name(kind)} {name}{f'[{length}]' if length else ''};\n"
            for kind, name, length in self.members
        ]
        return f"struct {_last_name(self.class_name)} {{\n{''.join(lines)}}};\n"


@dataclass(frozen=True)
class HostDescription:
    """Everything that one host library registers."""

    operators: tuple[DescribedOperator, ...]
    tiling_structs: tuple[TilingStruct, ...]
    library: Path | None = None
    """The host library that was asked; None where only its answer is at hand."""

    def tiling_text(self, op: str, *, without: Collection[str] = ()) -> tuple[str, str | None]:
        """Return the structs that an operator's kernel reads, and the name of its default one.

        Args:
            without: structs that the kernel defines itself; the default one is then left to it.
        """
        own = [entry for entry in self.tiling_structs if _serves(entry.op, op)]
        if not own:
            return "", None
        by_name = {_last_name(entry.class_name): entry for entry in self.tiling_structs}
        needed: dict[str, TilingStruct] = {}

        def need(entry: TilingStruct) -> None:
            for kind, _, _ in entry.members:
                nested = by_name.get(_last_name(kind))
                if nested is not None:
                    need(nested)
            needed.setdefault(_last_name(entry.class_name), entry)

        for entry in own:
            need(entry)
        default = next((entry for entry in own if entry.op == op), own[0])
        text = "".join(entry.text for name, entry in needed.items() if name not in without)
        name = _last_name(default.class_name)
        return text, None if name in without else name


def ask_host(library: Path) -> dict[str, Any]:
    """Load a host library in a process of its own and return what it registers, as JSON.

    Raises:
        BuildError: it cannot be loaded.
    """
    help = "a host function that is declared and defined nowhere is the usual cause"
    ended = "look for exit, abort and loops in what runs when the library is loaded"
    # Not on stdout: what runs when the library is loaded may print.
    with tempfile.NamedTemporaryFile(prefix="opkit-host-") as answer:
        argv = [sys.executable, "-c", _PROGRAM, str(library), answer.name]
        try:
            done = subprocess.run(
                argv,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
                timeout=_LOAD_SECONDS,
            )
        except subprocess.TimeoutExpired as error:
            raise BuildError(
                f"{library.name} is not loaded after {_LOAD_SECONDS:g} s", log="", help=ended
            ) from error
        text = answer.read()
    if done.returncode != 0:
        said = done.stderr.strip() or f"its process ends by {done.returncode}"
        raise BuildError(f"{library.name} cannot be loaded: {said}", log=done.stderr, help=help)
    try:
        found: dict[str, Any] = json.loads(text)
    except ValueError as error:
        raise BuildError(
            f"{library.name} cannot be loaded: it ends the process that loads it",
            log=done.stderr,
            help=ended,
        ) from error
    return found


def parse_description(
    document: Mapping[str, Any], *, soc_config: str, source: Path
) -> HostDescription:
    """Return what `ask_host` gave, as data.

    Args:
        soc_config: the family of chips whose `AddConfig` counts, such as `ascend910b`.
        source: where messages say that the operators came from.
    Raises:
        BuildError: the lists of an OpDef differ in length, or it uses what opkit lacks.
    """
    operators = tuple(
        _operator(entry, soc_config=soc_config, source=source) for entry in document["operators"]
    )
    seen: dict[tuple[str, str], TilingStruct] = {}
    for entry in document["tiling_structs"]:
        members = tuple((str(k), str(n), int(length)) for k, n, length in entry["members"])
        # A header that several sources include registers its classes once for each.
        seen.setdefault(
            (entry["op"], entry["class_name"]),
            TilingStruct(entry["op"], entry["class_name"], members),
        )
    return HostDescription(operators, tuple(seen.values()))


def _operator(entry: Mapping[str, Any], *, soc_config: str, source: Path) -> DescribedOperator:
    op = str(entry["op"])
    exact = (c for c in entry["configs"] if c["soc_config"] == soc_config)
    others = (c for c in entry["configs"] if c.get("stands_in"))
    config = next(exact, None) or next(others, None)
    overrides = config or {"inputs": [], "outputs": [], "op_file": ""}
    inputs = _overridden(entry["inputs"], overrides["inputs"])
    outputs = _overridden(entry["outputs"], overrides["outputs"])
    columns, skipped = _columns(op, inputs, outputs)
    makes_contiguous = any(param["is_auto_contiguous"] for param in inputs)
    attrs = tuple(
        AttrSpec(attr["name"], attr["type"], attr["is_required"], _value(attr["default"]))
        for attr in entry["attrs"]
    )
    described = {
        id(param): DescribedTensor(
            name=param["name"],
            param_type=param["param_type"],
            is_value_dependent=param["is_value_dependent"],
            is_scalar=param["scalar_kind"] != 0,
            is_scalar_list=param["scalar_kind"] == 2,
            is_contiguous_made=makes_contiguous and not param["ignores_contiguous"],
            dtypes=tuple(column[index][0] for column in columns),
        )
        for index, param in enumerate((*inputs, *outputs))
    }
    count = len(inputs)
    tensors = [
        TensorSpec(
            name=param["name"],
            param_type=param["param_type"],
            dtypes=tuple(column[index][0] for column in columns),
            formats=tuple(column[index][1] for column in columns),
            is_scalar=param["scalar_kind"] == 1,
        )
        for index, param in enumerate((*inputs, *outputs))
    ]
    spec = OpSpec(op, snake_case(op), tuple(tensors[:count]), tuple(tensors[count:]), attrs, source)
    return DescribedOperator(
        op=op,
        inputs=tuple(described[id(param)] for param in inputs),
        outputs=tuple(described[id(param)] for param in outputs),
        attrs=attrs,
        spec=spec,
        configured_for=None if config is None else str(config["soc_config"]),
        op_file=overrides["op_file"] or None,
        unsupported=entry["unsupported"] or None,
        skipped=skipped,
    )


def _overridden(
    params: Sequence[Mapping[str, Any]], replacements: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    by_name = {param["name"]: param for param in replacements}
    merged = [by_name.pop(param["name"], param) for param in params]
    return [*merged, *by_name.values()]


def _columns(
    op: str, inputs: Sequence[Mapping[str, Any]], outputs: Sequence[Mapping[str, Any]]
) -> tuple[tuple[tuple[tuple[DType, str], ...], ...], tuple[str, ...]]:
    """Return every supported combination: (dtype, format) of inputs, then of outputs."""
    params = [*inputs, *outputs]
    fixed = [p for p in params if not p["follows_dtype"] and not p["is_dtype_list"]]
    lengths = {len(param["dtypes"]) for param in fixed}
    if len(lengths) > 1:
        told = ", ".join(f"{param['name']} {len(param['dtypes'])}" for param in fixed)
        raise BuildError(
            f"the OpDef of {op} lists different numbers of types: {told}",
            help="the i-th types of all inputs and outputs form one combination",
        )
    formats = _format_names()
    rows: list[dict[str, tuple[int, str]]] = []
    for column in range(lengths.pop() if lengths else 1):
        row = {
            p["name"]: (p["dtypes"][column], _format(p, column, formats))
            for p in params
            if not p["follows_dtype"] and not p["is_dtype_list"]
        }
        partial = [row]
        for param in params:
            if param["is_dtype_list"]:
                partial = [
                    {**known, param["name"]: (dtype, _format(param, column, formats))}
                    for known in partial
                    for dtype in param["dtypes"]
                ]
        rows.extend(partial)
    result: dict[tuple[tuple[DType, str], ...], None] = {}
    skipped = []
    for row in rows:
        for param in params:
            if param["follows_dtype"]:
                row[param["name"]] = row[param["follow"]]
        numbers = [row[param["name"]] for param in params]
        dtypes = [_DTYPE_BY_GE_VALUE.get(number) for number, _ in numbers]
        if any(dtype is None for dtype in dtypes):
            skipped.append(", ".join(f"{p['name']}: {row[p['name']][0]}" for p in params))
            continue
        result[
            tuple((dtype, f) for dtype, (_, f) in zip(dtypes, numbers, strict=True) if dtype)
        ] = None
    if not result:
        raise BuildError(
            f"the OpDef of {op} has no combination of data types that opkit has",
            help="op.json lists the data types that there are: opkit gen --help",
        )
    return tuple(result), tuple(skipped)


def _format(param: Mapping[str, Any], column: int, names: Mapping[int, str]) -> str:
    formats = param["formats"]
    if not formats:
        return "ND"
    number = formats[min(column, len(formats) - 1)]
    if number not in names:
        raise BuildError(
            f"the OpDef's {param['name']} has the format {number}, which ge::Format does not list",
            help="use one of ge::FORMAT_*, such as ge::FORMAT_ND",
        )
    return names[number]


def _format_names() -> dict[int, str]:
    header = emulator.include_dir() / "opkit" / "kernel_constants.h"
    found = _FORMAT.findall(header.read_text(encoding="utf-8"))
    return {int(number): name for name, number in found}


def _value(value: Any) -> AttrValue | None:
    if isinstance(value, list):
        return tuple(_value(item) for item in value)  # type: ignore[return-value]
    result: AttrValue | None = value
    return result


def _serves(registered: str, op: str) -> bool:
    """Whether a class registered for `AddCustom` or `AddCustom_1` (a tiling key) is for `op`."""
    base, _, key = registered.rpartition("_")
    return registered == op or (base == op and key.isdigit())


def _last_name(name: str) -> str:
    return name.rpartition("::")[2].strip()
