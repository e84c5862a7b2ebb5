"""Cases that cover every pair of choices: variant with shape, shape with values, and so on.

A variant is a data type combination with its formats. Every pair of two choices stands in at least
one case; all combinations would be a hundred times as many.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from opkit.chips import DATA_BLOCK_BYTES, REPEAT_BYTES, all_chips
from opkit.schema import AttrSpec, AttrValue, OpSpec
from opkit.testing.cases.cases import (
    Case,
    Shape,
    ShapeRule,
    make_case,
    plain_attr,
    works_by_row,
)
from opkit.testing.numbers import is_float

__all__ = ["cover_pairs", "pairwise_cases", "usual_choices"]

Choice = TypeVar("Choice", bound=Hashable)

_FLOAT_VALUES = ("normal", "uniform", "zeros", "subnormal", "extreme", "nonfinite", "ties")
_WHOLE_VALUES = ("normal", "uniform", "edge")


def cover_pairs(choices: Sequence[Sequence[Choice]], *, seed: int = 0) -> list[tuple[Choice, ...]]:
    """Return rows of one choice from each sequence, so that every pair of two choices is in a row.

    The same rows for the same arguments.
    """
    axes = range(len(choices))
    if len(choices) == 1:
        return [(choice,) for choice in choices[0]]
    missing = {
        (one, a, other, b)
        for one, other in itertools.combinations(axes, 2)
        for a in range(len(choices[one]))
        for b in range(len(choices[other]))
    }
    order = random.Random(seed)
    rows = []
    while missing:
        # Start from a missing pair, so that each row covers one at least; then take greedily.
        one, a, other, b = min(missing)
        row = {one: a, other: b}
        rest = [axis for axis in axes if axis not in row]
        order.shuffle(rest)
        for axis in rest:
            row[axis] = max(
                range(len(choices[axis])),
                key=lambda option: sum(
                    (min((axis, option), (at, row[at])) + max((axis, option), (at, row[at])))
                    in missing
                    for at in row
                ),
            )
        missing -= {
            (one, row[one], other, row[other]) for one, other in itertools.combinations(axes, 2)
        }
        rows.append(tuple(choices[axis][row[axis]] for axis in axes))
    return rows


@dataclass(frozen=True)
class _ShapeClass:
    """A kind of shape that breaks kernels."""

    name: str
    shape: Shape


def _shape_classes(size_bytes: int, by_row: bool) -> list[_ShapeClass]:
    block = DATA_BLOCK_BYTES // size_bytes
    # Of the largest chip: its shares end at multiples of this many blocks.
    cores = max(chip.count("cores.aiv") for chip in all_chips())
    core = cores * block
    lengths = {
        "one": 1,
        "block-1": block - 1,
        "block": block,
        "block+1": block + 1,
        "repeat+1": REPEAT_BYTES // size_bytes + 1,
        "tile-1": 8191,
        "tile": 8192,
        "tile+1": 8193,
        "core-1": core - 1,
        "core+1": core + 1,
        "prime": 7919,
        "large": 1 << 20,
        "empty": 0,
    }
    if by_row:
        classes = [_ShapeClass(name, (3, n)) for name, n in lengths.items() if n < 1 << 17]
        classes += [_ShapeClass("large", (256, 4096)), _ShapeClass("rows", (cores + 1, block))]
    else:
        classes = [_ShapeClass(name, (n,)) for name, n in lengths.items()]
    ranks = {2: (7, 33), 3: (2, 3, 17), 4: (2, 3, 5, 16), 5: (2, 1, 3, 2, 9)}
    ranks |= {6: (1, 2, 1, 3, 2, 5), 7: (2, 1, 2, 1, 3, 1, 7), 8: (1, 2, 1, 2, 1, 2, 1, 19)}
    classes += [_ShapeClass(f"rank{rank}", shape) for rank, shape in ranks.items()]
    classes.append(_ShapeClass("empty-inside", (3, 0, 4)))
    return classes


def usual_choices(attr: AttrSpec) -> list[AttrValue]:
    """Return values that an attribute may have: its default or a plain one, and edges."""
    plain = plain_attr(attr)
    edges: dict[str, list[AttrValue]] = {
        "int": [0, 1, -1],
        "float": [0.0, 1.0, -1.0, 1e-6],
        "bool": [False, True],
    }
    # A required attribute has a meaning that only its author knows: edges might be nonsense.
    others = [] if attr.required or attr.default is None else edges.get(attr.type, [])
    return list(dict.fromkeys([plain, *others]))


def pairwise_cases(
    spec: OpSpec,
    *,
    seed: int = 0,
    shape_rule: ShapeRule | None = None,
    attr_choices: Mapping[str, Sequence[AttrValue]] | None = None,
) -> tuple[Case, ...]:
    """Return cases that cover every pair of variant, shape class, values, attributes, presence.

    Args:
        shape_rule: shapes of inputs that differ from the main one.
        attr_choices: values to try by attribute name, in place of its default and edges.
    Raises:
        UsageError: as `make_case`.
    """
    optional = [tensor.name for tensor in spec.inputs if tensor.param_type == "optional"]
    by_row = works_by_row(spec, shape_rule=shape_rule)
    widths = [dtype.size_bytes for dtype in spec.variant_dtypes(0)[: len(spec.inputs)]]
    shapes = _shape_classes(min(widths, default=4), by_row)
    has_floats = any(is_float(dtype) for dtype in spec.variant_dtypes(0))
    given = attr_choices or {}
    choices: list[list[Hashable]] = [
        list(range(spec.variant_count)),
        list(range(len(shapes))),
        list(_FLOAT_VALUES if has_floats else _WHOLE_VALUES),
    ]
    for attr in spec.attrs:
        choices.append([*(given.get(attr.name) or usual_choices(attr))])
    choices += [[True, False] for _ in optional]
    cases = []
    for variant, kind, values, *rest in cover_pairs(choices, seed=seed):
        assert isinstance(variant, int) and isinstance(kind, int) and isinstance(values, str)
        case = make_case(
            spec,
            shapes[kind].shape,
            variant=variant,
            seed=seed,
            distribution=values,
            shape_rule=shape_rule,
        )
        attrs = tuple((attr.name, value) for attr, value in zip(spec.attrs, rest, strict=False))
        absent = {
            name
            for name, present in zip(optional, rest[len(spec.attrs) :], strict=True)
            if not present
        }
        label = [case.name]
        label += [
            f"{name}={value}"
            for (name, value), (_, usual) in zip(attrs, case.attrs, strict=True)
            if value != usual
        ]
        label += [f"no_{name}" for name in sorted(absent)]
        cases.append(
            replace(
                case,
                attrs=attrs,  # type: ignore[arg-type]
                shapes=tuple(
                    None if tensor.name in absent else shape
                    for tensor, shape in zip(spec.inputs, case.shapes, strict=True)
                ),
                label="-".join(label).replace(" ", ""),
            )
        )
    return tuple({case.name: case for case in cases}.values())
