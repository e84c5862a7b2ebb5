"""The tile operations by name: what each makes of its tiles and numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from opkit.errors import UsageError

from ...ir import Value

__all__ = ["INSTRUCTIONS", "NOT_EXECUTED", "Instruction"]


@dataclass(frozen=True)
class Instruction:
    """One tile operation."""

    name: str
    """As the specification has it: `TADD`."""
    tiles: int
    """Tiles that it reads."""
    apply: Callable[..., Value]
    """Takes the tiles, then the settings by name."""
    settings: tuple[str, ...] = ()
    """Numbers, shapes, offsets and types that follow the tiles, in order."""


def _operator(name: str) -> Callable[..., Value]:
    def apply(first: Value, *others: Any) -> Value:
        return first.apply(name, *others)

    return apply


def _scalar(name: str) -> Callable[..., Value]:
    def apply(tile: Value, scalar: float) -> Value:
        return tile.apply(name, scalar)

    return apply


def _reduction(name: str, axis: int) -> Callable[..., Value]:
    def apply(tile: Value) -> Value:
        return tile.apply(name, axis=axis, keepdims=True)

    return apply


def _expanded(name: str, axis: int) -> Callable[..., Value]:
    """A full tile with one column (axis 1) or one row (axis 0)."""

    def apply(tile: Value, narrow: Value) -> Value:
        if narrow.shape[axis] != 1:
            what = "column" if axis == 1 else "row"
            raise UsageError(f"the second tile is {narrow.shape}, expected one {what}")
        if name == "expdif":
            return (tile - narrow).apply("exp")
        return tile.apply(name, narrow)

    return apply


def _compare(left: Value, right: Any, mode: str) -> Value:
    names = {
        **{"eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal"},
        **{"gt": "greater", "ge": "greater_equal"},
    }
    if mode not in names:
        raise UsageError(f'there is no comparison "{mode}"', help=f"there is {', '.join(names)}")
    return left.apply(names[mode], right)


def _filled(tile: Value, shape: tuple[int, int], value: float) -> Value:
    widths = tuple((0, want - have) for want, have in zip(shape, tile.shape, strict=True))
    if any(after < 0 for _, after in widths):
        raise UsageError(f"a tile of {tile.shape} does not fit into {shape}")
    return tile.apply("pad", widths=widths, value=value)


def extract(tile: Value, offsets: tuple[int, ...], shape: tuple[int, ...]) -> Value:
    """Return a part of a tile or of memory.

    Raises:
        UsageError: it does not lie within.
    """
    for axis, (offset, extent) in enumerate(zip(offsets, shape, strict=True)):
        whole = tile.shape[axis]
        if not isinstance(whole, int) or not offset >= 0 or offset + extent > whole:
            raise UsageError(
                f"{extent} elements from {offset} on do not lie within axis {axis} of {whole}"
            )
        if extent != whole:
            tile = tile.apply("slice", axis=axis, start=offset, stop=offset + extent, step=1)
    return tile


def insert(tile: Value, part: Value, offsets: tuple[int, ...]) -> Value:
    """Return a tile with a part of it replaced."""
    return _inserted(tile, part, offsets, 0)


def _inserted(tile: Value, part: Value, offsets: tuple[int, ...], axis: int) -> Value:
    if axis == tile.ndim:
        return part
    begin, whole = offsets[axis], tile.shape[axis]
    end = begin + part.shape[axis]
    if not isinstance(whole, int) or not begin >= 0 or end > whole:
        raise UsageError(f"elements {begin} to {end} do not lie within axis {axis} of {whole}")

    def cut(start: Any, stop: Any) -> Value:
        if (start, stop) == (0, whole):
            return tile
        return tile.apply("slice", axis=axis, start=start, stop=stop, step=1)

    middle = _inserted(cut(begin, end), part, offsets, axis + 1)
    pieces = [cut(0, begin)] if begin > 0 else []
    pieces.append(middle)
    pieces += [cut(end, whole)] if end < whole else []
    return pieces[0] if len(pieces) == 1 else tile.builder.apply("concat", *pieces, axis=axis)


def _quantised(tile: Value, scale: float, zero: int, dtype: str) -> Value:
    low, high = {"int8": (-128.0, 127.0), "uint8": (0.0, 255.0)}[dtype]
    whole = (tile * scale).apply("round") + float(zero)
    return whole.apply("clamp", low=low, high=high).astype(dtype)


_BINARY = {
    **{"ADD": "add", "SUB": "sub", "MUL": "mul", "DIV": "div", "REM": "fmod", "MAX": "maximum"},
    **{"MIN": "minimum", "AND": "bitwise_and", "OR": "bitwise_or", "XOR": "bitwise_xor"},
}
_UNARY = {
    **{"ABS": "abs", "NOT": "bitwise_not", "NEG": "neg", "EXP": "exp", "LOG": "log"},
    **{"RECIP": "reciprocal", "SQRT": "sqrt", "RSQRT": "rsqrt", "RELU": "relu"},
}
_EXPANDED = {
    **{"ADD": "add", "SUB": "sub", "MUL": "mul", "DIV": "div", "MAX": "maximum", "MIN": "minimum"},
    "EXPDIF": "expdif",
}


def _rows() -> list[Instruction]:
    rows = [Instruction(f"T{name}", 2, _operator(op)) for name, op in _BINARY.items()]
    rows += [Instruction(f"T{name}S", 1, _scalar(op), ("scalar",)) for name, op in _BINARY.items()]
    rows += [Instruction(f"T{name}", 1, _operator(op)) for name, op in _UNARY.items()]
    for side, axis in (("ROW", 1), ("COL", 0)):
        rows += [
            Instruction(f"T{side}{name}", 1, _reduction(name.lower(), axis))
            for name in ("SUM", "MAX", "MIN")
        ]
        rows += [
            Instruction(f"T{side}EXPAND{name}", 2, _expanded(op, axis))
            for name, op in _EXPANDED.items()
        ]
        rows.append(
            Instruction(
                f"T{side}EXPAND",
                1,
                lambda t, shape: t.apply("broadcast_to", shape=shape),
                ("shape",),
            )
        )
    return rows


_MATRIX = (
    Instruction("TMATMUL", 2, lambda a, b: a @ b),
    Instruction("TMATMUL_BIAS", 3, lambda a, b, bias: a @ b + bias),
    Instruction("TMATMUL_ACC", 3, lambda c, a, b: c + a @ b),
    Instruction("TGEMV", 2, lambda a, b: a @ b),
    Instruction("TGEMV_BIAS", 3, lambda a, b, bias: a @ b + bias),
    Instruction("TGEMV_ACC", 3, lambda c, a, b: c + a @ b),
)
_OTHERS = (
    Instruction("TCMP", 2, _compare, ("mode",)),
    Instruction("TCMPS", 1, lambda t, scalar, mode: _compare(t, scalar, mode), ("scalar", "mode")),
    Instruction("TSEL", 3, lambda m, a, b: m.apply("where", a, b)),
    Instruction("TSELS", 2, lambda m, a, scalar: m.apply("where", a, scalar), ("scalar",)),
    Instruction("TCVT", 1, lambda t, dtype: t.astype(dtype), ("dtype",)),
    Instruction("TFMA", 3, lambda a, b, c: a * b + c),
    Instruction("TCONCAT", 2, lambda a, b: a.builder.apply("concat", a, b, axis=1)),
    Instruction("TEXTRACT", 1, extract, ("offsets", "shape")),
    Instruction("TINSERT", 2, insert, ("offsets",)),
    Instruction("TFILLPAD", 1, _filled, ("shape", "value")),
    Instruction("TTRANS", 1, lambda t: t.T),
    Instruction("TGATHER", 2, lambda t, rows: t.apply("take", rows.reshape(-1), axis=0)),
    Instruction("TMOV", 1, lambda t: t),
    Instruction("TQUANT", 1, _quantised, ("scale", "zero", "dtype")),
    Instruction(
        "TDEQUANT",
        1,
        lambda t, scale, zero: (t.astype("float32") - float(zero)) * scale,
        ("scale", "zero"),
    ),
)

INSTRUCTIONS: Mapping[str, Instruction] = {row.name: row for row in (*_rows(), *_MATRIX, *_OTHERS)}
"""What programs may use; memory, loops and barriers are the program's own."""

NOT_EXECUTED = frozenset(
    [
        "TSHL",
        "TSHR",
        "TSHLS",
        "TSHRS",
        "TROWPROD",
        "TCOLPROD",
        "TROWARGMAX",
        "TROWARGMIN",
        "TCOLARGMAX",
        "TCOLARGMIN",
        "TIMG2COL",
        "TCI",
        "TTRI",
        "THISTOGRAM",
        "TSORT",
        "TMRGSORT",
        "TSCATTER",
        "TPARTADD",
        "TPARTMUL",
        "TPARTMAX",
        "TPARTMIN",
        "TPREFETCH",
        "MGATHER",
        "MSCATTER",
        "MGATHER_MASK",
        "MSCATTER_MASK",
        "MGATHER_CAS",
        "GMOV",
        "TMATMUL_MX",
        "TMATMUL_MX_BIAS",
        "TMATMUL_MX_ACC",
        "TGEMV_MX",
        "TGEMV_MX_BIAS",
        "TGEMV_MX_ACC",
    ]
)
"""Tile operations of the specification that opkit has nothing for."""
