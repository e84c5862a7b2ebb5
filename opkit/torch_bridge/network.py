"""Two runs of a network, layer by layer: which one deviates first, and by how much."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from opkit.bfloat16 import bfloat16_to_float32
from opkit.dtypes import find_dtype
from opkit.errors import UsageError
from opkit.testing import Comparison, Standard, compare
from opkit.torch_bridge.recording import Entry, Recording

__all__ = ["LayerResult", "NetworkReport", "compare_recordings"]


@dataclass(frozen=True)
class LayerResult:
    """One tensor of one layer against the reference's."""

    stage: str
    layer: str
    tensor: int
    kind: str
    comparison: Comparison | None
    """None where the two differ in shape."""
    message: str

    @property
    def passed(self) -> bool:
        """Whether it meets the standard."""
        return self.comparison is not None and self.comparison.passed

    def __str__(self) -> str:
        name = self.layer or "the network"
        number = f", tensor {self.tensor}" if self.tensor else ""
        figures = self.message if self.comparison is None else str(self.comparison)
        verdict = "pass" if self.passed else "deviates"
        return f"{self.stage:<9} {name} ({self.kind}){number}: {verdict}, {figures}"


@dataclass(frozen=True)
class NetworkReport:
    """All layers, in the order in which they ran."""

    standard: str
    results: tuple[LayerResult, ...]
    only_in_one: tuple[str, ...]
    """Layers that one of the two does not have: they are not compared."""

    @property
    def first(self) -> LayerResult | None:
        """The first that deviates, forward before backward before parameters; None: none does."""
        for stage in ("forward", "backward", "parameter"):
            for result in self.results:
                if result.stage == stage and not result.passed:
                    return result
        return None

    @property
    def passed(self) -> bool:
        """Whether there were layers to compare and none deviates."""
        return bool(self.results) and self.first is None

    def __str__(self) -> str:
        lines = [str(result) for result in self.results]
        lines += [f"{name}: only in one of the two" for name in self.only_in_one]
        first = self.first
        if first is None:
            lines.append(f"no layer deviates by the {self.standard} standard")
        else:
            name = first.layer or "the network itself"
            lines.append(f"the first to deviate: {name} ({first.kind}), {first.stage}")
            if first.comparison is not None and first.comparison.worst is not None:
                lines.append(f"  worst {first.comparison.worst}")
        return "\n".join(lines)


def compare_recordings(
    actual: Recording,
    reference: Recording,
    *,
    standard: Standard | str = "ecosystem",
    layers: Sequence[str] | None = None,
) -> NetworkReport:
    """Return how far each layer of a run is from the reference's layer of the same name.

    Args:
        actual: the run with the operators to judge; its data types say which limits hold.
        reference: the same network in higher precision.
        layers: only these; all by default.
    Raises:
        UsageError: they have no layer in common, or the standard has no limits for a data type.
    """
    right = {entry.key: entry for entry in reference.entries}
    mine = {entry.key for entry in actual.entries}
    results = []
    for entry in actual.entries:
        if layers is not None and entry.layer.partition("#")[0] not in layers:
            continue
        if entry.key in right:
            results.append(_result(entry, right[entry.key], standard))
    if not results:
        raise UsageError(
            "the two networks have no layer in common",
            help="give their modules the same names, or compare the ones that have",
        )
    alone = {key[1] or "the network" for key in mine ^ set(right)}
    name = standard if isinstance(standard, str) else standard.name
    return NetworkReport(name, tuple(results), tuple(sorted(alone)))


def _result(entry: Entry, right: Entry, standard: Standard | str) -> LayerResult:
    if entry.values.shape != right.values.shape:
        message = f"shape {entry.values.shape}, the reference has {right.values.shape}"
        return LayerResult(entry.stage, entry.layer, entry.tensor, entry.kind, None, message)
    golden = right.values
    if right.dtype == "bfloat16":
        golden = bfloat16_to_float32(golden)
    if golden.dtype.kind == "f":
        golden = golden.astype(np.float64)
    dtype = find_dtype(entry.dtype)
    assert dtype is not None
    comparison = compare(entry.values, golden, dtype=dtype, standard=standard)
    return LayerResult(entry.stage, entry.layer, entry.tensor, entry.kind, comparison, "")
