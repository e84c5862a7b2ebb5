"""Operations on one element as C++: what scalars, loops and reductions are made of."""

from __future__ import annotations

from collections.abc import Sequence

from .ttir import Operation
from .values import COMPUTED

__all__ = ["FLOAT_COMPARISONS", "INTEGER_COMPARISONS", "UNSIGNED", "element_text", "rounded"]

UNSIGNED = {"i1": "bool", "i8": "uint8_t", "i16": "uint16_t", "i32": "uint32_t", "i64": "uint64_t"}
"""C++ of whole numbers without a sign."""

INTEGER_COMPARISONS = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
"""By MLIR's number of the predicate."""
FLOAT_COMPARISONS = (
    *("false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord"),
    *("ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true"),
)

_SIGNS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


def rounded(text: str, element: str) -> str:
    """Return C++ that rounds a float to what an element can hold."""
    return f"to_{element}({text})" if element in ("f16", "bf16") else text


def element_text(operation: Operation, given: Sequence[str]) -> str | None:
    """Return the C++ of an operation on single elements; None: there is none.

    Args:
        operation: what `arith`, `math` or `tt` has.
        given: C++ of the operands, of the types of `COMPUTED`.
    """
    name = operation.name
    element = operation.result_types[0].element if operation.result_types else ""
    source = operation.operand_types[0].element if operation.operand_types else ""
    if operation.result_types and operation.result_types[0].is_pointer:
        element = "i64"
    if operation.operand_types and operation.operand_types[0].is_pointer:
        source = "i64"
    if element not in COMPUTED:
        return None
    if name == "arith.cmpi":
        return _integer_comparison(
            INTEGER_COMPARISONS[operation.integer("predicate")], source, given
        )
    if name == "arith.cmpf":
        return _float_comparison(FLOAT_COMPARISONS[operation.integer("predicate")], given)
    if name in ("arith.select",):
        return f"({given[0]} ? {given[1]} : {given[2]})"
    if element in UNSIGNED or name in ("arith.fptosi", "arith.fptoui"):
        return _integer(name, element, source, given)
    return _float(name, element, source, given)


def _integer_comparison(predicate: str, element: str, given: Sequence[str]) -> str:
    a, b = given
    if predicate.startswith("u"):
        kind = UNSIGNED[element]
        return f"(({kind}){a} {_SIGNS[predicate[1:]]} ({kind}){b})"
    if element == "i1" and predicate.startswith("s"):
        # A true i1 is -1.
        return f"(-(int){a} {_SIGNS[predicate[1:]]} -(int){b})"
    return f"({a} {_SIGNS[predicate.removeprefix('s')]} {b})"


def _float_comparison(predicate: str, given: Sequence[str]) -> str:
    a, b = given
    none = f"({a} != {a} || {b} != {b})"
    if predicate in ("true", "false"):
        return predicate
    if predicate in ("ord", "uno"):
        return f"(!{none})" if predicate == "ord" else none
    sign = _SIGNS[predicate[1:]]
    if predicate == "one":
        return f"({a} < {b} || {a} > {b})"
    if predicate.startswith("o") or predicate == "une":
        return f"({a} {sign} {b})"
    return f"({none} || {a} {sign} {b})"


def _integer(name: str, element: str, source: str, given: Sequence[str]) -> str | None:
    kind = COMPUTED[element]
    plain = UNSIGNED[element]
    if element == "i1" and name in ("arith.addi", "arith.subi"):
        return f"({given[0]} != {given[1]})"
    wraps = {"arith.addi": "+", "arith.subi": "-", "arith.muli": "*"}
    if name in wraps:
        a, b = given
        return f"({kind})((uint64_t){a} {wraps[name]} (uint64_t){b})"
    bits = {"arith.andi": "&", "arith.ori": "|", "arith.xori": "^"}
    if name in bits:
        a, b = given
        return f"({kind})({a} {bits[name]} {b})"
    if name in ("arith.divsi", "arith.remsi"):
        function = "quotient" if name == "arith.divsi" else "remainder"
        return f"{function}<{kind}>({given[0]}, {given[1]})"
    if name in ("arith.divui", "arith.remui"):
        function = "quotient" if name == "arith.divui" else "remainder"
        return f"({kind}){function}_unsigned<{plain}>({given[0]}, {given[1]})"
    if name == "arith.shli":
        return f"shift_left<{kind}>({given[0]}, ({plain}){given[1]})"
    if name == "arith.shrsi":
        return f"shift_right<{kind}>({given[0]}, ({plain}){given[1]})"
    if name == "arith.shrui":
        return f"({kind})shift_right<{plain}>({given[0]}, ({plain}){given[1]})"
    pick = {"max": ">", "min": "<"}
    if name in ("arith.maxsi", "arith.minsi", "arith.maxui", "arith.minui"):
        a, b = given
        cast = f"({plain})" if name.endswith("ui") else ""
        return f"({cast}{a} {pick[name[6:9]]} {cast}{b} ? {a} : {b})"
    if name in ("arith.extsi", "arith.trunci", "arith.index_cast"):
        if element == "i1":
            return f"(({given[0]} & 1) != 0)"
        return f"({kind})-(int){given[0]}" if source == "i1" else f"({kind}){given[0]}"
    if name == "arith.extui":
        return f"({kind})({UNSIGNED[source]}){given[0]}"
    if name == "arith.fptosi":
        if element == "i1":
            return f"({given[0]} != 0)"
        return f"narrow<{kind}>({given[0]})"
    if name == "arith.fptoui":
        if element == "i1":
            return f"({given[0]} != 0)"
        return f"({kind})to_unsigned({given[0]})"
    if name == "math.absi":
        return f"({kind})({given[0]} < 0 ? 0 - (uint64_t){given[0]} : (uint64_t){given[0]})"
    if name == "tt.mulhiui":
        width = 64 if element == "i64" else 32
        return f"({kind})high_half(({plain}){given[0]}, ({plain}){given[1]}, {width})"
    if name in ("tt.ptr_to_int", "tt.int_to_ptr"):
        return f"(int64_t){given[0]}"
    return None


def _float(name: str, element: str, source: str, given: Sequence[str]) -> str | None:
    signs = {"arith.addf": "+", "arith.subf": "-", "arith.mulf": "*", "arith.divf": "/"}
    signs["tt.precise_divf"] = signs["tt.approx_divf"] = "/"
    if name in signs:
        return rounded(f"({given[0]} {signs[name]} {given[1]})", element)
    if name == "arith.negf":
        return f"(-{given[0]})"
    if name in ("arith.maxnumf", "arith.minnumf"):
        a, b = given
        sign = ">" if name == "arith.maxnumf" else "<"
        return f"({a} != {a} ? {b} : {b} != {b} ? {a} : {a} {sign} {b} ? {a} : {b})"
    if name in ("arith.maximumf", "arith.minimumf"):
        a, b = given
        sign = ">" if name == "arith.maximumf" else "<"
        return f"({a} != {a} ? {a} : {b} != {b} ? {b} : {a} {sign} {b} ? {a} : {b})"
    if name in ("arith.extf", "arith.truncf", "tt.fp_to_fp"):
        return rounded(given[0], element)
    if name == "arith.sitofp":
        value = f"-(int){given[0]}" if source == "i1" else given[0]
        return rounded(f"static_cast<float>({value})", element)
    if name == "arith.uitofp":
        return rounded(f"static_cast<float>(({UNSIGNED[source]}){given[0]})", element)
    if name == "math.absf":
        return f"({given[0]} < 0 ? -{given[0]} : {given[0]} == 0 ? 0.0f : {given[0]})"
    if name == "math.fma":
        return rounded(f"({given[0]} * {given[1]} + {given[2]})", element)
    return None
