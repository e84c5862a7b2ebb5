"""What `opkit judge` lets through, what it refuses, and how many candidates it judges in an hour.

    python benchmarks/judge.py [bad programs honest right speed] [--count N] [--no-sandbox]

    bad      projects that cheat or are broken (judge_candidates.py): all are to be named
    programs the same of direct-launch sources, Triton, PyPTO and wheels (judge_programs.py)
    honest   generated operators of examples/prototypes: none is to be refused
    right    honest candidates of the other kinds: none is to be refused
    speed    the same operator, 1 Mi elements of float32, with kernels that differ: cold, each
             compiled, and warm; seconds of wall time, everything on one core

Without a name all three run.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from judge_candidates import bad_candidates
from judge_programs import bad_programs, honest_programs
from judges_cheats import plain_project

from opkit.errors import OpkitError
from opkit.judging import Limits, Question, judge
from opkit.toolchain import OPKIT_COMMAND

PARTS = ("bad", "programs", "honest", "right", "speed")
_CASES = "float32-1-normal or float32-17-normal or float32-2x3x17-normal or float32-255-normal"
_CORPUS = Path(__file__).parents[1] / "examples" / "prototypes"


def bad(work: Path, given: argparse.Namespace) -> None:
    """Judge projects that cheat, and print what each is called."""
    _name_all(bad_candidates(work), work, given)


def programs(work: Path, given: argparse.Namespace) -> None:
    """Judge candidates of the other kinds that cheat, and print what each is called."""
    _name_all(bad_programs(work), work, given)


def _name_all(
    candidates: Iterable[tuple[str, str, Path]], work: Path, given: argparse.Namespace
) -> None:
    question = _question(work, given)
    passed, kinds, total = [], set(), 0
    for kind, name, folder in candidates:
        found, accepted = _judged(folder, question)
        kinds.add(kind)
        total += 1
        if accepted or not found:
            passed.append(name)
        print(f"{'PASSED' if accepted else 'named':7}{name:38}{found}", flush=True)
    print(
        f"{total} candidates of {len(kinds)} kinds, {total - len(passed)} named; passed: {passed}"
    )


def _question(work: Path, given: argparse.Namespace) -> Question:
    return Question(
        work / "cheat.json",
        expression=_CASES,
        limits=Limits(seconds=given.seconds, memory_mib=2048),
        sandboxed=not given.no_sandbox,
    )


def _judged(folder: Path, question: Question) -> tuple[str, bool]:
    """Return what a candidate is called, and whether it is accepted."""
    try:
        judgement = judge(folder, question)
    except OpkitError as error:
        return f"{type(error).__name__}: {error.message[:80]}", False
    found = " ".join(sorted({each.id for each in judgement.findings}))
    gaps = " ".join(f"not judged: {each.message[:60]}" for each in judgement.gaps)
    return found or gaps, judgement.is_accepted


def right(work: Path, given: argparse.Namespace) -> None:
    """Judge honest candidates of the other kinds."""
    refused, total = [], 0
    for name, path in honest_programs(work):
        found, accepted = _judged(path, _question(work, given))
        total += 1
        if not accepted:
            refused.append(name)
        print(f"{'accepted' if accepted else 'REFUSED':9}{name:30}{found}", flush=True)
    print(f"{total} honest candidates of other kinds, {len(refused)} refused: {refused}")


def honest(work: Path, given: argparse.Namespace) -> None:
    """Judge generated operators by their own prototypes."""
    refused, total = [], 0
    for path in sorted(_CORPUS.rglob("*.json")):
        if total == given.count:
            break
        folder = work / "honest" / path.stem
        shutil.rmtree(folder, ignore_errors=True)
        argv = [*OPKIT_COMMAND, "gen", "-q", "-i", str(path), "-o", str(folder), "-f", "aclnn"]
        question = Question(path, most_elements=1 << 17, sandboxed=not given.no_sandbox)
        if subprocess.run(argv, capture_output=True, check=False).returncode != 0:
            continue
        try:
            judgement = judge(folder, question)
        except OpkitError as error:
            print(f"no task  {path.stem}: {error.message[:80]}", flush=True)
            continue
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        total += 1
        found = " ".join(sorted({each.id for each in judgement.findings}))
        word = "accepted" if judgement.is_accepted else "REFUSED"
        if not judgement.is_accepted:
            refused.append(path.stem)
        print(f"{word:9}{path.stem:28}{len(judgement.cases):4} cases {found}", flush=True)
    print(f"{total} honest candidates, {len(refused)} refused: {refused}")


def speed(work: Path, given: argparse.Namespace) -> None:
    """Judge kernels that differ in nothing but a comment."""
    plain = plain_project(work)
    kernel = plain / "op_kernel" / "cheat.cpp"
    before = kernel.read_text()
    question = Question(
        work / "cheat.json", expression="float32-1048576-normal", sandboxed=not given.no_sandbox
    )
    times: dict[str, list[float]] = {"cold": [], "warm": []}
    # What sandboxes use is counted nowhere once they are ended; but all of it is on this core.
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})
    try:
        for number in range(given.count):
            kernel.write_text(f"// {number} {time.time_ns()}\n{before}")
            for kind, taken in times.items():
                begin = time.perf_counter()
                judgement = judge(plain, question)
                taken.append(time.perf_counter() - begin)
                assert judgement.is_accepted, (kind, judgement.findings)
    finally:
        os.sched_setaffinity(0, cores)
        kernel.write_text(before)
    for kind, taken in times.items():
        wall = sorted(taken)[len(taken) // 2]
        print(
            f"{kind}: {wall:.2f} s a candidate on one core (median of {len(taken)});"
            f" {3600 / wall:.0f} candidates an hour and core"
        )


def main() -> None:
    """Print what is asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--count", type=int, default=40, metavar="N")
    parser.add_argument(
        "--seconds",
        type=float,
        default=10.0,
        metavar="N",
        help="of a build and of each launch: more where the machine is busy",
    )
    parser.add_argument("--no-sandbox", action="store_true")
    given = parser.parse_args()
    parts = {"bad": bad, "programs": programs, "honest": honest, "right": right, "speed": speed}
    with tempfile.TemporaryDirectory(prefix="opkit-judge-") as folder:
        work = Path(folder)
        plain_project(work)
        for name in given.parts or PARTS:
            parts[name](work, given)


if __name__ == "__main__":
    main()
