"""Compare the timing model with published measurements and print the table of docs/profile.md.

    python benchmarks/timing/calibrate.py [--write docs/profile.md]

`--write` replaces the table between the two markers of that file.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from published import CLOCK_MHZ, PUBLISHED, Published

from opkit import runtime

BEGIN, END = "<!-- calibration: begin -->", "<!-- calibration: end -->"


def predict(row: Published) -> dict[str, float]:
    """Return the model's microseconds for what was measured of `row`."""
    import opkit.emulator._emulator as emulator

    streams = [row.stream(core) for core in range(row.cores)]
    record: dict[str, Any] = emulator.time_instructions("Ascend910B2", streams, 0, CLOCK_MHZ)
    result = {}
    for quantity in row.measured:
        if quantity == "task":
            busy = record["task_us"] - record["launch_us"]
            result[quantity] = busy / row.scale + record["launch_us"]
            continue
        cycles = [core["busy_cycles"][quantity] for core in record["cores"]]
        result[quantity] = sum(cycles) / len(cycles) / CLOCK_MHZ / row.scale
    return result


def table() -> str:
    """Return the comparison as Markdown, with the mean errors below it."""
    lines = [
        "| row | configuration | quantity | measured us | model us | error | |",
        "|---|---|---|--:|--:|--:|---|",
    ]
    errors: dict[bool, list[float]] = {True: [], False: []}
    tasks: list[float] = []
    for row in PUBLISHED:
        predicted = predict(row)
        for quantity, measured in row.measured.items():
            error = predicted[quantity] / measured - 1
            is_fitted = quantity in row.fitted
            errors[is_fitted].append(abs(error))
            if quantity == "task":
                tasks.append(abs(error))
            lines.append(
                f"| {row.row} | {row.what} | {quantity} | {measured:.1f} |"
                f" {predicted[quantity]:.1f} | {100 * error:+.1f} % |"
                f" {'fitted' if is_fitted else ''} |"
            )
    lines.append("")
    lines.append(
        f"Mean absolute error: {_mean(errors[True])} on {len(errors[True])} quantities that"
        f" constants were fitted to, {_mean(errors[False])} on the {len(errors[False])} others;"
        f" {_mean(tasks)} on the {len(tasks)} task times."
    )
    return "\n".join(lines)


def _mean(errors: list[float]) -> str:
    return f"{100 * sum(errors) / len(errors):.1f} %"


def write(path: Path, text: str) -> None:
    """Put `text` between the markers of a file."""
    document = path.read_text(encoding="utf-8")
    head, rest = document.split(BEGIN)
    tail = rest.split(END)[1]
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    aside.write_text(f"{head}{BEGIN}\n{text}\n{END}{tail}", encoding="utf-8")
    aside.replace(path)


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare the model with published times.")
    parser.add_argument("--write", type=Path, metavar="FILE", help="the document to update")
    arguments = parser.parse_args()
    runtime.load_emulator()
    text = table()
    print(text)
    if arguments.write is not None:
        write(arguments.write, text)


if __name__ == "__main__":
    main()
