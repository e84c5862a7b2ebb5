"""What people write as they know it from PyTorch and NumPy, in the words of the formula language.

`torch.sqrt(x)` and `x.sqrt()` are `sqrt(x)`, `dim` is `axis`, `clip` is `clamp`, `cat` is `concat`;
`gather`, `linear`, `layer_norm`, `group_norm` and those of `familiar_rules.py` are written out. A
text that has nothing of the kind stays as it is, with its columns.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Mapping, Sequence

from opkit.schema.familiar_rules import (
    DTYPES,
    IDENTITIES,
    WRITTEN_OUT,
    arguments_of,
    given_arguments,
    parsed,
    written_out,
)

__all__ = ["familiar", "taken_apart"]

_MODULES = frozenset({"F", "jnp", "math", "mx", "nn", "np", "numpy", "torch"})
"""What functions are called of."""
_SPELLINGS = {
    **{"clip": "clamp", "cat": "concat", "concatenate": "concat", "swish": "silu"},
    **{"argtopk": "topk_places", "topk_indices": "topk_places", "logsigmoid": "log_sigmoid"},
    **{"arctan": "atan", "arctan2": "atan2", "take_along_axis": "take_along", "amax": "max"},
    **{"amin": "min", "fabs": "abs", "index_select": "take", "permute": "transpose"},
    **{"view": "reshape", "rint": "round", "matrix_multiply": "matmul", "expand_dims": "unsqueeze"},
    **{"swapdims": "swapaxes", "absolute": "abs", "tile": "repeat"},
    **{"to": "astype", "type": "astype", "power": "pow", "take_along_dim": "take_along"},
    **{"entr": "special_entr", "moveaxis": "movedim"},
}
_KEYWORDS = {
    **{"dim": "axis", "keepdim": "keepdims", "dims": "axes", "eps": "epsilon", "ord": "p"},
    **{"negative_slope": "slope", "target": "y", "x1": "x", "x2": "y", "other": "y"},
    **{"anchor": "x", "positive": "near", "negative": "far", "input1": "x", "input2": "y"},
    **{"input": "x", "min": "low", "max": "high", "a_min": "low", "a_max": "high"},
}
_AS_NAMED = frozenset({"margin_ranking_loss", "scaled_dot_product_attention"})
"""Functions whose arguments have the names that they have in PyTorch."""
_ALONG_AXIS = frozenset(
    {
        *("all", "any", "argmax", "argmin", "cumprod", "cumsum", "log_softmax", "logsumexp"),
        *("mean", "norm", "prod", "softmax", "std", "sum", "var", "vector_norm"),
        *("count_nonzero", "cummax", "cummin", "logcumsumexp", "median", "nansum", "ptp"),
        "softmin",
    }
)
"""Functions whose second operand, a number, is an axis; of max and min it is a number, but for
methods."""
_SHAPED = frozenset({"reshape", "transpose", "expand", "repeat", "broadcast_to"})
"""Functions of which numbers that stand one after another are one list."""
_PARTS = frozenset({"chunk", "split", "unbind"})
_REDUCED = {
    **{"mean": "mean({})", "sum": "sum({})", "none": "{}"},
    "batchmean": "mean(sum(flatten({}, 1), axis=-1))",
}
"""What becomes of a loss's elements, by its `reduction`."""
_PAIR = {"values": 0, "indices": 1}
_INDICES = {
    **{"topk": "topk_places", "sort": "argsort", "max": "argmax", "min": "argmin"},
    **{"median": "median_places", "kthvalue": "kthvalue_places"},
    **{"cummax": "cummax_places", "cummin": "cummin_places"},
}
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
    if name in _INDICES and len(names) == 2:
        indices = copy.deepcopy(value)
        if isinstance(indices.func, ast.Attribute):
            indices.func.attr = _INDICES[name]
        else:
            indices.func = ast.Name(_INDICES[name], ast.Load())
        return {names[0]: value, names[1]: indices}
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


def _is_number(node: ast.expr) -> bool:
    """Whether an expression has no names, as settings have to be."""
    return not any(isinstance(each, ast.Name) for each in ast.walk(node))


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_axis(node: ast.expr) -> bool:
    parts = node.elts if isinstance(node, ast.Tuple | ast.List) else [node]
    return all(_number(each) is not None for each in parts)


def _is_shape(node: ast.expr) -> bool:
    """Whether an argument is lengths of axes: numbers, a list, `x.shape[-1:]`."""
    is_list = isinstance(node, ast.List | ast.Tuple) or _is_axis(node)
    return is_list or any(
        isinstance(each, ast.Attribute) and each.attr == "shape" for each in ast.walk(node)
    )


def _is_of_modules(node: ast.expr, inputs: Mapping[str, object]) -> bool:
    """Whether an expression is `torch`, `torch.nn.functional`, `np` and the like."""
    return _root(node) in _MODULES - inputs.keys()


def _root(node: ast.expr) -> str:
    """Return the name that an attribute of attributes begins with; empty where it is none."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _is_torchs(node: ast.Call) -> bool:
    """Whether a call is PyTorch's by its module or by the names of its arguments."""
    return _root(node.func) == "torch" or any(
        each.arg in ("dim", "keepdim") for each in node.keywords
    )


class _Words(ast.NodeTransformer):
    def __init__(self, axes: Mapping[str, Sequence[str | int]]) -> None:
        self.axes = axes
        self.rules: dict[str, Callable[[ast.Call], ast.expr]] = {
            "take_along": self.picked,
            "gather": self.picked,
            "take": self.rows,
            "linear": self.linear,
            "layer_norm": self.layer_norm,
            "group_norm": self.group_norm,
            "std": self.deviation,
            "var": self.variance,
            "rms_norm": self.rms_norm,
            "clamp": self.clamp,
            "norm": self.norm,
            "vector_norm": self.norm,
            "astype": self.cast,
            "float": self.infinity,
            "batch_norm": self.batch_norm,
            "instance_norm": self.instance_norm,
            "logit": self.logit,
            "prelu": self.prelu,
            "vstack": self.vstack,
        }

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """Return constants of modules, and one of the two results that PyTorch gives together."""
        if _is_of_modules(node.value, self.axes) and node.attr in ("pi", "e", "inf", "nan"):
            return ast.Name(node.attr, ast.Load())
        pair = self.one_of_two(node.value, _PAIR.get(node.attr))
        if pair is not None:
            return pair
        self.generic_visit(node)
        if node.attr in ("mT", "mH"):
            return written_out("swapaxes(x, -2, -1)", x=node.value)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        """Return one of two results, and a length that is asked for by its index."""
        at = _number(node.slice)
        if at in (0, 1) and (pair := self.one_of_two(node.value, at, is_index=True)) is not None:
            return pair
        if isinstance(node.value, ast.Attribute) and node.value.attr == "shape" and at is not None:
            return self.length(node.value.value, at) or node
        self.generic_visit(node)
        call = node.value
        if at is not None and isinstance(call, ast.Call) and ast.unparse(call.func) == "unbind":
            parts = arguments_of(call, "x, axis=0")
            return node if parts is None else written_out(f"select(x, axis, {at})", **parts)
        return node

    def one_of_two(
        self, node: ast.expr, which: int | None, *, is_index: bool = False
    ) -> ast.expr | None:
        """Return the values or the indices of `x.topk(k)`, `x.max(dim=-1)` and the like."""
        if which is None or not isinstance(node, ast.Call):
            return None
        method = isinstance(node.func, ast.Attribute)
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
        if name not in _INDICES or (is_index and not method):
            return None
        # max(x) of everything is one value.
        if name in ("max", "min") and not node.keywords and len(node.args) < 1:
            return None
        call = copy.deepcopy(node)
        if which == 1 and isinstance(call.func, ast.Attribute):
            call.func.attr = _INDICES[name]
        elif which == 1:
            call.func = ast.Name(_INDICES[name], ast.Load())
        found = self.visit(call)
        assert isinstance(found, ast.expr)
        return found

    def length(self, node: ast.expr, at: int) -> ast.expr | None:
        """Return the length of an axis of an input that names its axes."""
        axes = self.axes.get(node.id, ()) if isinstance(node, ast.Name) else ()
        if not -len(axes) <= at < len(axes) or "..." in axes[: at + 1 if at >= 0 else 0]:
            return None
        return parsed(f"({axes[at]})") if axes[at] != "..." else None

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Return a call by the language's name, its settings by their names."""
        of_torch = _is_torchs(node)
        is_method = self.named(node)
        self.generic_visit(node)
        if not isinstance(node.func, ast.Name):
            return node
        name = node.func.id
        if is_method and name in IDENTITIES:
            return node.args[0]
        if is_method and name in DTYPES and len(node.args) == 1:
            return _call("cast", node.args[0], dtype=ast.Constant(DTYPES[name]))
        if name == "size" and len(node.args) == 2 and (at := _number(node.args[1])) is not None:
            return self.length(node.args[0], at) or node
        node.keywords = [each for each in node.keywords if not _is_none(each.value)]
        for keyword in node.keywords:
            if name not in _AS_NAMED:
                keyword.arg = _KEYWORDS.get(keyword.arg or "", keyword.arg)
            if keyword.arg == "axis" and node.args:
                keyword.value = self.numbered(keyword.value, node.args[0])
        self.as_settings(node, name, is_method=is_method)
        if of_torch and name in ("var", "std"):
            named = {each.arg for each in node.keywords}
            if not named & {"unbiased", "correction"}:
                node.keywords.append(ast.keyword("correction", ast.Constant(1)))
        if name == "median" and (of_torch or is_method):
            node.keywords.append(ast.keyword("lower", ast.Constant(True)))
        rule = self.rules.get(name)
        if rule is not None:
            return rule(node)
        row = WRITTEN_OUT.get(name)
        return node if row is None else self.from_row(node, row.parameters, row.text, row.reduced)

    def as_settings(self, node: ast.Call, name: str, *, is_method: bool) -> None:
        """Name an axis that follows its tensor, and put lengths that follow one into a list."""
        along = name in _ALONG_AXIS or (is_method and name in ("max", "min"))
        keeps = node.args[2] if along and len(node.args) == 3 else None
        if isinstance(keeps, ast.Constant) and isinstance(keeps.value, bool):
            node.keywords.append(ast.keyword("keepdims", node.args.pop()))
        if along and len(node.args) == 2 and _is_axis(node.args[1]):
            node.keywords.insert(0, ast.keyword("axis", node.args.pop()))
        if along and name != "norm":
            # What is computed along an axis is float32 already.
            node.keywords = [each for each in node.keywords if each.arg != "dtype"]
        many = node.args[1:]
        if name == "transpose" and len(many) == 2 and all(_is_axis(each) for each in many):
            if not any(isinstance(each, ast.Tuple | ast.List) for each in many):
                node.func = ast.Name("swapaxes", ast.Load())
        elif name in _SHAPED and many and not isinstance(many[0], ast.Tuple | ast.List):
            node.args[1:] = [ast.Tuple(many, ast.Load())]

    def from_row(self, node: ast.Call, parameters: str, text: str, reduced: bool) -> ast.expr:
        """Return a call of a function of `WRITTEN_OUT`, written out; itself where its arguments do
        not fit."""
        how = "mean"
        if reduced:
            said = [each for each in node.keywords if each.arg == "reduction"]
            node.keywords = [each for each in node.keywords if each.arg != "reduction"]
            if said and isinstance(said[0].value, ast.Constant):
                how = str(said[0].value.value)
        parts = arguments_of(node, parameters)
        if parts is None or how not in _REDUCED:
            return node
        text = _REDUCED[how].format(text) if reduced else text
        value = self.visit(written_out(text, **parts))
        assert isinstance(value, ast.expr)
        return value

    def rms_norm(self, node: ast.Call) -> ast.expr:
        args = node.args
        # PyTorch's normalized_shape: the last axis, whatever it is called.
        if len(args) >= 2 and _is_shape(args[1]):
            args = [args[0], *args[2:]]
        parts = given_arguments(
            ast.Call(node.func, args, node.keywords), ("x", "weight", "epsilon")
        )
        if parts is None or "x" not in parts:
            return node
        parts.setdefault("epsilon", ast.Constant(1e-6))
        text = "x * rsqrt(mean(x**2, axis=-1, keepdims=True) + epsilon)"
        return written_out(text + (" * weight" if "weight" in parts else ""), **parts)

    def clamp(self, node: ast.Call) -> ast.expr:
        """Return a clamp whose bounds are no numbers as the choices that it is made of."""
        parts = given_arguments(node, ("x", "low", "high"))
        if parts is None or "x" not in parts or all(map(_is_number, list(parts.values())[1:])):
            return node
        text = "maximum(x, low)" if "low" in parts else "x"
        text = f"minimum({text}, high)" if "high" in parts else text
        return written_out(text, **parts)

    def norm(self, node: ast.Call) -> ast.expr:
        """Return the square root of a sum of squares, or the sum of magnitudes for p=1."""
        p = next((each for each in node.keywords if each.arg == "p"), None)
        node.keywords = [each for each in node.keywords if each.arg != "p"]
        degree = 2 if p is None else _number(p.value)
        if degree not in (1, 2):
            return node
        # x.norm(2, dim=-1): the degree stands where other functions have an axis.
        axes = [each for each in node.keywords if each.arg == "axis"]
        if len(axes) == 2 or (len(axes) == 1 and _number(axes[0].value) in (1, 2) and p is None):
            degree = _number(axes[0].value)
            node.keywords.remove(axes[0])
        parameters = WRITTEN_OUT["norm"].parameters
        text = WRITTEN_OUT["norm"].text
        if degree == 1:
            text = "sum(abs(x), axis=axis, keepdims=keepdims)"
        return self.from_row(node, parameters, text, False)

    def cast(self, node: ast.Call) -> ast.expr:
        """Return `x.to(torch.int8)`, `x.astype("half")` and the like as a cast."""
        parts = given_arguments(node, ("x", "dtype"))
        if parts is None or parts.keys() != {"x", "dtype"}:
            return node
        given = parts["dtype"]
        name = given.attr if isinstance(given, ast.Attribute) else ""
        name = given.id if isinstance(given, ast.Name) else name
        name = str(given.value) if isinstance(given, ast.Constant) else name
        if name not in DTYPES:
            return node
        return _call("cast", parts["x"], dtype=ast.Constant(DTYPES[name]))

    def infinity(self, node: ast.Call) -> ast.expr:
        """Return `float("-inf")` as a number."""
        value = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else ""
        words = {"inf": "inf", "+inf": "inf", "-inf": "-inf", "nan": "nan"}
        return parsed(words[str(value)]) if str(value) in words else node

    def named(self, node: ast.Call) -> bool:
        """Give the function its plain name; return whether it was a method of its operand."""
        func, is_method = node.func, False
        if isinstance(func, ast.Attribute):
            if not _is_of_modules(func.value, self.axes):
                node.args.insert(0, func.value)
                is_method = True
            node.func = ast.Name(func.attr, ast.Load())
        if isinstance(node.func, ast.Name):
            node.func.id = _SPELLINGS.get(node.func.id, node.func.id)
        return is_method

    def numbered(self, axis: ast.expr, operand: ast.expr) -> ast.expr:
        """Return axes that are called by name as numbers: their indices in the operand's inputs of
        most axes."""
        named = [n.id for n in ast.walk(axis) if isinstance(n, ast.Name)]
        read = [self.axes.get(n.id, ()) for n in ast.walk(operand) if isinstance(n, ast.Name)]
        most = max(map(len, read), default=0)
        indices = {
            name: {axes.index(name) - most for axes in read if len(axes) == most and name in axes}
            for name in named
        }
        if not named or any(len(found) != 1 for found in indices.values()):
            return axis
        numbers = {
            name: ast.parse(str(found.pop()), mode="eval").body for name, found in indices.items()
        }
        return written_out(ast.unparse(axis), **numbers)

    def picked(self, node: ast.Call) -> ast.expr:
        # PyTorch's order is the tensor, the axis, the indices.
        if len(node.args) == 3 and _number(node.args[1]) is not None:
            node.keywords.append(ast.keyword("axis", node.args.pop(1)))
        if len(node.args) != 2:
            return node
        settings = {str(each.arg): each.value for each in node.keywords}
        settings.setdefault("axis", ast.UnaryOp(ast.USub(), ast.Constant(1)))
        return _call("take_along", *node.args, **settings)

    def rows(self, node: ast.Call) -> ast.expr:
        # PyTorch's index_select has the axis between the tensor and the indices.
        if len(node.args) == 3 and _number(node.args[1]) is not None:
            node.keywords.append(ast.keyword("axis", node.args.pop(1)))
        return node

    def linear(self, node: ast.Call) -> ast.expr:
        parts = given_arguments(node, ("x", "weight", "bias"))
        if parts is None or not {"x", "weight"} <= parts.keys():
            return node
        return written_out("x @ weight.T + bias" if "bias" in parts else "x @ weight.T", **parts)

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
        if len(args) >= 2 and _is_shape(args[1]):
            args = [args[0], *args[2:]]
        call = ast.Call(node.func, args, node.keywords)
        parts = given_arguments(call, ("x", "weight", "bias", "epsilon"))
        if parts is None or "x" not in parts:
            return node
        parts.setdefault("epsilon", ast.Constant(1e-5))
        text = "(x - mean(x, axis=-1)) * rsqrt(mean((x - mean(x, axis=-1))**2, axis=-1) + epsilon)"
        text += " * weight" if "weight" in parts else ""
        return written_out(text + (" + bias" if "bias" in parts else ""), **parts)

    def group_norm(self, node: ast.Call) -> ast.expr:
        parts = given_arguments(node, ("x", "groups", "weight", "bias", "epsilon"))
        axes = self.named_axes(parts.get("x") if parts is not None else None)
        is_known = len(axes) >= 3 and isinstance(axes[1], int)
        if parts is None or "groups" not in parts or not is_known:
            return node
        first, channels, *sizes = (f"({axis})" for axis in axes)
        parts.setdefault("epsilon", ast.Constant(1e-5))
        ones = ", 1" * len(sizes)
        # Channels of any number might not be whole groups: theirs is known here.
        grouped = f"reshape(x, ({first}, groups, -1))"
        inner = f"({grouped} - mean({grouped}, axis=-1))"
        inner += f" * rsqrt(mean(({grouped} - mean({grouped}, axis=-1))**2, axis=-1) + epsilon)"
        text = f"reshape({inner}, ({first}, {channels}, {', '.join(sizes)}))"
        if "weight" in parts:
            text += f" * reshape(weight, ({channels}{ones}))"
        if "bias" in parts:
            text += f" + reshape(bias, ({channels}{ones}))"
        return written_out(text, **parts)

    def batch_norm(self, node: ast.Call) -> ast.expr:
        """Return the normalisation by statistics of each channel, as it is where a network runs."""
        names = ("x", "running_mean", "running_var", "weight", "bias", "training", "momentum")
        parts = given_arguments(node, (*names, "epsilon"))
        one = self.for_channels(parts)
        if parts is None or one is None or not {"running_mean", "running_var"} <= parts.keys():
            return node
        if "training" in parts and ast.unparse(parts["training"]) != "False":
            return node
        parts.setdefault("epsilon", ast.Constant(1e-5))
        text = f"(x - {one('running_mean')}) * rsqrt({one('running_var')} + epsilon)"
        return self.scaled(text, parts, one)

    def instance_norm(self, node: ast.Call) -> ast.expr:
        """Return the normalisation of each channel of each image by itself."""
        parts = given_arguments(node, ("x", "weight", "bias", "epsilon"))
        one = self.for_channels(parts)
        if parts is None or one is None:
            return node
        parts.setdefault("epsilon", ast.Constant(1e-5))
        axes = tuple(range(2, len(self.named_axes(parts["x"]))))
        if not axes:
            return node
        mean = f"mean(x, axis={axes})"
        text = f"(x - {mean}) * rsqrt(mean((x - {mean})**2, axis={axes}) + epsilon)"
        return self.scaled(text, parts, one)

    def scaled(
        self, text: str, parts: Mapping[str, ast.expr], one: Callable[[str], str]
    ) -> ast.expr:
        text += f" * {one('weight')}" if "weight" in parts else ""
        text += f" + {one('bias')}" if "bias" in parts else ""
        return written_out(text, **parts)

    def named_axes(self, node: ast.expr | None) -> Sequence[str | int]:
        """Return the axes of an input; none where their number is open, and for other values."""
        axes = self.axes.get(node.id, ()) if isinstance(node, ast.Name) else ()
        return () if "..." in axes else axes

    def for_channels(self, parts: Mapping[str, ast.expr] | None) -> Callable[[str], str] | None:
        """Return what writes a vector of channels, the second axis, as the tensor `x` needs it;
        None where its axes are not known."""
        axes = self.named_axes(parts.get("x") if parts is not None else None)
        if len(axes) < 2:
            return None
        ones = ", 1" * (len(axes) - 2)
        return lambda name: f"reshape({name}, (-1{ones}))" if ones else name

    def prelu(self, node: ast.Call) -> ast.expr:
        """Return a relu with a slope for each channel, or one for all."""
        parts = given_arguments(node, ("x", "weight"))
        if parts is None or parts.keys() != {"x", "weight"}:
            return node
        slope = "weight"
        if tuple(self.named_axes(parts["weight"])) != (1,):
            one = self.for_channels(parts)
            if one is None:
                return node
            slope = one("weight")
        return written_out(f"where(x > 0, x, {slope} * x)", **parts)

    def logit(self, node: ast.Call) -> ast.expr:
        parts = given_arguments(node, ("x", "epsilon"))
        if parts is None or "x" not in parts:
            return node
        x = "minimum(maximum(x, epsilon), 1 - epsilon)" if "epsilon" in parts else "x"
        return written_out(f"log({x} / (1 - {x}))", **parts)

    def vstack(self, node: ast.Call) -> ast.expr:
        # Vectors would become rows.
        parts = (
            node.args[0].elts
            if len(node.args) == 1 and isinstance(node.args[0], ast.List | ast.Tuple)
            else []
        )
        if not parts or any(len(self.named_axes(each)) < 2 for each in parts):
            return node
        return _call("concat", node.args[0], axis=ast.Constant(0))
