"""`opkit compile`: a tensor program in Python to fused Ascend C kernels."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from opkit.cli.commands.targets import PROGRAM_TARGETS
from opkit.cli.console import Console, common_options, write_text
from opkit.cli.options import chip_option, output_option
from opkit.cli.parts import read_sizes
from opkit.errors import OperatorError, UsageError

if TYPE_CHECKING:
    from opkit.compiler import Compiled, PassNote, ProgramCalls

__all__ = ["command"]


TARGETS = tuple(name for name, _ in PROGRAM_TARGETS)


@click.command("compile", short_help="Compile a tensor program to fused kernels.")
@click.argument("program", metavar="PROGRAM[:FUNCTION]")
@click.option(
    "--dump",
    metavar="STAGE|PASS|list",
    help="Print one stage, or the program after one pass; list: which there are.",
)
@click.option("--verify", is_flag=True, help="Run all stages on random inputs and compare them.")
@click.option("--explain", is_flag=True, help="Say why kernels are not one, their tiles and cores.")
@click.option("--size", "sizes", multiple=True, metavar="NAME=N", help="A named dimension's size.")
@output_option("--html", "one page: graph, kernels, tiles on cores, the memory plan over time")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write the kernels there.")
@click.option(
    "--target",
    type=click.Choice(TARGETS),
    default="ascendc",
    show_default=True,
    help="What to make of it: kernels for the chip, C++ for this machine, Triton, or PTO text.",
)
@chip_option("compile for")
@common_options
def command(
    *,
    program: str,
    dump: str | None,
    verify: bool,
    explain: bool,
    sizes: tuple[str, ...],
    html: Path | None,
    output: Path | None,
    target: str,
    chip: str,
    console: Console,
) -> None:
    """Compile a tensor program to fused kernels.

    PROGRAM is a Python file with a function whose parameters are annotated with what they are:
    def norm(x: "float16[M, 4096]", weight: "float16[4096]"). Names stand for sizes known at launch.
    PROGRAM may also be the folder of a task of the benchmark cann-bench (proto.yaml, golden.py,
    cases.yaml): opkit compile tasks/level1/gelu -o gelu writes a project that the benchmark's
    harness builds.
    What opkit tune has found lies beside it, in PROGRAM.tuning.json, and counts for the sizes of
    --size.

    Stages are traced, graph, fused, steps, plan, split and ascendc; passes turn the traced graph
    into the fused one: --dump list says what each does, when it runs, and what it left.

    Example: opkit compile norm.py --explain --size M=2048
    """
    from opkit import compiler
    from opkit.judging import is_benchmark

    path, _, function = program.partition(":")
    if is_benchmark(Path(path)):
        if output is None or dump or verify or explain or sizes or html or target != "ascendc":
            raise UsageError("a task's folder becomes a project", help="give -o FOLDER alone")
        _task_project(Path(path), output, chip, console)
        return
    graph = compiler.load_program(Path(path).resolve(), function or None)
    if target != "ascendc":
        if dump is not None or explain or html is not None:
            raise UsageError(
                f"--target {target} has no stages", help="leave --dump, --explain, --html out"
            )
        _other_target(target, graph, sizes, output, console, verify=verify)
        return
    tuned = Path(path).with_suffix(".tuning.json")
    compiled = compiler.compile(graph, chip=chip, tuning=tuned if tuned.exists() else None)
    given = read_sizes(sizes, graph) if sizes or _is_fixed(graph) else None
    if given is not None:
        compiled = compiled.variant(given)
    if (dump == "split" or verify) and given is None:
        raise UsageError("the program has named dimensions", help="give their sizes: --size M=2048")
    found: dict[str, Any] = {"program": graph.name, "chip": compiled.stages.chip.name}
    notes = compiler.explain(compiled.stages, given)
    found["kernels"] = notes
    if dump == "list":
        found["passes"] = compiler.pass_notes(compiled.stages)
    elif dump is not None:
        found["stage"] = compiler.stage_text(compiled.stages, dump, given)
    if verify:
        assert given is not None
        found["difference"] = _verify(compiled, given)
    if output is not None:
        found["files"] = _write(compiled, output, console)
    if html is not None:
        write_text(html, compiler.compiled_page(compiled.stages, given, made=f"opkit {_version()}"))
        console.status("create", str(html))
    if console.json:
        console.emit_json(found)
    else:
        quiet = output is not None or html is not None or verify
        _print(compiled, console, found, explain=explain, quiet=quiet)
    if found.get("difference"):
        raise OperatorError(str(found["difference"]))


def _task_project(folder: Path, output: Path, chip: str, console: Console) -> None:
    """Write the project that a benchmark's task becomes."""
    from opkit.judging import compile_task

    made = compile_task(folder, chip=chip)
    files = _write_texts(made.files, output, console)
    if console.json:
        rows = [{"case": name, "reason": reason} for name, reason in made.left_out]
        console.emit_json(
            {"program": made.name, "chip": chip, "cases": made.cases, "left_out": rows}
            | {"kernels": made.kernels, "files": files}
        )
        return
    for name, reason in made.left_out:
        console.result(f"{name} is left out: {reason}")
    console.result(
        f"{len(made.cases)} cases of {made.name} are {made.kernels} kernels;"
        f" bash {output / 'build.sh'} builds the wheel"
    )


def _other_target(
    target: str,
    graph: Any,
    sizes: tuple[str, ...],
    output: Path | None,
    console: Console,
    *,
    verify: bool,
) -> None:
    """Print, write or verify what a target without stages makes of a program."""
    from opkit import compiler

    found: dict[str, Any] = {"program": graph.name, "target": target}
    given = read_sizes(sizes, graph) if verify else {}
    program: ProgramCalls | None
    if target == "cpp":
        program = compiler.compile(graph, target="cpp")
        text, name = program.source, f"{graph.name}.cpp"
    elif target == "triton":
        program = compiler.compile(graph, target="triton")
        text, name = program.source, f"{graph.name}.py"
    else:
        tiles = compiler.tile_program(graph)
        text, name = f"{tiles}\n", f"{graph.name}.pto"
        program = None
        if verify:
            graph = tiles.graph()
    if verify:
        runs = program if program is not None else compiler.compile(graph)
        difference = compiler.verify(runs, compiler.random_arrays(graph, given))
        found["difference"] = str(difference) if difference is not None else None
    if output is not None:
        found["files"] = _write_texts({name: text}, output, console)
    if console.json:
        console.emit_json(found if output is not None else {**found, "text": text})
    elif verify:
        if not found["difference"]:
            console.result("all stages agree with float64")
    elif output is None:
        console.result(text)
    if found.get("difference"):
        raise OperatorError(str(found["difference"]))


def _version() -> str:
    from opkit import __version__

    return __version__


def _is_fixed(graph: Any) -> bool:
    return all(isinstance(e, int) for tensor in graph.inputs for e in tensor.shape)


def _verify(compiled: Compiled, sizes: dict[str, int]) -> str | None:
    from opkit import compiler, runtime

    runtime.configure(compiled.stages.chip.name)
    found = compiler.verify(compiled, compiler.random_arrays(compiled.graph, sizes))
    return str(found) if found is not None else None


def _write(compiled: Compiled, folder: Path, console: Console) -> list[str]:
    texts = {f"{name}.cpp": text for name, text in compiled.sources.items()}
    return _write_texts(texts, folder, console)


def _write_texts(texts: Mapping[str, str], folder: Path, console: Console) -> list[str]:
    files = []
    for name, text in texts.items():
        path = folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as err:
            raise UsageError(f"{path.parent} cannot be made: {err.strerror}") from err
        write_text(path, text)
        console.status("create", str(path))
        files.append(str(path))
    return files


def _print_passes(console: Console, notes: list[PassNote]) -> None:
    for note in notes:
        kernels = f", kernels: {note.kernels}" if note.kernels else ""
        left = f"nodes: {note.nodes}{kernels}" if note.ran else "did not run"
        console.result(f"{note.name:<18}  {left:<22}  {note.does} ({note.condition})")


def _print(
    compiled: Compiled, console: Console, found: dict[str, Any], *, explain: bool, quiet: bool
) -> None:
    if "stage" in found:
        console.result(found["stage"])
    elif "passes" in found:
        _print_passes(console, found["passes"])
    elif explain:
        for note in found["kernels"]:
            console.result(f"kernel {note.name} ({note.kind}): {', '.join(note.operators)}")
            if note.separate_because:
                console.result(f"    not fused with what it reads: {note.separate_because}")
            if note.schedule:
                room = (
                    f", {note.scratch_slots} scratch slots, {note.ub_bytes_per_element:g} bytes of"
                    " UB for each element of a tile"
                )
                console.result(f"    schedule {note.schedule}{room if note.scratch_slots else ''}")
            if note.largest_tile:
                console.result(f"    largest tile: {note.largest_tile} elements")
            if note.cores and not note.tiles:
                console.result(f"    {note.cores} cores")
            elif note.cores:
                console.result(
                    f"    {note.cores} cores, room for {note.tile} elements a tile,"
                    f" {note.tiles} tiles or rows"
                )
    elif not quiet:
        console.result("\n".join(compiled.sources.values()))
    if "difference" in found and not found["difference"]:
        console.result("all stages agree with float64")
