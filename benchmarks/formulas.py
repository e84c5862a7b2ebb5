"""The corpus's formulas by both generators: modelled time on the chip, and lines of the kernel.

    python benchmarks/formulas.py [--only NAME ...] [--shape 2048x4096]

Each operator of examples/prototypes/corpus that has formulas is generated as it stands, and again
with a `shape` for every input, so that the compiler makes its kernel: same formulas, first
combination of data types. Times are the model's, without a launch's fixed part.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opkit import schema

CORPUS = Path(__file__).parents[1] / "examples" / "prototypes" / "corpus"
# One row that all rows share, in the corpus.
VECTORS = frozenset({"gamma", "beta"})


@dataclass(frozen=True)
class Made:
    """One operator by one generator."""

    microseconds: float
    lines: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="*", help="operators of the corpus, by file name")
    parser.add_argument("--shape", default="2048x4096")
    options = parser.parse_args()
    files = [
        file
        for file in sorted(CORPUS.glob("*.json"))
        if all(spec.has_formula for spec in schema.load(file))
        and (not options.only or file.stem in options.only)
    ]
    entries = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    with tempfile.TemporaryDirectory() as scratch:
        before = measure(entries, Path(scratch) / "before", options.shape)
        after = measure([named(entry) for entry in entries], Path(scratch) / "after", options.shape)
    times, texts = [], []
    print("| operator | tree, us | compiler, us | ratio | lines of the kernel |")
    print("|---|---|---|---|---|")
    for name, old in before.items():
        new = after.get(name)
        if new is None or isinstance(new, str) or isinstance(old, str):
            print(f"| {name} | | | | {str(old if isinstance(old, str) else new)[:90]} |")
            continue
        times.append(new.microseconds / old.microseconds)
        texts.append(new.lines / old.lines)
        us = f"{old.microseconds:.1f} | {new.microseconds:.1f} | {times[-1]:.2f}"
        print(f"| {name} | {us} | {old.lines} -> {new.lines} |")
    if times:
        slower = sum(ratio > 1.005 for ratio in times)
        print(f"time: median {statistics.median(times):.2f}, {slower} of {len(times)} slower")
        print(f"lines: median {statistics.median(texts):.2f}")


def named(entry: dict[str, Any]) -> dict[str, Any]:
    """Return a prototype whose inputs name their axes."""
    formulas = " ".join(tensor["formula"] for tensor in entry["output_desc"])

    def axes(name: str) -> list[str]:
        if f"row({name})" in formulas:
            return ["R", "1"]
        return ["C"] if name in VECTORS else ["R", "C"]

    inputs = [
        {**t, "shape": [1 if axis == "1" else axis for axis in axes(t["name"])]}
        for t in entry["input_desc"]
    ]
    outputs = [
        {**t, "formula": " ".join(t["formula"].split()).replace("row(", "(")}
        for t in entry["output_desc"]
    ]
    return {**entry, "input_desc": inputs, "output_desc": outputs}


def measure(entries: list[dict[str, Any]], folder: Path, shape: str) -> dict[str, Made | str]:
    """Return each operator's figures, or why it has none."""
    found: dict[str, Made | str] = {}
    folder.mkdir()
    kept = []
    for entry in entries:
        file = folder / f"{entry['op']}.json"
        file.write_text(json.dumps(without_gradient(first_variant(entry))))
        said = opkit("gen", "-i", str(file), "-f", "aclnn", "-o", str(folder / entry["op"]))
        if said is None:
            kept.append(entry["op"])
        else:
            found[entry["op"]] = said
    for at, op in enumerate(kept):
        print(f"{folder.name}: {at + 1} of {len(kept)}", file=sys.stderr)
        project = folder / op
        result = folder / f"{op}.out"
        said = opkit("profile", str(project), "--shape", shape, "--json", into=result)
        if said is not None:
            found[op] = said
            continue
        profile = json.loads(result.read_text())
        kernel = (project / "op_kernel" / f"{profile['kernel']}.cpp").read_text()
        found[op] = Made(
            profile["task_us"] - profile["launch_us"], sum(map(bool, kernel.splitlines()))
        )
    return dict(sorted(found.items()))


def first_variant(entry: dict[str, Any]) -> dict[str, Any]:
    """Return a prototype with its first combination of data types alone."""

    def one(tensor: dict[str, Any]) -> dict[str, Any]:
        first = {k: tensor[k][0] for k in ("type", "format") if isinstance(tensor.get(k), list)}
        return {**tensor, **first}

    return {
        **entry,
        "input_desc": [one(tensor) for tensor in entry["input_desc"]],
        "output_desc": [one(tensor) for tensor in entry["output_desc"]],
    }


def without_gradient(entry: dict[str, Any]) -> dict[str, Any]:
    """Return a prototype for which no backward operator is derived."""
    return {**entry, "gradient": False}


def opkit(*arguments: str, into: Path | None = None) -> str | None:
    """Run a command; return its first line of complaint, None where it succeeds."""
    done = subprocess.run(
        [sys.executable, "-m", "opkit", *arguments], capture_output=True, text=True, check=False
    )
    if into is not None:
        into.write_text(done.stdout)
    if done.returncode == 0:
        return None
    lines = [line for line in done.stderr.splitlines() if "error" in line]
    return lines[0] if lines else f"exit {done.returncode}"


if __name__ == "__main__":
    main()
