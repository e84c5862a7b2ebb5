"""The chips that opkit emulates, from `emulator/chips/*.json`, where every number has its source,
and their architectures, from the rows that the emulator is compiled with."""

from __future__ import annotations

import difflib
import functools
import json
import math
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opkit.errors import OpkitError, UsageError

__all__ = [
    "DATA_BLOCK_BYTES",
    "DEFAULT_CHIP",
    "REPEAT_BYTES",
    "Architecture",
    "Chip",
    "ChipNumber",
    "all_architectures",
    "all_chips",
    "find_chip",
    "pipe_names",
]

DEFAULT_CHIP = "Ascend910B2"
DATA_BLOCK_BYTES = 32
"""What vector instructions and copies work in on every chip, and tensors in UB begin at multiples
of. Source: the programming guide, which calls it a data block."""
REPEAT_BYTES = 8 * DATA_BLOCK_BYTES
"""What a vector instruction takes in one iteration on every chip: eight data blocks."""

_CHIPS_DIR = Path(__file__).parent / "emulator" / "chips"
_ARCHS_DIR = Path(__file__).parent / "emulator" / "include" / "opkit" / "isa"
_ARCH_ROW = re.compile(r"^ARCH_(\w+)\((.*)\)$", re.MULTILINE)
_ARCHITECTURE = (
    "NPU architecture version",
    "Ascend C API",
    "PlatformAscendC",
    "vector instruction theoretical performance",
    "cube instruction theoretical performance",
    "public documents: a GM address",
    "public documents: GM addresses",
)
"""How the sources of numbers begin that hold for every chip of an architecture."""
_GUESSED = ("assumed:", "guess:", "guess,")
"""How the sources of numbers begin that no document and no measurement gives."""
_MEASURED = "accuracy."
"""How the keys of numbers begin that say how far measurements of the very chip were off."""
_UNIT_PREFIXES = ("ai_core-", "aicore-", "vector_core-", "vectorcore-")


@dataclass(frozen=True)
class Architecture:
    """What kernels are compiled for: the rows of `isa/arch_<number>.inc`, as far as Python asks."""

    number: int
    """The value of `__NPU_ARCH__`."""
    traits: Mapping[str, int]
    """By the names of `ArchTraits`, in C++; truths are 0 and 1, and what is not said is 0."""
    macros: tuple[str, ...]
    """What public kernels ask for in place of `__NPU_ARCH__`."""
    core_macros: Mapping[str, tuple[str, ...]]
    """What is defined while a kernel is compiled for one kind of core, `vector` or `cube`; empty
    where all cores are of one kind."""
    lacks: frozenset[str]
    """Instructions of the table that it does not have."""


@dataclass(frozen=True)
class ChipNumber:
    """One size, count, clock or cost of a chip."""

    value: float
    """In the unit that the key ends in: bytes, mhz, cycles, us; a plain count otherwise."""
    source: str
    """The public document it was read from; starts with `assumed:` or `guess` where there is none,
    and with `as on` where it was measured on another chip of the same architecture."""

    @property
    def is_guess(self) -> bool:
        """Whether no document and no measurement gives it."""
        return self.source.startswith(_GUESSED)


@dataclass(frozen=True)
class Chip:
    """One chip: its names and its numbers."""

    name: str
    """The name the vendor's tools print, such as `Ascend910B2`."""
    aliases: tuple[str, ...]
    """Other accepted names; case does not matter."""
    npu_arch: str
    """The architecture kernels are compiled for, such as `dav-2201`."""
    soc_config: str
    """The name that `AICore().AddConfig()` takes, such as `ascend910b`."""
    numbers: Mapping[str, ChipNumber]
    """By dotted key: `cores.*`, `memory.*_bytes`, `clock.mhz`, `timing.*`."""

    def number(self, key: str) -> float:
        """Return one number.

        Raises:
            OpkitError: the chip's file has no such key.
        """
        if key not in self.numbers:
            raise OpkitError(f"{self.name} has no number {key!r}: add it to its file in chips/")
        return self.numbers[key].value

    def count(self, key: str) -> int:
        """Return one number that is whole: a count or a size in bytes."""
        return int(self.number(key))

    @property
    def guesses(self) -> tuple[str, ...]:
        """Keys of the timing constants that no document and no measurement gives, sorted."""
        return tuple(
            key
            for key, number in sorted(self.numbers.items())
            if key.startswith("timing.") and number.is_guess
        )

    def launch_us(self, cores: int, kind: str = "aiv") -> float:
        """Return what a task takes beside its cores, by how many of a kind, `aiv` or `aic`, it has.

        Source: the law of `timing.launch.*`, as `TimingCosts::launch_us` has it in C++.
        """
        limit = self.count(f"cores.{kind}")
        launched = min(max(cores, 1), max(limit, 1))
        return self.number("timing.launch.one_core_us") + self.core_launch_us(kind) * (launched - 1)

    def core_launch_us(self, kind: str = "aiv") -> float:
        """Return what each further core of a kind, `aiv` or `aic`, adds to that time."""
        one, all_cores = (
            self.number(f"timing.launch.{key}_us") for key in ("one_core", "all_cores")
        )
        return (all_cores - one) / max(1, self.count(f"cores.{kind}") - 1)

    @property
    def npu_arch_number(self) -> int:
        """The value of `__NPU_ARCH__`: 2201 for `dav-2201`."""
        return int(self.npu_arch.rpartition("-")[2])

    @property
    def architecture(self) -> Architecture:
        """What kernels are compiled for.

        Raises:
            UsageError: opkit does not emulate it yet.
        """
        found = all_architectures().get(self.npu_arch_number)
        if found is None:
            raise UsageError(f"{self.name}: kernels cannot be compiled for {self.npu_arch} yet")
        return found

    @property
    def has_data_copy_pad(self) -> bool:
        """Whether it copies any number of bytes; else whole blocks of 32."""
        return "DataCopyPad" not in self.architecture.lacks


def _read_chip(path: Path) -> Chip:
    try:
        row = json.loads(path.read_text(encoding="utf-8"))
        numbers = _based_on(path, row) if "based_on" in row else {}
        numbers |= {
            key: ChipNumber(value=float(entry["value"]), source=entry["source"])
            for key, entry in row["numbers"].items()
        }
        return Chip(
            name=row["name"],
            aliases=tuple(row["aliases"]),
            npu_arch=row["npu_arch"],
            soc_config=row["soc_config"],
            numbers=numbers,
        )
    except (OSError, ValueError, KeyError, TypeError) as err:
        raise OpkitError(f"{path.name}: not a chip file: {err!r}") from err


def _based_on(path: Path, row: Mapping[str, Any]) -> dict[str, ChipNumber]:
    """Return the numbers of the chip that a row is based on.

    What the documents say of the architecture holds for both. What was measured of times is known
    of the other chip, a guess there is one here, and the rest is assumed.
    """
    base = _read_chip(path.with_name(f"{row['based_on'].lower()}.json"))
    is_known = base.npu_arch == row["npu_arch"]

    def inherited(key: str, number: ChipNumber) -> ChipNumber:
        if is_known and (number.is_guess or number.source.startswith(_ARCHITECTURE)):
            return number
        if is_known and key.startswith("timing."):
            return ChipNumber(number.value, f"as on {base.name}: {number.source}")
        return ChipNumber(number.value, f"assumed: as on {base.name}; {number.source}")

    return {
        key: inherited(key, number)
        for key, number in base.numbers.items()
        if not key.startswith(_MEASURED)
    }


@functools.cache
def all_architectures() -> Mapping[int, Architecture]:
    """Return every architecture by its number."""
    return {each.number: each for each in map(_read_architecture, _ARCHS_DIR.glob("arch_*.inc"))}


def _read_architecture(path: Path) -> Architecture:
    rows: dict[str, list[list[str]]] = defaultdict(list)
    for kind, text in _ARCH_ROW.findall(path.read_text(encoding="utf-8")):
        rows[kind].append([each.strip() for each in text.split(",")])
    cores: dict[str, tuple[str, ...]] = {}
    for kind, name in rows["CORE_MACRO"]:
        cores[kind] = (*cores.get(kind, ()), name)
    return Architecture(
        number=int(rows["BEGIN"][0][0]),
        traits={name: _trait(value) for name, value in rows["TRAIT"]},
        macros=tuple(name for (name,) in rows["MACRO"]),
        core_macros=cores,
        lacks=frozenset(name for name, *types in rows["TYPES"] if types == ["NONE"]),
    )


def _trait(text: str) -> int:
    """Return a trait's value: true, false, or a product of whole numbers."""
    if text in ("true", "false"):
        return int(text == "true")
    return math.prod(map(int, text.split("*")))


@functools.cache
def pipe_names() -> tuple[str, ...]:
    """Return the in-order instruction queues of a sub-core, in the order of their numbers."""
    text = (_ARCHS_DIR / "units.inc").read_text(encoding="utf-8")
    return tuple(re.findall(r"^OPKIT_PIPE\((\w+)\)$", text, re.MULTILINE))


@functools.cache
def all_chips() -> tuple[Chip, ...]:
    """Return every chip, the default one first, the others by name."""
    chips = [_read_chip(path) for path in _CHIPS_DIR.glob("*.json")]
    return tuple(sorted(chips, key=lambda chip: (chip.name != DEFAULT_CHIP, chip.name)))


def find_chip(name: str) -> Chip:
    """Return the chip that a name, alias or compute unit (`ai_core-Ascend910B2`) stands for.

    Raises:
        UsageError: no chip has that name.
    """
    wanted = name.strip().lower()
    for prefix in _UNIT_PREFIXES:
        wanted = wanted.removeprefix(prefix)
    by_name = {
        alias.lower(): chip
        for chip in reversed(all_chips())
        for alias in (*chip.aliases, chip.soc_config, chip.name)
    }
    if wanted in by_name:
        return by_name[wanted]
    close = difflib.get_close_matches(wanted, by_name, n=3, cutoff=0.5)
    nearest = dict.fromkeys(by_name[alias].name for alias in close)
    known = " or ".join(nearest or [chip.name for chip in all_chips()])
    raise UsageError(
        f'"{name}" is not a chip that opkit emulates',
        help=f"did you mean {known}?" if nearest else f"choose {known}",
    )
