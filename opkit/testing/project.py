"""All cases of a project, with the shapes that its golden.py asks for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from opkit.errors import UsageError
from opkit.schema import OpSpec, nearest
from opkit.testing.branches import names_branches
from opkit.testing.cases import (
    CASE_FILES,
    Case,
    Golden,
    Shape,
    ShapeRule,
    Source,
    check_expression,
    default_cases,
    documented_ranks,
    documented_rounding,
    documented_values,
    golden_of_file,
    is_expression,
    load_cases,
    make_case,
    pairwise_cases,
    replaces_generated,
)
from opkit.testing.launching import is_prototype
from opkit.testing.opdef_cases import library_case, library_cases, other_library_cases
from opkit.testing.probing import probing_cases
from opkit.testing.references import Found, find_by_name
from opkit.testing.run import CaseResult, PrecisionReport, Verdict

if TYPE_CHECKING:
    from opkit.toolchain import Project

__all__ = [
    "branching_operators",
    "case_of_shape",
    "chosen_operators",
    "file_cases",
    "other_rounds",
    "project_cases",
    "replaces_generated_cases",
    "shape_rules",
    "with_other_cases",
]


_RANKS = range(1, 6)
"""Axes of generated cases."""


def project_cases(
    project: Project,
    *,
    golden: Golden | None,
    op: str | None = None,
    seed: int = 0,
    edge_values: bool = False,
    pairwise: bool = False,
    reference: str = "",
    others: bool = False,
    judged: bool = True,
) -> tuple[Case, ...]:
    """Return the default cases of a project's operators, or of one of them, and its own ones.

    Args:
        golden: the project's references, which may have rules for input shapes.
        op: an operator's OpDef or snake_case name.
        seed, edge_values: as `default_cases`.
        pairwise: cases that cover every pair of choices in place of the default ones.
        reference: `golden` of every case that has none of its own; what the project's file of
            cases says where empty, and for an operator known by its OpDef alone torch's function
            of its name.
        others: also what `with_other_cases` may run.
        judged: whether each case needs a reference; without one all inputs have one shape.
    Raises:
        UsageError: the project has no such operator, or its file of cases is wrong.
    """
    chosen = chosen_operators(project, op)
    rules = shape_rules(chosen, golden)
    cases: list[Case] = []
    goldens = {spec.name: _reference(project, spec, reference) for spec in chosen}
    for spec in () if replaces_generated_cases(project) else chosen:
        rule = rules[spec.name]
        given = goldens[spec.name]
        if not is_prototype(spec):
            cases += _library_cases(project, spec, given, seed, judged=judged)
            for variant in range(spec.variant_count) if others else ():
                rounds_of = _rounds_of(project, spec, reference, variant, seed)
                for taken in (None, *((rank, rank) for rank in _RANKS)):
                    for more in rounds_of(taken):
                        cases += more
        elif pairwise:
            cases += pairwise_cases(spec, seed=seed, shape_rule=rule)
        else:
            cases += default_cases(spec, seed=seed, shape_rule=rule, edge_values=edge_values)
            if judged:
                cases += probing_cases(spec, golden, seed=seed, shape_rule=rule)
    for path in _own_files(project):
        cases += file_cases(project, path, golden=golden, op=op, seed=seed)
    return tuple(
        {
            case.name: case if case.golden else replace(case, golden=goldens[case.kernel])
            for case in cases
        }.values()
    )


def with_other_cases(
    project: Project,
    report: PrecisionReport,
    run: Callable[[tuple[Case, ...]], PrecisionReport],
    *,
    reference: str = "",
    seed: int = 0,
) -> PrecisionReport:
    """Return a report with further cases of those data types of which most are refused.

    Once something is taken they have as many axes as that, and inputs that belong together so.
    Where these are refused too, and nothing else became of any, the data types are.

    Args:
        report: of generated cases of operators that their OpDefs alone describe.
        run: what runs cases.
        reference, seed: as `project_cases`.
    """
    results = list(report.results)
    refused = {result.case.name for result in results if _is_refused(result)}
    drawn = [result.case for result in results]
    for cases in other_rounds(project, drawn, refused, reference=reference, seed=seed):
        found = run(cases).results
        refused |= {result.case.name for result in found if _is_refused(result)}
        results += [result for result in found if not _is_refused(result)]
    answered = {result.combination for result in results if not _is_refused(result)}
    return replace(
        report,
        results=tuple(
            result
            if result.combination in answered
            else replace(result, verdict=Verdict.REFUSED_TYPE)
            for result in results
        ),
    )


def other_rounds(
    project: Project,
    cases: Sequence[Case],
    refused: Collection[str],
    *,
    reference: str = "",
    seed: int = 0,
) -> Iterator[tuple[Case, ...]]:
    """Yield rounds of further cases of those data types of which the host code refuses most.

    Once something is taken they have as many axes as that, and inputs that belong together so.

    Args:
        cases: that were run, of operators that their OpDefs alone describe.
        refused: the names of those that the host code refused; whoever asks for another round has
            added those of the last one.
        reference, seed: as `project_cases`.
    """
    specs = {spec.op: spec for spec in project.operators}
    drawn = Counter((case.op, case.variant) for case in cases)
    tried = {case.name: case for case in cases}
    rounds_of = {
        (op, variant): _rounds_of(project, specs[op], reference, variant, seed)
        for op, variant in dict.fromkeys((c.op, c.variant) for c in cases if c.name in refused)
    }
    waiting = {one: rounds(None) for one, rounds in rounds_of.items()}
    known: set[tuple[str, int]] = set()
    while waiting:
        taken = [case for case in tried.values() if case.name not in refused]
        count = Counter((case.op, case.variant) for case in taken)
        waiting = {one: rest for one, rest in waiting.items() if 2 * count[one] < drawn[one]}
        for one in waiting.keys() & count.keys() - known:
            ranks = [len(case.shape) for case in taken if (case.op, case.variant) == one]
            waiting[one] = rounds_of[one]((min(ranks), max(ranks)))
            known.add(one)
        rounds = {one: next(rest, None) for one, rest in waiting.items()}
        waiting = {one: rest for one, rest in waiting.items() if rounds[one] is not None}
        found = {
            case.name: case
            for some in rounds.values()
            for case in some or ()
            if case.name not in tried
        }
        if found:
            tried |= found
            yield tuple(found.values())


def case_of_shape(
    project: Project,
    spec: OpSpec,
    shape: Shape,
    *,
    golden: Golden | None,
    variant: int = 0,
    reference: str = "",
) -> Case:
    """Return the case of one shape of choice, in one combination of data types.

    Of an operator that its OpDef alone describes the other inputs have the shapes that the
    reference takes together with it, and the first one's where there is no reference.

    Args:
        golden, reference: as `project_cases`.
    Raises:
        UsageError: the reference takes no such shape.
    """
    if is_prototype(spec):
        rule = golden.shape_rule(spec) if golden is not None else None
        return make_case(spec, shape, variant=variant, shape_rule=rule)
    given = _as_call(spec, _reference(project, spec, reference))
    found = None if given else _found(project, spec)
    expression = found.expression if found is not None else given
    if not expression:
        return make_case(spec, shape, variant=variant)
    _, values = _documented(project, spec)
    return library_case(spec, expression, shape, variant=variant, found=found, values=values)


def _rounds_of(
    project: Project, spec: OpSpec, reference: str, variant: int, seed: int
) -> Callable[[tuple[int, int] | None], Iterator[tuple[Case, ...]]]:
    """Return what yields further rounds once it is known how many axes are taken."""
    given = _as_call(spec, _reference(project, spec, reference))
    found = None if given else _found(project, spec)
    expression = found.expression if found is not None else given
    ranks, values = _documented(project, spec)
    return lambda taken: other_library_cases(
        spec, expression, variant, found=found, ranks=ranks, values=values, taken=taken, seed=seed
    )


def _is_refused(result: CaseResult) -> bool:
    return result.verdict is Verdict.REFUSED and not result.case.may_be_refused


def _as_call(spec: OpSpec, given: str) -> str:
    """Return a reference that is a function's name as a call of it."""
    if given and not is_expression(given) and ".py:" not in given:
        return f"{given}({', '.join(t.name for t in spec.inputs if t.param_type != 'optional')})"
    return given


def _library_cases(
    project: Project, spec: OpSpec, given: str, seed: int, *, judged: bool
) -> tuple[Case, ...]:
    """Return the generated cases of an operator that its OpDef alone describes.

    Without a reference nothing says which shapes belong together: there are none, or, where
    results are not judged, those in which all inputs have one shape.
    """
    given = _as_call(spec, given)
    ranks, values = _documented(project, spec)
    if given:
        return library_cases(spec, given, ranks=ranks, values=values, seed=seed)
    found = _found(project, spec)
    if found is not None:
        return library_cases(
            spec, found.expression, found=found, ranks=ranks, values=values, seed=seed
        )
    if _own_files(project):
        return ()
    if not judged:
        return library_cases(spec, "", ranks=ranks, values=values, seed=seed)
    arguments = ", ".join(tensor.name for tensor in spec.inputs)
    raise UsageError(
        f"nothing says what {spec.op} computes: torch has no function of its name that takes its"
        " inputs and attributes, or is not installed",
        help=f'give a reference, --golden "torch.NAME({arguments})", or golden: in'
        " tests/cases.yaml, with cases where its inputs have shapes of their own",
    )


def _reference(project: Project, spec: OpSpec, given: str) -> str:
    """Return the reference of an operator's cases, checked: as given, or its file's."""
    if given:
        if is_expression(given):
            check_expression(given, spec, where="--golden")
        return given
    found = (golden_of_file(path, spec) for path in _own_files(project))
    return next((golden for golden in found if golden), "")


def replaces_generated_cases(project: Project) -> bool:
    """Return whether a file of the project's cases says that they are all there are."""
    return any(replaces_generated(path) for path in _own_files(project))


def branching_operators(project: Project, op: str | None = None) -> list[OpSpec]:
    """Return the operators with a prototype whose kernels have branches by the tiling key, and of
    which cases are made."""
    if replaces_generated_cases(project):
        return []
    chosen = (spec for spec in chosen_operators(project, op) if is_prototype(spec))
    return [spec for spec in chosen if names_branches(project, spec)]


def _found(project: Project, spec: OpSpec) -> Found | None:
    """Return the reference of an operator's name, with what its documents say of ties."""
    found, folder = find_by_name(spec), getattr(project, "folder", None)
    if found is None or not folder:
        return found
    return replace(found, expression=documented_rounding(folder, found.expression))


def _documented(project: Project, spec: OpSpec) -> tuple[tuple[int, int] | None, dict[str, Source]]:
    """Return what an operator's documents say of its inputs: axes of the first, and values."""
    folder = getattr(project, "folder", None)
    if not folder:
        return None, {}
    ranks = documented_ranks(folder, [tensor.name for tensor in spec.inputs])
    return ranks, documented_values(folder, spec.inputs)


def _own_files(project: Project) -> list[Path]:
    # A project that is only described, in tests, has no folder.
    root = getattr(project, "folder", None)
    return [root / name for name in CASE_FILES if (root / name).is_file()] if root else []


def file_cases(
    project: Project,
    path: Path,
    *,
    golden: Golden | None,
    op: str | None = None,
    seed: int = 0,
    reference: str = "",
) -> tuple[Case, ...]:
    """Return the cases of a file, of one of the project's operators or of all.

    Args: as `project_cases`; `reference` is that of the cases to which the file gives none.
    Raises:
        UsageError: the file is wrong, or there is no such operator.
    """
    chosen = chosen_operators(project, op)
    given = {
        spec.name: _reference(project, spec, reference) if reference else "" for spec in chosen
    }
    rules = shape_rules(project.operators, golden)
    cases = load_cases(path, project.operators, seed=seed, shape_rules=rules)
    return tuple(
        case if case.golden else replace(case, golden=given[case.kernel])
        for case in cases
        if case.kernel in given
    )


def shape_rules(specs: Sequence[OpSpec], golden: Golden | None) -> dict[str, ShapeRule | None]:
    """Return each operator's rule for input shapes, by its snake_case name."""
    return {spec.name: golden.shape_rule(spec) if golden is not None else None for spec in specs}


def chosen_operators(project: Project, op: str | None) -> tuple[OpSpec, ...]:
    """Return the operator of that name, all where none is named.

    Raises:
        UsageError: the project has no such operator.
    """
    if op is None:
        return project.operators
    chosen = tuple(spec for spec in project.operators if op in (spec.op, spec.name))
    if chosen:
        return chosen
    names = [spec.name for spec in project.operators]
    near = nearest(op, names)
    raise UsageError(
        f'{project.name} has no operator "{op}"',
        help=f'did you mean "{near}"?' if near else "it has " + ", ".join(names),
    )
