"""Which inputs an operator is tested with, each reproducible from its printed name and seed."""

from __future__ import annotations

import ast
import math
import os
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from opkit.chips import DATA_BLOCK_BYTES
from opkit.dtypes import INT4, DType
from opkit.errors import UsageError
from opkit.runtime import allocated
from opkit.schema import LIST_LENGTH, AttrSpec, AttrValue, OpSpec
from opkit.testing.cases.values import Source, make_values
from opkit.testing.numbers import Input, is_float

__all__ = [
    "LIST_LENGTH",
    "Case",
    "RuleWithLimits",
    "Shape",
    "ShapeRule",
    "case_variants",
    "default_cases",
    "distinct",
    "input_shapes",
    "make_case",
    "make_inputs",
    "plain_attr",
    "reads_axes",
    "row_inputs",
    "usual_shape",
    "works_by_row",
]

Shape = tuple[int, ...]
ShapeRule = Callable[[Shape], Mapping[str, Shape]]
"""From a case's main shape to the shapes of the inputs that differ from it, such as gamma's."""


@dataclass(frozen=True)
class RuleWithLimits:
    """A `ShapeRule` of an operator that has inputs which say places along an axis."""

    shapes: ShapeRule
    limits: Callable[[Shape], Mapping[str, int]]
    """From a main shape to how many places there are, by input."""

    def __call__(self, shape: Shape) -> Mapping[str, Shape]:
        """Return the shapes of the inputs that differ from a main shape."""
        return self.shapes(shape)


# What only a formula that works row by row contains.
_ROW_WORDS = ("axis", "row(", "columns")


@dataclass(frozen=True)
class Case:
    """One launch of one operator."""

    op: str
    """The OpDef name."""
    kernel: str
    """The operator's snake_case name."""
    variant: int
    """Which of the prototype's dtype combinations."""
    dtypes: tuple[DType, ...]
    """Data types of the inputs, then of the outputs."""
    shape: Shape
    """The main shape; inputs have it unless the project's rule says otherwise."""
    shapes: tuple[Shape | None, ...]
    """One per input; None for an optional input that the case leaves out."""
    attrs: tuple[tuple[str, AttrValue], ...]
    """Values by name, in prototype order."""
    seed: int
    """The run's seed; the case's own stream of numbers also depends on its name."""
    distribution: str
    """Distribution of inputs that `sources` does not name: see `opkit.testing.cases.values`."""
    input_names: tuple[str, ...] = ()
    """Names of the inputs, for files of cases."""
    label: str = ""
    """Its name, where a file of cases or a generator gives it one."""
    sources: tuple[Source | None, ...] = ()
    """One per input, or none at all."""
    lists: frozenset[str] = frozenset()
    """The inputs that are lists of tensors; each has `list_length` of its shape."""
    list_length: int = LIST_LENGTH
    """How many tensors a list has."""
    expects_failure: bool = False
    """Whether it passes when the operator refuses or faults, and only then."""
    may_be_refused: bool = False
    """Whether host code may refuse it: the golden takes what the operator need not take."""
    standard: str = ""
    """The precision standard it is judged by; the run's when empty."""
    limits: tuple[tuple[str, float], ...] = ()
    """Numbers of the standard that it replaces, for every floating output."""
    golden: str = ""
    """`FILE.py:FUNCTION` or `torch.NAME` in place of the project's golden.py."""
    origin: Path | None = None
    """The file of cases that it is from."""
    golden_takes_records: bool = False
    """Whether that function is written for msOpST: a dict for each tensor, "value" in it."""

    @property
    def name(self) -> str:
        """What the report prints and `-k` matches: its label, or kernel-dtypes-shape-values."""
        if self.label:
            return self.label
        dtypes = _joined_dtypes(self.dtypes)
        shape = "x".join(str(size) for size in self.shape) or "scalar"
        return f"{self.kernel}-{dtypes}-{shape}-{self.distribution}"


def _joined_dtypes(dtypes: tuple[DType, ...]) -> str:
    names = [dtype.name for dtype in dtypes]
    return names[0] if len(set(names)) == 1 else "_".join(names)


# Whatever a rule for shapes reads is there: four axes, the last two of one length, so that matrices
# of one shape multiply.
_MATRIX_SHAPES: tuple[Shape, ...] = (
    (1, 1, 1, 1),
    (1, 1, 15, 15),
    (2, 3, 16, 16),
    (1, 2, 33, 33),
    (3, 1, 64, 64),
    (1, 1, 255, 255),
)


# Rows of which no unified buffer holds one: generated kernels take them in parts, by code that no
# shorter row reaches. What was written by hand without a formula may have every row in the buffer.
_LONG_ROWS = (2, 50021)


def _main_shapes(size_bytes: int, by_row: bool) -> tuple[Shape, ...]:
    """Return the shapes that break kernels: around a data block, a tile, a core's share."""
    block = DATA_BLOCK_BYTES // size_bytes
    if by_row:
        return (
            (1,),
            (1, block - 1),
            (3, block),
            (5, block + 1),
            (49, 1),
            (2, 3, 17),
            (97, 255),
            (4, 8, 256),
            (41, 4099),
            (256, 4096),
            (0, 64),
        )
    return (
        (1,),
        (block - 1,),
        (block,),
        (block + 1,),
        (255,),
        (2047,),
        (2048,),
        (2049,),
        (7919,),
        (65536,),
        (2, 3, 17),
        (4, 1, 128),
        # Axes beyond the fourth are what host code forgets.
        (2, 4, 4, 4, 33),
        (1000003,),
        (1 << 20,),
        # More tiles than buffers on every core, so that one that is never freed runs out.
        ((3 << 20) + 1,),
        (0,),
        (3, 0, 4),
    )


def default_cases(
    spec: OpSpec,
    *,
    seed: int = 0,
    shape_rule: ShapeRule | None = None,
    edge_values: bool = False,
) -> tuple[Case, ...]:
    """Return every dtype combination times a set of shapes.

    Args:
        seed: a whole number from 0; another one gives other values in the same cases.
        shape_rule: shapes of inputs that differ from the main one; see `ShapeRule`. With a rule, or
            a formula that works along an axis, the shapes are rows rather than long vectors.
        edge_values: add cases of zeros, extremes, infinities and NaN among ordinary values; where
            it works by row, also with a single one of them in each row.
    Raises:
        UsageError: the rule names no input of the operator.
    """
    by_row = works_by_row(spec, shape_rule=shape_rule)
    cases = []
    for variant in range(spec.variant_count):
        dtypes = spec.variant_dtypes(variant)
        widths = [dtype.size_bytes for dtype in dtypes[: len(spec.inputs)]]
        by_matrix = shape_rule is None and reads_axes(spec)
        shapes = _MATRIX_SHAPES if by_matrix else _main_shapes(min(widths, default=4), by_row)
        plan = [(shape, "normal") for shape in shapes]
        if by_row and shape_rule is None and not by_matrix and spec.has_formula:
            plan.append((_LONG_ROWS, "normal"))
        plan.append(((1, 3, 31, 31) if by_matrix else (31, 257), "uniform"))
        if edge_values and any(is_float(dtype) for dtype in dtypes):
            plan.append(((1, 4, 32, 32) if by_matrix else (4, 1024), "edge"))
            if by_row:
                plan.append(((1, 4, 32, 32) if by_matrix else (26, 64), "edge_rows"))
        for shape, distribution in plan:
            case = make_case(
                spec,
                shape,
                variant=variant,
                seed=seed,
                distribution=distribution,
                shape_rule=shape_rule,
            )
            cases.append(case)
        cases += _flag_cases(cases[-1], spec)
    return tuple({case.name: case for case in cases}.values())


def _flag_cases(case: Case, spec: OpSpec) -> list[Case]:
    """Return a case with the other value of each attribute that is true or false."""
    values = dict(case.attrs)
    flags = [attr.name for attr in spec.attrs if attr.type == "bool"]
    return [
        replace(
            case,
            attrs=tuple((name, not v if name == flag else v) for name, v in case.attrs),
            label=f"{case.name}-{flag}={str(not values[flag]).lower()}",
        )
        for flag in flags
    ]


def reads_axes(spec: OpSpec) -> bool:
    """Whether a rule of the prototype takes axes that a row does not have."""
    for tensor in spec.outputs:
        rule = tensor.shape
        if rule is None:
            continue
        axes = rule.options.get("axis", (-1,))
        if rule.kind in ("matmul", "dims") or (rule.kind == "reduce" and axes != (-1,)):
            return True
    return False


def distinct(cases: Sequence[Case]) -> tuple[Case, ...]:
    """Return the cases with names made different by a number where two are the same."""
    seen: dict[str, int] = {}
    result = []
    for case in cases:
        count = seen[case.name] = seen.get(case.name, 0) + 1
        result.append(case if count == 1 else replace(case, label=f"{case.name}-{count}"))
    return tuple(result)


def works_by_row(spec: OpSpec, *, shape_rule: ShapeRule | None = None) -> bool:
    """Return whether an operator treats the last axis apart: by formula, by an output's `shape`, or
    by golden.py's rule for input shapes."""
    reduces = any(tensor.shape and tensor.shape.kind == "reduce" for tensor in spec.outputs)
    return (
        shape_rule is not None
        or reduces
        or any(word in (tensor.formula or "") for tensor in spec.outputs for word in _ROW_WORDS)
    )


def usual_shape(spec: OpSpec, *, shape_rule: ShapeRule | None = None) -> Shape:
    """Return the shape that an operator is timed at where none is asked for."""
    if shape_rule is None and reads_axes(spec):
        return (1, 1, 512, 512)
    return (2048, 4096) if works_by_row(spec, shape_rule=shape_rule) else (1 << 20,)


def make_case(
    spec: OpSpec,
    shape: Shape,
    *,
    variant: int = 0,
    seed: int = 0,
    distribution: str = "normal",
    shape_rule: ShapeRule | None = None,
) -> Case:
    """Return one case at a shape of choice; arguments and errors as `default_cases`."""
    return Case(
        op=spec.op,
        kernel=spec.name,
        variant=variant,
        dtypes=spec.variant_dtypes(variant),
        shape=shape,
        shapes=input_shapes(spec, shape, shape_rule),
        sources=input_sources(spec, shape, shape_rule),
        attrs=tuple((attr.name, plain_attr(attr)) for attr in spec.attrs),
        seed=seed,
        distribution=distribution,
        input_names=tuple(tensor.name for tensor in spec.inputs),
        lists=frozenset(t.name for t in spec.inputs if t.param_type == "dynamic"),
    )


def case_variants(spec: OpSpec) -> list[int]:
    """Return the variants that cases are made of: none with int4, whose elements share bytes."""
    return [n for n in range(spec.variant_count) if INT4 not in spec.variant_dtypes(n)]


def output_tensors(case: Case, spec: OpSpec) -> tuple[tuple[str, DType], ...]:
    """Return name and type of each tensor that the operator gives; `y[0]` for one of a list."""
    found: list[tuple[str, DType]] = []
    for tensor, dtype in zip(spec.outputs, case.dtypes[len(spec.inputs) :], strict=True):
        if tensor.param_type == "dynamic" and case.lists:
            found += [(f"{tensor.name}[{index}]", dtype) for index in range(case.list_length)]
        else:
            found.append((tensor.name, dtype))
    return tuple(found)


def input_shapes(spec: OpSpec, shape: Shape, rule: ShapeRule | None) -> tuple[Shape, ...]:
    """Return the shape of each input at a main shape.

    Raises:
        UsageError: the rule names no input of the operator.
    """
    given = dict.fromkeys(row_inputs(spec), shape[:-1])
    given.update(rule(shape) if rule is not None else {})
    names = [tensor.name for tensor in spec.inputs]
    unknown = [name for name in given if name not in names]
    if unknown:
        raise UsageError(
            f"golden.py gives {unknown[0]!r} a shape, which is not an input of {spec.op}",
            help="its inputs are " + ", ".join(names),
        )
    return tuple(tuple(given.get(name, shape)) for name in names)


def input_sources(spec: OpSpec, shape: Shape, rule: ShapeRule | None) -> tuple[Source | None, ...]:
    """Return where the values of inputs come from that say places along an axis: from below as
    many as there are. None at all where there is no such input."""
    limits = rule.limits(shape) if isinstance(rule, RuleWithLimits) else {}
    if not any(limits.get(tensor.name, 0) > 0 for tensor in spec.inputs):
        return ()
    counts = [limits.get(tensor.name, 0) for tensor in spec.inputs]
    return tuple(Source("uniform", 0, count - 1) if count > 0 else None for count in counts)


def row_inputs(spec: OpSpec) -> set[str]:
    """Return the inputs that the formulas take as one value per row, written `row(name)`."""
    calls = [
        node
        for tensor in spec.outputs
        if tensor.formula
        for node in ast.walk(ast.parse(tensor.formula.strip(), mode="eval"))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "row"
    ]
    return {node.args[0].id for node in calls if node.args and isinstance(node.args[0], ast.Name)}


def plain_attr(attr: AttrSpec) -> AttrValue:
    """Return an attribute's default, or a plain value of its type where it has none."""
    if attr.default is not None:
        return attr.default
    plain: dict[str, AttrValue] = {
        "int": 1,
        "float": 1.0,
        "bool": False,
        "string": "",
        "list_int": (1,),
        "list_float": (1.0,),
        "list_bool": (False,),
        "list_list_int": ((1,),),
    }
    if attr.type not in plain:
        raise UsageError(
            f"attribute {attr.name} is required and of type {attr.type},"
            " for which opkit test has no value",
            help="give it a default_value in the prototype",
        )
    return plain[attr.type]


def _check_memory(case: Case) -> None:
    sizes = [
        math.prod(shape) * dtype.size_bytes
        for shape, dtype in zip(case.shapes, case.dtypes, strict=False)
        if shape is not None
    ]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if sum(sizes) > memory:
        shape = "x".join(map(str, case.shape))
        raise UsageError(
            f"the inputs of {case.op} at shape {shape} take {_amount(sum(sizes))}, and this machine"
            f" has {_amount(memory)} of memory",
            help="choose a smaller shape",
        )


def _amount(size_bytes: int) -> str:
    return f"{size_bytes / 2**30:,.1f} GiB"


def make_inputs(case: Case) -> list[Input]:
    """Return the case's inputs as their dtypes are stored; the same bits for the same case.

    They begin where tensors of the device may, which kernels may rely on.

    An optional input that the case leaves out is None; a dynamic one is a list.

    Raises:
        UsageError: a file of values, or a list, does not fit the shape, or the inputs this
            machine's memory.
    """
    _check_memory(case)
    stream = np.random.default_rng([case.seed, zlib.crc32(case.name.encode())])
    sources = case.sources or (None,) * len(case.shapes)
    usual = Source(case.distribution)
    inputs: list[Input] = []
    for index, (shape, source) in enumerate(zip(case.shapes, sources, strict=True)):
        if shape is None:
            inputs.append(None)
            continue
        is_list = bool(case.lists) and case.input_names[index] in case.lists
        made = [
            allocated(make_values(stream, shape, case.dtypes[index], source or usual))
            for _ in range(case.list_length if is_list else 1)
        ]
        inputs.append(made if is_list else made[0])
    return inputs
