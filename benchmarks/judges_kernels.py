"""Kernels that opkit generates, and those of the examples, with mutants of each judged.

Every mutant is judged in a process of its own, forked from one that has loaded everything: by the
cases of `opkit test`, until one fails, and where all pass by those of `opkit check`.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from judges_mutants import Mutant, changes_of

from opkit.toolchain import OPKIT_COMMAND

__all__ = ["KERNELS", "Judged", "judge_kernel", "projects", "truth_of"]

_ROOT = Path(__file__).parents[1]
_SECONDS = 150
_SMALL = 200_000
"""Elements of cases on which results are always compared; of larger ones where they fail."""
_CLEARLY = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 4e-5}

KERNELS: tuple[tuple[str, str, str], ...] = (
    ("Linear0", "x*2 + 1", "float32"),
    ("Gelu1", "0.5*x*(1 + tanh(sqrt(2/pi)*(x + 0.044715*x**3)))", "float16"),
    ("Silu2", "x*sigmoid(x)", "float32"),
    ("Fused3", "x*y + z", "float16"),
    ("Bell4", "exp(-x*x)", "float32"),
    ("Root5", "sqrt(x*x + 1)", "float32"),
    ("Tanh6", "tanh(x)", "float16"),
    ("Clip7", "min(max(x, -1), 1)", "float16"),
    ("Leaky8", "where(x > 0, x, 0.1*x)", "float32"),
    ("Soft9", "log(1 + exp(x))", "float32"),
    ("Sign10", "x/(1 + abs(x))", "bfloat16"),
    ("Rms11", "x/sqrt(mean(x*x, axis=-1) + 0.00001)*y", "float16"),
    ("Softmax12", "exp(x - max(x, axis=-1))/sum(exp(x - max(x, axis=-1)), axis=-1)", "float32"),
    ("Centre13", "x - mean(x, axis=-1)", "float32"),
    ("Whole14", "x*y + 3", "int32"),
    ("Gate15", "x*sigmoid(y)", "bfloat16"),
    ("Cubic16", "x**3 - x", "float32"),
    ("Distance17", "abs(x - y)", "float16"),
    ("Ratio18", "x/(y*y + 1)", "float32"),
    ("Mish19", "x*tanh(log(1 + exp(x)))", "float32"),
    ("Hard20", "x*min(max(x + 3, 0), 6)/6", "float16"),
    ("Huber21", "where(abs(x - y) < 1, 0.5*(x - y)*(x - y), abs(x - y) - 0.5)", "float32"),
)
"""Name, formula of x, y and z, data type."""
_CORPUS = (
    "axes_linear",
    "axes_rotary",
    "axes_running_sum",
    "axes_masked_softmax",
    "axes_row_norm",
    "layer_norm_affine",
)
_EXAMPLES = (
    ("gelu_custom", "GELUCustomTuned", "gelu_custom_tuned"),
    ("rmsnorm", "Rmsnorm", "rmsnorm"),
)


@dataclass(frozen=True)
class Project:
    """A project with the kernel that is changed."""

    name: str
    folder: Path
    op: str
    source: Path
    """The kernel's text, in the folder."""


@dataclass(frozen=True)
class Judged:
    """What became of one mutant."""

    kernel: str
    change: str
    rule: str
    verdict: str
    """`test`, `check` or `build`: who refuses it; `lost`: its process ended; `` where it passes."""
    why: str
    truth: str
    """`right`, `wrong`, or `unclear`: it differs, by less than its type's accuracy shows."""


def projects(folder: Path) -> Iterator[Project]:
    """Make the projects, those that are not there yet."""
    prototypes = [(name, _prototype(name, formula, dtype)) for name, formula, dtype in KERNELS]
    for stem in _CORPUS:
        entry = json.loads((_ROOT / f"examples/prototypes/corpus/{stem}.json").read_text())
        entry = entry[0] if isinstance(entry, list) else entry
        prototypes.append((entry["op"], _first_types(entry)))
    for name, prototype in prototypes:
        place = folder / name
        if not place.exists():
            (folder / f"{name}.json").write_text(json.dumps([prototype]))
            argv = [*OPKIT_COMMAND, "gen", "-q", "-i", str(folder / f"{name}.json"), "-o"]
            subprocess.run([*argv, str(place), "-f", "aclnn"], check=True, capture_output=True)
        kernel = prototype.get("kernel_name")
        sources = sorted((place / "op_kernel").glob("*.cpp"), key=lambda path: len(path.name))
        source = next((s for s in sources if s.stem == kernel), sources[0])
        yield Project(name, place, prototype["op"], source.relative_to(place))
    for example, op, stem in _EXAMPLES:
        place = folder / example
        if not place.exists():
            ignored = shutil.ignore_patterns("build", "__pycache__")
            shutil.copytree(_ROOT / "examples" / example, place, ignore=ignored)
        yield Project(stem, place, op, Path("op_kernel") / f"{stem}.cpp")


def _prototype(name: str, formula: str, dtype: str) -> dict[str, Any]:
    inputs = [each for each in "xyz" if each in formula.replace("exp", "").replace("max", "")]
    return {
        "op": name,
        "input_desc": [{"name": each, "type": [dtype]} for each in inputs],
        "output_desc": [{"name": "r", "type": [dtype], "formula": formula}],
    }


def _first_types(entry: dict[str, Any]) -> dict[str, Any]:
    """Return a prototype of its first combination of data types only."""
    whole = dict(entry)
    for key in ("input_desc", "output_desc"):
        whole[key] = [
            {
                k: v[:1] if k in ("type", "format") and isinstance(v, list) else v
                for k, v in t.items()
            }
            for t in entry[key]
        ]
    return whole


def judge_kernel(
    project: Project, work: Path, count: int, seed: int, known: set[tuple[str, str, int]]
) -> Iterator[tuple[int, Judged]]:
    """Yield the judgement of each mutant that is not known, with its number."""
    text = (project.folder / project.source).read_text()
    plain = _judged_apart(project, work, text, work / f"{project.name}.npz", is_plain=True)
    if plain.get("verdict") != "":
        yield (
            -1,
            Judged(
                project.name, "none", "right", str(plain["verdict"]), str(plain["why"]), "right"
            ),
        )
        return
    if (project.name, "none", -1) not in known:
        yield -1, Judged(project.name, "none", "right", "", "", "right")
    number_seed = seed + zlib.crc32(project.name.encode())
    for number, mutant in enumerate(changes_of(text, number_seed, count)):
        if (project.name, mutant.change.name, number) in known:
            continue
        found = _judged_apart(project, work, _complete(mutant), work / f"{project.name}.npz")
        truth = truth_of(mutant.change.rule, found)
        yield (
            number,
            Judged(
                *(project.name, mutant.change.name, mutant.change.rule),
                *(str(found["verdict"]), str(found["why"]), truth),
            ),
        )


def truth_of(rule: str, found: dict[str, Any]) -> str:
    """Return whether a changed kernel is right, by the rule of its change and its results' bits."""
    if rule == "chip":
        return "wrong"
    if rule == "right":
        return "right"
    if found.get("verdict") in ("build", "lost"):
        return "wrong"
    if found.get("faulted") or found.get("off", 0.0) > 1.0:
        return "wrong"
    if str(found.get("why")).startswith("INIT-"):
        # What nothing wrote is another thing on each chip; here it may hold an earlier launch's.
        return "wrong"
    return "right" if found.get("off") == 0.0 else "unclear"


def _complete(mutant: Mutant) -> str:
    return f"#include <cstdlib>\n{mutant.text}"


def _judged_apart(
    project: Project, work: Path, text: str, plain: Path, *, is_plain: bool = False
) -> dict[str, Any]:
    """Return what a process of its own says of a text."""
    begin = time.monotonic()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        os.setsid()
        code = 1
        try:
            found = _judge(project, work, text, plain, is_plain)
            os.write(writer, json.dumps(found).encode()[:60000])
            code = 0
        except BaseException as error:
            print(project.name, repr(error)[:300], file=sys.stderr)
        os._exit(code)
    os.close(writer)
    while time.monotonic() - begin < _SECONDS:
        done, _ = os.waitpid(child, os.WNOHANG)
        if done:
            break
        time.sleep(0.05)
    else:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
    with os.fdopen(reader, "rb") as pipe:
        said = pipe.read()
    try:
        return dict(json.loads(said))
    except ValueError:
        # The commands have it in a process of its own, and call it a fault.
        return {"verdict": "lost", "why": "its process ended"}


def _judge(project: Project, work: Path, text: str, plain: Path, is_plain: bool) -> dict[str, Any]:
    from opkit import runtime
    from opkit.cli.console import Console
    from opkit.cli.parts import check_cases, open_project
    from opkit.errors import BuildError
    from opkit.executor import open_executor
    from opkit.sanitizer import TOOLS, CheckSettings
    from opkit.testing import Setup, cases_work
    from opkit.toolchain import load_project

    copy = work / f"copy-{os.getpid()}" / project.folder.name
    shutil.copytree(project.folder, copy)
    try:
        (copy / project.source).write_text(text)
        opened = open_project(load_project(copy), "Ascend910B2", Console(quiet=True))
        try:
            artifact = opened.build()
            cases, _ = opened.with_every_branch(opened.pool(project.op), project.op)
        except BuildError as error:
            return {"verdict": "build", "why": str(error)[:200]}
        if is_plain:
            # What mutants of it need not build again.
            shutil.copytree(copy / "build", project.folder / "build", dirs_exist_ok=True)
        setup = Setup(
            opened.project,
            artifact.folder,
            artifact.chip.name,
            None,
            timeout_seconds=20.0,
            threads=1,
            inaccuracy_seed=1,
            together=True,
        )
        found: dict[str, Any] = {"verdict": "", "why": ""}
        with runtime.time_limit(20.0):
            small = [case for case in cases if is_plain or np.prod(case.shape) < _SMALL]
            found |= _outputs(opened, artifact, small, plain, is_plain)
        here = open_executor("here")
        with here.open(cases_work(setup)) as crew:
            for index, result in crew.stream(cases):
                if not result.verdict.passed:
                    if found.get("off") == 0.0:
                        found |= _outputs(opened, artifact, [cases[index]], plain, False)
                    why = f"{cases[index].name}: {result.verdict.value} {result.message[:160]}"
                    found |= {"verdict": "test", "why": why}
                    return found
        check_cases.LocalExecutor = lambda workers: here  # type: ignore[assignment,misc]
        report, _ = check_cases.run_checks(
            opened, cases, CheckSettings(TOOLS), 20.0, lambda name: None, others=False
        )
        if report.findings:
            first = report.findings[0]
            found |= {"verdict": "check", "why": f"{first.id} {first.message[:120]}"}
        return found
    finally:
        shutil.rmtree(copy.parent, ignore_errors=True)


def _outputs(opened: Any, artifact: Any, cases: Any, plain: Path, is_plain: bool) -> dict[str, Any]:
    """Return how far results are from those of the unchanged kernel, as a share of what shows."""
    from opkit import runtime
    from opkit.errors import OpkitError
    from opkit.testing.launching import launch_of
    from opkit.testing.numbers import widen

    runtime.configure(artifact.chip.name, poison=True, threads=1)
    library = runtime.open(artifact.folder)
    specs = {spec.op: spec for spec in opened.project.operators}
    arrays: dict[str, np.ndarray] = {}
    known = {} if is_plain else np.load(plain)
    off = 0.0
    for case in cases:
        try:
            outputs = launch_of(case, specs[case.op])(library)
        except OpkitError as error:
            return {"faulted": str(error)[:100]}
        types = case.dtypes[-len(outputs) :]
        for at, (output, dtype) in enumerate(zip(outputs, types, strict=True)):
            arrays[f"{case.name}/{at}"] = output
            if not is_plain:
                off = max(off, _off(output, known[f"{case.name}/{at}"], dtype, widen))
    if is_plain:
        np.savez(plain, **arrays)
    return {"off": off}


def _off(actual: np.ndarray, plain: np.ndarray, dtype: Any, widen: Any) -> float:
    if actual.shape != plain.shape:
        return float("inf")
    if np.array_equal(actual.view(np.uint8), plain.view(np.uint8)) or actual.size == 0:
        return 0.0
    if dtype.name not in _CLEARLY:
        return float("inf")
    one, other = widen(actual, dtype), widen(plain, dtype)
    with np.errstate(all="ignore"):
        scale = np.maximum(np.abs(other), 1e-3 * np.nanmax(np.abs(other), initial=0.0))
        share = np.abs(one - other) / scale / _CLEARLY[dtype.name]
        same = (one == other) | (np.isnan(one) & np.isnan(other))
    share = np.where(same, 0.0, np.where(np.isnan(share), np.inf, share))
    return max(float(np.max(share)), 1e-9)
