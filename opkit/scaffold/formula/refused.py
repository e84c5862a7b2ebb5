"""What people write that formulas do not have, and what to write instead."""

from __future__ import annotations

__all__ = ["NAMED_AXES", "OF_AXES", "REFUSED_FUNCTIONS", "REFUSED_SYNTAX"]

_BY_HAND = "leave the formula out and write the kernel by hand"
NAMED_AXES = 'give every input a "shape", such as ["..."]: formulas over named axes have it'
_GIVE_AXES = (
    'give every input a "shape" with names for its axes, such as ["M", "K"] and ["N", "K"]:'
    " formulas over named axes have it"
)
_GIVE_LENGTH = (
    'give every input a "shape" whose last axis has a length, such as ["T", 64]: formulas over'
    " named axes have it"
)
_ONE_AXIS = f"only sum, mean, max and min of the last axis are reductions; {NAMED_AXES}"

REFUSED_SYNTAX: dict[str, tuple[str, str | None]] = {
    "BitXor": ("^", "a power is written x**2"),
    "Mod": ("%", f"x - y*floor(x/y) is x % y; or {NAMED_AXES}"),
    "FloorDiv": ("//", f"floor(x/y) is x // y; or {NAMED_AXES}"),
    "MatMult": ("@", _GIVE_AXES),
    "LShift": ("<<", "x * 2**n is x << n"),
    "RShift": (">>", "floor(x / 2**n) is x >> n"),
    "BitAnd": ("&", f"for conditions, put one where into another; for bits, {NAMED_AXES}"),
    "BitOr": ("|", f"for conditions, put one where into another; for bits, {NAMED_AXES}"),
    "Invert": ("~", f"swap the two values of where; for bits, {NAMED_AXES}"),
    "BoolOp": (
        "and/or (BoolOp)",
        "put one where into another: where(a > 0, where(b > 0, x, y), y)",
    ),
    "Not": ("not", "swap the two values of where"),
    "UnaryOp": ("not or ~", "swap the two values of where"),
    "IfExp": ("if/else", "write where(condition, a, b)"),
    "Subscript": ("a slice or an index", _GIVE_AXES),
    "Attribute": ('"Attribute" (a dot)', "name inputs, attributes and functions only"),
    "NamedExpr": (":=", "repeat the value: what occurs twice is computed once"),
    "Starred": ("*", None),
}
"""By the name of Python's node: what it is called, and what to write."""

REFUSED_FUNCTIONS: dict[str, str] = {
    **dict.fromkeys(("erf", "erfc", "sin", "cos", "tan", "atan", "atan2", "log2"), NAMED_AXES),
    **dict.fromkeys(("asin", "acos"), _BY_HAND),
    "acosh": "for x above 1 write log(x + sqrt(x**2 - 1))",
    "log10": "write log(x)/log(10)",
    "exp2": "write 2**x",
    "cbrt": "for x above 0 write x**(1/3)",
    "mod": "write x - y*floor(x/y)",
    "fmod": f"write x - y*floor(x/y), for x and y of one sign; or {NAMED_AXES}",
    **dict.fromkeys(("clip", "clamp"), "write minimum(maximum(x, low), high)"),
    "group_norm": 'give x a "shape" with names, such as ["N", "C", "H", "W"]',
    "gelu": "write 0.5*x*(1 + tanh(sqrt(2/pi)*(x + 0.044715*x**3)))",
    **dict.fromkeys(("silu", "swish"), "write x*sigmoid(x)"),
    "mish": "write x*tanh(softplus(x))",
    "elu": "write where(x > 0, x, alpha*expm1(x))",
    "leaky_relu": "write where(x > 0, x, slope*x)",
    "relu6": "write minimum(maximum(x, 0), 6)",
    "softmax": "write exp(x - max(x, axis=-1))/sum(exp(x - max(x, axis=-1)), axis=-1)",
    "log_softmax": "write x - max(x, axis=-1) - log(sum(exp(x - max(x, axis=-1)), axis=-1))",
    "logsigmoid": "write -softplus(-x)",
    "var": "write mean((x - mean(x, axis=-1))**2, axis=-1)",
    "std": "write sqrt(mean((x - mean(x, axis=-1))**2, axis=-1))",
    "norm": "write sqrt(sum(x**2, axis=-1))",
    **dict.fromkeys(("prod", "cumsum", "cumprod", "any", "all"), f"{_ONE_AXIS}; or {_BY_HAND}"),
    **dict.fromkeys(("argmax", "argmin"), f"{_ONE_AXIS}; or {_BY_HAND}"),
    **dict.fromkeys(("matmul", "transpose", "take_along", "put_along", "concat"), _GIVE_AXES),
    **dict.fromkeys(("stack", "pad", "reshape", "take", "chunk", "split"), _GIVE_AXES),
    **dict.fromkeys(("topk", "topk_places", "sort", "argsort"), _GIVE_LENGTH),
    **dict.fromkeys(("isnan", "isinf", "isfinite"), "x == x is false for NaN only"),
}
"""Names of functions, and what to write."""

OF_AXES = frozenset(
    name for name, help in REFUSED_FUNCTIONS.items() if help in (_GIVE_AXES, _GIVE_LENGTH)
)
"""Functions that no other words replace: a formula that has one needs named axes, whatever else it
lacks."""
