"""Building, running and verifying samples."""

from __future__ import annotations

import re
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from opkit.chips import DEFAULT_CHIP, all_chips, find_chip
from opkit.compat.discover import Sample
from opkit.compat.needs import (
    builds_operators,
    installing_recipe,
    missing_operators,
    needed_folders,
)
from opkit.compat.outcome import (
    Outcome,
    Verdict,
    bounds_to_try,
    build_cause,
    fault_cause,
    foreign_software,
    last_line,
    missing_download,
    missing_module,
    names_in_build_log,
    names_in_faults,
    one_line,
    other_chip,
    other_products,
    refused_chip,
    says_fail,
    says_pass,
    shown_assertion,
    shows,
    wrong_cause,
)
from opkit.compat.processes import Ran, Running
from opkit.compat.recipe import READMES, Recipe, Step, find_recipes, steps_of
from opkit.compat.scenarios import Scenario, scenarios_of
from opkit.compat.source import local_names, tokens_of, variable_names
from opkit.compat.steps import Workplace
from opkit.compat.texts import is_file, read_text
from opkit.toolchain import plain_code

__all__ = ["Machine", "Task", "plan", "try_task"]

_ARCHITECTURES = "CMAKE_ASC_ARCHITECTURES"
_NOT_COPIED = shutil.ignore_patterns(".git", "build", "__pycache__")
_SOURCES = {".asc", ".cpp", ".cc", ".cce", ".h", ".hpp"}
_CAN_FAIL = re.compile(r"\b(?:sys\.exit|exit|raise|assert|assert_\w+)\b")
_MAIN = re.compile(r"\bint\s+main\s*\(")


@dataclass(frozen=True)
class Task:
    """One scenario of one sample."""

    sample: Sample
    scenario: Scenario

    @property
    def name(self) -> str:
        """The sample and the scenario."""
        return f"{self.sample.name} {self.scenario.name}".strip()


def plan(samples: Sequence[Sample]) -> tuple[Task, ...]:
    """Return every scenario of every sample; reads the samples and runs nothing."""
    tasks = []
    for sample in samples:
        recipes = find_recipes(sample.folder) if sample.has_cmake else _lone_recipes(sample)
        recipes = tuple(_for_our_chip(recipe, sample.folder) for recipe in recipes)
        for scenario in scenarios_of(sample.folder, recipes):
            tasks.append(Task(sample, scenario))
    return tuple(tasks)


@dataclass(frozen=True)
class Machine:
    """What trying samples takes of the machine that does it."""

    cmake_arguments: tuple[str, ...]
    """What makes CMake find the language ASC."""
    compiler: tuple[str, ...]
    """How to call `opkit cc`, for samples without CMake."""
    environment: Mapping[str, str]
    """Variables of every step, over those of the process."""


def try_task(
    task: Task,
    place: Path,
    *,
    machine: Machine,
    seconds: float,
    show: Callable[[Sequence[str]], None] = lambda _: None,
) -> Outcome | None:
    """Return the outcome of a task; None where the sample's own CMake refuses the value tried.

    Args:
        place: a folder of its own, which is gone afterwards.
        seconds: the limit of each step.
        show: called with each command before it runs.
    """
    running = Running()
    attempt = _Attempt(
        task=task,
        place=place,
        running=running,
        cmake_arguments=machine.cmake_arguments,
        compiler=machine.compiler,
        # A package of operators is installed for its own scenario only.
        environment={**machine.environment, "ASCEND_OPP_PATH": str(place / "opp")},
        seconds=seconds,
        show=show,
    )
    try:
        return attempt.outcome()
    finally:
        # Whatever ends this, too: no compiler and no program outlives it.
        running.stop()


@dataclass(frozen=True)
class _Attempt:
    """One try at one task."""

    task: Task
    place: Path
    running: Running
    cmake_arguments: tuple[str, ...]
    compiler: tuple[str, ...]
    environment: Mapping[str, str]
    seconds: float
    show: Callable[[Sequence[str]], None]

    def outcome(self) -> Outcome | None:
        """Return what became of it; None where it is no scenario after all."""
        start = time.monotonic()
        result = self._refusal() or self._install_needed() or self._carried_out()
        if result is not None and result.verdict is Verdict.FAULT:
            result = self._with_chip_bounds(result)
        return None if result is None else replace(result, seconds=time.monotonic() - start)

    def _with_chip_bounds(self, faulted: Outcome) -> Outcome:
        """Return what becomes of it where tensors end as on the chip, if it is right then."""
        environment = bounds_to_try(faulted.cause, self.environment)
        if environment is None:
            return faulted
        again = replace(self, environment=environment)._carried_out()
        if again is None or again.verdict is not Verdict.PASS:
            return faulted
        cause = f"{faulted.cause}; with the chip's bounds {again.cause}"
        return self._say(Verdict.BEHIND, cause)

    def _refusal(self) -> Outcome | None:
        """Return an outcome where it is known before anything is done."""
        recipe = self.task.scenario.recipe
        foreign = next((step for step in recipe.steps if step.kind == "foreign"), None)
        products = other_products(_readme(self.task.sample.folder))
        if products is not None:
            return self._say(Verdict.CHIP, f"is for {products}")
        if foreign is not None:
            return self._say(Verdict.UNVERIFIED, f"needs {foreign.words[0]}, which is not here")
        return None

    def _install_needed(self) -> Outcome | None:
        """Install what other samples make and this one needs; return an outcome if that fails."""
        for index, folder in enumerate(needed_folders(self.task.sample.folder)):
            scenario = Scenario("", installing_recipe(folder))
            place = self.place.with_name(f"{self.place.name}-needed-{index}")
            # With this attempt's environment: the package goes where its own steps look.
            other = replace(self, task=Task(Sample(folder.name, folder), scenario), place=place)
            result = other._refusal() or other._carried_out()
            if result is not None and not result.verdict.passed:
                cause = f"needs {folder.name}, which ends in {result.verdict.value}: {result.cause}"
                return self._say(Verdict.UNVERIFIED, cause)
        return None

    def _carried_out(self) -> Outcome | None:
        try:
            with self._copy() as folder:
                return self._carry_out(self.task.scenario.recipe, folder)
        except OSError as err:
            # shutil.Error lists every file that it could not copy: (from, to, reason).
            cause = err.args[0][0][2] if isinstance(err, shutil.Error) else str(err)
            return self._say(Verdict.UNVERIFIED, f"it cannot be copied and carried out: {cause}")

    @contextmanager
    def _copy(self) -> Iterator[Path]:
        sample = self.task.sample
        # By its own name: programs print paths.
        folder = self.place / sample.folder.resolve().name
        try:
            # Links lead out of samples, to files that they share.
            shutil.copytree(
                sample.folder,
                folder,
                ignore=_ignored,
                symlinks=False,
                ignore_dangling_symlinks=True,
            )
            _make_writable(folder)
            yield folder
        finally:
            shutil.rmtree(self.place, ignore_errors=True)

    def _carry_out(self, recipe: Recipe, folder: Path) -> Outcome | None:
        work = Workplace(
            root=folder,
            running=self.running,
            seconds=self.seconds,
            cmake_arguments=self.cmake_arguments,
            environment=self.environment,
            show=self.show,
        )
        printed: list[str] = []
        verified: list[tuple[Step, str]] = []
        for step in recipe.steps:
            ran = work.do(self._with_compiler(step))
            if step.kind == "configure" and self._refuses_value(ran):
                return None
            failure = self._failure(step, ran)
            if failure is not None:
                return failure
            if step.kind == "run":
                printed.append(ran.output)
            elif step.kind == "verify":
                verified.append((step, ran.output))
        if not printed:
            return self._say(Verdict.UNVERIFIED, "it builds, and there is nothing to run")
        if verified:
            return self._verdict_of_scripts(verified, work)
        return self._verdict_of_program("\n".join(printed), recipe)

    def _with_compiler(self, step: Step) -> Step:
        if step.words[:1] != (_CC,):
            return step
        return replace(step, words=(*self.compiler, *step.words[1:]))

    def _refuses_value(self, ran: Ran) -> bool:
        """Whether the sample's CMake says that a value we tried is none of its scenarios."""
        if ran.code == 0 or other_chip(ran.output):
            return False
        cause = build_cause(ran.output)
        return any(name in cause for name in self.task.scenario.derived)

    def _failure(self, step: Step, ran: Ran) -> Outcome | None:
        """Return the outcome where a step ends the attempt, None where it goes on."""
        if ran.failed_to_start:
            return self._say(Verdict.UNVERIFIED, ran.failed_to_start)
        if step.kind in ("build", "compile") and ran.code != 0:
            # Before the time limit: other sources may take long that compile without it.
            software = foreign_software(ran.output, _sources(self.task.sample.folder))
            if software is not None:
                return self._say(Verdict.UNVERIFIED, f"needs {software}")
            operators = missing_operators(ran.output)
            if operators is not None and not builds_operators(self.task.sample.folder):
                cause = f"needs {operators}, which no package that its README leads to brings"
                return self._say(Verdict.UNVERIFIED, cause)
        if ran.timed_out:
            what = " ".join(step.words)
            return self._say(Verdict.TIMEOUT, f"{what} took more than {self.seconds:g} s")
        lacking = missing_module(ran.output) if ran.code != 0 else None
        if lacking is not None:
            return self._say(Verdict.UNVERIFIED, f"needs {lacking}")
        if step.kind == "run":
            return self._run_failure(step, ran)
        if ran.code == 0:
            return None
        download = missing_download(ran.output)
        if download is not None:
            cause = f"needs a download that fails ({download}); -D may name a copy of yours"
            return self._say(Verdict.UNVERIFIED, cause)
        if step.kind in ("configure", "build", "compile"):
            architecture = other_chip(ran.output)
            if architecture is not None:
                return self._say(Verdict.CHIP, f"needs {architecture}")
            sources = _sources(self.task.sample.folder)
            refusal = refused_chip(ran.output, sources)
            if refusal is not None:
                return self._say(Verdict.CHIP, refusal)
            names = names_in_build_log(ran.output, _own_names(sources))
            return self._say(Verdict.BUILD, build_cause(ran.output), names)
        if step.kind == "verify":
            return self._say(Verdict.WRONG, wrong_cause(ran.output))
        what = " ".join(step.words)
        return self._say(Verdict.UNVERIFIED, f"{what} failed: {last_line(ran.output)}")

    def _run_failure(self, step: Step, ran: Ran) -> Outcome | None:
        fault = fault_cause(ran.output)
        if fault is not None and ran.code == 0:
            recipe = self.task.scenario.recipe
            shown = recipe and shown_assertion(fault, recipe.shown_output)
            if recipe and shown:
                return self._say(Verdict.PASS, f"{recipe.source} shows that this fails: {shown}")
        if fault is not None:
            return self._say(Verdict.FAULT, fault, names_in_faults(ran.output))
        if ran.code < 0:
            # strsignal knows those without a name in Python, too.
            name = signal.strsignal(-ran.code) or f"signal {-ran.code}"
            return self._say(Verdict.FAULT, f"{step.words[0]} was ended by a signal: {name}")
        if ran.code == 0:
            return None
        if says_fail(ran.output):
            return self._say(Verdict.WRONG, wrong_cause(ran.output))
        text = last_line(ran.output)
        return self._say(Verdict.FAULT, f"{step.words[0]} exited with {ran.code}: {text}")

    def _verdict_of_scripts(self, verified: list[tuple[Step, str]], work: Workplace) -> Outcome:
        said = []
        for step, output in verified:
            if says_fail(output):
                return self._say(Verdict.WRONG, wrong_cause(output))
            script = next(word for word in step.words if word.endswith(".py"))
            line = says_pass(output)
            if line is None and not _can_fail(work.inside(script)):
                cause = f"{script} says neither pass nor fail, and cannot fail"
                return self._say(Verdict.UNVERIFIED, cause)
            said.append(f"{Path(script).name}: {line or 'exit code 0'}")
        return self._say(Verdict.PASS, "; ".join(said))

    def _verdict_of_program(self, output: str, recipe: Recipe) -> Outcome:
        fail, passed = says_fail(output), says_pass(output)
        if fail and not passed:
            return self._say(Verdict.WRONG, wrong_cause(output))
        if fail and passed and says_pass(fail) is None:
            return self._say(Verdict.WRONG, fail)
        if passed and not fail:
            return self._say(Verdict.PASS, f"the program: {passed}")
        if fail:
            return self._say(Verdict.UNVERIFIED, f"the program says both: {fail}")
        if shows(output, recipe.shown_output):
            return self._say(Verdict.PASS, f"it prints what {recipe.source} shows")
        return self._say(Verdict.UNVERIFIED, "it ran, and nothing says whether the result is right")

    def _say(self, verdict: Verdict, cause: str, missing: tuple[str, ...] = ()) -> Outcome:
        text = one_line(cause)
        return Outcome(self.task.sample.name, self.task.scenario.name, verdict, text, missing)


_CC = "opkit-cc"


def _lone_recipes(sample: Sample) -> tuple[Recipe, ...]:
    """Return one recipe a source: compile and run it where it has a main, else only compile."""
    recipes = []
    for source in sample.sources:
        has_main = _MAIN.search(read_text(source))
        flags = ["-o", "demo"] if has_main else ["-c", "-o", "demo.o"]
        steps = [Step("compile", (_CC, source.name, *flags))]
        if is_file(sample.folder / "scripts" / "gen_data.py"):
            steps += steps_of(["python3 scripts/gen_data.py"])
        if has_main:
            steps.append(Step("run", ("./demo",)))
        if has_main and is_file(sample.folder / "scripts" / "verify_result.py"):
            line = "python3 scripts/verify_result.py output/output.bin output/golden.bin"
            steps += steps_of([line])
        recipes.append(Recipe(tuple(steps), "custom"))
    return tuple(recipes)


def _for_our_chip(recipe: Recipe, folder: Path) -> Recipe:
    """Return the recipe for a chip that opkit has, where it names another and allows ours."""
    named = recipe.configure_values().get(_ARCHITECTURES)
    ours = find_chip(DEFAULT_CHIP).npu_arch
    if named is None or named.lower() in {chip.npu_arch for chip in all_chips()}:
        return recipe
    files = [folder / "CMakeLists.txt", *folder.glob("README*")]
    text = "".join(map(read_text, files))
    return recipe.with_values({_ARCHITECTURES: ours}) if ours in text else recipe


def _sources(folder: Path) -> list[str]:
    paths = [path for path in folder.rglob("*") if path.suffix in _SOURCES and is_file(path)]
    return [read_text(path) for path in paths]


def _own_names(sources: Sequence[str]) -> set[str]:
    """Return the names that sources declare themselves."""
    found: set[str] = set()
    for text in sources:
        tokens = tokens_of(plain_code(text))
        found |= local_names(tokens) | variable_names(tokens)
    return found


def _readme(folder: Path) -> str:
    """Return the first README, where there is one: others are translations."""
    for path in (folder / name for name in READMES):
        if is_file(path):
            return read_text(path)
    return ""


def _ignored(folder: str, names: list[str]) -> set[str]:
    """Return what a copy of a folder leaves out: builds, what is no file, links to where it is."""
    left_out = set(_NOT_COPIED(folder, names))
    for name in names:
        path = Path(folder, name)
        is_plain = path.is_file() or path.is_dir() or path.is_symlink()
        is_loop = path.is_symlink() and Path(folder).resolve().is_relative_to(path.resolve())
        if is_loop or not is_plain:
            left_out.add(name)
    return left_out


def _make_writable(folder: Path) -> None:
    """Let the steps write beside files that were read-only."""
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode | 0o200)


def _can_fail(script: Path | None) -> bool:
    """Whether a script's exit code may be another than 0."""
    return script is not None and _CAN_FAIL.search(read_text(script)) is not None
