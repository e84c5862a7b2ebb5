"""PyTorch's own tests of dynamo and AOTAutograd, pointed at opkit.

    python benchmarks/dynamo_tests.py FOLDER [--files test_misc.py test_repros.py] [-k EXPRESSION]
    python benchmarks/dynamo_tests.py FOLDER --backend eager --into plain
    python benchmarks/dynamo_tests.py --report INTO
    python benchmarks/dynamo_tests.py --operators 7 --modules 3

FOLDER holds the tests, `test/dynamo` of PyTorch's repository or of one that has adapted them to
`npu`; no wheel has them. Each file runs twice, in processes of its own: with the backends that its
tests name, and with opkit in the place of those that run a graph as it was captured
(`dynamo_backends.py` says which). What counts is a test that passes the first time and reaches such
a backend. Prints the share of them that passes with opkit, the share of the nodes that kernels
compute, and every failure.
`--operators N`, `--modules N`: each N-th of PyTorch's lists through its own check of AOTAutograd
(`dynamo_samples.py`), outputs and gradients in float32; these come with the wheel.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from table import print_figure, print_head

BACKENDS = ("eager", "opkit")
_MOST_CRASHES = 20


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--files", nargs="*", default=[], help="only files of these names")
    parser.add_argument("-k", default="", help="only tests that pytest finds by it")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="each n-th of a file")
    parser.add_argument("--backend", choices=BACKENDS, help="only this run")
    parser.add_argument("--seconds", type=int, default=120, help="that a test may take")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--operators", type=int, default=0, metavar="N", help="each n-th operator")
    parser.add_argument("--modules", type=int, default=0, metavar="N", help="each n-th module")
    parser.add_argument("--limit", type=float, default=float("inf"), help="seconds of a list")
    parser.add_argument("--into", type=Path, default=Path("dynamo_tests"), help="keeps outcomes")
    parser.add_argument(
        "--report", type=Path, metavar="INTO", help="print what an earlier run kept"
    )
    options = parser.parse_args()
    for name, step in (("operators", options.operators), ("modules", options.modules)):
        if step:
            report_samples(name, step, options.limit)
    if options.folder:
        files = sorted(
            path
            for path in options.folder.glob("test_*.py")
            if not options.files or path.name in options.files
        )
        if not files:
            sys.exit(f"{options.folder} has no such tests")
        runs = [(each, backend) for backend in BACKENDS for each in files]
        options.into.mkdir(parents=True, exist_ok=True)
        with ThreadPoolExecutor(options.jobs) as pool:
            wanted = [run for run in runs if options.backend in (None, run[1])]
            list(pool.map(lambda run: run_file(*run, options), wanted))
    if options.folder or options.report:
        report(options.report or options.into)


def report_samples(kind: str, step: int, limit: float) -> None:
    import dynamo_samples

    run = {
        "operators": dynamo_samples.run_operators,
        "modules": dynamo_samples.run_modules,
    }[kind]
    tally = run(step, limit)
    for failure in tally.failures:
        print(failure)
    print_head()
    share = 100 * tally.passed / max(tally.tests, 1)
    print_figure(f"{tally.tests} {kind} through AOTAutograd", f"{share:.1f} %", ">= 95 %")
    nodes = tally.compiled + tally.left
    print_figure("nodes in kernels", f"{100 * tally.compiled / max(nodes, 1):.1f} %", "")


def run_file(file: Path, backend: str, options: argparse.Namespace) -> None:
    """Run a file's tests; those behind one that ends its process run in another."""
    record = options.into.resolve() / f"{file.stem}.{backend}.jsonl"
    record.unlink(missing_ok=True)
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "dynamo_backends", "-p", "no:cacheprovider"]
    argv += [*(["-k", options.k] if options.k else []), file.name]
    env = {
        **os.environ,
        "OPKIT_TESTS_BACKEND": backend,
        "OPKIT_TESTS_RECORD": str(record),
        "OPKIT_TESTS_SECONDS": str(options.seconds),
        "OPKIT_TESTS_EVERY": str(options.every),
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).resolve().parent), str(file.parent)]),
    }
    before = -1
    for _ in range(_MOST_CRASHES):
        with record.with_suffix(".log").open("a") as log:
            done = subprocess.run(
                argv, cwd=file.parent, env=env, stdout=log, stderr=log, check=False
            )
        size = record.stat().st_size if record.exists() else 0
        if done.returncode in (0, 1, 2, 4, 5) or size == before:
            break
        before = size
    print(f"{file.name} with {backend}: pytest's exit code {done.returncode}", file=sys.stderr)


def outcomes(into: Path, backend: str) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(into.glob(f"*.{backend}.jsonl")):
        for line in path.read_text().splitlines():
            row = json.loads(line)
            before = found.get(row["test"], {"outcome": "crashed"})
            # A failure while a test is taken down does not become a pass again.
            if before["outcome"] in ("crashed", "passed"):
                found[row["test"]] = row
    return found


def report(into: Path) -> None:
    plain, ours = (outcomes(into, backend) for backend in BACKENDS)
    passing = {name for name, row in plain.items() if row["outcome"] == "passed"}
    counted = sorted(name for name in passing if plain[name].get("graphs") and name in ours)
    failed = [name for name in counted if ours[name]["outcome"] != "passed"]
    for name in failed:
        print(f"{name}: {ours[name].get('error', ours[name]['outcome']).splitlines()[:1]}")
    by_file = Counter(name.split("::")[0] for name in counted)
    for file, count in by_file.items():
        lost = sum(name.startswith(f"{file}::") for name in failed)
        print(f"{file}: {count - lost} of {count}")
    skipped = sum(row["outcome"] == "skipped" for row in plain.values())
    compiled, left = (
        sum(ours[name].get(key, 0) for name in counted) for key in ("compiled", "left")
    )
    print_head()
    print_figure("tests that run", str(len(plain) - skipped), "")
    print_figure("of these, passing with the backends that they name", str(len(passing)), "")
    print_figure("of these, reaching a backend that runs its graph", str(len(counted)), "")
    share = 100 * (len(counted) - len(failed)) / max(len(counted), 1)
    print_figure("of these, passing with opkit", f"{share:.1f} %", ">= 95 %")
    print_figure("nodes in kernels", f"{100 * compiled / max(compiled + left, 1):.1f} %", "")


if __name__ == "__main__":
    main()
