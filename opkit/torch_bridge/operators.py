"""Generated operators in torch: fake kernels, gradients, vmap, autocast, and modules.

A project's `_torch.py` describes its operators; this registers them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

__all__ = [
    "Gradient",
    "Operator",
    "OperatorModule",
    "maximum",
    "minimum",
    "register_operators",
]

Shapes = Callable[[Sequence[Any], Mapping[str, Any]], Sequence[Any]]


@dataclass(frozen=True)
class Gradient:
    """How an operator's backward operator is called."""

    operator: str
    """Its name."""
    inputs: tuple[str, ...]
    """`grad_<output>`, and the names of forward inputs and outputs."""
    attributes: tuple[str, ...]
    """Those of the forward operator that it takes."""
    outputs: tuple[str, ...]
    """`grad_<input>` each."""
    formula: Callable[..., tuple[torch.Tensor, ...]] | None = None
    """Its outputs by torch's own operators, from inputs and attributes: what second and higher
    derivatives are taken of."""


@dataclass(frozen=True)
class Operator:
    """One operator of a project's torch library."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: tuple[str, ...]
    dtypes: tuple[tuple[str, ...], ...]
    """For each supported combination, the types of inputs, then of outputs."""
    shapes: Shapes
    """The shapes of the outputs, from the inputs and the attributes by name; of a list output, a
    list of them. Raises where the kernel refuses the inputs' shapes."""
    row_inputs: frozenset[str] = frozenset()
    """Inputs with one value per row."""
    works_by_row: bool = False
    """The last axis is more than one of many."""
    maps: bool = False
    """torch.vmap may run it once for all: a formula says what each element depends on."""
    gradient: Gradient | None = None
    missing_gradients: Mapping[str, str] = field(default_factory=dict)
    """Inputs that no backward operator gives a gradient for, and why."""

    def result_dtypes(self, inputs: Sequence[Any]) -> tuple[torch.dtype, ...]:
        """Return the types of the outputs; an optional input left out takes what others allow.

        Raises:
            TypeError: there is no kernel for the inputs' types.
        """
        given = [_dtype(value) for value in inputs]
        count = len(self.inputs)
        for row in self.dtypes:
            types = [_TYPES[name] for name in row]
            if all(have in (None, want) for have, want in zip(given, types[:count], strict=True)):
                return tuple(types[count:])
        known = "; ".join(", ".join(row[:count]) for row in self.dtypes)
        raise TypeError(
            f"{self.name} has no kernel for {', '.join(map(str, given))}; it takes {known}"
        )

    @property
    def mixes_no_floats(self) -> bool:
        """Whether all floating inputs have one type in each combination, and there are some."""
        floating = [set(self._floating(row)) for row in self.dtypes]
        return all(len(names) <= 1 for names in floating) and any(floating)

    def floating_types(self) -> list[torch.dtype]:
        """Return the floating types that it takes."""
        return list(dict.fromkeys(_TYPES[n] for row in self.dtypes for n in self._floating(row)))

    def _floating(self, row: tuple[str, ...]) -> list[str]:
        return [name for name in row[: len(self.inputs)] if _TYPES[name].is_floating_point]


_TYPES = {
    name: getattr(torch, name)
    for name in (
        *("float16", "float32", "bfloat16", "float64", "bool"),
        *("int8", "uint8", "int16", "int32", "int64"),
        *("uint16", "uint32", "uint64"),
    )
}

# Registrations last as long as their libraries.
_libraries: dict[str, Any] = {}

# torch annotates neither of these.
_ops: Any = torch.ops
# What torch.library's own Python uses, under no public name; without them its public functions do.
_below_autograd: Any = getattr(torch._C, "_AutoDispatchBelowAutograd", None)
_any_requires_grad: Any = getattr(torch._C, "_any_requires_grad", None)
_new_library: Callable[..., Any] = torch.library.Library
_broadcast_shapes: Callable[..., Sequence[int]] = torch.broadcast_shapes


def register_operators(project: str, artifact: Path, operators: Sequence[Operator]) -> Any:
    """Load a project's torch library, register what its operators need, and return `torch.ops`'
    namespace of them.

    Raises:
        ImportError: there is no `_torch.so`.
    """
    path = artifact / "_torch.so"
    if not path.is_file():
        raise ImportError(
            f'{path} does not exist: install torch, then run "opkit build" in the project'
        )
    _ops.load_library(str(path))
    namespace = getattr(_ops, project)
    _libraries[project] = _new_library(project, "FRAGMENT")
    differentiated = {o.gradient.operator for o in operators if o.gradient and o.gradient.formula}
    for operator in operators:
        qualified = f"{project}::{operator.name}"
        call = getattr(namespace, operator.name)
        defaults = _attribute_defaults(operator, call.default._schema)
        torch.library.register_fake(qualified, _fake(operator, defaults))
        if operator.maps:
            torch.library.register_vmap(qualified, _vmap(operator, call))
        if operator.mixes_no_floats:
            _libraries[project].impl(operator.name, _autocast(operator, call), "AutocastCPU")
        if operator.gradient is None:
            if operator.missing_gradients and operator.name not in differentiated:
                _register_no_gradient(qualified, operator)
        else:
            backward = getattr(namespace, operator.gradient.operator)
            _register_gradient(qualified, operator, call.default, backward.default)
            if operator.gradient.formula is not None:
                _register_derivative(
                    f"{project}::{operator.gradient.operator}", operator.gradient, backward.default
                )
    return namespace


class OperatorModule(torch.nn.Module):
    """An operator as a module; its attributes are given once."""

    operator: Any
    """The registered operator of the subclass."""

    def __init__(self, attributes: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        self._names = tuple(attributes or ())
        self._values = tuple((attributes or {}).values())

    def __getattr__(self, name: str) -> Any:
        # Only what torch.nn.Module itself does not have, so `forward` stays a method.
        names = self.__dict__.get("_names", ())
        if name in names:
            return self._values[names.index(name)]
        return super().__getattr__(name)

    def extra_repr(self) -> str:
        """Return the attributes, for `print(module)`."""
        return ", ".join(f"{n}={v!r}" for n, v in zip(self._names, self._values, strict=True))

    def _run(self, *inputs: Any) -> Any:
        return type(self).operator(*inputs, *self._values)


def _tensors(value: Any) -> list[torch.Tensor]:
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _has_lists(call: Any) -> bool:
    """Whether a registered operator takes or gives lists of tensors."""
    schema = call._schema
    types = [str(argument.type) for argument in (*schema.arguments, *schema.returns)]
    return any("List[Tensor]" in text or "List[Optional[Tensor]]" in text for text in types)


def _each(function: Callable[..., Any], value: Any, *others: Any) -> Any:
    """Return what a function gives for a tensor, or for each of a list."""
    if isinstance(value, (list, tuple)):
        return [function(*each) for each in zip(value, *others, strict=True)]
    return function(value, *others)


def _save_lists(ctx: Any, values: Sequence[Any]) -> None:
    """Save tensors and lists of tensors, which autograd saves one by one."""
    ctx.opkit_lengths = [len(v) if isinstance(v, (list, tuple)) else None for v in values]
    flat = [t for v in values for t in (v if isinstance(v, (list, tuple)) else [v])]
    ctx.save_for_backward(*flat)


def _saved_lists(ctx: Any) -> list[Any]:
    tensors = iter(ctx.saved_tensors)
    return [
        next(tensors) if length is None else [next(tensors) for _ in range(length)]
        for length in ctx.opkit_lengths
    ]


def _dtype(value: Any) -> torch.dtype | None:
    return next((tensor.dtype for tensor in _tensors(value)), None)


def _attribute_defaults(operator: Operator, schema: Any) -> tuple[Any, ...]:
    """Return the attributes' defaults of a registered operator, None for one that has none."""
    return tuple(argument.default_value for argument in schema.arguments[len(operator.inputs) :])


def _split(
    operator: Operator, args: Sequence[Any], defaults: Sequence[Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the inputs, and the attributes by name; torch leaves trailing defaults out."""
    count = len(operator.inputs)
    inputs = (*args[:count], *(None,) * (count - len(args)))
    given = args[count:]
    values = (*given, *defaults[len(given) :])
    return inputs, dict(zip(operator.attributes, values, strict=True))


def _fake(operator: Operator, defaults: Sequence[Any]) -> Callable[..., Any]:
    def fake(*args: Any) -> Any:
        inputs, attributes = _split(operator, args, defaults)
        dtypes = operator.result_dtypes(inputs)
        given = next((tensor for value in inputs for tensor in _tensors(value)), None)
        device = torch.device("cpu") if given is None else given.device

        def empty(shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
            return torch.empty(tuple(shape), dtype=dtype, device=device)

        results = [
            [empty(each, dtype) for each in shape]
            if isinstance(shape, list) and (not shape or isinstance(shape[0], (tuple, torch.Size)))
            else empty(shape, dtype)
            for shape, dtype in zip(operator.shapes(inputs, attributes), dtypes, strict=True)
        ]
        return results[0] if len(results) == 1 else tuple(results)

    return fake


def _register_gradient(
    qualified: str, operator: Operator, call: Any, backward_operator: Any
) -> None:
    gradient = operator.gradient
    assert gradient is not None
    count, outputs = len(operator.inputs), len(operator.outputs)
    read = [i for i, name in enumerate(operator.outputs) if name in gradient.inputs]
    saved_names = (*operator.inputs, *(operator.outputs[i] for i in read))
    # What the backward operator takes: the gradients first, then what was saved.
    known = [*(f"grad_{name}" for name in operator.outputs), *saved_names]
    takes = [known.index(name) for name in gradient.inputs]
    attributes = [operator.attributes.index(name) for name in gradient.attributes]
    gives = [
        gradient.outputs.index(f"grad_{name}") if f"grad_{name}" in gradient.outputs else None
        for name in operator.inputs
    ]
    nothing = (None,) * len(operator.attributes)

    has_lists = _has_lists(call)

    def save(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.opkit_attributes = inputs[count:]
        results = (output[i] if isinstance(output, tuple) else output for i in read)
        if has_lists:
            _save_lists(ctx, [*inputs[:count], *results])
        else:
            ctx.save_for_backward(*inputs[:count], *results)

    def backward(ctx: Any, *gradients: Any) -> Any:
        if operator.missing_gradients:
            _refuse_missing(ctx, operator)
        saved = _saved_lists(ctx) if has_lists else ctx.saved_tensors
        if not any(tensor.numel() for value in gradients for tensor in _tensors(value)):
            # Rows of nothing: a sum over them is 0, and the backward kernel has none to take.
            zeros = [None if v is None else _each(torch.zeros_like, v) for v in saved[:count]]
            return (*zeros, *nothing)[: len(ctx.needs_input_grad)]
        given = [gradients[i] if i < outputs else saved[i - outputs] for i in takes]
        given += [ctx.opkit_attributes[i] for i in attributes]
        found = _run_backward(backward_operator, given)
        if not isinstance(found, (tuple, list)):
            found = (found,)
        wanted = [
            None if i is None or value is None else _each(_sum_to, found[i], value)
            for i, value in zip(gives, saved, strict=False)
        ]
        # torch leaves out attributes that have their default, and lists want as many results.
        return (*wanted, *nothing)[: len(ctx.needs_input_grad)]

    _register_autograd(qualified, call, save, backward)


def _register_autograd(
    qualified: str,
    call: Any,
    save: Callable[[Any, tuple[Any, ...], Any], None],
    backward: Callable[..., Any],
) -> None:
    """Do what torch.library.register_autograd does, in half of its time a call: no list of tensors
    to look into, no key set to carry along. `save` gets every argument, also what a call leaves to
    its default."""
    schema = call._schema
    if _has_lists(call) or _below_autograd is None or _any_requires_grad is None:
        torch.library.register_autograd(qualified, backward, setup_context=save)
        return
    is_enabled, requires_grad, below = torch.is_grad_enabled, _any_requires_grad, _below_autograd
    defaults = [argument.default_value for argument in schema.arguments]

    def forward(ctx: Any, *inputs: Any) -> Any:
        with below():
            result = call(*inputs)
        save(ctx, inputs, result)
        return result

    functions = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    name = qualified.replace("::", "_")
    apply = type(f"{name}_with_gradient", (torch.autograd.Function,), functions).apply  # type: ignore[attr-defined]

    def run(*inputs: Any) -> Any:
        if is_enabled() and requires_grad(*inputs):
            # The dispatcher leaves out what stands at the end and has its default value.
            return apply(*inputs, *defaults[len(inputs) :])
        with below():
            return call(*inputs)

    project, operator = qualified.split("::")
    _libraries[project].impl(operator, run, "Autograd")


def _run_backward(operator: Any, inputs: Sequence[Any]) -> Any:
    """Call a backward operator; past what would record its own gradient where none is wanted."""
    if _below_autograd is None or torch.is_grad_enabled():
        return operator(*inputs)
    with _below_autograd():
        return operator(*inputs)


def _refuse_missing(ctx: Any, operator: Operator) -> None:
    for name, reason in operator.missing_gradients.items():
        needed = ctx.needs_input_grad[operator.inputs.index(name)]
        if any(needed) if isinstance(needed, list) else needed:
            raise NotImplementedError(
                f"the gradient of {operator.name} for {name} is not supported: {reason}"
            )


def _register_no_gradient(qualified: str, operator: Operator) -> None:
    """Say that there is no gradient, where torch would give none without a word."""

    def backward(ctx: Any, *gradients: Any) -> Any:
        _refuse_missing(ctx, operator)
        return (None,) * (len(operator.inputs) + len(operator.attributes))

    torch.library.register_autograd(qualified, backward)


def _sum_to(gradient: torch.Tensor, tensor: torch.Tensor) -> torch.Tensor:
    """Return the gradient of an input that was broadcast: summed over the axes it was repeated
    along."""
    if gradient.shape == tensor.shape:
        return gradient
    if gradient.numel() == tensor.numel():
        # A value per row may have kept its last axis, and rows may be in another shape.
        return gradient.reshape(tensor.shape)
    return gradient.sum_to_size(tensor.shape)


def _register_derivative(qualified: str, gradient: Gradient, call: Any) -> None:
    """Let torch differentiate a backward operator: in float32, by its formulas."""
    formula = gradient.formula
    assert formula is not None
    count = len(gradient.inputs)

    def save(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.save_for_backward(*inputs[:count])
        ctx.opkit_attributes = inputs[count:]

    def backward(ctx: Any, *gradients: Any) -> Any:
        creates_graph = torch.is_grad_enabled()
        wanted = [i for i in range(count) if ctx.needs_input_grad[i]]
        inputs = ctx.saved_tensors
        with torch.enable_grad():
            results = formula(*(tensor.float() for tensor in inputs), *ctx.opkit_attributes)
            chosen = [
                (result, upstream.float())
                for result, upstream in zip(results, gradients, strict=True)
                if result.requires_grad
            ]
            found = torch.autograd.grad(
                [result for result, _ in chosen],
                [inputs[i] for i in wanted],
                [upstream for _, upstream in chosen],
                create_graph=creates_graph,
                allow_unused=True,
            )
        by_index = dict(zip(wanted, found, strict=True))
        return (*(by_index.get(i) for i in range(count)), *(None for _ in ctx.opkit_attributes))

    _register_autograd(qualified, call, save, backward)


def _vmap(operator: Operator, call: Any) -> Callable[..., Any]:
    """Return what runs an operator once for a batch: the batch axis becomes the first."""
    count = len(operator.inputs)
    rows = {i for i, name in enumerate(operator.inputs) if name in operator.row_inputs}
    tiles = [i for i in range(count) if i not in rows]

    def run(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> Any:
        tensors = [
            tensor if axis is None else tensor.movedim(axis, 0)
            for tensor, axis in zip(args[:count], in_dims, strict=False)
        ]
        own = [
            tuple(tensor.shape if axis is None else tensor.shape[1:])
            for tensor, axis in zip(tensors, in_dims, strict=False)
        ]
        whole = tuple(_broadcast_shapes(*(own[i] for i in tiles)))
        if operator.works_by_row and not whole:
            raise NotImplementedError(
                f"{operator.name} needs an axis of its own besides the one of vmap"
            )
        is_first_batched = in_dims[tiles[0]] is not None
        for i, axis in enumerate(in_dims[:count]):
            if i in rows:
                # One value per row, with or without a last axis of length 1.
                batch = 1 if axis is None else info.batch_size
                values = tensors[i].reshape(batch, *whole[:-1])
                tensors[i] = values.expand(info.batch_size, *whole[:-1])
                continue
            if axis is None and is_first_batched and own[i] == whole[-1:]:
                continue  # the last axis alone is broadcast by the kernel
            ones = (1,) * (len(whole) - len(own[i]))
            batch = 1 if axis is None else info.batch_size
            spread = tensors[i].reshape(batch, *ones, *own[i])
            tensors[i] = spread.expand(info.batch_size, *whole)
        result = call(*tensors, *args[count:])
        return result, (0,) * len(result) if isinstance(result, tuple) else 0

    return run


def _autocast(operator: Operator, call: Any) -> Callable[..., Any]:
    """Return what gives an operator's floating inputs one type under torch.autocast.

    The widest of their types; where there is no kernel for that, float32 or what there is.
    """
    known = operator.floating_types()

    def run(*args: Any) -> Any:
        inputs, count = args[: len(operator.inputs)], len(operator.inputs)
        floating = [t.dtype for value in inputs for t in _tensors(value) if t.is_floating_point()]
        wanted: torch.dtype | None = None
        for dtype in floating:
            wanted = dtype if wanted is None else torch.promote_types(wanted, dtype)
        if wanted is not None and wanted not in known and wanted != torch.float64:
            wanted = torch.float32 if torch.float32 in known else known[0]

        def cast(value: Any) -> Any:
            if isinstance(value, (list, tuple)):
                return [cast(each) for each in value]
            return value.to(wanted) if value is not None and value.is_floating_point() else value

        with torch.autocast("cpu", enabled=False):
            return call(*(cast(value) for value in inputs), *args[count:])

    return run


def maximum(a: Any, b: Any) -> torch.Tensor:
    """Return the larger of two, either of which may be a number."""
    return torch.maximum(torch.as_tensor(a), torch.as_tensor(b))


def minimum(a: Any, b: Any) -> torch.Tensor:
    """Return the smaller of two, either of which may be a number."""
    return torch.minimum(torch.as_tensor(a), torch.as_tensor(b))
