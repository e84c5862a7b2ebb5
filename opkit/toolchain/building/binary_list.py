"""Which combinations of data types a library ships for a chip: op_host/config/CHIP/*_binary.json.

An entry of `op_list` is one combination: the `dtype` of each input and output, null for an optional
one that is absent, a list around those of a dynamic one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from opkit.dtypes import find_tensor_dtype
from opkit.errors import UsageError
from opkit.schema import OpSpec, TensorSpec

__all__ = ["listed_combinations", "only_listed"]

Combination = tuple[str | None, ...]
"""Names of data types, of inputs and then of outputs; None: any."""


def listed_combinations(
    folder: Path, op: str, *, soc_config: str
) -> tuple[tuple[Combination, ...], Path | None]:
    """Return the combinations that are listed for an operator, and the file; none where none are.

    Args:
        folder: the operator's.
        soc_config: the family of chips, such as `ascend910b`.
    Raises:
        UsageError: the file cannot be read.
    """
    for file in sorted((folder / "op_host" / "config" / soc_config).glob("*_binary.json")):
        try:
            document = json.loads(file.read_bytes())
            if document.get("op_type") == op:
                return tuple(map(_combination, document["op_list"])), file
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as err:
            raise UsageError(
                f"{file}: is no list of binaries: {err!r}",
                help='it is {"op_type": ..., "op_list": [{"inputs": [...], "outputs": [...]}]}',
            ) from err
    return (), None


def only_listed(spec: OpSpec, listed: Iterable[Combination]) -> OpSpec:
    """Return a prototype with those combinations that are listed; all where none of them is."""
    rows = tuple(listed)
    tensors = (*spec.inputs, *spec.outputs)
    kept = [
        index
        for index in range(spec.variant_count)
        if any(_matches(tensors, index, row) for row in rows)
    ]
    if not kept or len(kept) == spec.variant_count:
        return spec
    return replace(
        spec,
        inputs=tuple(_columns(tensor, kept) for tensor in spec.inputs),
        outputs=tuple(_columns(tensor, kept) for tensor in spec.outputs),
    )


def _columns(tensor: TensorSpec, kept: Iterable[int]) -> TensorSpec:
    indices = tuple(kept)
    return replace(
        tensor,
        dtypes=tuple(tensor.dtypes[index] for index in indices),
        formats=tuple(tensor.formats[index] for index in indices),
    )


def _matches(tensors: tuple[TensorSpec, ...], index: int, row: Combination) -> bool:
    return len(row) == len(tensors) and all(
        name is None or tensor.dtypes[index].name == name
        for tensor, name in zip(tensors, row, strict=True)
    )


def _combination(entry: dict[str, Any]) -> Combination:
    return tuple(_names([*entry["inputs"], *entry["outputs"]]))


def _names(params: Iterable[Any]) -> Iterator[str | None]:
    for param in params:
        first = (param[0] if param else None) if isinstance(param, list) else param
        name = None if first is None else str(first["dtype"])
        row = None if name is None else find_tensor_dtype(name)
        yield name if row is None else row.name
