"""The corpus's formulas: modelled time on the chip, and lines of the kernel.

    python benchmarks/formulas.py [--only NAME ...] [--shape 2048x4096] [--first]

Each operator of examples/prototypes/corpus that has formulas over inputs of one shape is generated
with all its combinations of data types, or its first alone, and profiled for the first. Times are
the model's, without a launch's fixed part.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opkit import scaffold, schema
from opkit.errors import OpkitError

CORPUS = Path(__file__).parents[1] / "examples" / "prototypes" / "corpus"


@dataclass(frozen=True)
class Made:
    """One operator."""

    microseconds: float
    lines: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="*", help="operators of the corpus, by file name")
    parser.add_argument("--shape", default="2048x4096")
    parser.add_argument("--first", action="store_true", help="the first combination alone")
    options = parser.parse_args()
    files = [
        file
        for file in sorted(CORPUS.glob("*.json"))
        if all(spec.has_formula for spec in schema.load(file))
        and (not options.only or file.stem in options.only)
    ]
    entries = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    entries = [first_variant(entry) if options.first else entry for entry in entries]
    print("| operator | us | lines of the kernel |")
    print("|---|---|---|")
    with tempfile.TemporaryDirectory() as scratch:
        for name, made in measure(entries, Path(scratch), options.shape).items():
            row = made if isinstance(made, str) else f"{made.microseconds:.1f} | {made.lines}"
            print(f"| {name} | {row} |")


def measure(entries: list[dict[str, Any]], folder: Path, shape: str) -> dict[str, Made | str]:
    """Return each operator's figures, or why it has none."""
    found: dict[str, Made | str] = {}
    kept = []
    for entry in entries:
        try:
            generate(entry, folder / entry["op"])
            kept.append(entry["op"])
        except OpkitError as err:
            found[entry["op"]] = str(err).splitlines()[0]
    for at, op in enumerate(kept):
        print(f"{at + 1} of {len(kept)}", file=sys.stderr)
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


def generate(entry: dict[str, Any], folder: Path) -> None:
    """Write the project of an operator, without its gradient."""
    specs = schema.parse(json.dumps({**entry, "gradient": False}), file=folder / "prototype.json")
    for path, content in scaffold.render(specs, framework="aclnn").items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, encoding="utf-8")


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
