"""Graphs from Python: functions traced over values that stand for tensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from opkit.dtypes import dtype_names, find_dtype
from opkit.errors import OpkitError, UsageError

from ..ir import (
    MISTAKES,
    Attribute,
    Dimension,
    Graph,
    GraphError,
    Location,
    Node,
    Operand,
    Shape,
    Tensor,
    Value,
    allowance,
    as_bool,
    charge,
    checked_settings,
    here,
    is_one,
    raised_at,
    shape_text,
    wrapped,
)
from ..ops import OPERATORS

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["GraphBuilder", "TensorSpec", "trace"]

_SITE = ("opkit/compiler", "opkit/pypto")


@dataclass(frozen=True)
class TensorSpec:
    """An input of a program to be traced."""

    name: str
    shape: Shape
    dtype: str = "float32"


class GraphBuilder:
    """Collects the nodes of one graph.

    `x = builder.input("x", (64, 4096), "float16")`; then either Python's operators on what it
    returns, or `builder.apply("maximum", x, 0.0)`; `builder.output("y", y)`; `builder.graph()`.
    """

    def __init__(self, name: str = "program") -> None:
        self.name = name
        self._inputs: list[Tensor] = []
        self._attributes: list[Attribute] = []
        self._nodes: list[Node] = []
        self._outputs: list[tuple[str, str]] = []
        self._known: dict[tuple[object, ...], Value] = {}
        self._names: set[str] = set()
        self._location: Location | None = None

    def input(self, name: str, shape: Iterable[Dimension], dtype: str = "float32") -> Value:
        """Declare an input tensor.

        Raises:
            GraphError: the name is taken, or there is no such data type.
        """
        row = find_dtype(dtype)
        if row is None:
            raise GraphError(
                f'"{name}" has the data type "{dtype}", which does not exist',
                location=here(),
                help=f"there are {', '.join(dtype_names()[:13])}",
            )
        tensor = Tensor(self._new_name(name), tuple(shape), row.name)
        self._inputs.append(tensor)
        return Value(self, tensor)

    def attribute(
        self, name: str, kind: str = "float", default: float | int | bool | None = None
    ) -> Value:
        """Declare a number that comes with every launch; a tensor of rank 0 to the program."""
        self._attributes.append(Attribute(self._new_name(name), kind, default))
        dtype = {"float": "float32", "int": "int32", "bool": "bool"}[kind]
        return self._node("attribute", (), (), dtype, (("name", name),))

    def constant(self, value: float | int | bool, dtype: str | None = None) -> Value:
        """Return a number as a tensor of rank 0."""
        if dtype is None:
            dtype = "bool" if isinstance(value, bool) else "int32"
            dtype = "float32" if isinstance(value, float) else dtype
        return self._node("constant", (), (), dtype, (("value", value),))

    def fixed(self, name: str) -> int | None:
        """Return the default of an attribute of whole numbers for which the program is made from
        now on; None where there is none."""
        for at, each in enumerate(self._attributes):
            if each.name == name and each.kind == "int" and each.default is not None:
                self._attributes[at] = replace(each, is_fixed=True)
                return int(each.default)
        return None

    def extent(self, value: Dimension) -> Value:
        """Return a size, which may be known at launch only, as a tensor of rank 0."""
        if isinstance(value, int):
            return self.constant(float(value))
        return self._node("extent", (), (), "float32", (("extent", value),))

    def apply(self, operator: str, *operands: Operand, **attributes: object) -> Value:
        """Return one operator's result.

        Raises:
            GraphError: no such operator, or it does not take these operands; at the user's line.
        """
        row = OPERATORS.get(operator)
        location = self._location or here()
        if row is not None and row.arity is None and len(operands) == 1:
            # A list of tensors is as good as one tensor after another.
            operands = tuple(operands[0]) if isinstance(operands[0], list | tuple) else operands
        if row is None:
            import difflib

            near = difflib.get_close_matches(operator, OPERATORS, n=3)
            raise GraphError(
                f'there is no operator "{operator}"',
                location=location,
                help=f"did you mean {' or '.join(near)}?" if near else None,
            )
        if row.arity is not None and len(operands) != row.arity:
            raise GraphError(
                f'"{operator}" takes {row.arity} tensors, not {len(operands)}', location=location
            )
        values = self._operands(operands, location, compares=row.dtype is as_bool)
        tensors = [value.tensor for value in values]
        try:
            rank = len(tensors[0].shape) if tensors else 0
            full = checked_settings(row, attributes, rank)
            shape = row.shape(tensors, full)
            dtype = row.dtype(tensors, full)
        except GraphError:
            raise
        except UsageError as err:
            raise GraphError(
                f"{operator}: {err.message}", location=location, help=err.help
            ) from err
        if row.kind == "movement" and row.arity is None:
            # What is put side by side lies there in one type.
            values = [v if v.dtype == dtype else v.astype(dtype) for v in values]
        names = tuple(value.tensor.name for value in values)
        kept = tuple((key, _frozen(value)) for key, value in sorted(full.items()))
        return self._node(operator, names, shape, dtype, kept, location)

    @property
    def location(self) -> Location | None:
        """The line that what is applied now gets."""
        return self._location or here()

    @property
    def nodes(self) -> Sequence[Node]:
        """What was applied so far."""
        return self._nodes

    def value(self, name: str) -> Value:
        """Return a tensor that this builder knows, by name."""
        tensors = (*self._inputs, *(node.output for node in self._nodes))
        return Value(self, next(tensor for tensor in tensors if tensor.name == name))

    def output(self, name: str, value: Value) -> None:
        """Declare an output.

        Raises:
            GraphError: the name is another output's.
        """
        if any(name == other for other, _ in self._outputs):
            raise GraphError(f'there are two outputs "{name}"', location=here())
        self._outputs.append((name, value.tensor.name))

    def graph(self) -> Graph:
        """Return the graph of what was applied so far; nodes that no output needs are left out.

        Raises:
            GraphError: there is no output.
        """
        if not self._outputs:
            raise GraphError(f'"{self.name}" writes no output', location=here())
        whole = Graph(
            self.name,
            tuple(self._inputs),
            tuple(self._nodes),
            tuple(self._outputs),
            tuple(self._attributes),
        )
        return Graph(
            self.name, whole.inputs, tuple(whole.live_nodes()), whole.outputs, whole.attributes
        )

    @contextmanager
    def at(self, location: Location | None) -> Iterator[None]:
        """Give what is applied inside of the block this line."""
        before, self._location = self._location, location
        try:
            yield
        finally:
            self._location = before

    def _operands(
        self, operands: Sequence[Operand], location: Location | None, *, compares: bool
    ) -> list[Value]:
        tensors = [each.tensor for each in operands if isinstance(each, Value)]
        weak = _weak_dtype(tensors)
        values = []
        for each in operands:
            if isinstance(each, Value):
                if each.builder is not self:
                    raise GraphError(
                        f'"{each.tensor.name}" belongs to another program', location=location
                    )
                values.append(each)
            elif isinstance(each, bool | int | float):
                dtype = weak
                if isinstance(each, float) and weak is not None and not _is_float(weak):
                    dtype = "float32"
                elif weak is not None and not math.isnan(each) and wrapped(weak, each) != each:
                    if not compares:
                        raise GraphError(
                            f"{each} is no {weak}",
                            location=location,
                            help="cast the tensor to a type that holds it",
                        )
                    dtype = "int32" if wrapped("int32", each) == each else "int64"
                values.append(self.constant(each, dtype))
            else:
                raise GraphError(
                    f"{type(each).__name__} is no tensor and no number",
                    location=location,
                    help="pass inputs of the program, results of operators, or Python numbers",
                )
        return values

    def _node(
        self,
        operator: str,
        inputs: tuple[str, ...],
        shape: Shape,
        dtype: str,
        attributes: tuple[tuple[str, object], ...],
        location: Location | None = None,
    ) -> Value:
        charge(location or self._location)
        key = (operator, inputs, dtype, repr(attributes), shape)
        if operator != "random" and key in self._known:
            return self._known[key]
        name = self._new_name(f"t{len(self._nodes)}")
        tensor = Tensor(name, shape, dtype, is_constant=operator == "constant")
        self._nodes.append(
            Node(operator, inputs, tensor, attributes, location or self._location or here())
        )
        value = Value(self, tensor)
        self._known[key] = value
        return value

    def _new_name(self, wanted: str) -> str:
        name, count = wanted, 1
        while name in self._names:
            name, count = f"{wanted}_{count}", count + 1
        if name != wanted and not wanted.startswith("t"):
            raise GraphError(f'there are two inputs "{wanted}"', location=here())
        self._names.add(name)
        return name


def _frozen(value: object) -> object:
    return tuple(_frozen(each) for each in value) if isinstance(value, list | tuple) else value


def _is_float(dtype: str) -> bool:
    return "float" in dtype


def _weak_dtype(tensors: Sequence[Tensor]) -> str | None:
    """Return the type that Python's numbers take beside these tensors."""
    for tensor in tensors:
        if _is_float(tensor.dtype):
            return tensor.dtype
    for tensor in tensors:
        if tensor.dtype != "bool":
            return tensor.dtype
    return None


@allowance()
def trace(
    function: Callable[..., object],
    inputs: Sequence[TensorSpec | Sequence[TensorSpec]],
    *,
    name: str | None = None,
    attributes: Sequence[Attribute] = (),
) -> Graph:
    """Return the graph of a Python function, called once with values that stand for its tensors.

    Args:
        function: takes the inputs, then the attributes; returns one value, a tuple, or a dict of
            names to values.
        inputs: the tensors; a list of them is one argument.
        name: the kernel's name; the function's own without one.

    Raises:
        GraphError: the function does what cannot be traced; at the user's line.
    """
    builder = GraphBuilder(name or _kernel_name(function))
    values: list[object] = [
        _declared(builder, spec)
        if isinstance(spec, TensorSpec)
        else [_declared(builder, each) for each in spec]
        for spec in inputs
    ]
    values += [builder.attribute(a.name, a.kind, a.default) for a in attributes]
    code = getattr(function, "__code__", None)
    place = Location(code.co_filename, code.co_firstlineno) if code is not None else None
    try:
        result = function(*values)
    except OpkitError:
        raise
    except MISTAKES as err:
        line = raised_at(err, place.file if place is not None else None)
        if line is None:
            raise
        # Calls of another program's functions, such as NumPy's, end outside of the user's file.
        line = line if place is None or line.file == place.file else place
        raise GraphError(
            f"{builder.name} cannot be traced: {err}", location=line, help=_advice(err)
        ) from err
    named: list[tuple[str, object]]
    if isinstance(result, dict):
        named = [(str(key), value) for key, value in result.items()]
    elif isinstance(result, tuple | list):
        named = [(f"y{index}", value) for index, value in enumerate(result)]
    else:
        named = [("y", result)]
    for key, value in named:
        if not isinstance(value, Value):
            raise GraphError(
                f'"{builder.name}" returns {type(value).__name__} as "{key}", expected a tensor',
                location=place,
                help="return what operators give",
            )
        builder.output(key, value)
    return builder.graph()


def _advice(error: BaseException) -> str | None:
    """Return what to do where a value lacks an attribute: most operators are no methods."""
    if not isinstance(error, AttributeError) or not isinstance(error.obj, Value):
        return None
    if error.name in OPERATORS:
        return f'operators are applied by name: x.apply("{error.name}")'
    return "values have shape, dtype, ndim, T, apply, astype, reshape, transpose, sum, mean, max"


def _declared(builder: GraphBuilder, spec: TensorSpec) -> Value:
    return builder.input(spec.name, spec.shape, spec.dtype)


def _kernel_name(function: Callable[..., object]) -> str:
    """Return the function's name, as C++ takes it; a lambda has none."""
    name = getattr(function, "__name__", "program")
    return name if name.isidentifier() else "program"


def describe(value: Value) -> str:
    """Return a value's type for messages."""
    return f"{value.dtype}{shape_text(value.shape)}"


def broadcasts(value: Value, axis: int) -> bool:
    """Return whether a value is the same along an axis of a wider one, counted from the last."""
    return -axis > value.ndim or is_one(value.shape[axis])
