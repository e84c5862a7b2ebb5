"""Published times that no fit follows: examples of a public library of templates.

    python benchmarks/timing/elsewhere.py --catlass CHECKOUT [--built DIR]

CATLASS's documents say what its examples take on Ascend910B1, B2 and B3. This compiles the examples
as they stand, but for their comparison with the expected result, which takes long and is left out,
runs them without arithmetic and prints what the model says beside what was measured.

Two constants were read off some of these times, as their sources say: what a cube core reads of HBM
(12) and what ND to NZ takes with rows off the alignment (00).

Example 12 multiplies by a B of columns, 34, too; where the documents measured a B of rows, the one
line that says so is changed (`r` below). Example 52 reads an event's number that nothing has set:
compiled here with local variables cleared.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

EXAMPLES = {
    "00": "00_basic_matmul",
    "12": "12_quant_matmul",
    "34": "34_single_core_splitk_matmul",
    "44": "44_quant_matmul_full_loadA_tla",
    "52": "52_quant_multi_core_splitk_matmul_tla",
}
_COLUMNS, _ROWS = "using LayoutB = layout::ColumnMajor", "using LayoutB = layout::RowMajor"

_NO_COMPARISON = """#pragma once
#include <cstdint>
#include <vector>
namespace golden {
template <typename... Types, typename... Arguments>
void FillRandomData(Arguments&&...) {}
template <typename... Arguments>
void ComputeMatmul(Arguments&&...) {}
template <typename... Arguments>
void QuantMatmul(Arguments&&...) {}
template <typename... Arguments>
std::vector<uint64_t> CompareData(Arguments&&...) {
  return {};
}
}  // namespace golden
"""
"""In place of the examples' golden.hpp."""


@dataclass(frozen=True)
class Row:
    """One published time."""

    example: str
    """The number of its folder; with `r` where B has rows."""
    shape: tuple[int, int, int]
    """M, N, K."""
    measured_us: float
    chip: str


def _rows(chip: str, example: str, *times: tuple[int, int, int, float]) -> list[Row]:
    return [Row(example, (m, n, k), us, chip) for m, n, k, us in times]


ROWS = (
    *_rows(
        *("Ascend910B3", "12", (128, 256, 1024, 18.64), (128, 256, 2048, 23.23)),
        *((128, 256, 4096, 32.97), (128, 256, 8192, 47.73), (128, 256, 16384, 78.52)),
        *((256, 512, 16384, 75.39), (256, 1024, 16384, 77.35)),
    ),
    *_rows(
        *("Ascend910B3", "52", (128, 256, 1024, 18.11), (128, 256, 2048, 20.67)),
        *((128, 256, 4096, 21.15), (128, 256, 8192, 20.01), (128, 256, 16384, 23.83)),
        *((256, 512, 16384, 34.29), (256, 1024, 16384, 51.41)),
    ),
    *_rows(
        *("Ascend910B1", "12r", (512, 4096, 1024, 33.26), (128, 16384, 1024, 38.68)),
        *((1024, 4096, 1024, 42.66), (512, 8192, 1024, 52.36), (128, 16384, 2048, 53.77)),
    ),
    *_rows(
        *("Ascend910B1", "44", (512, 4096, 1024, 31.73), (128, 16384, 1024, 37.05)),
        *((1024, 4096, 1024, 41.96), (512, 8192, 1024, 44.05), (128, 16384, 2048, 52.75)),
    ),
    *_rows("Ascend910B2", "00", (2048, 4096, 4000, 445.0)),
    *_rows("Ascend910B2", "34r", (2048, 4096, 4000, 261.0)),
)
"""Sources: the documents of examples 34, 44 and 52."""


def compiled(catlass: Path, example: str, folder: Path) -> Path:
    """Return the program of an example, compiled into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "golden.hpp").write_text(_NO_COMPARISON, encoding="utf-8")
    (source,) = (catlass / "examples" / EXAMPLES[example.rstrip("r")]).glob("*.cpp")
    text = source.read_text(encoding="utf-8")
    if example.endswith("r"):
        assert text.count(_COLUMNS) == 1
        text = text.replace(_COLUMNS, _ROWS)
    changed, program = folder / f"{example}.cpp", folder / example
    changed.write_text(text, encoding="utf-8")
    headers = (folder, catlass / "examples/common", catlass / "include")
    includes = [f"-I{each}" for each in headers]
    flags = ["-ftrivial-auto-var-init=zero", "-DCATLASS_ARCH=2201"]
    command = ["opkit", "cc", *flags, *includes, str(changed), "-o", str(program)]
    subprocess.run(command, check=True)
    return program


def predicted(program: Path, row: Row) -> tuple[float, float]:
    """Return the model's microseconds and its error band in percent."""
    options = ["--chip", row.chip, "--timing-only", "--json"]
    command = ["opkit", "profile", *options, "--", str(program), *map(str, row.shape)]
    ran = subprocess.run(command, check=True, capture_output=True, text=True)
    # The program prints before the report.
    record = json.loads(ran.stdout[ran.stdout.index("{") :])
    return record["task_us"], record["band_percent"]


def main() -> None:
    """Compile, run, print."""
    parser = argparse.ArgumentParser(description="Published times that no fit follows.")
    parser.add_argument("--catlass", type=Path, required=True, help="a checkout of CATLASS")
    parser.add_argument("--built", type=Path, help="where programs are compiled to")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="opkit-catlass-") as scratch:
        folder = arguments.built or Path(scratch)
        programs = {
            example: compiled(arguments.catlass, example, folder)
            for example in dict.fromkeys(row.example for row in ROWS)
        }
        print("| example | M x N x K | chip | measured us | model | error | in band |")
        print("|---|---|---|--:|--:|--:|---|")
        errors = []
        held = 0
        for row in ROWS:
            time_us, band = predicted(programs[row.example], row)
            error = time_us / row.measured_us - 1
            is_held = max(error, 1 / (1 + error) - 1) <= band / 100
            errors.append(abs(error))
            held += is_held
            print(
                f"| {row.example} | {' x '.join(map(str, row.shape))} | {row.chip} |"
                f" {row.measured_us:.1f} | {time_us:.1f} | {100 * error:+.1f} % |"
                f" {'yes' if is_held else 'no'} |"
            )
            sys.stdout.flush()
    mean = 100 * sum(errors) / len(errors)
    print(f"\nMean absolute error of {len(errors)} times: {mean:.1f} %; {held} in their band.")


if __name__ == "__main__":
    main()
