"""What `opkit debug` takes, and whether `why` names the line that was changed.

    python benchmarks/debug.py [--part PART] [--every N] [--first N] [--list]

    steps    a step back in GELU of 1 Mi elements and in RMSNorm of 2048 x 4096, by instruction,
             line and tile, from places drawn at random
    run      recording a launch and going to a breakpoint, beside the launch alone; processor time
             of one thread
    classes  the bug museum: of each class the example that `opkit explain` shows. Counted are those
             whose result differs from the corrected twin's, in the launch or in the losing order
    mutants  every N-th mutant (`opkit check --mutate`) of the examples' kernels that changes a
             result, by the first of some cases that shows it
    random   sessions of 1000 random commands, against a state played forwards once

A change is named where the first thing that is off is at its line; where a call was left out or
added, at the nearest call above or below it, or by the call's own name.
"""

from __future__ import annotations

import argparse
import difflib
import random
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from measure import least_seconds
from table import print_figure, print_head

from opkit import runtime, toolchain
from opkit.chips import DEFAULT_CHIP
from opkit.debugging import Debugger, Session, Target, Unit, debug_case, recording
from opkit.errors import BuildError, KernelFault, OpkitError, UsageError
from opkit.sanitizer import CLASSES, TOOLS, Check, find_mutants
from opkit.testing import Verdict, load_golden, operator_standards, project_cases, run_case

_ROOT = Path(__file__).resolve().parent.parent
_EXAMPLES = ("gelu_custom", "rmsnorm")
_MOST_CASES = 4


def open_project(name: str, folder: Path) -> tuple[toolchain.Project, runtime.Library]:
    """Build a copy of an example and open it."""
    copy = folder / name
    shutil.copytree(_ROOT / "examples" / name, copy, ignore=shutil.ignore_patterns("build"))
    for extension in ("numpy_ext", "torch_ext"):
        shutil.rmtree(copy / extension, ignore_errors=True)
    project = toolchain.load_project(copy)
    return project, runtime.open(toolchain.build(project, chip=DEFAULT_CHIP).folder)


def launches() -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield the launches that figures are taken of."""
    draw = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as name:
        _, gelu = open_project("gelu_custom", Path(name))
        x = draw.standard_normal(1 << 20).astype(np.float16)
        yield "GELU 1 Mi", lambda: gelu.run("GELUCustom", [x])
        _, norm = open_project("rmsnorm", Path(name))
        rows = draw.standard_normal((2048, 4096)).astype(np.float16)
        gamma = draw.standard_normal(4096).astype(np.float16)
        yield "RMSNorm 2048x4096", lambda: norm.run("Rmsnorm", [rows, gamma])


def record(launch: Callable[[], object]) -> Session:
    """Return a session on a launch."""
    with recording() as recorder:
        launch()
    return Session(recorder.launches[0])


def measure_steps() -> None:
    """Print how long steps back take, reading what the core has in UB."""
    draw = random.Random(0)
    for what, launch in launches():
        session = record(launch)
        count = session.recording.step_count
        for unit in Unit:
            times = []
            for _ in range(40):
                session.goto(draw.randrange(count // 2, count))
                session.recording.read(session.position, "UB", 0, 64, core=session.core)
                start = time.perf_counter()
                session.move(unit, -1)
                session.recording.read(session.position, "UB", 0, 4096, core=session.core)
                session.recording.read(
                    session.position, "GM", session.recording.ranges[0].begin, 64
                )
                times.append(time.perf_counter() - start)
            text = f"{np.median(times) * 1e3:.2f} ms, the longest {max(times) * 1e3:.1f} ms"
            print_figure(f"a step back by {unit.value}, {what}", text, "<= 1 s")


def measure_run() -> None:
    """Print what recording and going to a breakpoint take beside the launch alone."""
    runtime.configure(threads=1, poison=True)
    for what, launch in launches():

        def to_breakpoint(launch: Callable[[], object] = launch) -> None:
            session = record(launch)
            debugger = Debugger(Target("", session, ()))
            debugger.run(f"break DataCopyPad core {len(session.recording.cores) - 1}")
            debugger.run("run")
            assert session.stop.reason == "breakpoint"

        stopped, plain = least_seconds(to_breakpoint, launch, rounds=25)
        text = f"{stopped / plain:.2f} ({stopped * 1e3:.2f} ms / {plain * 1e3:.2f} ms)"
        print_figure(f"running to a breakpoint / running, {what}", text, "<= 3")


@dataclass
class Score:
    """How often the changed line was named first."""

    named: int = 0
    counted: int = 0
    missed: list[str] = field(default_factory=list)

    def add(self, hit: bool, text: str) -> None:
        """Count one."""
        self.counted += 1
        self.named += hit
        if not hit:
            self.missed.append(text)

    def show(self, what: str, tells: bool) -> None:
        """Print the share."""
        share = self.named / self.counted if self.counted else 0.0
        print_figure(what, f"{self.named} of {self.counted}, {share:.0%}", ">= 90 %")
        if tells:
            print("\n".join(f"    missed: {text}" for text in self.missed))


def changed_lines(wrong: str, right: str) -> tuple[set[int], set[str]]:
    """Return the lines of `wrong` that a change is at or beside, and the calls that it is about."""
    before, after = wrong.splitlines(), right.splitlines()
    lines: set[int] = set()
    calls: set[str] = set()
    for tag, a, b, c, d in difflib.SequenceMatcher(None, before, after, False).get_opcodes():
        if tag == "equal":
            continue
        lines |= set(range(a + 1, b + 1))
        for text in (*before[a:b], *after[c:d]):
            calls |= set(re.findall(r"(\w+\.\w+)\s*(?:<[^()]*>)?\(", text))
            calls |= set(re.findall(r"SetFlag<[^()]*>", text))
        is_left_out = not "".join(after[c:d]).strip() or not "".join(before[a:b]).strip()
        if tag != "replace" or is_left_out:
            # What stands around a call that is left out, or too much.
            lines |= {_call(before, a - 1, -1), _call(before, b, 1)}
    return lines, calls


def _call(lines: list[str], at: int, step: int) -> int:
    while 0 <= at < len(lines) and "(" not in lines[at]:
        at += step
    return at + 1


def is_named(debugger: Debugger, line: str, lines: set[int], calls: set[str]) -> tuple[bool, str]:
    """Ask `why`; return whether its first answer is the change, and what it says."""
    try:
        first = debugger.run(line).data["first"]
    except UsageError as error:
        return False, error.message
    if first is None:
        return False, "nothing"
    names = any(call in first["text"] for call in calls)
    hit = first["line"] in lines or names
    if not hit and first["kind"] == "finding":
        # A finding about two accesses that nothing orders names both.
        hit = first["other_line"] in lines
    return hit, f"{first['kind']} at line {first['line']}: {first['text'][:100]}"


def score_classes(tells: bool) -> None:
    """Score the museum's examples."""
    score = Score()
    with tempfile.TemporaryDirectory() as name:
        for row in CLASSES:
            bug, twin = row.example(), row.fixed_example()
            if not bug or row.is_program or row.needs_operator:
                continue
            blocks = 2 if row.id.startswith("RACE-CORES") else 1
            wrong, watch, debugger = _launch(row.id, bug, Path(name), blocks)
            right, _, _ = _launch(f"{row.id}.fixed", twin, Path(name), blocks)
            loses = any(
                f.witness is not None and (f.witness.differing or f.witness.fault)
                for f in watch.findings
            )
            differs = any(
                not np.array_equal(a, b, equal_nan=True) for a, b in zip(wrong, right, strict=True)
            )
            faults = debugger.session.recording.fault is not None
            if not (loses or differs or faults):
                continue
            hit, text = is_named(debugger, "why", *changed_lines(bug, twin))
            score.add(hit, f"{row.id}: {text}")
    score.show("why, classes of bugs that change a result", tells)


def _launch(
    label: str, text: str, folder: Path, blocks: int
) -> tuple[list[np.ndarray], Check, Debugger]:
    source = folder / f"{label}.cpp"
    source.write_text(text)
    image = toolchain.compile_kernel(source)
    kernel = runtime.Kernel(image, image.kernels[0].name)
    arrays = [np.zeros(128, np.float32) for _ in range(2)]
    watch = Check(TOOLS, witness=True)
    with recording() as recorder:
        try:
            with watch:
                kernel.launch(arrays, blocks)
        except KernelFault:
            pass
    session = Session(recorder.launches[0])
    session.findings = watch.findings
    return arrays, watch, Debugger(Target(label, session, ()))


def score_mutants(every: int, first: int, tells: bool) -> None:
    """Score mutants of the examples' kernels by the first case that shows them."""
    score = Score()
    for name in _EXAMPLES:
        root = _ROOT / "examples" / name
        mutants = find_mutants(root, sorted((root / "op_kernel").glob("*.cpp")))[first::every]
        for number, (file, mutant) in enumerate(mutants):
            with tempfile.TemporaryDirectory() as folder:
                copy = Path(folder) / str(number) / name
                found = _mutated(root, copy, file, mutant)
                if found is None:
                    continue
                text = (root / file).read_text()
                lines, calls = changed_lines(mutant.apply(text), text)
                lines |= {mutant.line}
                hit, said = is_named(found, "why", lines, calls)
                score.add(hit, f"{file}:{mutant.line} {mutant.label[:70]}: {said}")
                if tells:
                    print(
                        f"    {'named ' if hit else 'MISSED'} {file}:{mutant.line}"
                        f" {mutant.label[:60]} -> {said}",
                        flush=True,
                    )
    score.show("why, mutants that change a result", False)


def _mutated(root: Path, copy: Path, file: Path, mutant: object) -> Debugger | None:
    """Build a mutant; return a debugger on the first case that fails, None where none does."""
    ignored = shutil.ignore_patterns("build", "numpy_ext", "torch_ext", "__pycache__")
    shutil.copytree(root, copy, ignore=ignored)
    source = copy / file
    source.write_text(mutant.apply(source.read_text()))  # type: ignore[attr-defined]
    project = toolchain.load_project(copy)
    try:
        library = runtime.open(toolchain.build(project, chip=DEFAULT_CHIP).folder)
    except BuildError:
        return None
    golden = load_golden(project.package_dir / "golden.py")
    standards = operator_standards(project.root, project.operators)
    op = file.stem
    specs = [spec for spec in project.operators if spec.name == op]
    cases = [
        case
        for case in project_cases(project, golden=golden, op=op)
        if np.prod(case.shape) < 1 << 18
    ]
    draw = random.Random(0)
    shown = draw.sample(cases, min(len(cases), 3 * _MOST_CASES))
    runtime.configure(poison=True)
    for case in shown:
        (spec,) = [one for one in specs if one.op == case.op]
        result = run_case(library, case, spec, golden, standards[spec.name])
        if result.verdict not in (Verdict.FAIL, Verdict.FAULT):
            continue
        target = debug_case(
            case, spec, library, golden=golden, standard=standards[spec.name], root=copy.resolve()
        )
        return Debugger(target)
    return None


def random_line(draw: random.Random, session: Session) -> str:
    """Return a command, often one that can be done."""
    count = session.recording.step_count
    names = session.names.known(session.core) or ["y"]
    name = draw.choice(names)
    ops = sorted({session.recording.op_names[op] for op in np.unique(session.recording.op_of)})
    return draw.choice(
        [
            f"step {draw.randint(1, 50)}",
            f"stepback {draw.randint(1, 50)}",
            f"next {draw.randint(1, 5)}",
            f"prev {draw.randint(1, 5)}",
            f"tile {draw.randint(-3, 3)}",
            f"goto {draw.randint(0, count)}",
            f"core {draw.randrange(len(session.recording.cores))}",
            "run",
            "back",
            f"break {draw.choice(ops)} core {draw.randrange(len(session.recording.cores))}",
            f"watch {name}[{draw.randint(0, 4000)}]",
            f"delete {draw.randint(1, 30)}",
            f"print {name}",
            f"print max(abs({name}))",
            f"why {name}[{draw.randint(0, 4000)}]",
            *("tensors", "queues", "flags", "pipes", "where", "list", "instruction", "core"),
        ]
    )


def random_sessions() -> None:
    """Count crashes and differing states in sessions of 1000 commands."""
    crashes = differing = compared = 0
    for what, launch in launches():
        session = record(launch)
        forwards = record(launch)
        debugger = Debugger(Target(what, session, ()))
        draw = random.Random(19)
        order = sorted(r.size_bytes for r in session.recording.ranges)
        assert order == sorted(r.size_bytes for r in forwards.recording.ranges)
        seen: list[tuple[int, int]] = []
        for _ in range(1000):
            try:
                debugger.run(random_line(draw, session))
            except UsageError:
                continue
            except Exception as error:
                crashes += 1
                print(f"    {type(error).__name__}: {error}")
            seen.append((session.position, session.core))
        for position, core in sorted(seen)[:: max(1, len(seen) // 250)]:
            one = session.recording.read(position, "UB", 0, 196608, core=core)
            other = forwards.recording.read(position, "UB", 0, 196608, core=core)
            compared += 1
            differing += one != other
        differing += session.recording.differing_checkpoints()
    figure = f"{crashes} crashes, {differing} of {compared} states differ"
    print_figure("sessions of 1000 random commands", figure, "0")


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parts = ("steps", "run", "classes", "mutants", "random")
    parser.add_argument("--part", choices=parts, action="append")
    parser.add_argument("--every", type=int, default=1, metavar="N")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="leave N mutants out")
    parser.add_argument("--list", action="store_true", help="tell what was missed")
    arguments = parser.parse_args()
    chosen = arguments.part or parts
    print_head()
    if "steps" in chosen:
        measure_steps()
    if "run" in chosen:
        measure_run()
    if "classes" in chosen:
        score_classes(arguments.list)
    if "mutants" in chosen:
        score_mutants(arguments.every, arguments.first, arguments.list)
    if "random" in chosen:
        random_sessions()


if __name__ == "__main__":
    try:
        main()
    except OpkitError as error:
        raise SystemExit(str(error)) from error
