"""Functions of formulas that are more than one operator of the table."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from typing import Any

from opkit.schema import written_out

from ...ir import Value, is_one
from ...passes import Rebuilder, formula_gradient, in_equal_form
from ..aten import ATEN_ELEMENTWISE, AtenCall
from .more_words import KEEPING_WORDS
from .operations import FormulaReader
from .parts import Part, floats, gone_of_all, of_one_rank, single
from .words import ATTENTION, FORMULA_WORDS, arguments_of, einsum

__all__ = [
    "attention",
    "dropout_of_given_share",
    "filled",
    "gradient",
    "product_of_letters",
    "torch_function",
    "torch_row",
    "word",
]


_OVERLOADS = ("default", "Tensor", "Scalar")
_WHOLE = ("fmax", "fmin", "heaviside", "sgn")
"""Functions of PyTorch that give whole numbers of whole numbers."""


def torch_row(name: str) -> Callable[..., Any] | None:
    """Return the row of an element-wise function of PyTorch; None where there is none."""
    found = (ATEN_ELEMENTWISE.get(f"aten.{name}.{overload}") for overload in _OVERLOADS)
    return next((row for row in found if row is not None), None)


def torch_function(reader: FormulaReader, node: ast.Call, row: Callable[..., Any]) -> Part:
    """Read an element-wise function that has a row among PyTorch's: `hypot(x, y)`."""
    assert isinstance(node.func, ast.Name)
    name = node.func.id
    parts = of_one_rank([reader.read(each) for each in node.args])
    settings = {str(each.arg): reader.literal(each.value) for each in node.keywords}
    operands = [single(part.value) for part in parts]
    types = [each.dtype for each in operands if isinstance(each, Value)]
    if not types:
        raise reader.wrong(node, "takes a tensor, not a number")
    dtype = "bool" if name.startswith(("is", "logical_")) else "float32"
    if name in _WHOLE and not floats(operands):
        dtype = types[0]

    def apply() -> Value:
        call = AtenCall(reader.builder, ((),), (dtype,), {})
        value = row(call, *operands, **settings)
        assert isinstance(value, Value)
        return value

    try:
        return Part(reader.guarded(node, apply), gone_of_all(parts))
    except TypeError as err:
        raise reader.wrong(node, f"cannot be: {err}") from err


def _argument(reader: FormulaReader, node: ast.expr) -> Any:
    """Return what follows a word's tensor: tensors and attributes of the launch as values, whole
    numbers of any width as int32; everything else as it is written out."""
    fractions = {each.name for each in reader.given.attributes if each.kind == "float"}
    names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    if not names:
        # A number, which may be computed: 30 / 100.
        return reader.read(node).value if isinstance(node, ast.BinOp) else reader.literal(node)
    if not reader.is_tensor(node) and not names & fractions:
        return reader.literal(node)
    value = reader.read(node).without_gone().value
    if isinstance(value, Value) and "int" in value.dtype and value.dtype != "int32":
        return value.astype("int32")
    return value


def word(reader: FormulaReader, node: ast.Call, name: str) -> Part:
    """Read a function of `FORMULA_WORDS`: of tensors, then of numbers that are written out."""
    named = [str(each.arg) for each in node.keywords]
    reader.guarded(node, lambda: arguments_of(name, len(node.args), named))
    part = reader.read(node.args[0])
    settings = {str(each.arg): _argument(reader, each.value) for each in node.keywords}
    rest = [_argument(reader, each) for each in node.args[1:]]
    axis = settings.get("axis", rest[0] if rest else None)
    if name == "unsqueeze" and part.gone:
        rank = reader.tensor(node, part).ndim
        # An axis that a reduction has taken away is put back where it was.
        back = axis if isinstance(axis, int) else 0
        back = back if back < 0 else back - rank + len(part.gone) - 1
        if len(part.gone) == 1 and back in part.gone:
            return Part(part.value)
    if name == "squeeze":
        x = reader.tensor(node, part)
        # It stays until the end, as an axis that a reduction takes away.
        if isinstance(axis, int) and is_one(x.shape[reader.guarded(node, lambda: axis % x.ndim)]):
            return Part(x, part.gone | {axis % x.ndim - x.ndim})
    part = part.without_gone()
    x = reader.tensor(node, part)
    if name in KEEPING_WORDS:
        keeps = bool(settings.pop("keepdims", False))
        value = reader.guarded(node, lambda: FORMULA_WORDS[name](x, *rest, **settings))
        bound = inspect.signature(FORMULA_WORDS[name]).bind(x, *rest, **settings)
        bound.apply_defaults()
        taken = bound.arguments["axis"]
        axes = range(x.ndim) if taken is None else (taken,)
        away = frozenset(at if at < 0 else at - x.ndim for at in axes)
        return Part(value, frozenset() if keeps else away)
    return Part(reader.guarded(node, lambda: FORMULA_WORDS[name](x, *rest, **settings)))


def attention(reader: FormulaReader, node: ast.Call) -> Part:
    """Read PyTorch's scaled_dot_product_attention(query, key, value, attn_mask, is_causal)."""
    names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal", "scale")
    given = dict(zip(names, node.args, strict=False))
    given |= {str(each.arg): each.value for each in node.keywords}
    share = reader.literal(given["dropout_p"]) if "dropout_p" in given else 0
    if not {"query", "key", "value"} <= given.keys() <= set(names) or share:
        raise reader.wrong(node, "takes query, key, value, attn_mask, is_causal and scale")
    query = reader.tensor(node, reader.read(given["query"]))
    scores = f"query @ swapaxes(key, -2, -1) / sqrt({query.shape[-1]})"
    if "scale" in given:
        scores = "query @ swapaxes(key, -2, -1) * scale"
    if "is_causal" in given and reader.literal(given["is_causal"]):
        # Keys after a query, counted from the first.
        scores = f"where(triu(ones_like({scores}), 1) > 0, -inf, {scores})"
    if "attn_mask" in given:
        mask = reader.tensor(node, reader.read(given["attn_mask"]))
        is_truth = mask.dtype == "bool"
        scores = f"where(attn_mask, {scores}, -inf)" if is_truth else f"{scores} + attn_mask"
    tree = written_out(ATTENTION.format(scores=scores), **given)
    for each in ast.walk(tree):
        ast.copy_location(each, node)
    return reader.read(tree)


def dropout_of_given_share(reader: FormulaReader, node: ast.Call) -> Part | None:
    """Return a dropout whose share is a number of the launch; None for any other."""
    named = {str(each.arg): each.value for each in node.keywords}
    share = node.args[2] if len(node.args) == 3 else named.get("p")
    kinds = {attribute.name: attribute.kind for attribute in reader.given.attributes}
    if not isinstance(share, ast.Name) or kinds.get(share.id) != "float":
        return None
    x = reader.tensor(node, reader.read(node.args[0]))
    p, seed = reader.read(share).value, reader.read(node.args[1]).value
    stream = reader.literal(named["stream"]) if "stream" in named else 0

    def apply() -> Value:
        random = reader.builder.apply("random_uniform", seed, shape=x.shape, stream=stream)
        return random.apply("greater", p).apply("where", single(x) / (1.0 - p), 0.0)

    return Part(reader.guarded(node, apply))


def gradient(reader: FormulaReader, node: ast.Call) -> Part:
    """Read `gradient(formula, given, x)`: the gradient with respect to the input `x` of what
    depends on the formula with the gradient `given`."""
    if len(node.args) != 3 or node.keywords or not isinstance(node.args[2], ast.Name):
        raise reader.wrong(node, "takes a formula, its gradient and the name of an input")
    # Its sizes may be divided inside.
    reader.divides = True
    name = "y"
    while f"grad_{name}" in reader.given.known:
        name += "_"
    inner = reader.inner_graph(name, ast.unparse(node.args[0]))
    for attribute in inner.attributes:
        if attribute.is_fixed:
            reader.builder.fixed(attribute.name)
    given = reader.tensor(node, reader.read(node.args[1]))
    wanted = node.args[2].id

    def apply() -> Value:
        graph, seeds = formula_gradient(inner, [wanted])
        graph = in_equal_form(graph, seeds=seeds, is_last=False)
        seed = graph.inputs[0]
        value = given if given.dtype == seed.dtype else given.astype(seed.dtype)
        return Rebuilder(graph, reader.builder, {**reader.given.known, seed.name: value}).output()

    return Part(reader.guarded(node, apply))


def product_of_letters(reader: FormulaReader, node: ast.Call) -> Part:
    """Read `einsum("ik,kj->ij", a, b)`."""
    text = reader.literal(node.args[0])
    values = [reader.tensor(each, reader.read(each)) for each in node.args[1:]]
    return Part(reader.guarded(node, lambda: einsum(str(text), *values)))


_FILLED = {"zeros": 0.0, "ones": 1.0}


def filled(reader: FormulaReader, node: ast.Call) -> Part:
    """Read `zeros(M, N)`, `ones((M, N), dtype="int32")` and `full((M, N), 2.0)`."""
    assert isinstance(node.func, ast.Name)
    name, sizes = node.func.id, list(node.args)
    settings = {str(each.arg): reader.literal(each.value) for each in node.keywords}
    dtype = str(settings.pop("dtype", "float32"))
    if settings or not sizes or (name == "full" and len(sizes) != 2):
        raise reader.wrong(node, "takes lengths, and a dtype")
    value = reader.literal(sizes.pop()) if name == "full" else _FILLED[name]
    is_list = len(sizes) == 1 and isinstance(sizes[0], ast.Tuple | ast.List)
    shape = reader.literal(sizes[0]) if is_list else tuple(map(reader.literal, sizes))

    def apply() -> Value:
        number = value if "float" in dtype else int(value)
        return reader.builder.constant(number, dtype).apply("broadcast_to", shape=shape)

    return Part(reader.guarded(node, apply))
