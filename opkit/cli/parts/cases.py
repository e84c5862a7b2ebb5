"""What `opkit test`, `check`, `profile`, `debug` and `tune` run: cases and builds of projects."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from opkit.cli.console import Console
from opkit.errors import OpkitError, UsageError
from opkit.selection import select_by_name

if TYPE_CHECKING:
    from opkit.schema import OpSpec
    from opkit.testing import Case, Golden, Untaken
    from opkit.toolchain import Artifact, Project

__all__ = ["OpenProject", "build_project", "choose_cases", "open_project"]

_Launched = TypeVar("_Launched")


@dataclass(frozen=True)
class OpenProject:
    """A project whose operators are known, and what their cases come from."""

    project: Project
    golden: Golden | None
    chip: str
    console: Console
    into: Path | None
    """The artifact folder, where it is not the project's own."""
    files: tuple[Path, ...]
    """Files whose cases are all there are."""
    reference: str
    """The reference that the user gave for all cases."""
    _artifact: list[Artifact] = field(default_factory=list)

    def build(self) -> Artifact:
        """Build the project where that is not done yet."""
        if not self._artifact:
            self._artifact.append(
                build_project(self.project, self.chip, self.console, into=self.into)
            )
        return self._artifact[0]

    @property
    def is_tree(self) -> bool:
        """Whether only OpDefs describe its operators."""
        return self.project.tree is not None

    def is_guessed(self, case: Case) -> bool:
        """Whether nothing says which inputs of a case belong together."""
        return self.is_tree and not (case.golden or case.label or self.files)

    @property
    def notes(self) -> Path:
        """The file that says what failed last."""
        from opkit.testing import notes_file

        return notes_file(self.project.folder, self.into)

    def pool(
        self,
        op: str | None = None,
        *,
        seed: int = 0,
        edge_values: bool = False,
        pairwise: bool = False,
        names: tuple[str, ...] = (),
        last_failed: bool = False,
        judged: bool = True,
    ) -> tuple[Case, ...]:
        """Return the cases to choose from; those of every kind where cases are named.

        Args:
            last_failed: what failed last is chosen among them.
            judged: as `project_cases`.
        """
        from opkit.testing import (
            cases_of_branches,
            cases_of_keys,
            chosen_operators,
            failed_names,
            file_cases,
            host_numbers,
            project_cases,
            shape_rules,
        )

        project, golden, reference = self.project, self.golden, self.reference
        if self.files:
            return tuple(
                case
                for file in self.files
                for case in file_cases(
                    project, file, golden=golden, op=op, seed=seed, reference=reference
                )
            )
        if last_failed and self.is_tree:
            # What failed may be a case in place of one that was refused.
            names = failed_names(self.notes)
        edges = edge_values or bool(names)
        cases = project_cases(
            project,
            golden=golden,
            op=op,
            seed=seed,
            edge_values=edges,
            pairwise=pairwise,
            reference=reference,
            others=bool(names) and self.is_tree,
            judged=judged or bool(names),
        )
        if not names or pairwise or self.is_tree:
            return cases
        more = project_cases(
            project, golden=golden, op=op, seed=seed, pairwise=True, reference=reference
        )
        rules = shape_rules(chosen_operators(project, op), golden)
        branches = [
            case
            for spec in self._branching(op)
            for case in (
                *cases_of_keys(spec, host_numbers(project), seed=seed, shape_rule=rules[spec.name]),
                *cases_of_branches(spec, seed=seed, shape_rule=rules[spec.name]),
            )
        ]
        return tuple({case.name: case for case in (*branches, *more, *cases)}.values())

    def with_every_branch(
        self, cases: tuple[Case, ...], op: str | None = None, *, seed: int = 0
    ) -> tuple[tuple[Case, ...], tuple[Untaken, ...]]:
        """Return cases with one more for each tiling key that none takes, and the keys that stay
        so; with files of cases none is added."""
        from opkit.testing import (
            chosen_operators,
            hidden_files,
            host_numbers,
            shape_rules,
            with_every_branch,
        )

        specs = self._branching(op)
        if not specs:
            return cases, ()
        artifact = self.build()
        rules = None if self.files else shape_rules(chosen_operators(self.project, op), self.golden)
        hidden = hidden_files(self.project.root, self.project.package_dir, cases)
        return with_every_branch(
            *(artifact.folder, artifact.chip.name, specs, cases, rules),
            numbers=host_numbers(self.project),
            seed=seed,
            hidden=hidden,
        )

    def _branching(self, op: str | None) -> list[OpSpec]:
        from opkit.testing import branching_operators

        return [] if self.is_tree else branching_operators(self.project, op)

    def named_case(self, name: str, op: str | None = None) -> Case:
        """Return one case by its name.

        Raises:
            UsageError: there is none of that name.
        """
        cases = self.pool(op, names=(name,), judged=False)
        return choose_cases(self.project, cases, None, (name,), None)[0]

    def case_of_shape(self, spec: OpSpec, shape: tuple[int, ...], variant: int) -> Case:
        """Return the case of one shape of choice, in one combination of data types."""
        from opkit.testing import case_of_shape

        return case_of_shape(
            self.project,
            spec,
            shape,
            golden=self.golden,
            variant=variant,
            reference=self.reference,
        )

    def rounds(
        self, cases: Sequence[Case], refused: Mapping[str, OpkitError]
    ) -> Iterator[tuple[Case, ...]]:
        """Yield cases, and rounds of others where host code refuses most of what its OpDef gives.

        Args:
            refused: what was refused of those that were yielded; whoever asks for more adds to it.
        """
        from opkit.testing import other_rounds

        yield tuple(cases)
        if self.is_tree:
            yield from other_rounds(self.project, cases, refused.keys(), reference=self.reference)

    def first_taken(
        self,
        cases: Sequence[Case],
        launch: Callable[[Case], _Launched],
        *,
        largest_first: bool = False,
    ) -> tuple[Case, _Launched]:
        """Return the first case that the host code takes, and what launching it gave.

        Raises:
            UsageError: it takes none that its OpDefs give.
        """
        from math import prod

        from opkit.testing import is_refusal

        specs = {spec.op: spec for spec in self.project.operators}
        refused: dict[str, OpkitError] = {}
        for some in self.rounds(cases, refused):
            ordered = sorted(some, key=lambda case: prod(case.shape), reverse=True)
            for case in ordered if largest_first else some:
                try:
                    return case, launch(case)
                except OpkitError as error:
                    if not is_refusal(case, specs[case.op], error):
                        raise
                    refused[case.name] = error
        raise self.all_refused(refused)

    def all_refused(self, refused: Mapping[str, OpkitError]) -> UsageError:
        """Return the error for an operator whose host code takes no case that its OpDef gives."""
        first = next(iter(refused.values()))
        return UsageError(
            f"the host code of {self.project.name} refuses all {len(refused)} cases that its"
            f" OpDefs give: {first.message}",
            help="write cases with shapes that it takes into tests/cases.yaml: docs/cases.md",
        )


def open_project(
    project: Project,
    chip: str,
    console: Console,
    *,
    into: Path | None = None,
    files: tuple[Path, ...] = (),
    reference: str = "",
) -> OpenProject:
    """Return a project ready for its cases; one that only OpDefs describe is built for that."""
    from opkit.testing import load_golden
    from opkit.toolchain import project_as_built

    golden = load_golden(project.package_dir / "golden.py")
    if project.tree is None:
        return OpenProject(project, golden, chip, console, into, files, reference)
    # What its operators are only its host code says.
    artifact = build_project(project, chip, console, into=into)
    found = project_as_built(artifact)
    return OpenProject(found, golden, chip, console, into, files, reference, [artifact])


def choose_cases(
    project: Project,
    pool: tuple[Case, ...],
    expression: str | None,
    names: tuple[str, ...],
    last_failed: Path | None,
) -> tuple[Case, ...]:
    """Return the cases of a pool that are named, match, or failed last time.

    Args:
        last_failed: the file that says which failed, where those are wanted.
    Raises:
        UsageError: there is no such case, or none at all.
    """
    from opkit.schema import nearest
    from opkit.testing import failed_last

    if not pool:
        raise UsageError(
            f"{project.name} has no cases",
            help="write some into its tests/cases.yaml: docs/cases.md",
        )
    cases = pool
    for name in names:
        if name not in {case.name for case in pool}:
            near = nearest(name, [case.name for case in pool])
            raise UsageError(
                f'{project.name} has no case "{name}"',
                help=f'did you mean "{near}"?' if near else f"names look like {pool[0].name}",
            )
    if names:
        cases = tuple(case for case in pool if case.name in names)
    if last_failed is not None:
        cases = failed_last(last_failed, cases)
    chosen = cases if expression is None else select_by_name(cases, expression)
    if not chosen:
        example = cases[0].name if cases else pool[0].name
        raise UsageError(
            f"no case of {project.name} matches -k {expression!r}",
            help=f"names look like {example}",
        )
    return chosen


def build_project(
    project: Project, chip: str, console: Console, *, into: Path | None = None
) -> Artifact:
    """Build a project where needed and say so; `into` is the artifact folder."""
    from opkit.toolchain import build

    artifact = build(project, chip=chip, out=into, verbose=console.command_line, warn=console.warn)
    made = artifact.compiled + artifact.cached
    if made:
        console.status("built", f"{project.name}, {made} files in {artifact.seconds:.1f} s")
    return artifact
