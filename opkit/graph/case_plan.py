"""Goldens of torch to plans: what kernels do for one case, with nothing left to torch."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from functorch.compile import make_boxed_func
from torch import fx
from torch._dynamo.backends.common import aot_autograd

from opkit.chips import Chip
from opkit.compiler import MISTAKES
from opkit.errors import OpkitError, UsageError
from opkit.graph.attention import keep_attention_whole
from opkit.graph.backend import traced_decompositions
from opkit.graph.doubles import narrow_doubles
from opkit.graph.folding import fold
from opkit.graph.plan import Plan
from opkit.graph.planning import plan_of
from opkit.graph.translation import translate
from opkit.testing import Case

__all__ = ["CasePlan", "TensorOfCase", "plan_of_case"]

_FRAME = re.compile(r'File "([^"]+)", line (\d+)')


@dataclass(frozen=True)
class TensorOfCase:
    """An input or result as the golden takes or gives it."""

    shape: tuple[int, ...]
    dtype: str
    """As torch names it."""

    @property
    def elements(self) -> int:
        """How many there are."""
        return math.prod(self.shape)


@dataclass(frozen=True)
class CasePlan:
    """What kernels do for one case."""

    case: Case
    plan: Plan
    inputs: tuple[TensorOfCase | None, ...]
    """Inputs of the golden in the prototype's order, lists taken apart; None: absent."""
    list_lengths: tuple[int | None, ...]
    """How many tensors each of the prototype's inputs is as a list; None: it is no list."""
    outputs: tuple[TensorOfCase, ...]
    """In the order in which the golden returns them."""
    is_sequence: bool
    """It returns a list or tuple, even of one."""
    read: tuple[int | np.ndarray[Any, Any], ...]
    """What each input of the plan is: the number of the golden's input, or values that are always
    the same."""
    written: tuple[int, ...]
    """Which output of the plan each of the golden's results is."""
    constants: tuple[np.ndarray[Any, Any], ...]
    """Values of the plan's constants."""


def plan_of_case(
    golden: Callable[..., Any],
    case: Case,
    chip: Chip,
    list_shapes: Mapping[str, Sequence[tuple[int, ...]]] | None = None,
) -> CasePlan:
    """Return what kernels do for a case; nothing is computed, and no kernel is compiled.

    Args:
        list_shapes: by the input's name, the shapes of a list of tensors; as the case says where
            it has none.
    Raises:
        OpkitError: an operator of the golden has no kernel, or the golden depends on values; at
            the golden's line.
    """
    tensors: list[torch.Tensor | None] = []
    lengths: list[int | None] = []
    given: dict[str, Any] = {}
    for name, dtype, shape in zip(case.input_names, case.dtypes, case.shapes, strict=False):
        shapes = (list_shapes or {}).get(name, (shape,) * (2 if name in case.lists else 1))
        # Nobody reads them: pages that are never touched take no memory.
        made = [
            None if each is None else torch.empty(each, dtype=getattr(torch, dtype.name))
            for each in shapes
        ]
        tensors += made
        lengths.append(len(made) if name in case.lists else None)
        given[name] = made if name in case.lists else made[0]
    given |= {name: list(v) if isinstance(v, tuple) else v for name, v in case.attrs}
    captured = _captured(golden, given)
    return _planned(captured, case, chip, tensors, lengths)


@dataclass
class _Captured:
    """The one graph of a golden, and what stands for its inputs and results."""

    module: Any = None
    given: tuple[int, ...] = ()
    """Addresses of the inputs."""
    made: tuple[Any, ...] = ()
    """Tensors in the place of the graph's results."""
    returned: Any = None
    """What the golden returns."""


def _captured(golden: Callable[..., Any], given: dict[str, Any]) -> _Captured:
    """Return a golden's graph, and what the golden returns of it."""
    found = _Captured()

    def take(module: Any, _: Sequence[Any]) -> Callable[..., Any]:
        def stand_in(*tensors: Any) -> Any:
            found.given = tuple(t.data_ptr() for t in tensors if isinstance(t, torch.Tensor))
            (end,) = (node for node in module.graph.nodes if node.op == "output")
            found.made = tuple(
                torch.empty(tuple(node.meta["val"].shape), dtype=node.meta["val"].dtype)
                for node in end.args[0]
            )
            return found.made

        found.module = module
        return make_boxed_func(stand_in)  # type: ignore[no-any-return]

    whole = aot_autograd(
        fw_compiler=take, inference_compiler=take, decompositions=traced_decompositions()
    )

    def backend(module: fx.GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        with keep_attention_whole(module):
            return whole(module, example_inputs)

    torch._dynamo.reset()
    try:
        with torch.no_grad():
            traced = torch.compile(golden, backend=backend, fullgraph=True, dynamic=False)
            found.returned = traced(**given)
    except OpkitError:
        raise
    except MISTAKES as err:
        raise _untraceable(golden, err) from err
    if found.module is None:
        raise UsageError(f"{_place_of(golden)}: the golden computes nothing with its tensors")
    return found


def _place_of(golden: Callable[..., Any]) -> str:
    return golden.__code__.co_filename


def _untraceable(golden: Callable[..., Any], err: Exception) -> UsageError:
    text = str(err).strip()
    first = text.splitlines()[0] if text else type(err).__name__
    lines = [number for file, number in _FRAME.findall(text) if file == _place_of(golden)]
    where = f"{_place_of(golden)}:{lines[-1]}" if lines else _place_of(golden)
    return UsageError(f"{where}: torch cannot trace the golden: {first}")


def _planned(
    captured: _Captured,
    case: Case,
    chip: Chip,
    tensors: Sequence[torch.Tensor | None],
    lengths: Sequence[int | None],
) -> CasePlan:
    module, is_sequence = captured.module, isinstance(captured.returned, tuple | list)
    results = captured.returned if is_sequence else [captured.returned]
    addresses = {t.data_ptr(): at for at, t in enumerate(tensors) if t is not None}
    (end,) = (node for node in module.graph.nodes if node.op == "output")
    narrow_doubles(module)
    fold(module)
    module.graph.eliminate_dead_code()
    (end,) = (node for node in module.graph.nodes if node.op == "output")
    returned = list(end.args[0])
    made = {tensor.data_ptr(): at for at, tensor in enumerate(captured.made)}
    written = []
    for result in results:
        if not isinstance(result, torch.Tensor):
            raise UsageError(f"{case.name}: the golden returns {type(result).__name__}")
        at = made.get(result.data_ptr())
        if at is None or tuple(result.shape) != tuple(captured.made[at].shape):
            raise UsageError(f"{case.name}: the golden returns an input, or a view of one")
        written.append(at)
    places = dict(
        zip(
            (node for node in module.graph.nodes if node.op == "placeholder"),
            (addresses.get(address) for address in captured.given),
            strict=True,
        )
    )
    nodes = [node for node in module.graph.nodes if node.op == "call_function"]
    translation = translate(nodes, returned, "golden", takes_int64=True)
    plan = plan_of(translation.graph, chip, tuple(translation.constants), translation.triangles)
    if plan.draws:
        raise UsageError(f"{case.name}: the golden draws random numbers")
    read: list[int | np.ndarray[Any, Any]] = []
    for node in translation.inputs:
        place = places.get(node)
        read.append(place if place is not None else _array(getattr(module, str(node.target))))
    return CasePlan(
        case,
        plan,
        tuple(None if tensor is None else _of_case(tensor) for tensor in tensors),
        tuple(lengths),
        tuple(map(_of_case, results)),
        is_sequence,
        tuple(read),
        tuple(written),
        tuple(np.asarray(translation.constants[t.name], order="C") for t in plan.constants),
    )


def _of_case(tensor: Any) -> TensorOfCase:
    return TensorOfCase(tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."))


def _array(tensor: Any) -> np.ndarray[Any, Any]:
    """Return a tensor's bytes; NumPy has no bfloat16."""
    return np.asarray(tensor.detach().cpu().reshape(-1).view(torch.uint8).numpy())
