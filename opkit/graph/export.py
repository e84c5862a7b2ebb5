"""Models to graphs of ATen operators with their weights: what model files are made of."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx

from opkit.errors import UsageError
from opkit.graph.attention import keep_attention_whole
from opkit.graph.backend import decompositions
from opkit.graph.freezing import fixed
from opkit.graph.program import run_nodes
from opkit.graph.translation import DTYPES, is_view

__all__ = ["PRECISIONS", "Exported", "exported", "run", "with_fractions"]

PRECISIONS = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
"""Data types that a whole model's fractions may have."""


@dataclass
class Exported:
    """A model as a graph whose inputs are its own inputs and its weights."""

    graph: fx.Graph
    inputs: list[fx.Node]
    outputs: list[fx.Node]
    constants: dict[fx.Node, torch.Tensor] = field(default_factory=dict)
    """Weights, and everything that is computed from them alone."""

    def work(self) -> list[fx.Node]:
        """Return the nodes that a run computes, in order: those that depend on its inputs, and
        views of weights."""
        wanted: set[fx.Node] = set()
        stack = list(self.outputs)
        while stack:
            node = stack.pop()
            if node in wanted or node in self.constants or node.op != "call_function":
                continue
            wanted.add(node)
            stack += node.all_input_nodes
        return [node for node in self.graph.nodes if node in wanted]

    def constant(self, node: fx.Node) -> torch.Tensor | None:
        """Return a weight, or what is computed from weights alone; None for another node."""
        if node in self.constants:
            return self.constants[node]
        sources = node.all_input_nodes
        if node.op != "call_function" or not sources:
            return None
        values = {source: self.constant(source) for source in sources}
        if any(value is None for value in values.values()):
            return None
        assert callable(node.target)
        args = fx.map_arg(node.args, values.__getitem__)
        result = node.target(*args, **fx.map_arg(node.kwargs, values.__getitem__))
        return result if isinstance(result, torch.Tensor) else None


def exported(model: Any, inputs: Sequence[Any], dtype: torch.dtype) -> Exported:
    """Return a model's graph in torch's core operators, its fractions in one data type.

    Args:
        model: a module, what `torch.export.export` returns, which keeps its own data types, or a
            module of `torch.jit.trace`.
        inputs: tensors, of the shapes and kinds that a run will have.
    Raises:
        UsageError: torch cannot trace it, or a run changes the model.
    """
    given = tuple(with_fractions(each, dtype) for each in inputs)
    if isinstance(model, torch.export.ExportedProgram):
        return _from_program(model)
    if isinstance(model, torch.jit.ScriptModule):
        return _from_script(model, given, dtype)
    if not isinstance(model, torch.nn.Module):
        raise UsageError(f"the model is {type(model).__name__}, expected a torch.nn.Module")
    whole = fixed(copy.deepcopy(model)).to(dtype).eval()
    try:
        with torch.no_grad(), warnings.catch_warnings():
            # What torch warns of inside of its own exporter is not the user's.
            warnings.simplefilter("ignore", FutureWarning)
            program = torch.export.export(whole, given)
    except Exception as err:
        raise _untraceable(err) from err
    return _from_program(program)


def _untraceable(err: Exception) -> UsageError:
    first = str(err).strip().splitlines()[0] if str(err).strip() else type(err).__name__
    return UsageError(f"torch cannot export the model: {first}", help="see torch.export")


def with_fractions(value: Any, dtype: torch.dtype) -> torch.Tensor:
    """Return an input on the CPU, in this data type if it has fractions.

    Raises:
        UsageError: it is no tensor.
    """
    if isinstance(value, torch.Tensor):
        moved = value.detach().cpu()
        return moved.to(dtype) if moved.is_floating_point() else moved
    raise UsageError(f"an input is {type(value).__name__}, expected a tensor")


def _from_program(program: Any) -> Exported:
    with keep_attention_whole(program.graph_module), warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        program = program.run_decompositions(dict(decompositions()))
    signature = program.graph_signature
    names = {**signature.inputs_to_parameters, **signature.inputs_to_buffers}
    names |= dict(signature.inputs_to_lifted_tensor_constants)
    if signature.buffers_to_mutate or signature.user_inputs_to_mutate:
        changed = [*signature.buffers_to_mutate.values(), *signature.user_inputs_to_mutate.values()]
        raise UsageError(
            f'a run changes "{changed[0]}" of the model, and a model file holds only what stays',
            help="put the model into evaluation: model.eval()",
        )
    state = {**program.state_dict, **program.constants}
    found = Exported(program.graph_module.graph, [], [])
    for node in found.graph.nodes:
        if node.op == "placeholder" and node.name in names:
            found.constants[node] = _plain(state[names[node.name]])
        elif node.op == "placeholder":
            found.inputs.append(node)
    _finish(found, program.graph_module)
    return found


def _from_script(model: Any, inputs: tuple[Any, ...], dtype: torch.dtype) -> Exported:
    """Return the graph of a traced or scripted module, by tracing what it runs."""
    from torch.fx.experimental.proxy_tensor import make_fx

    whole = copy.deepcopy(model).to(dtype).eval()
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            functional = torch.func.functionalize(lambda *given: whole(*given))
            module = make_fx(
                functional, dict(decompositions()), tracing_mode="fake", _allow_non_fake_inputs=True
            )(*inputs)
    except Exception as err:
        raise _untraceable(err) from err
    found = Exported(module.graph, [], [])
    for node in found.graph.nodes:
        if node.op == "placeholder":
            found.inputs.append(node)
        elif node.op == "get_attr":
            tensor = _plain(getattr(module, str(node.target)))
            node.meta["val"] = tensor
            found.constants[node] = tensor
    _finish(found, module)
    return found


def _plain(value: torch.Tensor) -> torch.Tensor:
    return value.detach().cpu().contiguous()


def _finish(found: Exported, module: fx.GraphModule) -> None:
    """Find the outputs, and compute once what depends on weights alone."""
    (end,) = (node for node in found.graph.nodes if node.op == "output")
    fx.map_arg(end.args, found.outputs.append)
    if not found.outputs:
        raise UsageError("the model returns no tensor")
    values: dict[fx.Node, Any] = dict(found.constants)
    for node in found.graph.nodes:
        if node.op == "get_attr" and node not in values:
            values[node] = getattr(module, str(node.target))
            if isinstance(values[node], torch.Tensor):
                found.constants[node] = _plain(values[node])
        if node.op != "call_function" or any(n not in values for n in node.all_input_nodes):
            continue
        if torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()):
            continue
        with torch.no_grad():
            run_nodes([node], values)
        value = values[node]
        # Views of weights are read where the weights lie.
        keeps = is_view(node) and all(
            isinstance(values[n], torch.Tensor) and values[n].dtype in DTYPES
            for n in node.all_input_nodes
        )
        if isinstance(value, torch.Tensor) and not keeps:
            found.constants[node] = _plain(value)


def run(found: Exported, inputs: Sequence[Any], *, wide: bool = False) -> dict[fx.Node, Any]:
    """Return every node's value for some inputs, computed by torch; `wide`: with all fractions in
    float32, which CPUs compute many times as fast as halves."""
    values: dict[fx.Node, Any] = dict(found.constants)
    values |= dict(zip(found.inputs, inputs, strict=True))
    with torch.no_grad():
        if not wide:
            run_nodes(found.work(), values)
            return values
        values = {node: _widened(value) for node, value in values.items()}
        for node in found.work():
            run_nodes([node], values)
            values[node] = _widened(values[node])
    return values


def _widened(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return tuple(_widened(each) for each in value)
    is_half = isinstance(value, torch.Tensor) and value.dtype in (torch.float16, torch.bfloat16)
    return value.float() if is_half else value
