"""Values as trees of exact numbers, sums, products and functions, and the equal forms of them that
lose fewer digits, do not overflow, or cost less.

What a kernel, a tensor or a data type is, is not known here: who has formulas or graphs builds
trees, has them rewritten, and makes of them what it needs.
"""

from __future__ import annotations

from .evaluate import evaluate, value_of
from .factoring import collect
from .fast_math import simplify
from .functions import (
    COMPARISON_SIGNS,
    FUNCTIONS,
    INTERNAL,
    REDUCTION_NAMES,
    FunctionRow,
    row_of,
)
from .nodes import (
    COLUMNS,
    COMPARISONS,
    ONE,
    REDUCTIONS,
    ZERO,
    Node,
    Space,
    add,
    as_power,
    attribute,
    call,
    coefficient_of,
    constant,
    divide,
    factors_of,
    negate,
    number,
    power,
    product,
    rebuild,
    space_of,
    subtract,
    tensor,
    terms_of,
    walk,
)
from .polynomial import Polynomial, match_polynomial
from .stable import stabilise
from .text import to_cpp, to_formula, to_note, to_torch

__all__ = [
    "COLUMNS",
    "COMPARISONS",
    "COMPARISON_SIGNS",
    "FUNCTIONS",
    "INTERNAL",
    "ONE",
    "REDUCTIONS",
    "REDUCTION_NAMES",
    "ZERO",
    "FunctionRow",
    "Node",
    "Polynomial",
    "Space",
    "add",
    "as_power",
    "attribute",
    "call",
    "coefficient_of",
    "collect",
    "constant",
    "divide",
    "evaluate",
    "factors_of",
    "match_polynomial",
    "negate",
    "number",
    "power",
    "product",
    "rebuild",
    "row_of",
    "simplify",
    "space_of",
    "stabilise",
    "subtract",
    "tensor",
    "terms_of",
    "to_cpp",
    "to_formula",
    "to_note",
    "to_torch",
    "value_of",
    "walk",
]
