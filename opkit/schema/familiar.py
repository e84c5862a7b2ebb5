"""What people write as they know it from PyTorch and NumPy, in the words of the formula language.

`torch.sqrt(x)` and `x.sqrt()` are `sqrt(x)`, `dim` is `axis`, `clip` is `clamp`, `cat` is `concat`;
`gather`, `linear`, `layer_norm` and `group_norm` are written out. A text that has nothing of the
kind stays as it is, with its columns.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Mapping, Sequence

__all__ = ["familiar", "taken_apart"]

_MODULES = frozenset({"F", "jnp", "math", "mx", "nn", "np", "numpy", "torch"})
"""What functions are called of."""
_SPELLINGS = {
    **{"clip": "clamp", "cat": "concat", "concatenate": "concat", "swish": "silu"},
    **{"argtopk": "topk_places", "topk_indices": "topk_places", "logsigmoid": "log_sigmoid"},
    **{"arctan": "atan", "arctan2": "atan2", "take_along_axis": "take_along", "amax": "max"},
    **{"amin": "min", "fabs": "abs", "index_select": "take", "permute": "transpose"},
}
_KEYWORDS = {"dim": "axis", "keepdim": "keepdims", "dims": "axes", "eps": "epsilon"}
_ALONG_AXIS = frozenset(
    {
        *("all", "any", "argmax", "argmin", "cumprod", "cumsum", "log_softmax", "logsumexp"),
        *("mean", "prod", "softmax", "std", "sum", "var"),
    }
)
"""Functions whose second operand, a number, is an axis; of max and min it is a number, but for
methods."""
_PARTS = frozenset({"chunk", "split"})
_PLACES = {"topk": "topk_places", "sort": "argsort", "max": "argmax", "min": "argmin"}
"""Functions of PyTorch that return values and where they stood."""


def familiar(text: str, axes: Mapping[str, Sequence[str | int]]) -> str:
    """Return a formula in the words of the language.

    Args:
        text: one expression.
        axes: of the inputs that name theirs.
    """
    tree = ast.parse(text.strip(), mode="eval").body
    try:
        before = ast.unparse(tree)
        after = ast.unparse(_Words(axes).visit(tree))
    except RecursionError:
        # Sums of many hundred terms: who reads them next has an answer.
        return text
    return text if before == after else after


def taken_apart(targets: ast.Tuple, value: ast.expr) -> dict[str, ast.expr] | None:
    """Return what the names of `a, b = chunk(x, 2)` and the like stand for; None for others."""
    names = [each.id for each in targets.elts if isinstance(each, ast.Name)]
    if len(names) != len(targets.elts):
        return None
    if isinstance(value, ast.Tuple) and len(value.elts) == len(names):
        return dict(zip(names, value.elts, strict=True))
    if not isinstance(value, ast.Call):
        return None
    name = value.func.attr if isinstance(value.func, ast.Attribute) else ast.unparse(value.func)
    if name in _PARTS:
        return {
            each: ast.Subscript(copy.deepcopy(value), ast.Constant(at), ast.Load())
            for at, each in enumerate(names)
        }
    if name in _PLACES and len(names) == 2:
        places = copy.deepcopy(value)
        if isinstance(places.func, ast.Attribute):
            places.func.attr = _PLACES[name]
        else:
            places.func = ast.Name(_PLACES[name], ast.Load())
        return {names[0]: value, names[1]: places}
    return None


def _call(name: str, *arguments: ast.expr, **settings: ast.expr) -> ast.Call:
    keywords = [ast.keyword(key, value) for key, value in settings.items()]
    return ast.Call(ast.Name(name, ast.Load()), list(arguments), keywords)


def _number(node: ast.expr) -> int | None:
    """Return a whole number that is written out."""
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return None
    return value if type(value) is int else None


def _is_axis(node: ast.expr) -> bool:
    parts = node.elts if isinstance(node, ast.Tuple | ast.List) else [node]
    return all(_number(each) is not None for each in parts)


def _written_out(text: str, **parts: ast.expr) -> ast.expr:
    """Return an expression with names replaced by parts of a formula."""

    class Parts(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return copy.deepcopy(parts[node.id]) if node.id in parts else node

    written = Parts().visit(ast.parse(text, mode="eval").body)
    assert isinstance(written, ast.expr)
    return written


class _Words(ast.NodeTransformer):
    def __init__(self, axes: Mapping[str, Sequence[str | int]]) -> None:
        self.axes = axes
        self.rules: dict[str, Callable[[ast.Call], ast.expr]] = {
            "take_along": self.picked,
            "gather": self.picked,
            "linear": self.linear,
            "layer_norm": self.layer_norm,
            "group_norm": self.group_norm,
            "std": self.deviation,
            "var": self.variance,
        }

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Return a call by the language's name, its settings by their names."""
        is_method = self.named(node)
        self.generic_visit(node)
        if not isinstance(node.func, ast.Name):
            return node
        name = node.func.id
        for keyword in node.keywords:
            keyword.arg = _KEYWORDS.get(keyword.arg or "", keyword.arg)
            if keyword.arg == "axis" and node.args:
                keyword.value = self.numbered(keyword.value, node.args[0])
        along = name in _ALONG_AXIS or (is_method and name in ("max", "min"))
        if along and len(node.args) == 2 and _is_axis(node.args[1]):
            node.keywords.insert(0, ast.keyword("axis", node.args.pop()))
        rule = self.rules.get(name)
        return node if rule is None else rule(node)

    def named(self, node: ast.Call) -> bool:
        """Give the function its plain name; return whether it was a method of its operand."""
        func, is_method = node.func, False
        if isinstance(func, ast.Attribute):
            root: ast.expr = func.value
            while isinstance(root, ast.Attribute):
                root = root.value
            is_module = isinstance(root, ast.Name) and root.id in _MODULES - self.axes.keys()
            if not is_module:
                node.args.insert(0, func.value)
                is_method = True
            node.func = ast.Name(func.attr, ast.Load())
        if isinstance(node.func, ast.Name):
            node.func.id = _SPELLINGS.get(node.func.id, node.func.id)
        return is_method

    def numbered(self, axis: ast.expr, operand: ast.expr) -> ast.expr:
        """Return axes that are called by name as numbers: their places in the operand's inputs of
        most axes."""
        named = [n.id for n in ast.walk(axis) if isinstance(n, ast.Name)]
        read = [self.axes.get(n.id, ()) for n in ast.walk(operand) if isinstance(n, ast.Name)]
        most = max(map(len, read), default=0)
        places = {
            name: {axes.index(name) - most for axes in read if len(axes) == most and name in axes}
            for name in named
        }
        if not named or any(len(found) != 1 for found in places.values()):
            return axis
        numbers = {
            name: ast.parse(str(found.pop()), mode="eval").body for name, found in places.items()
        }
        return _written_out(ast.unparse(axis), **numbers)

    def taken(self, node: ast.Call, *names: str) -> dict[str, ast.expr] | None:
        """Return the arguments by these names, as they stand or as they are named."""
        if len(node.args) > len(names):
            return None
        found = dict(zip(names, node.args, strict=False))
        for keyword in node.keywords:
            if keyword.arg not in names or keyword.arg in found:
                return None
            found[keyword.arg] = keyword.value
        return found

    def picked(self, node: ast.Call) -> ast.expr:
        # PyTorch's order is the tensor, the axis, the places.
        if len(node.args) == 3 and _number(node.args[1]) is not None:
            node.keywords.append(ast.keyword("axis", node.args.pop(1)))
        if len(node.args) != 2:
            return node
        settings = {str(each.arg): each.value for each in node.keywords}
        settings.setdefault("axis", ast.UnaryOp(ast.USub(), ast.Constant(1)))
        return _call("take_along", *node.args, **settings)

    def linear(self, node: ast.Call) -> ast.expr:
        parts = self.taken(node, "x", "weight", "bias")
        if parts is None or not {"x", "weight"} <= parts.keys():
            return node
        return _written_out("x @ weight.T + bias" if "bias" in parts else "x @ weight.T", **parts)

    def deviation(self, node: ast.Call) -> ast.expr:
        node.func = ast.Name("var", ast.Load())
        return _call("sqrt", self.variance(node))

    def variance(self, node: ast.Call) -> ast.expr:
        # Of the population, as in NumPy, unless something else is said.
        for keyword in node.keywords:
            if keyword.arg == "unbiased" and isinstance(keyword.value, ast.Constant):
                keyword.arg, keyword.value = (
                    "correction",
                    ast.Constant(int(keyword.value.value is True)),
                )
        node.keywords = [
            each
            for each in node.keywords
            if each.arg != "correction" or ast.unparse(each.value) != "0"
        ]
        return node

    def layer_norm(self, node: ast.Call) -> ast.expr:
        args = node.args
        # PyTorch's normalized_shape: the last axis, whatever it is called.
        if len(args) >= 2 and (_is_axis(args[1]) or isinstance(args[1], ast.List | ast.Tuple)):
            args = [args[0], *args[2:]]
        call = ast.Call(node.func, args, node.keywords)
        parts = self.taken(call, "x", "weight", "bias", "epsilon")
        if parts is None or "x" not in parts:
            return node
        parts.setdefault("epsilon", ast.Constant(1e-5))
        text = "(x - mean(x, axis=-1)) * rsqrt(mean((x - mean(x, axis=-1))**2, axis=-1) + epsilon)"
        text += " * weight" if "weight" in parts else ""
        return _written_out(text + (" + bias" if "bias" in parts else ""), **parts)

    def group_norm(self, node: ast.Call) -> ast.expr:
        parts = self.taken(node, "x", "groups", "weight", "bias", "epsilon")
        x = parts.get("x") if parts is not None else None
        axes = self.axes.get(x.id, ()) if isinstance(x, ast.Name) else ()
        is_known = len(axes) >= 3 and "..." not in axes and isinstance(axes[1], int)
        if parts is None or "groups" not in parts or not is_known:
            return node
        first, channels, *places = (f"({axis})" for axis in axes)
        parts.setdefault("epsilon", ast.Constant(1e-5))
        ones = ", 1" * len(places)
        # Channels of any number might not be whole groups: theirs is known here.
        grouped = f"reshape(x, ({first}, groups, -1))"
        inner = f"({grouped} - mean({grouped}, axis=-1))"
        inner += f" * rsqrt(mean(({grouped} - mean({grouped}, axis=-1))**2, axis=-1) + epsilon)"
        text = f"reshape({inner}, ({first}, {channels}, {', '.join(places)}))"
        if "weight" in parts:
            text += f" * reshape(weight, ({channels}{ones}))"
        if "bias" in parts:
            text += f" + reshape(bias, ({channels}{ones}))"
        return _written_out(text, **parts)
