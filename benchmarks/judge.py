"""What `opkit judge` lets through, what it refuses, and how many candidates it judges in an hour.

    python benchmarks/judge.py [bad honest speed] [--count N] [--no-sandbox]

    bad      candidates that cheat or are broken (judge_candidates.py): all are to be named
    honest   generated operators of examples/prototypes: none is to be refused
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
from pathlib import Path

from judge_candidates import bad_candidates
from judges_cheats import plain_project

from opkit.errors import OpkitError
from opkit.judging import Limits, Question, judge
from opkit.toolchain import OPKIT_COMMAND

PARTS = ("bad", "honest", "speed")
_CASES = "float32-1-normal or float32-17-normal or float32-2x3x17-normal or float32-255-normal"
_CORPUS = Path(__file__).parents[1] / "examples" / "prototypes"


def bad(work: Path, count: int, sandboxed: bool) -> None:
    """Judge what cheats, and print what each is called."""
    question = Question(
        work / "cheat.json",
        expression=_CASES,
        limits=Limits(seconds=10.0, memory_mib=2048),
        sandboxed=sandboxed,
    )
    passed, kinds, total = [], set(), 0
    for kind, name, folder in bad_candidates(work):
        try:
            judgement = judge(folder, question)
            found = " ".join(sorted({each.id for each in judgement.findings}))
            accepted = judgement.is_accepted
        except OpkitError as error:
            found, accepted = f"{type(error).__name__}: {error.message[:60]}", False
        kinds.add(kind)
        total += 1
        if accepted or not found:
            passed.append(name)
        print(f"{'PASSED' if accepted else 'named':7}{name:34}{found}", flush=True)
    print(
        f"{total} candidates of {len(kinds)} kinds, {total - len(passed)} named; passed: {passed}"
    )


def honest(work: Path, count: int, sandboxed: bool) -> None:
    """Judge generated operators by their own prototypes."""
    refused, total = [], 0
    for path in sorted(_CORPUS.rglob("*.json")):
        if total == count:
            break
        folder = work / "honest" / path.stem
        shutil.rmtree(folder, ignore_errors=True)
        argv = [*OPKIT_COMMAND, "gen", "-q", "-i", str(path), "-o", str(folder), "-f", "aclnn"]
        question = Question(path, most_elements=1 << 17, sandboxed=sandboxed)
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


def speed(work: Path, count: int, sandboxed: bool) -> None:
    """Judge kernels that differ in nothing but a comment."""
    plain = plain_project(work)
    kernel = plain / "op_kernel" / "cheat.cpp"
    before = kernel.read_text()
    question = Question(
        work / "cheat.json", expression="float32-1048576-normal", sandboxed=sandboxed
    )
    times: dict[str, list[float]] = {"cold": [], "warm": []}
    # What sandboxes use is counted nowhere once they are ended; but all of it is on this core.
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})
    try:
        for number in range(count):
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
    parser.add_argument("--no-sandbox", action="store_true")
    given = parser.parse_args()
    parts = {"bad": bad, "honest": honest, "speed": speed}
    with tempfile.TemporaryDirectory(prefix="opkit-judge-") as folder:
        work = Path(folder)
        plain_project(work)
        for name in given.parts or PARTS:
            parts[name](work, given.count, not given.no_sandbox)


if __name__ == "__main__":
    main()
