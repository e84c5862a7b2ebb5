"""Which tiling each case has, and cases for tilings that the usual shapes do not reach.

A kernel is several kernels, one a tiling key, and the operator's host code chooses by the shapes:
a branch that no case takes is a branch that nobody has tested. Shapes from short to long are put
to the tiling function, which runs without the kernel, until each key has a case; then shapes around
the numbers that the host code names, and other values of the attributes. So it is with
what kernels do by their tiling data, several tiles or a tail: the data are words of unknown
meaning, and a word that is 0, 1, a multiple of 8 or another number is another state of each.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from opkit.errors import OpkitError
from opkit.executor import LocalExecutor, Work, folder_of
from opkit.schema import OpSpec
from opkit.testing.cases import (
    Case,
    Shape,
    ShapeRule,
    case_variants,
    make_case,
    make_inputs,
    reads_axes,
    usual_choices,
    works_by_row,
)
from opkit.testing.numbers import Input

if TYPE_CHECKING:
    from opkit.toolchain import Project

__all__ = [
    "Untaken",
    "branch_shapes",
    "cases_of_branches",
    "cases_of_keys",
    "host_numbers",
    "names_branches",
    "with_every_branch",
]

_MOST_BYTES = 1 << 26
"""Most bytes of the inputs of a case that is made for a tiling key."""
_SECONDS = 120.0
"""What the host code of one combination of data types may take for all shapes."""
_MOST_FOR_DATA = 4
"""Cases for tiling data alone, of a combination of data types."""
_LARGEST_SIZE, _MOST_NUMBERS = 1 << 22, 48
_LARGEST_MODE = 16
"""Largest number that an integer attribute is set to."""
# Several rows a core first: more of the branch runs.
_ROWS = (97, 3, 1, 5003)
_LENGTHS = (1, 8, 67, 500, 1031, 5003, 20011, 50021, 200003, 1000003)
_MATRICES = (8, 67, 500, 1031, 2053)


@dataclass(frozen=True)
class Untaken:
    """Tiling keys of a kernel, in one combination of data types, that no case takes."""

    op: str
    dtypes: tuple[str, ...]
    keys: tuple[int, ...]
    taken: tuple[int, ...]

    def __str__(self) -> str:
        keys = ", ".join(map(str, self.keys))
        taken = ", ".join(map(str, self.taken)) or "none"
        some = "the tiling key" if len(self.keys) == 1 else "the tiling keys"
        dtypes = "-".join(dict.fromkeys(self.dtypes))
        return f"{self.op}, {dtypes}: no case takes {some} {keys} (taken: {taken})"


@dataclass(frozen=True)
class _Asked:
    """One combination of data types: its cases, and what may be added to them."""

    spec: OpSpec
    cases: tuple[Case, ...]
    more: tuple[Case, ...]
    for_keys: int = 0
    """So many of the last of them are for tiling keys alone."""


@dataclass(frozen=True)
class _Looked:
    """What the tiling functions say of it."""

    added: tuple[int, ...]
    """Numbers of the cases to be added."""
    missing: tuple[int, ...]
    """Tiling keys that no case takes."""
    taken: tuple[int, ...]


def branch_shapes(spec: OpSpec, *, shape_rule: ShapeRule | None = None) -> tuple[Shape, ...]:
    """Return shapes, short rows before long ones, that may have another tiling key each."""
    if shape_rule is None and reads_axes(spec):
        return tuple((1, 1, size, size) for size in _MATRICES)
    if not works_by_row(spec, shape_rule=shape_rule):
        return tuple((size,) for size in (*_LENGTHS, 1 << 23))
    return tuple((rows, length) for rows in _ROWS for length in _LENGTHS)


def cases_of_branches(
    spec: OpSpec, *, seed: int = 0, shape_rule: ShapeRule | None = None
) -> tuple[Case, ...]:
    """Return a case of each such shape in each combination of data types, large ones left out."""
    cases = [
        make_case(spec, shape, variant=variant, seed=seed, shape_rule=shape_rule)
        for variant in case_variants(spec)
        for shape in branch_shapes(spec, shape_rule=shape_rule)
    ]
    return tuple(case for case in cases if _size_bytes(case) <= _MOST_BYTES)


def cases_of_keys(
    spec: OpSpec,
    numbers: Sequence[int],
    *,
    seed: int = 0,
    shape_rule: ShapeRule | None = None,
) -> tuple[Case, ...]:
    """Return cases that host code may choose another tiling key for: shapes around the numbers that
    stand in its text, and other values of each attribute.

    Args:
        numbers: see `host_numbers`.
        seed, shape_rule: as `default_cases`.
    """
    cases = []
    for variant in case_variants(spec):
        for shape in _shapes_around(spec, numbers, shape_rule):
            case = make_case(spec, shape, variant=variant, seed=seed, shape_rule=shape_rule)
            if _size_bytes(case) <= _MOST_BYTES:
                cases.append(case)
        for shape in branch_shapes(spec, shape_rule=shape_rule)[2:4]:
            case = make_case(spec, shape, variant=variant, seed=seed, shape_rule=shape_rule)
            cases += _with_other_attributes(case, spec, numbers)
    return tuple(cases)


def _shapes_around(
    spec: OpSpec, numbers: Sequence[int], shape_rule: ShapeRule | None
) -> list[Shape]:
    sizes = [size for number in numbers for size in (number, number - 1, number + 1, 2 * number)]
    if shape_rule is None and reads_axes(spec):
        return [(1, 1, size, size) for size in sizes]
    if not works_by_row(spec, shape_rule=shape_rule):
        return [(size,) for size in sizes]
    return [shape for size in sizes for shape in ((3, size), (size, 8))]


def _with_other_attributes(case: Case, spec: OpSpec, numbers: Sequence[int]) -> list[Case]:
    cases = []
    for attr in spec.attrs:
        values = usual_choices(attr)
        if attr.type == "int" and len(values) > 1:
            values += [number for number in numbers if number <= _LARGEST_MODE]
        usual = dict(case.attrs)[attr.name]
        for value in dict.fromkeys(values):
            if value != usual:
                given = tuple((n, value if n == attr.name else v) for n, v in case.attrs)
                label = f"{case.name}-{attr.name}={str(value).lower()}"
                cases.append(replace(case, attrs=given, label=label))
    return cases


def host_numbers(project: Project) -> tuple[int, ...]:
    """Return the whole numbers that a project's host code names, and products of two of them that
    stand side by side, smallest first."""
    from opkit.toolchain import whole_numbers

    found: set[int] = set()
    for source in project.sources("op_host"):
        found |= whole_numbers(source.read_text(encoding="utf-8", errors="replace"))
    return tuple(sorted(n for n in found if 2 <= n <= _LARGEST_SIZE))[:_MOST_NUMBERS]


def names_branches(project: Project, spec: OpSpec) -> bool:
    """Whether the text of an operator's kernel has branches by the tiling key, or by its data."""
    from opkit.toolchain import branches_by_tiling_data, included_texts

    source = project.kernel_source(spec)
    if not source.is_file():
        return False
    texts = tuple(included_texts(source.read_text(errors="replace"), source.parent, ()))
    if any("TILING_KEY" in text or "ASCENDC_TPL" in text for text in texts):
        return True
    return branches_by_tiling_data(texts)


def with_every_branch(
    artifact: Path,
    chip: str,
    specs: Sequence[OpSpec],
    cases: Sequence[Case],
    rules: Mapping[str, ShapeRule | None] | None,
    *,
    numbers: Sequence[int] = (),
    seed: int = 0,
    hidden: Sequence[Path] = (),
) -> tuple[tuple[Case, ...], tuple[Untaken, ...]]:
    """Return cases with more for tilings that none has, and the tiling keys that none takes then.

    The tiling functions run in a process of their own, which they may end.

    Args:
        artifact: the artifact folder.
        chip: the name of the chip that it was built for.
        specs: the operators to look at.
        rules: of the operators' input shapes, by name; None: no case is added.
        numbers: as `cases_of_keys`.
        seed: as `default_cases`.
        hidden: what host code cannot read; see `hidden_files`.
    """
    asked = []
    for spec in specs:
        more: tuple[Case, ...] = ()
        for_keys: tuple[Case, ...] = ()
        if rules is not None:
            rule = rules[spec.name]
            more = cases_of_branches(spec, seed=seed, shape_rule=rule)
            for_keys = cases_of_keys(spec, numbers, seed=seed, shape_rule=rule)
        for variant in case_variants(spec):
            own = [c for c in cases if (c.op, c.variant) == (spec.op, variant)]
            others = [c for c in more if c.variant == variant]
            last = [c for c in for_keys if c.variant == variant]
            if own:
                asked.append(_Asked(spec, tuple(own), (*others, *last), len(last)))
    added: dict[int, tuple[Case, ...]] = {}
    untaken: dict[int, Untaken] = {}
    folders = {"artifact": folder_of(artifact)}
    work = Work(*(_begin, chip, folders), seconds=_SECONDS, answers=_Looked, hidden=tuple(hidden))
    with LocalExecutor(1).open(work) as crew:
        for index, found in crew.stream(asked):
            if isinstance(found, _Looked):
                added[index], missing = _told(asked[index], found)
                if missing is not None:
                    untaken[index] = missing
    known = {case.name for case in cases}
    fresh = (case for index in sorted(added) for case in added[index] if case.name not in known)
    return (*cases, *fresh), tuple(untaken[index] for index in sorted(untaken))


def _told(asked: _Asked, found: _Looked) -> tuple[tuple[Case, ...], Untaken | None]:
    """Return the cases to be added, and the keys that none takes."""
    added = tuple(case for number, case in enumerate(asked.more) if number in found.added)
    dtypes = tuple(dtype.name for dtype in asked.cases[0].dtypes)
    untaken = Untaken(asked.spec.op, dtypes, found.missing, found.taken)
    return added, untaken if found.missing else None


def _begin(chip: str, folders: Mapping[str, Path]) -> Callable[[_Asked], _Looked]:
    from opkit import runtime

    runtime.configure(chip)
    folder = folders["artifact"]
    library = runtime.open(folder)

    def states_of(case: Case) -> frozenset[_State]:
        names = [dtype.name for dtype in case.dtypes[: len(case.shapes)]]
        try:
            return _states(*library.tiling(case.op, _inputs(case), dict(case.attrs), names))
        except OpkitError:
            return frozenset()

    def look(asked: _Asked) -> _Looked:
        case = asked.cases[0]
        dtypes = tuple(dtype.name for dtype in case.dtypes)
        keys = _keys(folder, asked.spec, dtypes)
        keys = keys if len(keys) > 1 else set()
        taken = frozenset[_State]().union(*map(states_of, asked.cases))
        added, for_data = [], 0
        for number, more in enumerate(asked.more):
            # What follows is asked for only as long as a key has no case.
            if number == len(asked.more) - asked.for_keys and not keys - _keys_of(taken):
                break
            fresh = states_of(more) - taken
            is_of_key = any(place == _KEY and value in keys for place, value in fresh)
            for_all = number < len(asked.more) - asked.for_keys
            if is_of_key or (for_all and fresh and for_data < _MOST_FOR_DATA):
                for_data += not is_of_key
                taken |= fresh
                added.append(number)
        have = _keys_of(taken)
        return _Looked(tuple(added), tuple(sorted(keys - have)), tuple(sorted(keys & have)))

    return look


_State: TypeAlias = tuple[int, int]
"""Where in a tiling, and what kind of number stands there."""
_KEY, _BLOCKS = -1, -2


def _states(key: int, blocks: int, data: bytes) -> frozenset[_State]:
    """Return what a tiling is to a kernel that chooses by it."""
    words = struct.unpack_from(f"<{len(data) // 4}I", data)
    kinds = [(at, _kind(word)) for at, word in enumerate(words)]
    return frozenset([(_KEY, key), (_BLOCKS, min(blocks, 2)), *kinds])


def _keys_of(states: Iterable[_State]) -> set[int]:
    return {value for place, value in states if place == _KEY}


def _kind(word: int) -> int:
    return word if word < 2 else 2 + bool(word % 8)


def _keys(folder: Path, spec: OpSpec, dtypes: tuple[str, ...]) -> set[int]:
    """Return the tiling keys that the kernel of a combination of data types names."""
    from opkit.toolchain import operator_images

    return {
        key
        for one in operator_images(folder)
        if (one.op, one.dtypes) == (spec.op, dtypes) and one.is_callable
        for key in one.image.tiling_keys
    }


def _inputs(case: Case) -> list[Input]:
    """Return a case's inputs: zeros where nothing says what is in them, which are not looked at."""
    if any(source is not None for source in case.sources):
        return make_inputs(case)
    inputs: list[Input] = []
    for name, shape, dtype in zip(case.input_names, case.shapes, case.dtypes, strict=False):
        if shape is None:
            inputs.append(None)
            continue
        made = np.zeros(shape, dtype.numpy)
        inputs.append([made] * case.list_length if name in case.lists else made)
    return inputs


def _size_bytes(case: Case) -> int:
    return sum(
        math.prod(shape) * dtype.size_bytes
        for shape, dtype in zip(case.shapes, case.dtypes, strict=False)
        if shape is not None
    )
