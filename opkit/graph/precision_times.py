"""How long each operator of a model takes in each precision, by the model of the chip."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from torch import fx

from opkit.chips import Chip
from opkit.errors import OpkitError
from opkit.graph.calibration import Quantisation
from opkit.graph.channels_last import channels_last
from opkit.graph.explanation import launches_us
from opkit.graph.export import Exported, with_fractions
from opkit.graph.program import CompiledSegment
from opkit.graph.quantising import quantised_products, weight_of
from opkit.graph.segments import alone
from opkit.graph.trained import left_of
from opkit.graph.translation import Replacement, does_nothing, is_view, operator_name, translate

__all__ = ["PrecisionTimes"]


class PrecisionTimes:
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
        batches = [
            [with_fractions(each, torch.float16) for each in batch] for batch in calibration[:1]
        ]
        products = [
            n for n in half.work() if weight_of(half, n) is not None and n.name not in how.skip
        ]
        self._replaced = {kind: channels_last(whole) for kind, whole in wholes.items()}
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
        joins = kind == "int8" and _is_computed(left_of(node))
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
        replaced = self._int8 if kind == "int8" else self._replaced[kind]
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
