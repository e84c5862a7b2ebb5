"""Figures of `opkit tune`: what it gains, how near it comes to the best, how fast it is.

python benchmarks/tuning.py                 # all: about ten minutes of two cores
python benchmarks/tuning.py --budget 40     # fewer candidates for the first table
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from table import print_figure, print_head

from opkit.compiler import TensorSpec, trace
from opkit.executor import HereExecutor, LocalExecutor
from opkit.scaffold import render, write
from opkit.schema import load
from opkit.testing import load_golden, make_case
from opkit.toolchain import Artifact, Project, build, load_project
from opkit.tuning import Budget, Subject, TuningReport, compiled_subject, project_subject, tune

CHIP = "Ascend910B2"
PROTOTYPES = Path(__file__).resolve().parents[1] / "examples" / "prototypes"
OPERATORS = (
    ("GELU", "gelu_custom.json", ((65536,), (1 << 20,), (5_000_000,))),
    ("RMSNorm", "rmsnorm.json", ((64, 4096), (2048, 4096), (512, 8192))),
    ("softmax", "corpus/softmax_row.json", ((64, 1024), (2048, 1024), (256, 8192))),
    ("layer norm", "corpus/layer_norm_affine.json", ((64, 4096), (1024, 4096), (512, 8192))),
)
PRODUCTS = ((256, 1024, 1024), (1024, 1024, 1024), (512, 4096, 2048))
# A space of which all can be tried in a minute, and a tenth of it.
EXHAUSTIVE = ("tiles=1,2,3,4,6,8,12,16", "buffers=1,2,3,4", "blocks=4,8,12,16,20,24,28,32,36,40")


def main(arguments: Sequence[str] | None = None) -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budget", type=int, default=100, help="candidates for each shape")
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="opkit-benchmark-") as name:
        place = Path(name)
        gelu = _project(place, "gelu_custom.json")
        _gains(place, gelu, Budget(given.budget), given.workers)
        print()
        print_head()
        _nearness(gelu, place, given.workers)
        _rate(gelu, place)


def _project(place: Path, prototype: str) -> Project:
    specs = load(PROTOTYPES / prototype)
    folder = place / specs[0].name
    write(render(specs, framework="aclnn"), folder)
    return load_project(folder)


def _build(copy: Project, out: Path) -> Artifact:
    return build(copy, chip=CHIP, out=out)


def _subject(project: Project, shape: tuple[int, ...], knobs: tuple[str, ...] = ()) -> Subject:
    golden = load_golden(project.package_dir / "golden.py")
    spec = project.operators[0]
    rule = golden.shape_rule(spec) if golden is not None else None
    case = make_case(spec, shape, shape_rule=rule)
    return project_subject(project, case, chip=CHIP, build=_build, knobs=knobs)


def _tuned(subject: Subject, place: Path, workers: int, budget: Budget) -> TuningReport:
    with tempfile.TemporaryDirectory(dir=place) as name:
        state = Path(name) / "state.jsonl"
        return tune(subject, executor=LocalExecutor(workers), state=state, budget=budget)


def _gains(place: Path, gelu: Project, budget: Budget, workers: int) -> None:
    print("| operator | shape | default us | tuned us | tuned / default | candidates | relieves |")
    print("|---|---|---|---|---|---|---|")
    worst = 0.0
    for name, prototype, shapes in OPERATORS:
        project = gelu if prototype == "gelu_custom.json" else _project(place, prototype)
        for shape in shapes:
            report = _tuned(_subject(project, shape), place, workers, budget)
            _row(name, "x".join(map(str, shape)), report)
            worst = max(worst, report.ratio)
    for m, n, k in PRODUCTS:
        graph = trace(
            lambda a, b: a @ b,
            (TensorSpec("a", (m, k), "float16"), TensorSpec("b", (k, n), "float16")),
            name="product",
        )
        report = _tuned(compiled_subject(graph, {}, chip=CHIP), place, workers, budget)
        _row("matmul (opkit compile)", f"{m}x{n}x{k}", report)
        worst = max(worst, report.ratio)
    print(f"\nlargest tuned / default: {worst:.3f}, to reach: never above 1")


def _row(name: str, shape: str, report: TuningReport) -> None:
    start, best = report.start.measurement.task_us, report.best.measurement.task_us
    relief = report.relief
    told = f"{relief.pipe} by {relief.saved_us:.2f} us" if relief is not None else ""
    print(
        f"| {name} | {shape} | {start:.2f} | {best:.2f} | {report.ratio:.3f} |"
        f" {len(report.trials)} of {report.space.size} | {told} |",
        flush=True,
    )


def _nearness(gelu: Project, place: Path, workers: int) -> None:
    for shape in ((1 << 20,), (200_000,)):
        subject = _subject(gelu, shape, EXHAUSTIVE)
        size = subject.space.size
        whole = _tuned(subject, place, workers, Budget(size))
        assert whole.searched_all
        tenth = _tuned(subject, place, workers, Budget(size // 10))
        ratio = tenth.best.measurement.task_us / whole.best.measurement.task_us
        print_figure(
            f"tuned / best of all {size} candidates, with {len(tenth.trials)}: GELU {shape[0]}",
            f"{ratio:.4f}",
            "<= 1.02",
        )


def _rate(gelu: Project, place: Path) -> None:
    subject = _subject(gelu, (1 << 20,))
    # In this process, by its processor time: what else the machine does is not in it. Twice, so
    # that the search's start and the one comparison with the golden are paid by both.
    seconds = []
    for count in (16, 336):
        with tempfile.TemporaryDirectory(dir=place) as name:
            state = Path(name) / "state.jsonl"
            begin = time.process_time()
            tune(subject, executor=HereExecutor(), state=state, budget=Budget(count))
            seconds.append(time.process_time() - begin)
    print_figure(
        "candidates a second and core, GELU 1 Mi, verified",
        f"{320 / (seconds[1] - seconds[0]):.0f}",
        ">= 20",
    )


if __name__ == "__main__":
    main()
