"""Right things that opkit's judges refuse, and wrong ones that they pass.

    python benchmarks/judges.py [graphs kernels cheats torch] --record FILE [--count N] [--first N]
                                [--part I/N]

Each judgement is a line of JSON in the record; what is in it is not judged again, so that a run
goes on where another ended. The table counts all of them:

    graphs   random tensor programs over all operators and data types, every third one a gradient:
             `opkit compile --verify` beside NumPy (judges_numpy.py), on the steps of the kernels'
             plans, every 16th on compiled kernels; and each with wrong results planted
    kernels  changed kernels of generated projects and the examples (judges_mutants.py): refused by
             `opkit test` or `opkit check`?
    cheats   kernels that try to forge their verdict (judges_cheats.py): no command may end with 0
    torch    random functions through `torch.compile`, beside the CPU. Needs torch
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

__all__ = ["Judgement", "count", "summary"]

PARTS = ("graphs", "kernels", "cheats", "torch")
_MUTANTS_EACH = 11


@dataclass(frozen=True)
class Judgement:
    """One thing, judged."""

    judge: str
    name: str
    truth: str
    """`right`, `wrong`, or `unclear`."""
    verdict: str
    """Why it is refused; empty where it passes."""
    seconds: float

    @property
    def is_false_alarm(self) -> bool:
        """Whether something right is refused."""
        return self.truth == "right" and bool(self.verdict)

    @property
    def is_false_pass(self) -> bool:
        """Whether something wrong passes."""
        return self.truth == "wrong" and not self.verdict


@dataclass(frozen=True)
class Count:
    """What one judge has made of all that it judged."""

    right: int
    wrong: int
    unclear: int
    false_alarms: tuple[Judgement, ...]
    false_passes: tuple[Judgement, ...]
    median_seconds: float


def count(found: Iterable[Judgement]) -> dict[str, Count]:
    """Return what each judge has made of its judgements, of which the last of a name counts."""
    last = {(each.judge, each.name): each for each in found}
    judges = dict.fromkeys(judge for judge, _ in last)
    counts = {}
    for judge in judges:
        some = [each for each in last.values() if each.judge == judge]
        truths = [each.truth for each in some]
        counts[judge] = Count(
            *(truths.count("right"), truths.count("wrong"), truths.count("unclear")),
            tuple(each for each in some if each.is_false_alarm),
            tuple(each for each in some if each.is_false_pass),
            statistics.median(each.seconds for each in some),
        )
    return counts


def summary(found: Iterable[Judgement]) -> str:
    """Return the table, and below it everything that was judged wrongly."""
    counts = count(found)
    lines = ["| judge | right | of them refused | wrong | of them passed | unclear | median |"]
    lines.append("|---|---|---|---|---|---|---|")
    for judge, one in counts.items():
        cells = (
            *(judge, one.right, len(one.false_alarms), one.wrong, len(one.false_passes)),
            *(one.unclear, f"{one.median_seconds:.2f} s"),
        )
        lines.append(f"| {' | '.join(map(str, cells))} |")
    for judge, one in counts.items():
        lines += [f"{judge} refuses {each.name}: {each.verdict}" for each in one.false_alarms]
        lines += [f"{judge} passes {each.name}" for each in one.false_passes]
    return "\n".join(lines)


def graphs(first: int, number: int, known: set[tuple[str, str]]) -> Iterator[Judgement]:
    """Judge random programs, and each with its results spoiled."""
    from judges_graphs import CORRUPTIONS, PlanProgram, draw_graph, draw_inputs
    from judges_numpy import Unknown, evaluate, right_by_spread, spread, widened

    from opkit import compiler as oc
    from opkit.chips import DEFAULT_CHIP, find_chip
    from opkit.compiler.stages import compile_stages
    from opkit.errors import OpkitError

    warnings.simplefilter("ignore")
    chip = find_chip(DEFAULT_CHIP)
    for seed in range(first, first + number):
        if ("verify", f"graph {seed}") in known:
            continue
        begin = time.perf_counter()
        try:
            graph = draw_graph(seed)
            program = PlanProgram(compile_stages(graph, chip, None))
            if seed % 16 == 0:
                program.is_compiled = True
            elif any(g.kind not in ("vector", "view") for g in program.lowered.groups):
                program.runs_by_reference = True
            arrays = draw_inputs(graph, seed)
            right = evaluate(graph, arrays)
            moves = spread(graph, arrays, right)
        except (OpkitError, Unknown) as error:
            yield Judgement("refusals", f"graph {seed}", "unclear", str(error)[:120], 0.0)
            continue

        def worst(
            graph: Any = graph,
            arrays: Any = arrays,
            right: Any = right,
            moves: Any = moves,
            program: Any = program,
        ) -> float:
            results = program(*arrays)
            results = results if isinstance(results, tuple) else (results,)
            found = []
            for (name, tensor), result in zip(graph.outputs, results, strict=True):
                dtype = graph.tensors[tensor].dtype
                value = widened(result, dtype)
                found.append(right_by_spread(value, right[name], moves[name], dtype)[1])
            return max(found)

        def judged(
            name: str, truth: str, program: Any = program, arrays: Any = arrays
        ) -> Judgement:
            start = time.perf_counter()
            difference = oc.verify(program, arrays)
            text = "" if difference is None else str(difference)
            return Judgement("verify", name, truth, text, time.perf_counter() - start)

        try:
            # What is off by a few roundings is nobody's to say.
            share = worst()
            truth = "right" if share <= 1.0 else "wrong" if share > 8.0 else "unclear"
            yield judged(f"graph {seed}", truth)
            groups = program.lowered.groups
            if truth != "right" or not groups or groups[-1].kind != "vector" or program.is_compiled:
                continue
            for name, corruption in CORRUPTIONS.items():
                program.corruption, program.seed = corruption, seed
                share = worst()
                if share > 8.0:
                    yield judged(f"graph {seed}, {name}", "wrong")
        except OpkitError as error:
            yield Judgement(
                "verify", f"graph {seed}", "right", str(error)[:200], time.perf_counter() - begin
            )


def kernels(
    part: int, parts: int, known: set[tuple[str, str]], work: Path, seed: int = 0
) -> Iterator[Judgement]:
    """Judge changed kernels; `seed` draws the changes."""
    from judges_kernels import judge_kernel, projects

    done = set()
    for judge, name in known:
        if judge == "test and check":
            kernel, change, number = name.split(" / ")
            done.add((kernel, change, int(number)))
    folder = work / "projects"
    folder.mkdir(parents=True, exist_ok=True)
    for index, project in enumerate(projects(folder)):
        if index % parts != part:
            continue
        begin = time.perf_counter()
        for number, each in judge_kernel(project, work, _MUTANTS_EACH, seed, done):
            name = f"{each.kernel} / {each.change} / {number}"
            verdict = f"{each.verdict}: {each.why}" if each.verdict else ""
            took = time.perf_counter() - begin
            yield Judgement("test and check", name, each.truth, verdict, took)
            begin = time.perf_counter()


def cheats(known: set[tuple[str, str]], work: Path) -> Iterator[Judgement]:
    """Run kernels that try to forge their verdict."""
    from judges_cheats import CHEATS, COMMANDS, exit_code

    for name in CHEATS:
        for command in COMMANDS:
            if (f"opkit {command}", name) in known:
                continue
            begin = time.perf_counter()
            code, why = exit_code(name, command, work)
            verdict = f"exit {code}: {why}" if code != 0 else ""
            yield Judgement(f"opkit {command}", name, "wrong", verdict, time.perf_counter() - begin)


def torch_functions(first: int, number: int, known: set[tuple[str, str]]) -> Iterator[Judgement]:
    """Judge `torch.compile` on random functions; right is what the CPU gives in float64."""
    import random

    import torch

    unary = (torch.tanh, torch.sigmoid, torch.exp, torch.relu, torch.nn.functional.gelu, torch.abs)
    binary = (torch.add, torch.mul, torch.sub, torch.maximum)
    for seed in range(first, first + number):
        if ("torch.compile", f"function {seed}") in known:
            continue
        draw = random.Random(seed)
        steps = [(draw.choice(unary), draw.choice(binary)) for _ in range(draw.randint(1, 4))]
        axis = draw.choice((None, 0, 1))

        def function(
            x: Any, y: Any, steps: Any = steps, axis: Any = axis, passed: Any = None
        ) -> Any:
            for one, two in steps:
                x = one(x.clamp(-3, 3))
                if passed is not None:
                    passed.append(x)
                x = two(x, y)
            return x if axis is None else torch.softmax(x, axis)

        torch.manual_seed(seed)
        dtype = draw.choice((torch.float32, torch.float16, torch.bfloat16))
        x, y = (torch.randn(draw.choice((3, 17, 64)), 33).to(dtype) for _ in range(2))
        y = y[:1]
        # Else dynamo gives up after some recompilations, and the CPU is compared with itself.
        torch._dynamo.reset()
        begin = time.perf_counter()
        passed: list[Any] = []
        wanted = function(x.double(), y.double(), passed=passed)
        eager = function(x, y).double()
        compiled = torch.compile(function, backend="opkit")(x, y).double()
        unit = torch.finfo(dtype).eps
        # As near as torch itself, some last places of its own type aside.
        size = wanted.abs()
        if axis is None:
            # What cancels has the last places of what it was made of.
            size = torch.stack([size, *(each.abs().expand_as(size) for each in passed)]).amax(0)
        allowed = 2 * (eager - wanted).abs() + 4 * unit * size.clamp(min=1e-3)
        off = ((compiled - wanted).abs() / allowed).max().item()
        verdict = "" if off <= 1.0 else f"off by {off:.3g} of what is allowed"
        yield Judgement(
            "torch.compile", f"function {seed}", "right", verdict, time.perf_counter() - begin
        )


def read(record: Path) -> list[Judgement]:
    """Return the judgements of a record."""
    if not record.exists():
        return []
    return [Judgement(**json.loads(line)) for line in record.read_text().splitlines()]


def main() -> None:
    """Judge, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--record", type=Path, required=True, metavar="FILE")
    parser.add_argument("--count", type=int, default=1000, metavar="N", help="graphs, functions")
    parser.add_argument("--first", type=int, default=0, metavar="SEED")
    parser.add_argument("--part", default="0/1", metavar="I/N", help="of the kernels")
    given = parser.parse_args()
    part, _, parts = given.part.partition("/")
    found = read(given.record)
    known = {(each.judge, each.name) for each in found}
    work = Path(tempfile.gettempdir()) / "opkit-judges"
    work.mkdir(exist_ok=True)
    runs = {
        "graphs": lambda: graphs(given.first, given.count, known),
        "kernels": lambda: kernels(int(part), int(parts), known, work, given.first),
        "cheats": lambda: cheats(known, work),
        "torch": lambda: torch_functions(given.first, given.count, known),
    }
    for name in given.parts:
        for judgement in runs[name]():
            found.append(judgement)
            with given.record.open("a") as record:
                record.write(json.dumps(asdict(judgement)) + "\n")
    print(summary(found))


if __name__ == "__main__":
    main()
