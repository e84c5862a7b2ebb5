"""Python names beside those of a prototype, and Python text in which the two do not meet."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from opkit.schema import OpSpec, free_name

if TYPE_CHECKING:
    from opkit.scaffold.formula import Precision

__all__ = ["PythonNames", "formula_golden", "golden_module", "python_names", "torch_formula"]

# What generated text of ours calls by these names, where a parameter of that name would hide it.
_OWN = frozenset({"math", "np", "numpy", "torch"})
# Before the names of operators while they would hide something; no name of a prototype's has it.
_ASIDE = "qz_aside_"
_WORDS = re.compile(r"\w+")


@dataclass(frozen=True)
class PythonNames:
    """What the generated package calls what it needs itself."""

    package: str
    """Its OperatorPackage."""
    package_class: str
    bridge: str
    """opkit.torch_bridge."""
    self: str
    """The first parameter of methods."""
    hidden: frozenset[str]
    """The built-in types that a function of the package has the name of."""

    def annotation(self, text: str) -> str:
        """Return an annotation in which no built-in type is taken for a function of the package."""
        return re.sub(r"\w+", lambda m: f"_builtins.{m[0]}" if m[0] in self.hidden else m[0], text)

    @staticmethod
    def is_private(spec: OpSpec) -> bool:
        """Whether Python renames a parameter of the operator inside of a class."""
        return any(re.fullmatch(r"__\w*(?<!__)", name) for name in _parameters(spec))


def python_names(specs: Sequence[OpSpec], project: str) -> PythonNames:
    """Return names that neither an operator nor one of its inputs or attributes has."""
    taken = {project}
    for spec in specs:
        taken |= {spec.name, spec.op, *_parameters(spec)}
    return PythonNames(
        package=free_name("_opkit", taken),
        package_class=free_name("OperatorPackage", taken),
        bridge=free_name("_bridge", taken),
        self=free_name("self", taken),
        hidden=frozenset(
            {"bool", "float", "int", "list", "str", "tuple"} & {s.name for s in specs}
        ),
    )


def golden_module(specs: Sequence[OpSpec]) -> str | None:
    """Return the text of golden.py; None where no operator has formulas."""
    from opkit.scaffold import program

    formulas = formula_golden(specs)
    programs = program.program_golden(specs)
    if not programs:
        return formulas
    return (formulas or program.PROGRAM_GOLDEN_HEADER) + programs


def formula_golden(specs: Sequence[OpSpec], *, precision: Precision = "float64") -> str | None:
    """Return the functions of formulas over inputs of one shape; None where there are none.

    A function whose parameter has the name of something that the text needs goes by another name
    of the parameter inside.
    """
    from opkit.scaffold import formula

    source = partial(formula.golden_source, precision=precision)
    text = source(*specs)
    if text is None:
        return None
    hiding = {spec.name for spec in specs} & _module_names(text)
    set_aside = tuple(_set_aside(spec, hiding) for spec in specs)
    text = (source(*set_aside) or "") if hiding else text
    clashes = {name for spec in specs for name in _clashes(_parameters(spec), text)}
    if clashes:
        new = _other_names(clashes, {name for spec in specs for name in _parameters(spec)})
        text = source(*(_renamed(spec, new) for spec in set_aside)) or ""
        text = _with_old_keywords(text, {other: name for name, other in new.items()})
    for name in sorted(hiding):
        other = free_name(f"{name}_", {spec.name for spec in specs} | set(_WORDS.findall(text)))
        text = re.sub(rf"(?<![.\w]){name}(?=[.(]|$)", other, text, flags=re.MULTILINE)
    return text.replace(_ASIDE, "")


def _module_names(text: str) -> set[str]:
    """Return what a reference's module needs beside the operators: its module and helpers."""
    tree = ast.parse(text).body
    helpers = {node.name for node in tree if isinstance(node, ast.FunctionDef)}
    return {"np"} | {name for name in helpers if name.startswith("_")}


def _set_aside(spec: OpSpec, hiding: Collection[str]) -> OpSpec:
    """Return an operator under a name that no text has, where its own or that of the operator
    whose gradient it is hides something."""
    if spec.name in hiding or spec.name.removesuffix("_grad") in hiding:
        return replace(spec, name=_ASIDE + spec.name)
    return spec


def torch_formula(spec: OpSpec) -> str:
    """Return the function that computes an operator's outputs with torch, its parameters renamed
    where the text needs their names; they are given by position."""
    from opkit.scaffold import formula

    text = formula.torch_source(spec)
    clashes = _clashes(_parameters(spec), text) | ({"shape_", "Any"} & set(_parameters(spec)))
    new = _other_names(clashes, _parameters(spec))
    if new:
        text = formula.torch_source(_renamed(spec, new))
    return text.replace(": Any", "").replace(" -> Any", "")


def _parameters(spec: OpSpec) -> list[str]:
    tensors = [tensor.name for tensor in (*spec.inputs, *spec.outputs)]
    return [*tensors, *(attr.name for attr in spec.attrs)]


def _other_names(clashes: Collection[str], parameters: Collection[str]) -> dict[str, str]:
    """Return a name for each that clashes, no two alike: `_x` and `__x` would both be `value_x`."""
    taken, new = set(parameters), {}
    for name in sorted(clashes):
        new[name] = free_name(f"value_{name.strip('_')}", taken)
        taken.add(new[name])
    return new


def _clashes(names: Collection[str], text: str) -> set[str]:
    """Return the names that text of ours may mean otherwise: modules, its own `_names`, and
    builtins that it calls."""
    return {
        name
        for name in names
        if name in _OWN
        or name.startswith("_")
        or (hasattr(builtins, name) and re.search(rf"(?<![.\w]){name}\(", text))
    }


def _renamed(spec: OpSpec, new: Mapping[str, str]) -> OpSpec:
    """Return an operator whose tensors and attributes have other names, also in its formulas."""
    return replace(
        spec,
        inputs=tuple(replace(t, name=new.get(t.name, t.name)) for t in spec.inputs),
        outputs=tuple(
            replace(
                t,
                name=new.get(t.name, t.name),
                formula=None if t.formula is None else _renamed_formula(t.formula, new),
            )
            for t in spec.outputs
        ),
        attrs=tuple(replace(a, name=new.get(a.name, a.name)) for a in spec.attrs),
    )


def _renamed_formula(text: str, new: Mapping[str, str]) -> str:
    tree = ast.parse(text.strip(), mode="eval")
    functions = {node.func for node in ast.walk(tree) if isinstance(node, ast.Call)}
    if not any(isinstance(n, ast.Name) and n.id in new for n in ast.walk(tree)):
        return text
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node not in functions:
            node.id = new.get(node.id, node.id)
    return ast.unparse(tree)


def _with_old_keywords(text: str, old: Mapping[str, str]) -> str:
    """Return a module whose functions take their keyword parameters under the old names."""
    wrappers = []
    functions = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    taken = {node.name for node in functions}
    for node in functions:
        keywords = [argument.arg for argument in node.args.kwonlyargs]
        if not set(keywords) & set(old):
            continue
        inputs = [argument.arg for argument in node.args.args]
        defaults = [
            "" if value is None else f"={ast.unparse(value)}" for value in node.args.kw_defaults
        ]
        parameters = [old.get(k, k) + value for k, value in zip(keywords, defaults, strict=True)]
        passed = [*inputs, *(f"{k}={old.get(k, k)}" for k in keywords)]
        inner = free_name(f"_{node.name}", taken)
        text = re.sub(rf"^def {node.name}\(", f"def {inner}(", text, flags=re.MULTILINE)
        wrappers.append(
            f"\n\ndef {node.name}({', '.join([*inputs, '*', *parameters])}):\n"
            f'    """Return the outputs, as {inner} computes them."""\n'
            f"    return {inner}({', '.join(passed)})\n"
        )
    return text + "".join(wrappers)
