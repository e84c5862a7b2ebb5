"""Times of the reference programs of a public benchmark of Ascend operators beside its library's.

    python benchmarks/cann_bench.py CHECKOUT [--task NAME ...] [--shapes 4] [--results FILE]

CHECKOUT is the folder of a checkout of cann-bench, whose own code gives inputs, references and
verdicts. Each reference runs through torch.compile(backend="opkit") and operator by operator on
`npu`, or, with --ways wheel, as the wheel of the project that `opkit compile` makes of the task;
the faster of those that are right counts. Times are of the model of the Ascend910B2, those of the
library and the bounds come with the benchmark. A shape that the CPU had a part in has no time.
Scores are those of `opkit judge` (opkit.judging.FORMULA), over all shapes measured; the library has
75.

Every measured shape is one line of FILE, and is not measured again as long as it stands there.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from opkit.judging import case_part, read_benchmark, speed_share, total_score

OPEN: dict[str, str] = {
    "level1": "exp foreach_addcdiv_scalar foreach_norm gelu masked_scale mish sigmoid swi_glu",
    "level2": "apply_rotary_pos_emb arg_max cross_entropy_loss dynamic_quant gather group_norm"
    " maximum rms_norm scatter softmax",
    "level3": "add_rms_norm_dynamic_quant conv_2d dequant_swiglu_quant grouped_matmul"
    " moe_gating_top_k_softmax quant_matmul strided_slice top_k transpose depthwise_conv_2d"
    " roi_align",
    "level4": "gru mha gqa",
}
"""The tasks that operators are built for; the others are kept for measuring and are not read."""
TASKS = {name: level for level, names in OPEN.items() for name in names.split()}
WAYS = ("compiled", "eager", "wheel")
LIBRARY_SCORE = 75


def _count(shape: Any) -> int:
    """Return the elements of all tensors of a case's shapes, which nest for lists of tensors."""
    if not shape:
        return 0 if shape is None else 1
    if isinstance(shape[0], int):
        return int(shape[0]) * _count(shape[1:])
    return sum(_count(part) for part in shape if part)


class Bench:
    """The benchmark's own code for one task."""

    def __init__(self, checkout: Path, task: str, projects: Path | None) -> None:
        sys.path.insert(0, str(checkout / "src"))
        config = importlib.import_module("kernel_eval.config")
        evaluator = importlib.import_module("kernel_eval.eval.evaluator")
        self.projects = projects
        self.checkout, self.path = checkout, f"{TASKS[task]}/{task}"
        self.task = read_benchmark(checkout / "tasks" / self.path)
        settings = config.Config(
            tasks_root=str(checkout / "tasks"),
            reports_dir=tempfile.mkdtemp(prefix="cann_bench"),
            device_type="cpu",
            enable_profiler=False,
            torch_op_guard_mode="off",
        )
        settings.device_residency_guard_mode = "off"
        self.evaluator = evaluator.Evaluator(settings)

    def cases(self) -> list[Any]:
        """Return the task's cases, those of fewest elements first."""
        loader = self.evaluator.case_loader
        found = loader._load_operator_cases(self.checkout / "tasks" / self.path)
        return sorted(found, key=lambda case: (_count(case.input_shapes), case.case_num))

    @functools.cached_property
    def wheel_function(self) -> Any:
        """Return the task's function of the wheel that its project has built."""
        assert self.projects is not None
        (wheel,) = (self.projects / self.task.name / "dist").glob("cann_bench-*.whl")
        site = tempfile.mkdtemp(prefix="cann_bench")
        zipfile.ZipFile(wheel).extractall(site)
        sys.path.insert(0, site)
        # This file has the package's name.
        sys.modules.pop("cann_bench", None)
        return getattr(importlib.import_module("cann_bench"), self.task.name)

    def measure(self, case: Any, way: str) -> dict[str, Any]:
        """Return one way's verdict on a case, and its modelled time."""
        import torch

        from opkit.profiling import Profile
        from opkit.torch_npu.counts import operator_counts

        golden = self.evaluator.golden_loader.get_golden_function(self.path)
        found: dict[str, Any] = {}

        def moved(value: Any, device: str) -> Any:
            if isinstance(value, torch.Tensor):
                return value.to(device)
            if isinstance(value, (list, tuple)):
                return type(value)(moved(each, device) for each in value)
            return value

        def run(**given: Any) -> Any:
            inputs = {name: moved(value, "npu") for name, value in given.items()}
            function = self.wheel_function if way == "wheel" else golden
            if way == "compiled":
                torch._dynamo.reset()
                function = torch.compile(golden, backend="opkit", dynamic=False)
            # Made on the device: what a reference makes itself, as positions.
            with torch.no_grad(), torch.device("npu"):
                function(**inputs)
                before = operator_counts()
                with Profile(event_limit=0) as session:
                    outputs = function(**inputs)
            calls = operator_counts(before)
            found["time_us"] = sum(timeline.task_us for timeline in session.timelines)
            found["kernels"] = len(session.timelines)
            found["cpu"] = sorted(count.operator for count in calls if count.fallback)
            return moved(outputs, "cpu")

        start = time.monotonic()
        result = self.evaluator.evaluate_case(case, ai_op_func=run)
        found["seconds"] = round(time.monotonic() - start, 1)
        found["right"] = bool(result.success)
        if not result.success:
            found["error"] = " ".join(str(result.error_msg).split())[-600:]
        elif not found["cpu"] and found["time_us"]:
            label = f"{self.task.name}-{case.case_num}"
            base, bound = self.task.base_us.get(label), self.task.bound_us.get(label)
            if base is not None and bound is not None:
                found["h"] = speed_share(found["time_us"], base_us=base, bound_us=bound)
        return found


def _work(arguments: argparse.Namespace, task: str) -> None:
    """Measure the shapes that the results lack."""
    checkout, results = arguments.checkout, arguments.results
    warnings.simplefilter("ignore")
    done = {(row["task"], row["case"], row["way"]) for row in _rows(results)}
    bench = Bench(checkout, task, arguments.projects)
    chosen = [c for c in bench.cases() if _count(c.input_shapes) <= arguments.elements]
    for case in chosen[: arguments.shapes]:
        for way in arguments.ways:
            if (task, case.case_num, way) in done:
                continue
            head = {
                "task": task,
                "case": case.case_num,
                "way": way,
                "elements": _count(case.input_shapes),
                "library_us": bench.task.base_us.get(f"{task}-{case.case_num}"),
                "bound_us": bench.task.bound_us.get(f"{task}-{case.case_num}"),
            }
            # What the process dies of stays as the shape's line.
            _append(results, {**head, "right": False, "error": "ended without a result"})
            with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere):
                found = bench.measure(case, way)
            _append(results, {**head, **found})


def _append(results: Path, row: dict[str, Any]) -> None:
    with results.open("a") as file:
        file.write(json.dumps(row) + "\n")


def _rows(results: Path) -> list[dict[str, Any]]:
    """Return the last line of each shape and way."""
    last: dict[tuple[str, int, str], dict[str, Any]] = {}
    if results.exists():
        for line in results.read_text().splitlines():
            row = json.loads(line)
            last[row["task"], row["case"], row["way"]] = row
    return list(last.values())


def _best(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the faster of the ways that are right, else the one that came furthest."""
    return min(rows, key=lambda row: (not row["right"], "h" not in row, row.get("time_us", 0)))


def _shown(row: dict[str, Any]) -> str:
    if not row["right"]:
        return "wrong"
    if row.get("h") is None:
        return "CPU: " + " ".join(row["cpu"]) if row["cpu"] else "no kernel"
    return f"{row['time_us'] / row['library_us']:.2f} ({row['way']})"


def _print_table(results: Path, tasks: list[str]) -> None:
    """Print each task's score and its shapes' time over the library's."""
    rows = [row for row in _rows(results) if row["task"] in tasks]
    scores, slower, count = [], 0, 0
    print("| task | score | right | time / library's, by shape |\n|---|--:|--:|---|")
    for task in tasks:
        cases = sorted({(row["elements"], row["case"]) for row in rows if row["task"] == task})
        if not cases:
            continue
        best = [
            _best([row for row in rows if (row["task"], row["case"]) == (task, case)])
            for _, case in cases
        ]
        parts = [case_part(row["right"], row.get("h")) for row in best]
        scores.append(total_score(True, parts))
        right = sum(row["right"] for row in best)
        count += len(best)
        slower += sum(row.get("h") is None or row["time_us"] > row["library_us"] for row in best)
        shown = " · ".join(map(_shown, best))
        print(f"| {task} | {scores[-1]:.0f} | {right}/{len(best)} | {shown} |")
    if scores:
        print(
            f"\nmean score {sum(scores) / len(scores):.1f} of {len(scores)} tasks"
            f" (the library: {LIBRARY_SCORE}); slower than the library or without a time:"
            f" {slower} of {count} shapes ({slower / count:.0%})"
        )


def _commands(arguments: argparse.Namespace, task: str) -> list[str]:
    return [
        *(sys.executable, __file__, str(arguments.checkout), "--work", "--task", task),
        *("--shapes", str(arguments.shapes), "--elements", str(arguments.elements)),
        *("--results", str(arguments.results), "--ways", *arguments.ways),
        *(("--projects", str(arguments.projects)) if arguments.projects else ()),
    ]


def _attempts(arguments: argparse.Namespace, task: str) -> Iterator[int]:
    """Run a task's process until it has ended by itself: one that died has left a line behind, and
    the next begins after it."""
    limit = arguments.memory_gib << 30

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))

    for _ in range(2 * arguments.shapes + 1):
        try:
            code = subprocess.run(
                _commands(arguments, task), timeout=arguments.seconds, preexec_fn=limited
            ).returncode
        except subprocess.TimeoutExpired:
            code = -1
        yield code
        if code == 0:
            return


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("checkout", type=Path, help="folder of a checkout of cann-bench")
    parser.add_argument("--task", nargs="*", choices=sorted(TASKS), help="these only")
    parser.add_argument("--shapes", type=int, default=4, help="of a task, the smallest first; 4")
    parser.add_argument(
        "--elements", type=int, default=3 << 20, help="of a shape's inputs, at most; 3 Mi"
    )
    parser.add_argument(
        "--results",
        type=Path,
        default=Path(tempfile.gettempdir()) / "cann_bench.jsonl",
        help="measured shapes, one a line; kept in the folder of temporary files",
    )
    parser.add_argument("--seconds", type=int, default=600, help="of a task's process; 600")
    parser.add_argument("--memory-gib", type=int, default=8, help="of a task's process; 8")
    parser.add_argument(
        "--ways", nargs="*", choices=WAYS, default=WAYS[:2], help="compiled and eager"
    )
    parser.add_argument(
        "--projects", type=Path, help="of the way wheel: opkit compile TASK -o PROJECTS/NAME, built"
    )
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    tasks = arguments.task or list(TASKS)
    if arguments.work:
        _work(arguments, tasks[0])
        return
    for task in tasks:
        for code in _attempts(arguments, task):
            if code:
                print(f"{task}: its process ended with {code}", file=sys.stderr)
    _print_table(arguments.results, tasks)


if __name__ == "__main__":
    main()
