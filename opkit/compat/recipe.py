"""What a sample's README says to type, as steps; the custom of samples where it is silent."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from opkit.compat.shell import assignment_of, commands_of, expand
from opkit.compat.texts import is_file, read_text

__all__ = ["Recipe", "Step", "find_recipes"]

READMES = ("README.md", "README_en.md", "readme.md", "README.MD", "README.rst", "README")
_SHELLS = {"", "bash", "sh", "shell", "console", "shell-session"}
_PROMPT = re.compile(r"^\s*\$\s+")
# They watch or measure a program that also runs without them.
_WRAPPERS = {"msopprof", "msprof", "mssanitizer", "gdb", "time", "sudo", "nohup"}
_SILENT = {"source", ".", "cat", "ls", "echo", "pwd", "tail", "head", "unset", "set", "true"}
_PYTHON = re.compile(r"^python(?:3(?:\.\d+)?)?$")
_VERIFIES = re.compile(r"(?:^|[_\W])(?:verif|check|compar)", re.IGNORECASE)
_GENERATES = re.compile(r"(?:^|[_\W])gen", re.IGNORECASE)
_RUN_MODE = re.compile(r"-DCMAKE_ASC_RUN_MODE=(?!npu)")
_EXECUTABLE = re.compile(r"\badd_executable\s*\(\s*([\w.-]+)")


@dataclass(frozen=True)
class Step:
    """One thing to do."""

    kind: str
    """`set`, `folder`, `enter`, `remove`, `configure`, `build`, `generate`, `run`, `verify`;
    `foreign` for a program that only the vendor has."""
    words: tuple[str, ...]
    """Its command line, variables not yet replaced."""


@dataclass(frozen=True)
class Recipe:
    """What to do from an empty build folder to a verdict."""

    steps: tuple[Step, ...]
    source: str
    """Where it was read: the README's name, or `custom` for what samples usually do."""
    shown_output: tuple[str, ...] = ()
    """Lines that the README shows as the program's output; empty where it shows none."""

    def has(self, kind: str) -> bool:
        """Whether one of the steps is of this kind."""
        return any(step.kind == kind for step in self.steps)

    def configure_values(self) -> dict[str, str]:
        """Return what its configure step gives CMake: the options of -D, with values."""
        variables = self.assignments()
        values: dict[str, str] = {}
        for step in self.steps:
            if step.kind == "configure":
                for word in step.words:
                    found = re.match(r"^-D(\w+)(?::\w+)?=(.*)$", word)
                    if found:
                        values[found[1]] = expand(found[2], variables)
        return values

    def assignments(self) -> dict[str, str]:
        """Return the variables that it sets."""
        values: dict[str, str] = {}
        for step in self.steps:
            if step.kind == "set":
                pairs = [assignment_of(word) for word in step.words]
                values.update(pair for pair in pairs if pair is not None)
        return values

    def with_values(self, changes: Mapping[str, str]) -> Recipe:
        """Return the recipe with other values of some of its CMake options.

        The value goes where the recipe carries the old one: into the variable that the option is
        set from, else into the option and into arguments of scripts that are the old value.
        """
        recipe = self
        for name, value in changes.items():
            recipe = recipe._with_value(name, value)
        return recipe

    def _with_value(self, name: str, value: str) -> Recipe:
        given = f"-D{name}="
        raw = [word for step in self.steps for word in step.words if word.startswith(given)]
        variable = re.match(r"^\$\{?(\w+)\}?$", raw[0].removeprefix(given)) if raw else None
        if variable and variable[1] in self.assignments():
            return self._map(lambda step: _assign(step, variable[1], value))
        old = self.configure_values().get(name)
        return self._map(lambda step: _put(step, name, old, value))

    def _map(self, change: Callable[[Step], Step]) -> Recipe:
        return replace(self, steps=tuple(change(step) for step in self.steps))


def find_recipes(folder: Path) -> tuple[Recipe, ...]:
    """Return the recipes of a sample: each complete block of its README, or the custom."""
    for name in READMES:
        recipes = read_readme(read_text(folder / name), name)
        if recipes:
            return recipes
    return (custom_recipe(folder),)


def read_readme(text: str, name: str) -> tuple[Recipe, ...]:
    """Return the recipes in a README: blocks that configure, build and then run something.

    Blocks for another run mode count only where there is none for the usual one.
    """
    blocks = list(_blocks(text))
    found: list[tuple[bool, Recipe]] = []
    for index, (language, lines) in enumerate(blocks):
        if language not in _SHELLS or not any(re.search(r"\bcmake\b", line) for line in lines):
            continue
        try:
            steps = steps_of(lines)
        except ValueError:
            continue
        rest = blocks[index + 1 :]
        if not _runs(steps):
            steps = [*steps, *_steps_of_next_block(rest)]
        recipe = Recipe(tuple(steps), name, _shown_output(rest))
        if recipe.has("configure") and _runs(steps):
            found.append((bool(_RUN_MODE.search("\n".join(lines))), recipe))
    usual = [recipe for other_mode, recipe in found if not other_mode]
    chosen = usual or [recipe for _, recipe in found[:1]]
    return tuple({recipe.steps: recipe for recipe in chosen}.values())


def custom_recipe(folder: Path) -> Recipe:
    """Return what samples usually do, for one whose README does not say."""
    lines = ["mkdir -p build && cd build", "cmake ..", "make"]
    if is_file(folder / "scripts" / "gen_data.py"):
        lines.append("python3 ../scripts/gen_data.py")
    cmake = read_text(folder / "CMakeLists.txt")
    lines += [f"./{name}" for name in dict.fromkeys(_EXECUTABLE.findall(cmake))]
    if is_file(folder / "scripts" / "verify_result.py"):
        lines.append("python3 ../scripts/verify_result.py output/output.bin output/golden.bin")
    return Recipe(tuple(steps_of(lines)), "custom")


def steps_of(lines: Sequence[str]) -> list[Step]:
    """Return the steps of a script.

    Raises:
        ValueError: a quotation has no end.
    """
    steps: list[Step] = []
    for words in commands_of([_PROMPT.sub("", line) for line in lines]):
        step = _step_of(words, has_run=any(step.kind == "run" for step in steps))
        # A tool that is called several times on one program runs it once here.
        if step is not None and not (step.kind == "run" and step in steps):
            steps.append(step)
    return steps


def _step_of(words: list[str], *, has_run: bool) -> Step | None:
    if all(assignment_of(word) for word in words):
        return Step("set", tuple(words))
    program, rest = words[0], words[1:]
    if program == "export":
        return Step("set", tuple(rest))
    if program in _SILENT:
        return None
    if program in ("mkdir", "cd", "rm"):
        plain = tuple(word for word in rest if not word.startswith("-"))
        return Step({"mkdir": "folder", "cd": "enter", "rm": "remove"}[program], plain)
    if program == "cmake":
        return Step("build" if "--build" in rest else "configure", tuple(words))
    if program in ("make", "ninja"):
        return Step("build", tuple(words))
    if _PYTHON.match(program):
        return Step(_script_kind(rest, has_run=has_run), tuple(words))
    if program in _WRAPPERS:
        return _unwrapped(rest) or Step("foreign", tuple(words))
    if program.startswith("./") or program in ("bash", "sh"):
        return Step("run", tuple(words))
    return Step("foreign", tuple(words))


def _script_kind(arguments: Sequence[str], *, has_run: bool) -> str:
    script = next((word for word in arguments if word.endswith(".py")), "")
    name = Path(script).name
    if _VERIFIES.search(name):
        return "verify"
    if _GENERATES.search(name) and not has_run:
        return "generate"
    return "run"


def _unwrapped(words: Sequence[str]) -> Step | None:
    """Return the program that a tool would run, without the tool and the tool's flags."""
    for word in words:
        if word.startswith("--application="):
            return _step_of(word.partition("=")[2].split(), has_run=True)
        if word.startswith("./"):
            return Step("run", (word,))
    return None


def _runs(steps: Sequence[Step]) -> bool:
    return any(step.kind == "run" for step in steps)


def _blocks(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the fenced blocks: their language and lines."""
    language: str | None = None
    lines: list[str] = []
    for line in text.splitlines():
        fence = re.match(r"^\s*(?:```|~~~)\s*([\w-]*)\s*$", line)
        if fence is None:
            lines.append(line)
        elif language is None or fence[1]:
            # A fence with a language opens a block, also where the last one was left open.
            language, lines = fence[1].lower(), []
        else:
            yield language, lines
            language, lines = None, []


def _steps_of_next_block(blocks: Sequence[tuple[str, list[str]]]) -> list[Step]:
    for language, lines in blocks:
        if language not in _SHELLS or any("cmake" in line for line in lines):
            return []
        try:
            steps = steps_of(lines)
        except ValueError:
            return []
        if _runs(steps):
            return steps
    return []


def _shown_output(blocks: Sequence[tuple[str, list[str]]]) -> tuple[str, ...]:
    """Return the first block behind a recipe that holds no commands: what the program prints."""
    for _, lines in blocks:
        words = [line.strip() for line in lines if line.strip()]
        if not words:
            continue
        if any(_is_command(line) for line in words):
            continue
        return tuple(words)
    return ()


def _is_command(line: str) -> bool:
    program = line.split()[0]
    known = {*_SILENT, *_WRAPPERS, "cmake", "make", "mkdir", "cd", "rm", "export", "bash", "sh"}
    return (
        program in known
        or program.startswith("./")
        # Of several, a program makes a heading.
        or (program.startswith("#") and not program.startswith("##"))
        or bool(_PYTHON.match(program))
        or bool(assignment_of(program))
    )


def _assign(step: Step, name: str, value: str) -> Step:
    if step.kind != "set":
        return step
    words = tuple(
        f"{name}={value}" if (assignment_of(word) or ("", ""))[0] == name else word
        for word in step.words
    )
    return replace(step, words=words)


def _put(step: Step, name: str, old: str | None, value: str) -> Step:
    if step.kind == "configure":
        kept = [word for word in step.words if not word.startswith(f"-D{name}=")]
        return replace(step, words=(*kept, f"-D{name}={value}"))
    if step.kind in ("generate", "verify") and old is not None:
        words = tuple(
            value if word == old else re.sub(f"={re.escape(old)}$", f"={value}", word)
            for word in step.words
        )
        return replace(step, words=words)
    return step
