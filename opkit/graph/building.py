"""A model of torch to a `Model`: everything in kernels, nothing left to torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from opkit.chips import find_chip
from opkit.errors import UsageError
from opkit.graph.aten import LARGEST
from opkit.graph.calibration import Quantisation
from opkit.graph.channels_last import channels_last, fold_norms
from opkit.graph.engine import Model, ModelInput
from opkit.graph.export import PRECISIONS, Exported, exported, with_fractions
from opkit.graph.planning import plan_of
from opkit.graph.quantising import quantised_products
from opkit.graph.running import compile_plan
from opkit.graph.scheduling import decide
from opkit.graph.segments import Support
from opkit.graph.translation import (
    DTYPES,
    Replacement,
    does_nothing,
    line_of,
    operator_name,
    translate,
)

__all__ = ["build"]

_PRECISIONS = {**PRECISIONS, "int8": torch.float16}
"""And what everything computes in that is no product of int8."""


def build(
    model: Any,
    example_inputs: Sequence[Any],
    *,
    precision: str = "float16",
    calibration: Sequence[Sequence[Any]] = (),
    quantisation: Quantisation | None = None,
    max_error: float | None = None,
    chip: str | None = None,
) -> Model:
    """Return a model of torch as kernels with their weights, for the shapes of some inputs.

    Args:
        model: a module, what `torch.export.export` returns, or a module of `torch.jit.trace`.
        example_inputs: tensors of the shapes that every run has.
        precision: `float32`, `float16`, `bfloat16`, `int8`: products with weights in int8, the rest
            in float16; or `auto`: for each operator what keeps to `max_error`, see `schedule`.
        calibration: inputs from which int8 takes its ranges, a tuple a run.
        quantisation: how int8 is done.
        max_error: for `auto`: the norm of what the results may differ by, over their norm.
        chip: the configured device's without one.
    Raises:
        UsageError: there is no such precision; calibration is missing; torch cannot export the
            model; or operators have no kernels, with their lines and the reasons.
    """
    if precision not in (*_PRECISIONS, "auto"):
        raise UsageError(
            f'there is no precision "{precision}"', help=f"there is {', '.join(_PRECISIONS)}, auto"
        )
    if precision not in ("int8", "auto") and (quantisation is not None or calibration):
        raise UsageError(f"{precision} takes no calibration", help='precision="int8" does')
    if (max_error is None) == (precision == "auto"):
        raise UsageError(
            f"precision={precision!r} takes {'a' if precision == 'auto' else 'no'} max_error",
            help='build(..., precision="auto", max_error=0.01)',
        )
    from opkit.runtime import configuration

    target = find_chip(chip or configuration().chip)
    replaced: Mapping[torch.fx.Node, Replacement] = {}
    wide: frozenset[torch.fx.Node] = frozenset()
    notes: list[dict[str, Any]] = []
    if max_error is not None:
        found = decide(
            model,
            example_inputs,
            calibration,
            max_error=max_error,
            chip=target,
            quantisation=quantisation or Quantisation(),
        )
        whole, replaced, wide = found.whole, found.replaced, found.wide
        notes = found.schedule.to_json()["decisions"]
        _check(whole, Support(target))
    else:
        dtype = _PRECISIONS[precision]
        whole = exported(model, example_inputs, dtype)
        _check(whole, Support(target))
        fold_norms(whole)
        replaced = channels_last(whole)
    if precision == "int8":
        batches = [[with_fractions(each, torch.float16) for each in batch] for batch in calibration]
        how = quantisation or Quantisation()
        rounded, notes = quantised_products(whole, batches, how)
        replaced = {**replaced, **rounded}
    translation = translate(whole.work(), whole.outputs, "model", replaced, wide)
    _check_inputs(translation, whole)
    values = dict(translation.constants)
    for tensor, node in zip(_input_names(translation), translation.inputs, strict=True):
        if node in whole.constants:
            values[tensor] = _array(whole.constants[node])
    plan = plan_of(translation.graph, target, tuple(values), translation.triangles)
    if plan.draws:
        raise UsageError("a model file draws no random numbers", help="model.eval() drops nothing")
    by_tensor = dict(zip(_input_names(translation), translation.inputs, strict=True))
    inputs = tuple(
        ModelInput(
            by_tensor[tensor.name].name,
            tensor.shape,
            tensor.dtype,
            abs(translation.narrowed.get(tensor.name, 0)),
        )
        for tensor in plan.inputs
    )
    return Model(
        target.name,
        precision,
        inputs,
        plan,
        tuple(compile_plan(plan, target)),
        tuple(np.asarray(values[tensor.name], order="C") for tensor in plan.constants),
        tuple(notes),
    )


def _check_inputs(translation: Any, whole: Exported) -> None:
    """Refuse inputs of 64 bits that are more than places: a model file has no torch for those that
    kernels do not hold."""
    for name, node in zip(_input_names(translation), translation.inputs, strict=True):
        is_wide = node.meta["val"].dtype == torch.int64 and name not in translation.narrowed
        if is_wide or (translation.limit < LARGEST and name in translation.limited):
            where = "a constant" if node in whole.constants else f"the input {node.name}"
            raise UsageError(
                f"the model computes with {where} as whole numbers of 64 bits",
                help="let it compute with int32, or with fractions",
            )


def _input_names(translation: Any) -> list[str]:
    return [f"x{index}" for index in range(len(translation.inputs))]


def _array(value: torch.Tensor) -> Any:
    if value.dtype == torch.bfloat16:
        return value.contiguous().view(torch.int16).numpy().view(np.uint16)
    if value.dtype == torch.int64:  # places, of which no table has more than 32 bits number
        value = value.to(torch.int32)
    return value.contiguous().numpy()


def _check(whole: Exported, support: Support) -> None:
    """Refuse a model of which torch would have to run a part."""
    wrong = []
    for node in whole.work():
        if does_nothing(node) or support.is_node_supported({}, node):
            continue
        reason = support.reasons[node.name]
        wrong.append(f"{line_of(node)}: {node.name} ({operator_name(node)}): {reason}")
    for node in whole.outputs:
        value = node.meta.get("val")
        if not isinstance(value, torch.Tensor) or value.dtype not in DTYPES:
            wrong.append(f"{line_of(node)}: the output {node.name} is no tensor that kernels hold")
    if wrong:
        more = f"\n  and {len(wrong) - 8} more" if len(wrong) > 8 else ""
        listed = "\n  ".join(wrong[:8])
        raise UsageError(
            f"a model file holds kernels only, and these have none:\n  {listed}{more}",
            help='torch.compile(model, backend="opkit") runs them with torch',
        )
