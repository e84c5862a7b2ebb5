"""`pypto.cast`: rounding and overflow as the public project's documents say."""

from __future__ import annotations

from typing import Any

from opkit.compiler import GraphError

from .enumerations import dtype_name
from .location import here
from .traced import Traced

__all__ = ["cast"]


def _away_from_zero(x: Traced) -> Traced:
    """Round to the nearest whole number; halves go away from zero."""
    whole = x.apply("trunc")
    rest = x - whole
    return (rest.apply("abs") >= 0.5).apply("where", whole + x.apply("sign"), whole)


_ROUNDINGS: dict[str, Any] = {
    "CAST_RINT": lambda x: x.apply("round"),
    "CAST_ROUND": _away_from_zero,
    "CAST_FLOOR": lambda x: x.apply("floor"),
    "CAST_CEIL": lambda x: x.apply("ceil"),
    "CAST_TRUNC": lambda x: x.apply("trunc"),
}
_NARROW = ("int8", "uint8", "int16", "uint16")


def cast(x: Traced, dtype: object, mode: object = None, satmode: object = None) -> Traced:
    """Return a tensor in another data type.

    Args:
        mode: of `pypto.CastMode`. Fractions become whole numbers by it, CAST_TRUNC where it is left
            out; conversions that round nothing ignore it, as the documents say.
        satmode: of `pypto.SaturationMode`: what fractions beyond a narrow type of whole numbers
            become: its end with ON, their lowest bits without.

    Raises:
        GraphError: a rounding between types of fractions other than to the nearest.
    """
    wanted = dtype_name(dtype)
    rounding = getattr(mode, "name", "CAST_NONE")
    of_fractions, to_fractions = "float" in x.dtype, "float" in wanted
    if not of_fractions or wanted == "bool":
        return x.apply("cast", dtype=wanted)
    if to_fractions:
        if wanted == x.dtype and rounding in _ROUNDINGS:
            return _ROUNDINGS[rounding](x)  # type: ignore[no-any-return]
        if wanted in ("float16", "bfloat16") and rounding not in ("CAST_NONE", "CAST_RINT"):
            raise GraphError(
                f"cast: opkit rounds {x.dtype} to {wanted} to the nearest, not by {rounding}",
                location=here(),
                help="CAST_RINT, or no mode",
            )
        return x.apply("cast", dtype=wanted)
    if rounding == "CAST_ODD":
        raise GraphError(f"cast: opkit has no CAST_ODD to {wanted}", location=here())
    if rounding in _ROUNDINGS and rounding != "CAST_TRUNC":
        x = _ROUNDINGS[rounding](x)
    if wanted in _NARROW and getattr(satmode, "name", "OFF") == "OFF":
        with x.builder.at(here()):
            whole = x.value.astype("int32").astype(wanted)
        return Traced(x.builder, whole, shape=x.shape)
    return x.apply("cast", dtype=wanted)
