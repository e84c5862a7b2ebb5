"""A benchmark's task as a project that its own harness builds: our kernels of the task's golden.

build.sh, setup.py       a wheel `cann_bench` with one shared library
cann_bench/__init__.py   the operator as a function of torch_npu's tensors
cann_bench/cases.py      the shapes that there are kernels for
csrc/OP.cpp              what each case launches, and the same as a function of C
csrc/OP_0.cpp ...        one kernel each, with the function that launches it
"""

from __future__ import annotations

import inspect
import itertools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from opkit.chips import Chip, find_chip
from opkit.compiler import run_program_file
from opkit.dtypes import find_dtype
from opkit.errors import OpkitError, UsageError
from opkit.graph import Place
from opkit.judging.benchmark import BenchmarkTask, is_benchmark, read_benchmark
from opkit.judging.golden import require_torch
from opkit.schema import AttrSpec
from opkit.templating import render_template

if TYPE_CHECKING:
    from opkit.graph import CasePlan

__all__ = ["TaskProject", "compile_task"]

_ALIGNMENT = 512
"""Bytes that each part of a case's workspace begins at a multiple of."""
_MOST_ROWS = 1 << 13
"""Rows of counts and differences that a constant has at most: 64 KiB of a source."""
_MOST_PERIOD = 64
"""Of such rows that repeat."""
_WIDTHS = "widths"
"""The kernel between whole numbers of 32 and of 64 bits."""


@dataclass(frozen=True)
class TaskProject:
    """The files of a project, and what they cover."""

    name: str
    files: Mapping[str, str]
    """Texts by their names in the project."""
    cases: tuple[str, ...]
    """Those that the project has kernels for."""
    kernels: int
    left_out: tuple[tuple[str, str], ...]
    """Other cases, and why: an operator without a kernel, at the golden's line."""


def compile_task(folder: Path, *, chip: str) -> TaskProject:
    """Return a task's golden as a project of kernels, one plan for the shapes of each case.

    Raises:
        UsageError: the folder is no task, or no case of it can be compiled.
        SetupError: torch is not installed.
    """
    if not is_benchmark(folder):
        raise UsageError(
            f"{folder} is a folder, and no task",
            help="a task has proto.yaml, golden.py and cases.yaml; a program is a Python file",
        )
    task = read_benchmark(folder)
    golden = _golden_function(folder.absolute() / "golden.py", task.name)
    from opkit.graph import plan_of_case  # needs torch

    listed = {case.name for case in task.list_cases}
    left_out = [(name, reason) for name, reason in task.left_out if name not in listed]
    writer = _Writer(task, golden)
    for case in (*task.cases, *task.list_cases):
        lists = task.list_shapes.get(case.name)
        try:
            writer.add(plan_of_case(golden, case, find_chip(chip), lists))
        except OpkitError as err:
            left_out.append((case.name, " ".join(str(err).split())))
    if not writer.cases:
        why = "; ".join(f"{name}: {reason}" for name, reason in left_out[:1])
        raise UsageError(f"{folder}: no case can be compiled: {why}")
    names = tuple(plan.case.name for plan in writer.plans)
    kernels = len(writer.kernels)
    return TaskProject(task.name, writer.files(find_chip(chip)), names, kernels, tuple(left_out))


def _golden_function(file: Path, name: str) -> Callable[..., Any]:
    """Return a task's golden, which is a function of torch's tensors."""
    require_torch(f"{file}: the golden")
    function = run_program_file(file).get(name)
    if not callable(function):
        raise UsageError(f"{file}: there is no function {name}")
    golden: Callable[..., Any] = function
    return golden


@dataclass
class _Writer:
    """A project under construction."""

    task: BenchmarkTask
    golden: Callable[..., Any]
    plans: list[CasePlan] = field(default_factory=list)
    kernels: dict[str, str] = field(default_factory=dict)
    """Names in the project, by source."""
    originals: dict[str, str] = field(default_factory=dict)
    """Names in their sources, by names in the project."""
    bytes_of: dict[bytes, str] = field(default_factory=dict)
    """Names of arrays in the host's source, by their bytes."""
    constants: dict[bytes, str] = field(default_factory=dict)
    """In C++ what becomes of each array that lies in the device's memory, by its bytes."""
    cases: list[dict[str, Any]] = field(default_factory=list)
    converts: bool = False

    def add(self, found: CasePlan) -> None:
        """Take one case's launches in.

        Raises:
            UsageError: it needs constants that are too large for a source.
        """
        rows = _Rows(self, found)
        lines = rows.lines()
        self.plans.append(found)
        self.cases.append({"lines": lines, "plan": found, "workspace": rows.used})

    def kernel(self, source: str, name: str) -> str:
        """Return the name in the project of a kernel."""
        if source not in self.kernels:
            made = f"{self.task.name}_{len(self.kernels)}"
            self.kernels[source] = made
            self.originals[made] = name
        return self.kernels[source]

    def array(self, data: bytes) -> str:
        """Return the name of an array of bytes in the host's source."""
        return self.bytes_of.setdefault(data, f"VALUES_{len(self.bytes_of)}")

    def constant(self, data: bytes) -> str:
        """Return the address in the device's memory of bytes, in C++."""
        if data not in self.constants:
            parts = _parts(data)
            rows = sum(len(part) for _, part in parts)
            if rows > _MOST_ROWS:
                raise UsageError(
                    f"it needs a constant of {len(data)} bytes, whose {rows} steps are more than"
                    f" the {_MOST_ROWS} that a source holds"
                )
            self.constants[data] = ", ".join(
                f"{{{times}, {{{', '.join(map(str, part.flat))}}}}}" for times, part in parts
            )
        return f"Constant({list(self.constants).index(data)})"

    def files(self, chip: Chip) -> dict[str, str]:
        """Return the texts of the project."""
        spec, name = self.task.spec, self.task.name
        entry = _entry(self.task)
        context: dict[str, Any] = {
            "name": name,
            "op": spec.op,
            "npu_arch": chip.npu_arch,
            "cores": chip.count("cores.aiv"),
            "outputs": [tensor.name for tensor in spec.outputs],
            "kernels": list(self.kernels.values()),
            "arrays": [(n, len(d), _numbers(d)) for d, n in self.bytes_of.items()],
            "constants": [(len(data), parts) for data, parts in self.constants.items()],
            "cases": self.cases,
            "entry": entry,
            "conditions": [_condition(self.task, plan) for plan in self.plans],
            "converts": self.converts,
            "python": _python(self.task, self.golden, self.plans),
            "names": [plan.case.name for plan in self.plans],
        }
        files = {
            target: render_template(f"task/{template}.jinja", context)
            for target, template in (
                ("build.sh", "build.sh"),
                ("setup.py", "setup.py"),
                ("README.md", "README.md"),
                ("cann_bench/__init__.py", "package.py"),
                ("cann_bench/cases.py", "cases.py"),
                (f"csrc/{name}.cpp", "host.cpp"),
            )
        }
        for source, made in self.kernels.items():
            files[f"csrc/{made}.cpp"] = _kernel_file(source, self.originals[made], made)
        if self.converts:
            files[f"csrc/{name}_{_WIDTHS}.cpp"] = render_template("task/widths.cpp.jinja", context)
        return files


@dataclass
class _Rows:
    """The statements of one case."""

    writer: _Writer
    found: CasePlan
    used: int = 0
    """Bytes of the workspace."""

    def lines(self) -> list[str]:
        """Return the statements that launch a case's kernels, in order."""
        plan = self.found.plan
        self.used = _rounded(plan.arena_bytes)
        before: list[str] = []
        after: list[str] = []
        inputs = [
            self._input(index, source, before) for index, source in enumerate(self.found.read)
        ]
        outputs = [self._output(index, after) for index in range(len(plan.outputs))]
        constants = [self.writer.constant(array.tobytes()) for array in self.found.constants]
        bases = {"input": inputs, "output": outputs, "constant": constants, "arena": ["workspace"]}

        def address(place: Place) -> str:
            base = bases[place.space][place.index]
            return f"{base} + {place.offset}" if place.offset else base

        work = []
        for launch in plan.launches:
            kernel = plan.kernels[launch.kernel]
            name = self.writer.kernel(kernel.source, kernel.name)
            given = [
                address(each) if isinstance(each, Place) else self.writer.array(bytes(each))  # type: ignore[arg-type]
                for each in launch.arguments
            ]
            work.append(f"Launch(launch_{name}, {launch.block_dim}, stream, {', '.join(given)});")
        for copy in plan.copies:
            source = (
                address(copy.source)
                if isinstance(copy.source, Place)
                else self.writer.constant(copy.source)
            )
            work.append(
                f"Copy({address(copy.target)}, {source}, {copy.target.size_bytes}, stream);"
            )
        return [*before, *work, *after]

    def _input(self, index: int, source: Any, lines: list[str]) -> str:
        """Return where a plan's input lies; of 64 bits, where its plan wants 32, as they are."""
        if not isinstance(source, int):
            return self.writer.constant(source.tobytes())
        given, wanted = self.found.inputs[source], self.found.plan.inputs[index]
        assert given is not None
        if given.dtype != "int64" or wanted.dtype == "int64":
            return f"tensors[{source}]"
        return self._converted(lines, f"tensors[{source}]", "", given.elements, wider=False)

    def _output(self, index: int, lines: list[str]) -> str:
        """Return where a plan's output goes; what the golden returns twice, is copied."""
        first, *others = [at for at, plan in enumerate(self.found.written) if plan == index] or [-1]
        if first < 0:
            return self._part(self.found.plan.outputs[index].size_bytes)
        place = f"tensors[{len(self.found.inputs) + first}]"
        made = self.found.outputs[first]
        size = self.found.plan.outputs[index].size_bytes
        for other in others:
            target = f"tensors[{len(self.found.inputs) + other}]"
            lines.append(f"Copy({target}, {place}, {size}, stream);")
        if made.dtype != "int64":
            return place
        return self._converted(lines, "", place, made.elements, wider=True)

    def _converted(
        self, lines: list[str], source: str, target: str, count: int, *, wider: bool
    ) -> str:
        part = self._part(4 * count)
        self.writer.converts = True
        lines.append(
            f"launch_{self.writer.task.name}_{_WIDTHS}("
            f"{source or part}, {target or part}, {count}, {str(wider).lower()}, stream);"
        )
        return part

    def _part(self, size: int) -> str:
        begin = self.used
        self.used += _rounded(size)
        return f"workspace + {begin}"


def _rounded(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def _parts(data: bytes) -> list[tuple[int, np.ndarray[Any, Any]]]:
    """Return how often each part of a constant comes one after the other, and its rows of (count,
    difference): each word of 32 bits is the one before it and a difference.

    Constants are masks, and places that are counted along some axes: few rows, or rows that repeat.
    """
    words = np.frombuffer(data.ljust(-(-len(data) // 4) * 4, b"\0"), np.uint32)
    steps = np.diff(words, prepend=np.uint32(0))
    begins = np.flatnonzero(np.diff(steps, prepend=~steps[:1]))
    rows = np.stack([np.diff(begins, append=len(steps)), steps[begins]], axis=1)
    # The first and the last row are cut short by where the constant begins and ends.
    inner = rows[1:-1]
    for period in range(1, min(_MOST_PERIOD, len(inner) // 2) + 1):
        if np.array_equal(inner[period:], inner[:-period]):
            times = len(inner) // period
            return [(1, rows[:1]), (times, inner[:period]), (1, rows[1 + times * period :])]
    return [(1, rows)]


def _numbers(data: bytes) -> str:
    return ", ".join(map(str, data))


_HEAD = re.compile(r"(?:#.*\n|\s*\n)*")
"""Lines that begin a kernel's source: what it includes, and what that is told by macros."""
_INCLUDE = re.compile(r"^[ \t]*(#include .*\n)", re.MULTILINE)


def _kernel_file(source: str, name: str, made: str) -> str:
    """Return a kernel's source with the function that launches it; its classes have a space of
    their own, since other kernels of the project have some of the same name."""
    signature = re.search(rf"\bvoid {name}\(([^)]*)\)", source)
    assert signature is not None, f"{name} is no kernel of its source"
    head = _HEAD.match(source)
    assert head is not None, "the pattern matches any text"
    body = source[head.end() :]
    kinds = [each.strip().rsplit(maxsplit=1)[0] for each in signature[1].split(",")]
    return render_template(
        "task/kernel.cpp.jinja",
        {
            "name": made,
            # Functions of opkit's library bring includes, which may stand in no namespace.
            "head": (head[0] + "".join(dict.fromkeys(_INCLUDE.findall(body)))).strip("\n"),
            "source": re.sub(rf"\b{name}\b", made, _INCLUDE.sub("", body)).strip("\n"),
            "kinds": kinds,
        },
    )


_ATTR_KINDS = {"float": "double", "int": "int64_t", "bool": "bool", "string": "char"}


def _entry(task: BenchmarkTask) -> str:
    """Return the parameters of the function of C that `opkit judge` calls."""
    rows = []
    for tensor in task.spec.inputs:
        name = tensor.name
        rows.append(f"uint8_t* {name}, int64_t {name}_rank, const int64_t* {name}_shape")
        rows.append(f"int32_t {name}_dtype")
    rows += [f"uint8_t* {tensor.name}" for tensor in task.spec.outputs]
    for attr in task.spec.attrs:
        rows.append(_attr_parameter(attr))
    rows.append("uint8_t* workspace, uint64_t workspace_bytes, void* stream")
    return ", ".join(rows)


def _attr_parameter(attr: AttrSpec) -> str:
    if attr.type == "string":
        return f"const char* {attr.name}, int64_t {attr.name}_count"
    if attr.type.startswith("list"):
        kind = "float" if attr.type.endswith("float") else "int64_t"
        return f"const {kind}* {attr.name}, int64_t {attr.name}_count"
    return f"{_ATTR_KINDS[attr.type]} {attr.name}"


def _condition(task: BenchmarkTask, found: CasePlan) -> str:
    """Return when a call of C is a case's; none where lists of tensors have no parameters."""
    if found.case.lists:
        return "false"
    parts = []
    for tensor, given in zip(task.spec.inputs, found.inputs, strict=True):
        if given is None:
            parts.append(f"{tensor.name} == nullptr")
            continue
        row = find_dtype(given.dtype)
        assert row is not None
        shape = "".join(f", {extent}" for extent in given.shape)
        count = len(given.shape)
        parts.append(f"{tensor.name} != nullptr && {tensor.name}_dtype == {row.ge_value}")
        parts.append(f"{tensor.name}_rank == {count} && AreSame({tensor.name}_shape{shape})")
    values = dict(found.case.attrs)
    parts += [
        _attr_condition(attr, values[attr.name]) for attr in task.spec.attrs if attr.name in values
    ]
    return " && ".join(parts) or "true"


def _attr_condition(attr: AttrSpec, value: Any) -> str:
    name = attr.name
    if attr.type == "string":
        text = str(value).replace("\\", "\\\\").replace('"', '\\"')
        return f'std::string({name}, {name}_count) == "{text}"'
    if attr.type.startswith("list"):
        numbers = "".join(f", {_literal(each)}" for each in value)
        return f"{name}_count == {len(value)} && AreSame({name}{numbers})"
    return f"IsSame<{_ATTR_KINDS[attr.type]}>({name}, {_literal(value)})"


def _literal(value: Any) -> str:
    """Return a number in C++."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and not math.isfinite(value):
        return {"inf": "INFINITY", "-inf": "-INFINITY", "nan": "NAN"}[str(value)]
    return repr(value)


def _plain(value: Any) -> Any:
    return tuple(map(_plain, value)) if isinstance(value, list | tuple) else value


def _python(
    task: BenchmarkTask, golden: Callable[..., Any], plans: Sequence[CasePlan]
) -> dict[str, Any]:
    """Return what the package's function and its table say."""
    names = [tensor.name for tensor in task.spec.inputs]
    attrs = [attr.name for attr in task.spec.attrs]
    known = {*names, *attrs}
    rows = []
    for parameter in inspect.signature(golden).parameters.values():
        if parameter.name not in known:
            raise UsageError(f"the golden takes {parameter.name}, which proto.yaml does not have")
        has_default = parameter.default is not inspect.Parameter.empty
        default = f"={parameter.default!r}" if has_default else ""
        rows.append(f"{parameter.name}{default}")
    given = inspect.signature(golden).parameters
    table = []
    for at, found in enumerate(plans):
        flat = iter(None if each is None else (each.shape, each.dtype) for each in found.inputs)
        inputs = tuple(
            next(flat) if length is None else tuple(itertools.islice(flat, length))
            for length in found.list_lengths
        )
        values = {name: _plain(given[name].default) for name in attrs if name in given}
        values |= {name: value for name, value in found.case.attrs if name in values}
        key = (inputs, tuple(values.values()))
        outputs = tuple((each.shape, each.dtype) for each in found.outputs)
        table.append((key, (at, found.is_sequence, outputs)))
    return {
        "parameters": ", ".join(rows),
        "inputs": ", ".join(name for name in names if name in given),
        "attrs": ", ".join(f"{name}" for name in attrs if name in given),
        "table": table,
    }
