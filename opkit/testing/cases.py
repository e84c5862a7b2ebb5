"""Which inputs an operator is tested with, each reproducible from its printed name and seed."""

from __future__ import annotations

import ast
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from opkit.dtypes import DType
from opkit.errors import UsageError
from opkit.schema import AttrSpec, AttrValue, OpSpec
from opkit.testing.arrays import Array, is_float, narrow

__all__ = ["Case", "default_cases", "make_case", "make_inputs", "select_cases", "works_by_row"]

Shape = tuple[int, ...]
ShapeRule = Callable[[Shape], Mapping[str, Shape]]
"""From a case's main shape to the shapes of the inputs that differ from it, such as gamma's."""

_DATA_BLOCK_BYTES = 32

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
    """Of the inputs, then of the outputs."""
    shape: Shape
    """The main shape; inputs have it unless the project's rule says otherwise."""
    shapes: tuple[Shape, ...]
    """One per input."""
    attrs: tuple[tuple[str, AttrValue], ...]
    """Values by name, in prototype order."""
    seed: int
    """The run's seed; the case's own stream of numbers also depends on its name."""
    distribution: str
    """`normal`, `uniform` or `edge`."""

    @property
    def name(self) -> str:
        """What the report prints and `-k` matches: kernel-dtypes-shape-distribution."""
        dtypes = _joined_dtypes(self.dtypes)
        shape = "x".join(str(size) for size in self.shape) or "scalar"
        return f"{self.kernel}-{dtypes}-{shape}-{self.distribution}"


def _joined_dtypes(dtypes: tuple[DType, ...]) -> str:
    names = [dtype.name for dtype in dtypes]
    return names[0] if len(set(names)) == 1 else "_".join(names)


def _main_shapes(size_bytes: int, by_row: bool) -> tuple[Shape, ...]:
    """Return the shapes that break kernels: around a 32-byte block, a tile, a core's share."""
    block = _DATA_BLOCK_BYTES // size_bytes
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
        (8, 16, 33),
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
        edge_values: add cases of zeros, extremes, infinities and NaN among ordinary values.
    Raises:
        UsageError: the operator takes a list of tensors, or the rule names no input of it.
    """
    by_row = works_by_row(spec, shape_rule=shape_rule)
    cases = []
    for variant in range(spec.variant_count):
        dtypes = spec.variant_dtypes(variant)
        widths = [dtype.size_bytes for dtype in dtypes[: len(spec.inputs)]]
        shapes = _main_shapes(min(widths, default=4), by_row)
        plan = [(shape, "normal") for shape in shapes]
        plan.append(((31, 257), "uniform"))
        if edge_values and any(is_float(dtype) for dtype in dtypes):
            plan.append(((4, 1024), "edge"))
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
    return tuple({case.name: case for case in cases}.values())


def works_by_row(spec: OpSpec, *, shape_rule: ShapeRule | None = None) -> bool:
    """Return whether an operator treats the last axis apart, by formula or by shape rule."""
    return shape_rule is not None or any(
        word in (tensor.formula or "") for tensor in spec.outputs for word in _ROW_WORDS
    )


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
    for tensor in spec.inputs:
        if tensor.param_type == "dynamic":
            raise UsageError(
                f"{spec.op}: input {tensor.name} is dynamic (a list of tensors),"
                " for which opkit makes no inputs yet",
                help="call the operator from Python, in the project's tests folder",
            )
    return Case(
        op=spec.op,
        kernel=spec.name,
        variant=variant,
        dtypes=spec.variant_dtypes(variant),
        shape=shape,
        shapes=_input_shapes(spec, shape, shape_rule),
        attrs=tuple((attr.name, _attr_value(attr)) for attr in spec.attrs),
        seed=seed,
        distribution=distribution,
    )


def _input_shapes(spec: OpSpec, shape: Shape, rule: ShapeRule | None) -> tuple[Shape, ...]:
    given = dict.fromkeys(_row_inputs(spec), shape[:-1])
    given.update(rule(shape) if rule is not None else {})
    names = [tensor.name for tensor in spec.inputs]
    unknown = [name for name in given if name not in names]
    if unknown:
        raise UsageError(
            f"golden.py gives {unknown[0]!r} a shape, which is not an input of {spec.op}",
            help="its inputs are " + ", ".join(names),
        )
    return tuple(tuple(given.get(name, shape)) for name in names)


def _row_inputs(spec: OpSpec) -> set[str]:
    """Return the inputs that the formulas take as one value per row, written `row(name)`."""
    calls = [
        node
        for tensor in spec.outputs
        if tensor.formula
        for node in ast.walk(ast.parse(tensor.formula.strip(), mode="eval"))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "row"
    ]
    return {node.args[0].id for node in calls if node.args and isinstance(node.args[0], ast.Name)}


def _attr_value(attr: AttrSpec) -> AttrValue:
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
    }
    if attr.type not in plain:
        raise UsageError(
            f"attribute {attr.name} is required and of type {attr.type},"
            " for which opkit test has no value",
            help="give it a default_value in the prototype",
        )
    return plain[attr.type]


def make_inputs(case: Case) -> list[Array]:
    """Return the case's inputs as their dtypes are stored; the same bits for the same case."""
    stream = np.random.default_rng([case.seed, zlib.crc32(case.name.encode())])
    return [
        _values(stream, shape, dtype, case.distribution)
        for shape, dtype in zip(case.shapes, case.dtypes, strict=False)
    ]


def _values(stream: np.random.Generator, shape: Shape, dtype: DType, distribution: str) -> Array:
    if dtype.name == "bool":
        return stream.integers(0, 2, shape).astype(np.bool_)
    if not is_float(dtype):
        # Small enough that a sum or a product of two stays within eight bits.
        low = 0 if dtype.name.startswith("u") else -11
        return stream.integers(low, 12, shape).astype(dtype.numpy)
    if distribution == "uniform":
        return narrow(stream.uniform(-10.0, 10.0, shape), dtype)
    values = stream.standard_normal(shape)
    if distribution == "edge":
        special = _edge_values(dtype)
        chosen = stream.random(shape) < 0.5
        values = np.where(chosen, stream.choice(special, shape), values)
    return narrow(values, dtype)


def _edge_values(dtype: DType) -> Array:
    """Return zeros, units, the smallest and largest magnitudes, infinities and NaN, as float64."""
    largest = {"float16": 65504.0, "bfloat16": float(2**127 * (2 - 2**-7))}
    smallest_normal = {"float16": 2.0**-14, "float64": 2.0**-1022}
    fraction_bits = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52}
    low = smallest_normal.get(dtype.name, 2.0**-126)
    high = largest.get(dtype.name)
    if high is None:
        high = float(np.finfo(np.dtype(dtype.numpy)).max)
    magnitudes = [0.0, 1.0, low, low * 2.0 ** -fraction_bits[dtype.name], high, np.inf]
    return np.array([*magnitudes, *(-value for value in magnitudes), np.nan])


def select_cases(cases: Iterable[Case], expression: str) -> tuple[Case, ...]:
    """Return the cases whose name an expression matches, as pytest's -k does.

    Args:
        expression: parts of a name joined by `and`, `or`, `not` and parentheses, such as
            `float16 and not 1000003`.
    Raises:
        UsageError: the expression cannot be read.
    """
    matches = _parse_expression(expression)
    return tuple(case for case in cases if matches(case.name))


Matcher = Callable[[str], bool]


def _parse_expression(expression: str) -> Matcher:
    tokens = expression.replace("(", " ( ").replace(")", " ) ").split()

    def fail() -> UsageError:
        return UsageError(
            f'-k "{expression}" cannot be read',
            help="join parts of case names by and, or, not and parentheses",
        )

    def take_or() -> Matcher:
        left = take_and()
        while tokens and tokens[0] == "or":
            tokens.pop(0)
            left = _either(left, take_and())
        return left

    def take_and() -> Matcher:
        left = take_not()
        while tokens and tokens[0] == "and":
            tokens.pop(0)
            left = _both(left, take_not())
        return left

    def take_not() -> Matcher:
        if not tokens:
            raise fail()
        token = tokens.pop(0)
        if token == "not":
            inner = take_not()
            return lambda name: not inner(name)
        if token == "(":
            inner = take_or()
            if not tokens or tokens.pop(0) != ")":
                raise fail()
            return inner
        if token in ("and", "or", ")"):
            raise fail()
        return lambda name: token.lower() in name.lower()

    matcher = take_or()
    if tokens:
        raise fail()
    return matcher


def _either(left: Matcher, right: Matcher) -> Matcher:
    return lambda name: left(name) or right(name)


def _both(left: Matcher, right: Matcher) -> Matcher:
    return lambda name: left(name) and right(name)
