"""How many changes of opkit's own Python the tests of the changed module notice.

    python benchmarks/source_mutants.py [--count N] [--seed N] [--record FILE] [--only WORD]

Each mutant changes one place: a comparison or an arithmetic operator becomes its neighbour, a
number another one, `and` becomes `or`, a condition its opposite. The file on disk stays as it is:
pytest loads the module through this file, which is a plugin of pytest too. What no test notices is
listed with its line: the test to write, or a change that means the same.
"""

from __future__ import annotations

import argparse
import ast
import copy
import importlib.machinery
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from types import CodeType
from typing import Any

_ROOT = Path(__file__).parents[1]
_VARIABLE = "OPKIT_SOURCE_MUTANT"
_SECONDS = 120
TESTS: dict[str, tuple[str, ...]] = {
    "opkit/algebra": (
        "tests/scaffold/formula/test_stable.py",
        "tests/scaffold/formula/test_reader.py",
    ),
    "opkit/bfloat16.py": ("tests/test_bfloat16.py",),
    "opkit/chips.py": ("tests/test_chips.py",),
    "opkit/dtypes.py": ("tests/test_dtypes.py",),
    "opkit/files.py": ("tests/test_files.py",),
    "opkit/folders.py": ("tests/test_folders.py",),
    "opkit/log.py": ("tests/test_log.py",),
    "opkit/schema": ("tests/schema",),
    "opkit/selection.py": ("tests/test_selection.py",),
    "opkit/versions.py": ("tests/test_versions.py",),
    "opkit/testing/numbers": (
        *("tests/testing/test_comparison.py", "tests/testing/test_standards.py"),
        *("tests/testing/test_condition.py", "tests/testing/test_float_kinds.py"),
        "tests/testing/test_exact.py",
    ),
    "opkit/testing/branches.py": ("tests/testing/test_branches.py",),
}
"""Modules or folders whose tests take seconds, and these tests."""

_OTHERS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mult,
    ast.And: ast.Or,
    ast.Or: ast.And,
}


@dataclass(frozen=True)
class Mutant:
    """One changed place."""

    file: str
    index: int
    """Of the places of the file, in the order in which `places` gives them."""
    line: int
    change: str


def places(tree: ast.Module) -> Iterator[tuple[ast.AST, str]]:
    """Yield the nodes that can be changed, and what is changed in each."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and type(node.ops[0]) in _OTHERS:
            yield node, "comparison"
        elif isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in _OTHERS:
            # A union of types is no operation; neither is what is glued of texts.
            yield node, "operator"
        elif isinstance(node, ast.If | ast.IfExp) and not _is_typing(node.test):
            yield node, "condition"
        elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
            yield node, "number"


def _is_typing(test: ast.expr) -> bool:
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"


def changed(tree: ast.Module, index: int) -> ast.Module:
    """Return a module with one of its places changed."""
    tree = copy.deepcopy(tree)
    node: Any = list(places(tree))[index][0]
    if isinstance(node, ast.Compare):
        node.ops[0] = _OTHERS[type(node.ops[0])]()
    elif isinstance(node, ast.BinOp | ast.BoolOp):
        node.op = _OTHERS[type(node.op)]()
    elif isinstance(node, ast.Constant):
        node.value = node.value + 1
    else:
        node.test = ast.UnaryOp(ast.Not(), node.test)
    return ast.fix_missing_locations(tree)


def mutants(count: int, seed: int, only: str = "") -> list[Mutant]:
    """Return mutants drawn from all modules, as many of each entry of the table."""
    draw = random.Random(seed)
    pools = []
    for entry in TESTS:
        path = _ROOT / entry
        files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
        found = []
        for file in files:
            name = str(file.relative_to(_ROOT))
            for index, (node, what) in enumerate(places(ast.parse(file.read_text()))):
                found.append(Mutant(name, index, getattr(node, "lineno", 0), what))
        draw.shuffle(found)
        if only in entry:
            pools.append(found)
    chosen: list[Mutant] = []
    while len(chosen) < count and any(pools):
        for pool in pools:
            if pool and len(chosen) < count:
                chosen.append(pool.pop())
    return chosen


def judge(mutant: Mutant) -> str:
    """Return what the tests of a mutant's module say: `noticed`, `passed`, `hangs`."""
    tests = next(tests for entry, tests in TESTS.items() if mutant.file.startswith(entry))
    paths = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    variables = {
        **os.environ,
        "PYTEST_ADDOPTS": "",
        "PYTHONPATH": paths,
        _VARIABLE: f"{mutant.file}:{mutant.index}",
    }
    options = ["-p", Path(__file__).stem, "-q", "-x", "-n", "0", "-p", "no:cacheprovider"]
    argv = [sys.executable, "-m", "pytest", *options, *tests]
    try:
        done = subprocess.run(
            argv, cwd=_ROOT, env=variables, capture_output=True, check=False, timeout=_SECONDS
        )
    except subprocess.TimeoutExpired:
        return "hangs"
    return "passed" if done.returncode == 0 else "noticed"


def _install() -> None:
    """Have one module loaded with its change."""
    file, _, index = os.environ[_VARIABLE].partition(":")
    target = str(_ROOT / file)
    usual = importlib.machinery.SourceFileLoader.get_code

    def get_code(loader: importlib.machinery.SourceFileLoader, name: str) -> CodeType | None:
        if loader.path != target:
            return usual(loader, name)
        tree = changed(ast.parse(Path(target).read_text()), int(index))
        return compile(tree, target, "exec")

    importlib.machinery.SourceFileLoader.get_code = get_code  # type: ignore[assignment]


def main() -> None:
    """Judge mutants, and print those that no test notices."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--count", type=int, default=60, metavar="N")
    parser.add_argument("--seed", type=int, default=40, metavar="N")
    parser.add_argument("--record", type=Path, metavar="FILE", help="goes on where it ended")
    parser.add_argument("--only", default="", metavar="WORD", help="part of a module's path")
    given = parser.parse_args()
    found: dict[Mutant, str] = {}
    if given.record and given.record.exists():
        for line in given.record.read_text().splitlines():
            entry = json.loads(line)
            verdict = entry.pop("verdict")
            found[Mutant(**entry)] = verdict
    for mutant in mutants(given.count, given.seed, given.only):
        if mutant not in found:
            begin = time.perf_counter()
            found[mutant] = judge(mutant)
            took = time.perf_counter() - begin
            print(f"{found[mutant]:8} {mutant.file}:{mutant.line} {mutant.change} {took:.0f} s")
            if given.record:
                with given.record.open("a") as record:
                    record.write(json.dumps({**asdict(mutant), "verdict": found[mutant]}) + "\n")
    noticed = sum(verdict != "passed" for verdict in found.values())
    print(f"{noticed} of {len(found)} mutants are noticed")
    for mutant, verdict in found.items():
        if verdict == "passed":
            print(f"not noticed: {mutant.file}:{mutant.line} {mutant.change}")


if _VARIABLE in os.environ:
    _install()
elif __name__ == "__main__":
    main()
