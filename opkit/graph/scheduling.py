"""Which precision each operator of a model computes in: errors from calibration runs, times from
the model of the chip, a bound on the whole model's error from the user."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import fx

from opkit.chips import Chip, find_chip
from opkit.compiler import Value
from opkit.errors import OpkitError, UsageError
from opkit.graph.aten import ROWS, Call
from opkit.graph.explanation import launches_us
from opkit.graph.export import Exported, exported, run
from opkit.graph.program import CompiledSegment
from opkit.graph.quantising import (
    Quantisation,
    calibrated,
    quantised_products,
    rounded_weights,
    step_of,
    weight_of,
)
from opkit.graph.segments import alone
from opkit.graph.translation import (
    Replacement,
    does_nothing,
    is_view,
    line_of,
    operator_name,
    translate,
)

__all__ = ["Decision", "Option", "Schedule", "Scheduled", "decide", "schedule"]

_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
_LIMIT = 127


@dataclass(frozen=True)
class Option:
    """One way to compute an operator."""

    compute: str
    """`float32`, `bfloat16`, `float16` or `int8`."""
    error: float
    """Of the model's results if only this operator computes so: the norm of what differs, over
    the results' norm."""
    us: float | None
    """Modelled time of the operator alone; None where it has no kernel."""


@dataclass(frozen=True)
class Decision:
    """What was decided for one operator."""

    node: str
    operator: str
    location: str
    compute: str
    memory: str
    """What its result lies in memory as."""
    options: tuple[Option, ...]

    @property
    def chosen(self) -> Option:
        """The option that was taken."""
        return next(each for each in self.options if each.compute == self.compute)

    @property
    def gain(self) -> float | None:
        """Modelled time in float32 over the chosen one's, of the operator alone."""
        whole = next(each.us for each in self.options if each.compute == "float32")
        return whole / self.chosen.us if whole and self.chosen.us else None


@dataclass(frozen=True)
class Schedule:
    """Decisions for all operators; `print` it for a table, `to_json` for a document."""

    decisions: tuple[Decision, ...]
    error: float
    """Of the model with all decisions, in the calibration runs."""
    max_error: float

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        rows = []
        for each in self.decisions:
            row = asdict(each)
            row["options"] = [asdict(option) for option in each.options]
            rows.append({**row, "error": each.chosen.error, "gain": each.gain})
        return {"max_error": self.max_error, "error": self.error, "decisions": rows}

    def __str__(self) -> str:
        rows = [("operator", "line", "computes", "memory", "error", "us", "gain", "others")]
        for each in self.decisions:
            others = [_option_text(o) for o in each.options if o.compute != each.compute]
            name = each.operator.removeprefix("aten.").removesuffix(".default")
            taken = each.chosen
            rows.append(
                (
                    f"{each.node} ({name})",
                    each.location.rpartition("/")[2],
                    each.compute,
                    each.memory,
                    f"{taken.error:.1e}",
                    "" if taken.us is None else f"{taken.us:.1f}",
                    "" if each.gain is None else f"{each.gain:.2f}",
                    ", ".join(others),
                )
            )
        widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
        lines = ["  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)) for r in rows]
        lines = [line.rstrip() for line in lines]
        lines.append(f"error of the whole model {self.error:.2e}, at most {self.max_error:.2e}")
        return "\n".join(lines)


def _option_text(option: Option) -> str:
    us = "" if option.us is None else f" {option.us:.1f} us"
    return f"{option.compute} {option.error:.1e}{us}"


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
    wholes = {name: exported(model, example_inputs, dtype) for name, dtype in _DTYPES.items()}
    work = _Errors(wholes["float32"], calibration, quantisation)
    times = _Times(wholes, chip, calibration, quantisation)
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
    replaced = {node: _in_float32(node, weights) for node in wide if not does_nothing(node)}
    replaced |= _in_int8(whole, chosen, base, calibration, quantisation)
    return Scheduled(found, base, whole, replaced, frozenset(wide))


def _chosen(work: _Errors, times: _Times, base: str, max_error: float) -> dict[str, str] | None:
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


def _decision(work: _Errors, times: _Times, node: fx.Node, compute: str, base: str) -> Decision:
    kinds = ["float32", "bfloat16", "float16", *(["int8"] if node in work.products else [])]
    options = tuple(Option(kind, work.of(node, kind), times.of(node, kind)) for kind in kinds)
    place = str(line_of(node) or "")
    memory = "float32" if compute == "float32" else base
    return Decision(node.name, operator_name(node), place, compute, memory, options)


class _Errors:
    """Runs of a model in float32, with some operators rounded as kernels round."""

    def __init__(
        self, whole: Exported, calibration: Sequence[Sequence[Any]], how: Quantisation
    ) -> None:
        self.whole = whole
        batches = [[_as(each, torch.float32) for each in batch] for batch in calibration]
        self.runs = [run(whole, batch) for batch in batches]
        self.all = whole.work()
        self.nodes = [n for n in self.all if not is_view(n) and not does_nothing(n)]
        weights = {node: found for node in self.nodes if (found := weight_of(whole, node))}
        self.products = [node for node in weights if node.name not in how.skip]
        seen = calibrated(whole, self.products, batches)
        self._rounded: dict[fx.Node, tuple[torch.Tensor, float]] = {}
        for node, (values, _) in weights.items():
            levels, scales = rounded_weights(values.double().numpy(), how)
            matrix = torch.from_numpy((levels * scales).astype(np.float32))
            self._rounded[node] = (matrix, 0.0 if how.weight_only else step_of(seen[node], how))
        self._known: dict[tuple[str, str], float] = {}

    def of(self, node: fx.Node, kind: str) -> float:
        """Return the model's error where one operator alone computes in a kind."""
        key = (node.name, kind)
        if key not in self._known:
            self._known[key] = 0.0 if kind == "float32" else self._run({node.name: kind}, "float32")
        return self._known[key]

    def of_all(self, chosen: Mapping[str, str], base: str) -> float:
        """Return the model's error with all decisions, and results in memory as `base`."""
        return self._run(chosen, base)

    def _run(self, chosen: Mapping[str, str], base: str) -> float:
        wrong = total = 0.0
        for exact in self.runs:
            values = dict(exact)
            if base != "float32":
                values |= {node: _rounded_to(exact[node], base) for node in self.whole.inputs}
            changed: set[fx.Node] = set()
            for node in self.all:
                kind = chosen.get(node.name, "float32")
                if kind == base == "float32" and not changed.intersection(node.all_input_nodes):
                    continue
                result = self._value(node, kind, values)
                values[node] = result if kind == "float32" else _rounded_to(result, base)
                changed.add(node)
            for node in self.whole.outputs:
                a, b = values[node].double(), exact[node].double()
                wrong += float((a - b).square().sum())
                total += float(b.square().sum())
        error = math.sqrt(wrong / total) if total else math.sqrt(wrong)
        return error if math.isfinite(error) else math.inf

    def _value(self, node: fx.Node, kind: str, values: Mapping[fx.Node, Any]) -> Any:
        given = dict.fromkeys(node.all_input_nodes)
        inputs: dict[fx.Node, Any] = {source: values[source] for source in given}
        if kind == "int8":
            matrix, step = self._rounded[node]
            left, right = node.args[-2:]
            assert isinstance(left, fx.Node) and isinstance(right, fx.Node)
            inputs[right] = matrix
            if step:
                inputs[left] = (inputs[left] / step).round().clamp(-_LIMIT, _LIMIT) * step
        elif kind != "float32":
            inputs = {source: _rounded_to(value, kind) for source, value in inputs.items()}
        args = fx.map_arg(node.args, inputs.__getitem__)
        kwargs = fx.map_arg(node.kwargs, inputs.__getitem__)
        assert callable(node.target)
        with torch.no_grad():
            result = node.target(*args, **kwargs)
        return result if kind in ("float32", "int8") else _rounded_to(result, kind)


def _rounded_to(value: Any, dtype: str) -> Any:
    """Return fractions as they are after lying in memory in a data type."""
    if isinstance(value, tuple | list):
        return tuple(_rounded_to(each, dtype) for each in value)
    if dtype == "float32" or not isinstance(value, torch.Tensor) or not value.is_floating_point():
        return value
    return value.to(_DTYPES[dtype]).to(value.dtype)


class _Times:
    """Modelled times of operators alone; alike ones are compiled once."""

    def __init__(
        self,
        wholes: Mapping[str, Exported],
        chip: Chip,
        calibration: Sequence[Sequence[Any]],
        how: Quantisation,
    ) -> None:
        self._chip = chip
        self._known: dict[tuple[object, ...], list[float] | None] = {}
        self._nodes = {
            kind: {node.name: node for node in whole.work()} for kind, whole in wholes.items()
        }
        half = wholes["float16"]
        batches = [[_as(each, torch.float16) for each in batch] for batch in calibration[:1]]
        products = [n for n in half.work() if weight_of(half, n) and n.name not in how.skip]
        self._int8: Mapping[fx.Node, Replacement] = {}
        if products:
            self._int8, _ = quantised_products(half, batches, how)
        jobs = [
            (node.name, kind)
            for kind in wholes
            for node in wholes[kind].work()
            if not is_view(node) and not does_nothing(node)
        ]
        jobs += [(node.name, "int8") for node in products]
        unique = {self._key(*job): job for job in jobs}
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            segments = dict(zip(unique, pool.map(self._compiled, unique.values()), strict=True))
        for key, segment in segments.items():
            self._known[key] = None if segment is None else launches_us(segment)

    def of(self, node: fx.Node, kind: str) -> float | None:
        """Return the microseconds of an operator in a kind; None where no kernel has it."""
        found = self._known.get(self._key(node.name, kind))
        if found is None:
            return None
        # Rounding to int8 is done by the kernel that computes what is rounded, where one can.
        joins = kind == "int8" and _is_computed(node.args[-2])
        return found[-1] if joins else sum(found)

    def _key(self, name: str, kind: str) -> tuple[object, ...]:
        node = self._nodes["float16" if kind == "int8" else kind].get(name)
        if node is None:
            return (name, kind)
        shapes = tuple(
            str(getattr(source.meta.get("val"), "shape", "")) for source in node.all_input_nodes
        )
        plain = tuple(each for each in node.args if not isinstance(each, fx.Node | list | tuple))
        return (str(node.target), shapes, str(plain), kind)

    def _compiled(self, job: tuple[str, str]) -> CompiledSegment | None:
        name, kind = job
        node = self._nodes["float16" if kind == "int8" else kind][name]
        replaced = {node: self._int8[node]} if kind == "int8" else {}
        nodes, outputs = alone(node)
        try:
            return CompiledSegment(
                "alone", translate(nodes, outputs, "alone", replaced), self._chip
            )
        except (OpkitError, AssertionError, NotImplementedError):
            return None


def _is_computed(source: Any) -> bool:
    """Whether a kernel of products or rows computes what a node reads, seen through views."""
    while isinstance(source, fx.Node) and (is_view(source) or does_nothing(source)):
        source = source.all_input_nodes[0]
    is_work = isinstance(source, fx.Node) and source.op == "call_function"
    return is_work and "attention" not in operator_name(source)


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
    rest = tuple(n.name for n in whole.work() if weight_of(whole, n) and n.name not in wanted)
    batches = [[_as(each, _DTYPES[base]) for each in batch] for batch in calibration]
    replaced, _ = quantised_products(whole, batches, replace(how, skip=rest))
    return replaced


def _as(value: Any, dtype: torch.dtype) -> Any:
    moved = value.detach().cpu()
    return moved.to(dtype) if moved.is_floating_point() else moved


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
                given[index] = c.constant(np.ascontiguousarray(weights[name].float().numpy()))
        dtypes = tuple("float32" if "float" in dtype else dtype for dtype in c.dtypes)
        inner = Call(c.builder, c.shapes, dtypes, c._constants)
        return row(inner, *given, **{key: wide(each) for key, each in settings.items()})

    return replaced
