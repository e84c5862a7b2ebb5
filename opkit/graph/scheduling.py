"""Which precision each operator of a model computes in: errors from calibration runs, times from
the model of the chip, a bound on the whole model's error from the user."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import fx

from opkit.chips import Chip, find_chip
from opkit.compiler import Value
from opkit.errors import UsageError
from opkit.graph.aten import ROWS, Call
from opkit.graph.calibration import Quantisation
from opkit.graph.channels_last import channels_last, fold_norms
from opkit.graph.decisions import Decision, Option, Schedule
from opkit.graph.export import PRECISIONS, Exported, exported, with_fractions
from opkit.graph.precision_errors import PrecisionErrors
from opkit.graph.precision_times import PrecisionTimes
from opkit.graph.quantising import quantised_products, weight_of
from opkit.graph.translation import Replacement, does_nothing, is_view, line_of, operator_name

__all__ = ["Scheduled", "decide", "schedule"]


@dataclass(frozen=True)
class Scheduled:
    """A schedule, and what is needed to build the model that it describes."""

    schedule: Schedule
    base: str
    """The data type of what lies in memory behind operators that do not compute in float32."""
    whole: Exported
    """The model in that type."""
    replaced: Mapping[fx.Node, Replacement]
    wide: frozenset[fx.Node]
    """Those of them whose results lie in memory as float32."""


def schedule(
    model: Any,
    example_inputs: Sequence[Any],
    calibration: Sequence[Sequence[Any]],
    *,
    max_error: float,
    quantisation: Quantisation | None = None,
    chip: str | None = None,
) -> Schedule:
    """Return what `build(..., precision="auto", max_error=...)` would decide.

    Args:
        example_inputs: tensors of the shapes that every run has.
        calibration: inputs of the runs from which errors are taken, a tuple a run.
        max_error: the norm of what the results may differ by from float32, over their norm.
    Raises:
        UsageError: as `build`.
    """
    from opkit.runtime import configuration

    target = find_chip(chip or configuration().chip)
    how = quantisation or Quantisation()
    found = decide(
        model, example_inputs, calibration, max_error=max_error, chip=target, quantisation=how
    )
    return found.schedule


def decide(
    model: Any,
    example_inputs: Sequence[Any],
    calibration: Sequence[Sequence[Any]],
    *,
    max_error: float,
    chip: Chip,
    quantisation: Quantisation,
) -> Scheduled:
    """Decide for each operator.

    Results lie in memory as float16, or as bfloat16 or float32 where float16 cannot keep the bound.
    Operators whose error is too large compute in float32 and leave it in memory; products with
    weights compute in int8 where the model of the chip says that they gain, those that cost least
    precision for their gain first, as long as the whole stays within the bound.

    Raises:
        UsageError: the bound is no positive number, calibration is missing, or the model brings its
            own data types.
    """
    if not (math.isfinite(max_error) and max_error > 0):
        raise UsageError(f"max_error is {max_error}, expected a number above 0")
    if not calibration:
        raise UsageError(
            'precision="auto" needs calibration: inputs from which errors are taken',
            help="build(..., calibration=[(x,), ...])",
        )
    if isinstance(model, torch.export.ExportedProgram):
        raise UsageError(
            'precision="auto" changes data types, and an exported program keeps its own',
            help="give the module, or name a precision",
        )
    wholes = {name: exported(model, example_inputs, dtype) for name, dtype in PRECISIONS.items()}
    for whole in wholes.values():
        fold_norms(whole)
    work = PrecisionErrors(wholes["float32"], calibration, quantisation)
    times = PrecisionTimes(wholes, chip, calibration, quantisation)
    for base in ("float16", "bfloat16", "float32"):
        if len(wholes[base].work()) != len(wholes["float32"].work()):
            continue
        chosen = _chosen(work, times, base, max_error)
        if chosen is not None:
            break
    assert chosen is not None
    found = Schedule(
        tuple(_decision(work, times, node, chosen[node.name], base) for node in work.nodes),
        work.of_all(chosen, base),
        max_error,
    )
    whole = wholes[base]
    wide = _in_wide_memory(whole, chosen) if base != "float32" else []
    weights = {node.name: value for node, value in wholes["float32"].constants.items()}
    replaced = channels_last(whole)
    replaced |= {node: _in_float32(node, weights) for node in wide if not does_nothing(node)}
    replaced |= _in_int8(whole, chosen, base, calibration, quantisation)
    return Scheduled(found, base, whole, replaced, frozenset(wide))


def _chosen(
    work: PrecisionErrors, times: PrecisionTimes, base: str, max_error: float
) -> dict[str, str] | None:
    """Return what each node computes in; None where the base type alone is over the bound."""
    chosen = {node.name: base for node in work.nodes}
    worst = sorted(work.nodes, key=lambda node: -work.of(node, base))
    step = max(1, len(worst) // 16)
    while work.of_all(chosen, base) > max_error:
        if not worst or base == "float32":
            return None if base != "float32" else chosen
        for node in worst[:step]:
            chosen[node.name] = "float32"
        del worst[:step]
    if base == "float32":
        return chosen
    gains = []
    for node in work.products:
        before, after = times.of(node, chosen[node.name]), times.of(node, "int8")
        if before is not None and after is not None and after < before:
            gains.append((work.of(node, "int8") / (before - after), node))
    gains.sort(key=lambda pair: pair[0])
    left = [node for _, node in gains]
    # All that fit, by halving: each trial is a run of the whole model.
    while left:
        trial = chosen | {node.name: "int8" for node in left}
        if work.of_all(trial, base) <= max_error:
            return trial
        left = left[: len(left) // 2] if len(left) > 8 else left[:-1]
    return chosen


def _decision(
    work: PrecisionErrors, times: PrecisionTimes, node: fx.Node, compute: str, base: str
) -> Decision:
    kinds = ["float32", "bfloat16", "float16", *(["int8"] if node in work.products else [])]
    options = tuple(Option(kind, work.of(node, kind), times.of(node, kind)) for kind in kinds)
    place = str(line_of(node) or "")
    memory = "float32" if compute == "float32" else base
    return Decision(node.name, operator_name(node), place, compute, memory, options)


def _in_wide_memory(whole: Exported, chosen: Mapping[str, str]) -> list[fx.Node]:
    """Return the nodes that compute in float32, and the views of what they give."""
    found: list[fx.Node] = []
    for node in whole.work():
        is_part = is_view(node) or does_nothing(node)
        if chosen.get(node.name) == "float32" or (is_part and node.all_input_nodes[0] in found):
            found.append(node)
    return found


def _in_int8(
    whole: Exported,
    chosen: Mapping[str, str],
    base: str,
    calibration: Sequence[Sequence[Any]],
    how: Quantisation,
) -> dict[fx.Node, Replacement]:
    """Return what stands for the products of int8."""
    wanted = {name for name, kind in chosen.items() if kind == "int8"}
    if not wanted:
        return {}
    rest = tuple(
        n.name for n in whole.work() if weight_of(whole, n) is not None and n.name not in wanted
    )
    batches = [[with_fractions(each, PRECISIONS[base]) for each in batch] for batch in calibration]
    replaced, _ = quantised_products(whole, batches, replace(how, skip=rest))
    return replaced


def _in_float32(node: fx.Node, weights: Mapping[str, torch.Tensor]) -> Replacement:
    """Return the row of a node that computes in float32, with its weights as they were given."""
    row: Callable[..., Any] = ROWS[operator_name(node)]
    names = {
        index: source.name
        for index, source in enumerate(node.args)
        if isinstance(source, fx.Node) and source.name in weights
    }

    def wide(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return type(value)(wide(each) for each in value)
        is_half = isinstance(value, Value) and value.dtype in ("float16", "bfloat16")
        return value.astype("float32") if is_half else value

    def replaced(c: Call, *arguments: Any, **settings: Any) -> Any:
        given = [wide(each) for each in arguments]
        for index, name in names.items():
            if weights[name].is_floating_point():
                given[index] = c.constant(np.asarray(weights[name].float().numpy(), order="C"))
        dtypes = tuple("float32" if "float" in dtype else dtype for dtype in c.dtypes)
        inner = Call(c.builder, c.shapes, dtypes, c._constants)
        return row(inner, *given, **{key: wide(each) for key, each in settings.items()})

    return replaced
