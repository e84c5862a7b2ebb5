"""A prototype to the text of every file of its project; touches no disk but the templates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import opkit
from opkit.chips import Chip, find_chip
from opkit.errors import UsageError
from opkit.scaffold.gap import blank_layout
from opkit.scaffold.python_names import golden_module, python_names, torch_formula
from opkit.scaffold.reference import reference
from opkit.scaffold.shapes import output_shapes
from opkit.scaffold.view import view_operator
from opkit.schema import LIST_LENGTH, OpSpec, dump, gradient_gap, package_name
from opkit.templating import render_template
from opkit.versions import first_incompatible

if TYPE_CHECKING:
    from opkit.scaffold.formula import UnsupportedGradient

__all__ = ["DEFAULT_COMPUTE_UNIT", "FRAMEWORKS", "gradient_gaps", "own_gradients", "render"]

DEFAULT_COMPUTE_UNIT = "ai_core-Ascend910B2"
FRAMEWORKS = ("pytorch", "aclnn")

# Template, and the file it becomes; {project} is the project's name.
_FILES = {
    ".clangd.jinja": ".clangd",
    ".gitignore.jinja": ".gitignore",
    "CMakeLists.txt.jinja": "CMakeLists.txt",
    "CMakePresets.json.jinja": "CMakePresets.json",
    "README.md.jinja": "README.md",
    "benchmarks/benchmark.py.jinja": "benchmarks/benchmark_{project}.py",
    "build.sh.jinja": "build.sh",
    "github/ci.yml.jinja": ".github/workflows/ci.yml",
    "numpy_ext/module.cpp.jinja": "numpy_ext/{project}_module.cpp",
    "op_host/CMakeLists.txt.jinja": "op_host/CMakeLists.txt",
    "op_kernel/CMakeLists.txt.jinja": "op_kernel/CMakeLists.txt",
    "package/__init__.py.jinja": "{project}/__init__.py",
    "package/__init__.pyi.jinja": "{project}/__init__.pyi",
    "package/py.typed.jinja": "{project}/py.typed",
    "pyproject.toml.jinja": "pyproject.toml",
    "scripts/build.sh.jinja": "scripts/build.sh",
    "scripts/profile.sh.jinja": "scripts/profile.sh",
    "tests/test_kernel.cpp.jinja": "tests/test_kernel.cpp",
}
_TORCH_FILES = {
    "package/_torch.py.jinja": "{project}/_torch.py",
    "torch_ext/torch.cpp.jinja": "torch_ext/{project}_torch.cpp",
}


def render(
    specs: OpSpec | Sequence[OpSpec],
    *,
    name: str | None = None,
    prototype: str | None = None,
    framework: str = "pytorch",
    compute_units: tuple[str, ...] = (DEFAULT_COMPUTE_UNIT,),
) -> dict[PurePosixPath, str]:
    """Return the text of every file of an operator project, by path in the project.

    Args:
        specs: the operators, at least one.
        name: the project's and its package's name; the first operator's when None.
        prototype: the JSON text to keep in the project as it is; written from `specs` when None.
        framework: `pytorch`, or `aclnn` for no PyTorch binding.
        compute_units: chips, such as `ai_core-Ascend910B2`.
    Raises:
        UsageError: an unknown framework or chip, or an operator that the bindings cannot carry.
        SpecError: a formula is wrong.
    """
    from opkit.scaffold import formula, program
    from opkit.scaffold.kernel_files import kernel_files

    operators = (specs,) if isinstance(specs, OpSpec) else tuple(specs)
    given = operators
    operators = tuple(program.with_shapes(spec) for spec in operators)
    project = name or package_name(operators[0].name)
    if framework not in FRAMEWORKS:
        raise UsageError(
            f'"{framework}" is not a framework', help=f"use one of {', '.join(FRAMEWORKS)}"
        )
    chips = [find_chip(unit) for unit in compute_units]
    own = own_gradients(operators)
    names = {spec.name for spec in operators}
    gradients = {}
    for spec in operators:
        if spec.name not in own and spec not in own.values():
            derive = program.program_backward if spec.is_program else formula.backward
            gradient = derive(spec)
            if gradient is not None and gradient.name not in names:
                gradients[spec.name] = gradient
    derived = tuple(gradients.values())
    torch = framework == "pytorch"
    views = tuple(view_operator(spec, torch=torch) for spec in (*operators, *derived))
    forward = views[: len(operators)]
    context: dict[str, object] = {
        "project": project,
        "opkit_version": opkit.__version__,
        "opkit_below": first_incompatible(opkit.__version__),
        "framework": framework,
        "compute_units": compute_units,
        "list_length": LIST_LENGTH,
        "soc_configs": list(dict.fromkeys(chip.soc_config for chip in chips)),
        "chip_names": [chip.name for chip in chips],
        "operators": views,
        "forward": forward,
        "gradients": {
            key: next(view for view in views if view.spec is gradient)
            for key, gradient in gradients.items()
        },
        "own_gradients": {
            key: next(view for view in views if view.spec is gradient)
            for key, gradient in own.items()
        },
        "backward_of": {gradient.name: key for key, gradient in gradients.items()},
        "unsupported_gradients": {
            spec.name: {
                gap.input: gap.reason for gap in gradient_gaps(spec, own) if not gap.is_zero
            }
            for spec in operators
        },
        "references": {view.name: reference(view.spec) for view in views},
        "derivatives": {
            spec.name: torch_formula(spec) for spec in (*derived, *own.values()) if spec.has_formula
        },
        "shapes": {
            view.name: output_shapes(view.spec, infers_largest=_infers_largest(view.spec, chips))
            for view in views
        },
        "python": python_names((*operators, *derived), project),
        "prototypes": [f"{project}.json", *(f"{spec.name}.json" for spec in derived)],
    }
    files = {**_FILES, **(_TORCH_FILES if torch else {})}
    tree = {
        PurePosixPath(target.format(project=project)): render_template(source, context)
        for source, target in files.items()
    }
    for view in forward:
        path = PurePosixPath(f"tests/test_{view.name}.py")
        tree[path] = render_template("tests/test_operator.py.jinja", {**context, "operator": view})
    for spec in (*operators, *derived):
        write = program.program_files if spec.is_program else kernel_files
        tree.update(write(spec, compute_units=compute_units))
    golden = golden_module(operators)
    if golden is None:
        golden = render_template("package/golden.py.jinja", context)
    tree[PurePosixPath(f"{project}/golden.py")] = golden
    tree[PurePosixPath(f"{project}.json")] = prototype or dump(
        given if len(given) > 1 else given[0]
    )
    for spec in derived:
        tree[PurePosixPath(f"{spec.name}.json")] = dump(_as_given(spec))
    return tree


def _as_given(spec: OpSpec) -> OpSpec:
    """Return an operator as a prototype says it: the shapes of formulas are not written down."""
    if not spec.is_program:
        return spec
    return replace(spec, outputs=tuple(replace(tensor, shape=None) for tensor in spec.outputs))


def own_gradients(operators: Sequence[OpSpec]) -> dict[str, OpSpec]:
    """Return the operator that computes the gradients of another, where the prototype has it.

    The one that `gradient` names; without that field, one that has the derived operator's name and
    fits.
    """
    by_op = {spec.op: spec for spec in operators}
    by_name = {spec.name: spec for spec in operators}
    found = {}
    for spec in operators:
        gradient = by_op.get(spec.gradient) if isinstance(spec.gradient, str) else None
        if spec.gradient is None:
            gradient = by_name.get(f"{spec.name}_grad")
            if gradient is not None and gradient_gap(spec, gradient) is not None:
                gradient = None
        if gradient is not None:
            found[spec.name] = gradient
    return found


def gradient_gaps(spec: OpSpec, own: Mapping[str, OpSpec]) -> tuple[UnsupportedGradient, ...]:
    """Return the inputs that have no gradient, each with the reason.

    Args:
        own: what `own_gradients` found.
    """
    from opkit.scaffold import formula, program

    gradient = own.get(spec.name)
    if gradient is None and isinstance(spec.gradient, str):
        reason = f"{spec.gradient}, which the prototype names, is not part of this project"
        return tuple(formula.UnsupportedGradient(tensor.name, reason) for tensor in spec.inputs)
    if gradient is None:
        if spec.is_program:
            return program.unsupported_program_gradients(spec)
        return formula.unsupported_gradients(spec)
    given = {tensor.name for tensor in gradient.outputs}
    return tuple(
        formula.UnsupportedGradient(tensor.name, f"{gradient.op} does not give it")
        for tensor in spec.inputs
        if f"grad_{tensor.name}" not in given
    )


def _infers_largest(spec: OpSpec, chips: Sequence[Chip]) -> bool:
    layout = None
    if not spec.has_formula:
        layout = blank_layout(spec, chips=chips)
    return layout is not None and layout.infers_largest
