"""Wrong and right versions of kernels: one change of the text each, by rule.

A change of kind `value` is wrong where its results differ from the kernel's own by clearly more
than its data type rounds; one that gives the same bits is none. `chip` changes are wrong whatever
the emulator gives: synchronisation that the chip needs, and what no AI core can do. `right` ones
are the same kernel in other words, and must pass.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

__all__ = ["CHANGES", "Change", "Mutant", "changes_of"]


@dataclass(frozen=True)
class Change:
    """One kind of change."""

    name: str
    rule: str
    """`value`, `chip` or `right`."""
    apply: Callable[[str, random.Random], str | None]
    """From a kernel's text to a changed one; None where there is nothing to change."""


@dataclass(frozen=True)
class Mutant:
    """One changed kernel."""

    change: Change
    text: str


def _replaced(pattern: str, to: str | Callable[[re.Match[str]], str]) -> Callable[..., str | None]:
    """Replace one match, drawn."""

    def change(text: str, draw: random.Random) -> str | None:
        found = list(re.finditer(pattern, text, re.M))
        if not found:
            return None
        match = draw.choice(found)
        new = to(match) if callable(to) else match.expand(to)
        changed = text[: match.start()] + new + text[match.end() :]
        return changed if changed != text else None

    return change


_NAMES = (
    "Adds|Muls|Mul|Add|Sub|Div|Exp|Ln|Sqrt|Abs|Max|Maxs|Min|Mins|Cast|Duplicate|Reciprocal|Rsqrt"
    "|Relu|Select|Selects|Compare|CompareScalar|ReduceSum|ReduceMax|WholeReduceSum|Brcb|Gather"
)
_CALL = rf"^(?P<indent> +)(?P<name>{_NAMES})\((?P<arguments>[^;]*)\);"
_STEPS = r"^ +(?:{})[^;\n]*;[^\n]*\n"


def _line_out(pattern: str) -> Callable[..., str | None]:
    return _replaced(_STEPS.format(pattern), "")


def _larger(match: re.Match[str]) -> str:
    return f"{float(match[1]) * 1.05 + 0.001:.8g}f"


def _operands_swapped(match: re.Match[str]) -> str:
    return f"{match[1]}({match[2]}, {match[4]}, {match[3]},"


def _second_is_first(match: re.Match[str]) -> str:
    return f"{match[1]}({match[2]}, {match[3]}, {match[3]},"


def _first_of_pipe(body: str) -> Callable[..., str | None]:
    """Put something at the beginning of Process."""
    return _replaced(r"(void Process\(\)\s*\{\n)", lambda m: f"{m[1]}        {body}\n")


_TWO = r"\b({})\((\w+), ([\w.]+), ([\w.]+),"
_COUNTED = r"(, )(count|CountOf\(tile\))(\);)"

CHANGES: tuple[Change, ...] = (
    Change("constant", "value", _replaced(r"(?<![\w.])(-?\d+\.\d+(?:e-?\d+)?)f\b", _larger)),
    Change("length one short", "value", _replaced(_COUNTED, r"\1\2 - 1\3")),
    Change("length a block short", "value", _replaced(_COUNTED, r"\1\2 - 8\3")),
    Change("length half", "value", _replaced(_COUNTED, r"\1\2 / 2\3")),
    Change("last tile missing", "value", _replaced(r"tile < lastTile;", "tile < lastTile - 1;")),
    Change("first tile missing", "value", _replaced(r"tile = firstTile;", "tile = firstTile + 1;")),
    Change("extra tiles missing", "value", _replaced(r" \+ \(block < extra \? 1 : 0\)", "")),
    Change("every block the first", "value", _replaced(r"block = GetBlockIdx\(\)", "block = 0")),
    Change(
        "stride",
        "value",
        _replaced(r"tile \* tiling\.tileLength", "tile * (tiling.tileLength - 8)"),
    ),
    Change(
        "copy of a whole tile",
        "value",
        _replaced(r"CountOf\(tile\) \* sizeof", "tiling.tileLength * sizeof"),
    ),
    Change(
        "copy one element short",
        "value",
        _replaced(r"CountOf\(tile\) \* sizeof", "(CountOf(tile) - 1) * sizeof"),
    ),
    Change("wrong operand", "value", _replaced(_TWO.format("Add|Mul|Max|Min"), _second_is_first)),
    Change("operands swapped", "value", _replaced(_TWO.format("Sub|Div"), _operands_swapped)),
    Change("instruction out", "value", _line_out(_NAMES)),
    Change("rounding", "value", _replaced("CAST_RINT", "CAST_FLOOR")),
    Change("add for sub", "value", _replaced(r"\bSub\(", "Add(")),
    Change("max for min", "value", _replaced(r"\b(Min)(s?)\(", r"Max\2(")),
    Change("min for max", "value", _replaced(r"\b(Max)(s?)\(", r"Min\2(")),
    Change("mul for add", "value", _replaced(r"\bAdd\(", "Mul(")),
    Change("sqrt for exp", "value", _replaced(r"\bExp\(", "Sqrt(")),
    Change("comparison", "value", _replaced(r"CMPMODE::(LT|GT|LE|GE)", "CMPMODE::NE")),
    Change("copy out missing", "value", _replaced(r"^ +DataCopyPad\(\w*Global[^;]*;\n", "")),
    Change("copy in missing", "value", _replaced(r"^ +DataCopyPad\(input[^;]*;\n", "")),
    Change("empty body", "value", _first_of_pipe("return;")),
    Change(
        "queue of half a tile",
        "value",
        _replaced(r"tiling\.tileLength\);", r"tiling.tileLength / 2);"),
    ),
    Change("no EnQue", "chip", _line_out(r"\w+\.EnQue")),
    Change("no FreeTensor", "chip", _line_out(r"\w+\.FreeTensor")),
    Change("no wait", "chip", _line_out("WaitFlag|CrossCoreWaitFlag|IBWait")),
    Change("no flag", "chip", _line_out("SetFlag|CrossCoreSetFlag|IBSet")),
    Change("no SyncAll", "chip", _line_out("SyncAll")),
    Change("no barrier of all pipes", "chip", _line_out("PipeBarrier<PIPE_ALL>")),
    Change(
        "raw store",
        "chip",
        _replaced(
            r"^( +)(DataCopyPad\((\w+Global)\[[^;]*;)",
            lambda m: f"{m[1]}{m[2]}\n{m[1]}*(volatile uint8_t*){m[3]}.GetPhyAddr() ^= 1;",
        ),
    ),
    Change("exit", "chip", _first_of_pipe("exit(0);")),
    Change(
        "more signals than waits",
        "chip",
        _first_of_pipe("SetFlag<HardEvent::MTE3_MTE2>(EVENT_ID7);"),
    ),
    Change(
        "reads what nothing wrote",
        "chip",
        _first_of_pipe(
            "{ TBuf<TPosition::VECCALC> own; pipe.InitBuffer(own, 32);"
            " LocalTensor<float> at = own.Get<float>(); Adds(at, at, 1.0f, 8); }"
        ),
    ),
    Change("one buffer", "value", _replaced(r"BUFFERS = 2;", "BUFFERS = 1;")),
    Change("factors turned", "right", _replaced(_TWO.format("Add|Mul|Max|Min"), _operands_swapped)),
    Change(
        "barrier",
        "right",
        _replaced(
            r"^( +)((?:Add|Mul|Exp|Muls|Adds|Cast)\([^;]*;[^\n]*\n)",
            r"\1\2\1PipeBarrier<PIPE_ALL>();\n",
        ),
    ),
    Change(
        "in two halves",
        "right",
        _replaced(
            r"^( +)(Adds|Muls)\((\w+), (\w+), ([^,]+), count\);",
            r"\1{ const int32_t first = static_cast<int32_t>(count) / 32 * 16;"
            r" if (first > 0) { \2(\3, \4, \5, first); }"
            r" \2(\3[first], \4[first], \5, static_cast<int32_t>(count) - first); }",
        ),
    ),
    Change(
        "product by a sum",
        "right",
        _replaced(r"\bMuls\((\w+), (\w+), 2\.0f, ", r"Add(\1, \2, \2, "),
    ),
    Change(
        "by mask and repeats",
        "right",
        _replaced(
            r"\bAdds\((\w+), (\w+), ([^,]+), count\)",
            r"Adds<float>(\1, \2, \3, static_cast<int32_t>(count))",
        ),
    ),
    Change(
        "tiles from the last",
        "right",
        _replaced(
            r"const int64_t rest = tiling\.columns - ", "const int64_t rest = 0 + tiling.columns - "
        ),
    ),
)


def changes_of(text: str, seed: int, count: int) -> Iterator[Mutant]:
    """Yield some changed kernels of a text: each kind once before any is drawn again."""
    draw = random.Random(seed)
    seen = {text}
    for _ in range(6):
        kinds = list(CHANGES)
        draw.shuffle(kinds)
        for change in kinds:
            changed = change.apply(text, draw)
            if changed is None or changed in seen:
                continue
            seen.add(changed)
            yield Mutant(change, changed)
            count -= 1
            if count == 0:
                return
