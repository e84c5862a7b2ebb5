"""How many mutants of right kernels are killed: under the default standard, and the one before it.

    python benchmarks/mutants.py [--only N,N] [--most N] [--list]

Each operator is a generated project of one type, forward and backward. `opkit check --mutate` only
scores a project whose unchanged kernels pass their tests; where they fail under a standard, none of
its mutants counts as killed under that. `--most N` takes mutants that are evenly spread, about N;
`--list` tells those that survive the default standard.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verdict_formulas import Formula

from opkit.sanitizer import Mutant, find_mutants
from opkit.toolchain import OPKIT_COMMAND

STANDARDS = ("conditioned", "ecosystem")
OPERATORS = (
    (Formula("x*y + z", ("x", "y", "z")), "float16"),
    (Formula("x*sigmoid(x)", ("x",)), "float32"),
    (Formula("x/sqrt(mean(x*x, axis=-1) + 0.00001)*y", ("x", "y")), "float32"),
)
_SECONDS = 300.0


@dataclass
class Score:
    """Mutants of one project."""

    compiled: int
    killed: dict[str, int | None]
    """By standard; None where the unchanged project does not pass."""
    survivors: list[str]
    """Under the default standard."""


def opkit(command: str, project: Path, *arguments: str) -> dict[str, Any]:
    """Run a command on a project; return its report."""
    argv = [*OPKIT_COMMAND, command, str(project), *arguments, "--json"]
    try:
        done = subprocess.run(argv, capture_output=True, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return {"error": {"kind": "timeout"}}
    try:
        found: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        return {"error": {"kind": "crash"}}
    return found


def passes(project: Path, standard: str) -> bool | None:
    """Whether a project passes its tests; None where it does not compile."""
    report = opkit("test", project, "--standard", standard)
    if "error" in report:
        return None if report["error"]["kind"] == "BuildError" else False
    return all(case["verdict"].startswith("pass") for case in report["cases"])


def score(project: Path, most: int | None) -> Score:
    """Judge the mutants of a project."""
    whole = find_mutants(project, sorted((project / "op_kernel").glob("*.cpp")))
    chosen = whole[:: max(1, len(whole) // most)] if most else whole
    right = {standard: passes(project, standard) for standard in STANDARDS}
    found = Score(0, {standard: 0 if right[standard] else None for standard in STANDARDS}, [])
    for mutant in chosen:
        killed = killed_by(project, *mutant)
        if killed is None:
            continue
        found.compiled += 1
        if not killed[STANDARDS[0]]:
            path, change = mutant
            found.survivors.append(f"{path}:{change.line}: {change.label}")
        for standard in STANDARDS:
            before = found.killed[standard]
            found.killed[standard] = None if before is None else before + killed[standard]
    return found


def killed_by(project: Path, file: Path, mutant: Mutant) -> dict[str, bool] | None:
    """Return which standards a mutant does not survive; None where it does not compile."""
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / project.name
        shutil.copytree(project, copy)
        source = copy / file
        source.write_text(mutant.apply(source.read_text()))
        verdicts = {standard: passes(copy, standard) for standard in STANDARDS}
        if None in verdicts.values():
            return None
        killed = {standard: not verdict for standard, verdict in verdicts.items()}
        if not all(killed.values()) and opkit("check", copy).get("findings"):
            killed = dict.fromkeys(STANDARDS, True)
    return killed


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--only", help="these of the operators")
    parser.add_argument("--most", type=int, metavar="N")
    parser.add_argument("--list", action="store_true", help="tell the survivors")
    arguments = parser.parse_args()
    numbers = arguments.only.split(",") if arguments.only else range(len(OPERATORS))
    for number in map(int, numbers):
        formula, dtype = OPERATORS[number]
        with tempfile.TemporaryDirectory() as folder:
            prototype = Path(folder) / "mutants.json"
            prototype.write_text(json.dumps([formula.prototype(f"Mutants{number}", [dtype])]))
            project = Path(folder) / "mutants"
            argv = [*OPKIT_COMMAND, "gen", "-q", "-i", str(prototype), "-o", str(project)]
            subprocess.run([*argv, "-f", "aclnn"], check=True, stdout=subprocess.DEVNULL)
            found = score(project, arguments.most)
        print(f"{formula.text}, {dtype}: {found.compiled} mutants compile", flush=True)
        for standard, killed in found.killed.items():
            told = "none: the right kernel fails" if killed is None else f"{killed} killed"
            print(f"  {standard}: {told}", flush=True)
        if arguments.list:
            print("".join(f"  survives: {survivor}\n" for survivor in found.survivors), end="")


if __name__ == "__main__":
    main()
