"""`tl.dot`: a vector core hands both tiles to its block's cube core, and takes the product back."""

from __future__ import annotations

import math

from .elementwise import narrowed, widened
from .lowering import Lowering, lowers
from .ttir import Operation, Type
from .values import STORED, Buffer, Splat, Stored, Value, element_bytes

__all__ = ["SYSTEM_BYTES", "product_tiling", "product_types"]

SYSTEM_BYTES = 16 * 1024 * 1024
"""What the library of Matmul objects wants of the workspace for itself."""

_RESULTS = {"f16": "f32", "bf16": "f32", "f32": "f32", "i8": "i32"}
"""What the cube accumulates in, by the operands' elements."""


def _round_up(extent: int, step: int) -> int:
    return (extent + step - 1) // step * step


@lowers("tt.dot")
def _dot(lowering: Lowering, operation: Operation) -> None:
    left, right, total = lowering.given(operation)
    kind = operation.result_types[0]
    element = lowering.element(left.type)
    if element not in _RESULTS or right.type.element != element:
        raise lowering.refuse(
            f"dot of {element} and {right.type.element}: the cube core multiplies float16,"
            " bfloat16, float32 and int8"
        )
    shape = left.type.shape or ()
    n = (right.type.shape or ())[-1]
    m, k = shape[-2:]
    batches = math.prod(shape[:-2])
    raw = Type(_RESULTS[element], kind.shape)
    product = _product(lowering, lowering.stored(left), lowering.stored(right), (batches, m, n, k))
    lowering.set(operation, _added(lowering, product, total, raw, kind))


def _product(
    lowering: Lowering, left: Buffer, right: Buffer, extents: tuple[int, int, int, int]
) -> Buffer:
    batches, m, n, k = extents
    writer, element = lowering.writer, left.element
    name = lowering.matrix_product(element, m, n, k)
    source, result = STORED[element], STORED[_RESULTS[element]]
    size = element_bytes(element)
    # Each at a place of its own in what the core has of the workspace.
    b_at = _round_up(batches * m * k * size, 512)
    c_at = b_at + _round_up(batches * k * n * size, 512)
    lowering.workspace_bytes = max(
        lowering.workspace_bytes, c_at + _round_up(batches * m * n * 4, 512)
    )
    target = writer.buffer(_RESULTS[element], batches * m * n)
    stage = writer.buffer(element, 1)
    writer.on("any")
    for place, buffer, count in ((0, left, batches * m * k), (b_at, right, batches * k * n)):
        box = f"Box<1>{{{{{count}}}, {{1}}, {{0}}, {{{count}}}}}"
        writer.line(
            f"store_box<{source}, 1>(products.work + {place}, {buffer.name}, {box}, {stage.name});"
        )
    writer.line("barrier();")
    for batch in range(batches):
        places = [
            f"memory<{source}>(products.work + {batch * m * k * size})",
            f"memory<{source}>(products.work + {b_at + batch * k * n * size})",
            f"memory<{result}>(products.work + {c_at + batch * m * n * 4})",
        ]
        writer.line(f"products.{name}.SetTensorA({places[0]});")
        writer.line(f"products.{name}.SetTensorB({places[1]});")
        writer.line(f"products.{name}.IterateAll({places[2]});")
    writer.line("barrier();")
    count = batches * m * n
    box = f"Box<1>{{{{{count}}}, {{1}}, {{0}}, {{{count}}}}}"
    writer.line(
        f"load_box<{result}, true, 1>({target.name}, products.work + {c_at}, {box}, {result}(0));"
    )
    writer.pipe = "any"
    return target


def _added(lowering: Lowering, product: Buffer, total: Value, raw: Type, kind: Type) -> Value:
    writer = lowering.writer
    is_zero = isinstance(total, Splat) and total.scalar.constant == 0
    if not is_zero and getattr(total, "base", None) != 0:
        more = lowering.stored(total) if raw.element == "i32" else widened(lowering, total)
        sums = writer.buffer(raw.element, product.count)
        writer.vector(f"Add({sums.name}, {product.name}, {more.name}, {product.count});")
        product = sums
    if kind.element == raw.element:
        return Stored(kind, product)
    return Stored(kind, narrowed(lowering, product, kind))


def product_tiling(element: str, m: int, n: int, k: int) -> list[str]:
    """Return assignments to the fields of a TCubeTiling that multiplies tiles of these extents."""
    size = element_bytes(element)
    step = 32 // size if size < 4 else 16
    base_m, base_n = (min(128, _round_up(extent, 16)) for extent in (m, n))
    if element == "i8":
        base_n = min(128, _round_up(n, 32))
    base_k = min(128 // size, _round_up(k, step))
    fields = {
        "usedCoreNum": 1,
        "M": m,
        "N": n,
        "Ka": k,
        "Kb": k,
        "singleCoreM": m,
        "singleCoreN": n,
        "singleCoreK": k,
        "baseM": base_m,
        "baseN": base_n,
        "baseK": base_k,
        "depthA1": 2,
        "depthB1": 2,
        "stepM": 1,
        "stepN": 1,
        "stepKa": 1,
        "stepKb": 1,
        "dbL0A": 2,
        "dbL0B": 2,
        "dbL0C": 1,
    }
    return [f"{name} = {value};" for name, value in fields.items()]


def product_types(element: str) -> str:
    """Return the type of the Matmul object of operands' element."""
    source, result = STORED[element], STORED[_RESULTS[element]]
    operand = f"MatmulType<TPosition::GM, CubeFormat::ND, {source}>"
    target = f"MatmulType<TPosition::GM, CubeFormat::ND, {result}>"
    return f"matmul::Matmul<{operand}, {operand}, {target}, {target}>"
