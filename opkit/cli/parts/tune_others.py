"""`opkit tune` of what is no project: programs behind "--", and what `opkit compile` takes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from opkit.cli.console import Console
from opkit.cli.parts.tune_search import Search
from opkit.errors import UsageError

if TYPE_CHECKING:
    from opkit.tuning import Subject

__all__ = ["program_subject_of", "tune_compiled"]


def _state(folder: Path, subject: Subject) -> Path:
    name = "".join(c if c.isalnum() or c in "-_." else "_" for c in subject.name)[:80]
    return folder / "build" / "opkit.tune" / f"{name}-{subject.chip}-{subject.identity}.jsonl"


def program_subject_of(
    program: tuple[str, ...],
    constants: tuple[str, ...],
    fields: tuple[str, ...],
    build: str | None,
    verify: str | None,
    search: Search,
    knobs: tuple[str, ...],
) -> tuple[Subject, Path]:
    """Return a program as something to tune, and where its state is kept."""
    from opkit.tuning import program_subject, read_source_knob

    if knobs:
        raise UsageError("--knob is for projects and PROGRAM.py", help="--constexpr and --field")
    root = Path.cwd()
    found = [read_source_knob(text, root, is_field=False) for text in constants]
    found += [read_source_knob(text, root, is_field=True) for text in fields]
    subject = program_subject(
        program,
        found,
        root=root,
        build=build,
        verify=verify,
        chip=search.chip,
        seconds=search.timeout_seconds,
    )
    return subject, _state(root, subject)


def tune_compiled(
    program: str, sizes: tuple[str, ...], knobs: tuple[str, ...], search: Search, console: Console
) -> None:
    """Tune a tensor program for some sizes, and write its tuning file."""
    from opkit import compiler
    from opkit.cli.parts.sizes import read_sizes
    from opkit.tuning import compiled_subject, save_choices

    name, _, function = program.partition(":")
    path = Path(name).resolve()
    graph = compiler.load_program(path, function or None)
    given = read_sizes(sizes, graph)
    subject = compiled_subject(graph, given, chip=search.chip, knobs=knobs)
    report = search.run(subject, _state(path.parent, subject), console)
    if not search.dry_run:
        written = save_choices(path.with_suffix(".tuning.json"), graph, given, report)
        console.status("wrote", str(written))
    search.show([report], console)
