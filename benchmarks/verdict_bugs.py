"""The bugs of verdict.py: what a right result becomes by each, and the right result itself."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from opkit import compiler
from opkit.compiler.tracing.reference import _bound
from opkit.scaffold.formula import OverRows, golden_source, over_rows, parse
from opkit.scaffold.program.variants import formula_graph_of
from opkit.schema import OpSpec
from opkit.testing import Case
from opkit.testing.cases.cases import output_tensors, plain_attr
from opkit.testing.numbers.arrays import is_float, narrow, tensors_of, widen, widen_input

__all__ = ["BUGS", "EDGE_BUGS", "Bug", "planned"]

_BLOCK_BYTES = 32


@lru_cache(maxsize=64)
def _lowered(spec: OpSpec, variant: int) -> tuple[OverRows, compiler.Graph]:
    over = over_rows(spec)
    graph = formula_graph_of(over.spec, variant)
    graph = compiler.in_equal_form(graph, fast_math=spec.fast_math, written=over.written)
    return over, compiler.simplify(compiler.expand(graph, fractions_only=True))


def planned(spec: OpSpec, case: Case, inputs: list) -> list[np.ndarray]:
    """Return what the compiler's graph of the formulas gives, each operator's result rounded to
    float32, in the case's data types."""
    over, graph = _lowered(spec, case.variant)
    parsed = parse(spec)
    arrays = tensors_of(inputs)
    tiles = [
        a for t, a in zip(spec.inputs, arrays, strict=False) if t.name not in parsed.row_inputs
    ]
    shape = np.broadcast_shapes(*(np.shape(array) for array in tiles))
    columns = shape[-1] if shape else 1
    rows = int(np.prod(shape[:-1], dtype=int))
    whole = (rows, columns) if over.rows else (rows * columns,)
    found: dict = {}
    for tensor, value, dtype in zip(spec.inputs, arrays, case.dtypes, strict=False):
        wide = widen_input(value, dtype)
        wide = wide.astype(np.float32) if is_float(dtype) else wide
        width = (rows, 1) if tensor.name in parsed.row_inputs else whole
        found[tensor.name] = np.broadcast_to(wide.reshape(-1, *width[1:]), width)
    attrs = {attr.name: plain_attr(attr) for attr in spec.attrs}
    sizes = {over.rows: rows, over.columns: whole[-1]}
    for node in graph.nodes:
        found[node.output.name] = _rounded(node, found, attrs, sizes)
    results = []
    dtypes = [dtype for _, dtype in output_tensors(case, spec)]
    for output, (_, name), dtype in zip(parsed.outputs, graph.outputs, dtypes, strict=True):
        kept = (*shape[:-1], 1) if output.keepdims else shape[:-1]
        wide = np.asarray(found[name], np.float64)
        results.append(narrow(wide.reshape(kept if output.per_row else shape), dtype))
    return results


def _rounded(node: compiler.Node, found: dict, attrs: dict, sizes: dict) -> np.ndarray:
    """Return an operator's result, rounded to float32 where it is no whole number."""
    if node.operator == "attribute":
        return np.float32(attrs[str(node.settings["name"])])
    given = [found[name] for name in node.inputs]
    wide = [a.astype(np.float64) if a.dtype == np.float32 else a for a in given]
    settings = {key: _bound(value, sizes) for key, value in node.settings.items()}
    with np.errstate(all="ignore"):
        value = compiler.OPERATORS[node.operator].reference(*wide, **settings)
        return np.asarray(value, np.float32 if node.output.dtype == "float32" else None)


Bug = Callable[[OpSpec, Case, list, list[np.ndarray]], list[np.ndarray] | None]


def missing_tail(spec: OpSpec, case: Case, inputs: list, right: list) -> list | None:
    """Leave the last elements poisoned, at most 17 of them."""
    if right[0].size < 2:
        return None
    wrong = [array.copy() for array in right]
    flat = wrong[-1].reshape(-1)
    # What the tail holds instead: what stood in the buffer before, the row or tile above.
    count = min(17, flat.size // 2)
    flat[-count:] = flat[:count]
    return wrong


def swapped_block(spec: OpSpec, case: Case, inputs: list, right: list) -> list | None:
    """Exchange the first two blocks of the last output."""
    block = _BLOCK_BYTES // right[-1].itemsize
    if right[-1].size < 2 * block:
        return None
    wrong = [array.copy() for array in right]
    flat = wrong[-1].reshape(-1)
    flat[:block], flat[block : 2 * block] = flat[block : 2 * block].copy(), flat[:block].copy()
    return wrong


def half_input(spec: OpSpec, case: Case, inputs: list, right: list) -> list | None:
    """Round the first input to float16."""
    if case.dtypes[0].name != "float32":
        return None
    moved = [inputs[0].astype(np.float16).astype(np.float32), *inputs[1:]]
    return planned(spec, case, moved)


def relative(spec: OpSpec, case: Case, inputs: list, right: list) -> list | None:
    """Multiply every element by 1 + 2e-4 or 1 - 2e-4."""
    if case.dtypes[-1].name != "float32":
        return None
    stream = np.random.default_rng(7)
    return [(a * (1 + 2e-4 * stream.choice([-1, 1], a.shape))).astype(a.dtype) for a in right]


def smallest(spec: OpSpec, case: Case, inputs: list, right: list) -> list | None:
    """Add 1e-4 to the smallest hundredth of the results, at least one."""
    if case.dtypes[-1].name != "float32":
        return None
    wrong = []
    for array in right:
        flat = array.copy().reshape(-1)
        order = np.argsort(np.abs(flat), kind="stable")[: max(1, flat.size // 100)]
        flat[order] += np.float32(1e-4)
        wrong.append(flat.reshape(array.shape))
    return wrong


def zeros(spec: OpSpec, case: Case, inputs: list, right: list) -> list | None:
    """Write nothing but zeros, in every output."""
    return [np.zeros_like(array) for array in right]


def no_number(spec: OpSpec, case: Case, inputs: list, right: list) -> list | None:
    """Write NaN where infinity belongs.

    It does not where the formula gives another number in float64, or NaN in float32: as it stands,
    or with what is divided divided first. Overflow on the way decides there, and NaN is as right.
    """
    wide = [
        widen_input(value, dtype)
        for value, dtype in zip(tensors_of(inputs), case.dtypes, strict=False)
    ]
    dtypes = [dtype for _, dtype in output_tensors(case, spec)]
    source = golden_source(spec) or ""
    texts = [
        _outputs(spec, source, wide),
        _outputs(spec, source.replace("np.float64", "np.float32"), wide),
        _outputs(spec, _divided_first(source).replace("np.float64", "np.float32"), wide),
    ]
    wrong = []
    for array, dtype, double, *singles in zip(right, dtypes, *texts, strict=True):
        values = widen(array, dtype)
        belongs = np.isinf(values) & (values == widen(narrow(double, dtype), dtype))
        belongs &= ~np.isnan(singles).any(axis=0)
        wrong.append(narrow(np.where(belongs, np.nan, values), dtype))
    return wrong


def _outputs(spec: OpSpec, source: str, inputs: list) -> list[np.ndarray]:
    """Return what a golden's text gives."""
    names: dict = {}
    exec(compile(source, f"golden of {spec.op}", "exec"), names)
    with np.errstate(all="ignore"):
        found = names[spec.name](*inputs, **{attr.name: plain_attr(attr) for attr in spec.attrs})
    return [np.asarray(one) for one in (found if isinstance(found, tuple) else (found,))]


class _DividedFirst(ast.NodeTransformer):
    """Products and quotients whose first factor is divided before it is multiplied."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        """Take a product apart, and put it together anew."""
        if not isinstance(node.op, (ast.Mult, ast.Div)):
            return self.generic_visit(node)
        factors: list[ast.expr] = []
        divisors: list[ast.expr] = []
        while isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div)):
            side = factors if isinstance(node.op, ast.Mult) else divisors
            side.insert(0, self.visit(node.right))
            node = node.left  # type: ignore[assignment]
        found = self.visit(node)
        for divisor in divisors:
            found = ast.BinOp(found, ast.Div(), divisor)
        for factor in factors:
            found = ast.BinOp(found, ast.Mult(), factor)
        return found


def _divided_first(source: str) -> str:
    return ast.unparse(ast.fix_missing_locations(_DividedFirst().visit(ast.parse(source))))


def hidden(spec: OpSpec, case: Case, inputs: list, right: list) -> list | None:
    """Write 0 where NaN belongs."""
    return _changed(case, spec, right, lambda values: np.where(np.isnan(values), 0.0, values))


def doubled(spec: OpSpec, case: Case, inputs: list, right: list) -> list | None:
    """Write twice the result."""
    return _changed(case, spec, right, lambda values: 2 * values)


def _changed(
    case: Case, spec: OpSpec, right: list, change: Callable[[np.ndarray], np.ndarray]
) -> list:
    dtypes = [dtype for _, dtype in output_tensors(case, spec)]
    return [
        narrow(change(widen(array, dtype)), dtype)
        for array, dtype in zip(right, dtypes, strict=True)
    ]


BUGS: dict[str, Bug] = {
    "zeros": zeros,
    "missing tail": missing_tail,
    "swapped block": swapped_block,
    "half input": half_input,
    "relative 2e-4": relative,
    "smallest 1e-4": smallest,
}

# Of the ends of ranges, where the others are roundings of what is infinite or no number.
EDGE_BUGS: dict[str, Bug] = {
    "zeros": zeros,
    "NaN for infinity": no_number,
    "0 for NaN": hidden,
    "doubled": doubled,
}
