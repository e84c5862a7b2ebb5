"""Fit the timing model to published measurements and print the table of docs/profile.md.

    python benchmarks/timing/calibrate.py [--write]

`--write` puts the table into docs/profile.md, and the fitted constants and the error band into the
chip's file; build the emulator anew after that.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from fit import PARAMETERS, Errors, Fit, errors, fit, fit_half, left_out_errors
from published import ORDERS, PUBLISHED, Model

from opkit import runtime
from opkit.profiling import BAND

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs" / "profile.md"
CHIP = ROOT / "opkit" / "emulator" / "chips" / "ascend910b2.json"
BEGIN, END = "<!-- calibration: begin -->", "<!-- calibration: end -->"

BAND_SHARE = 0.8
"""A band holds this share of the times that were left out of the fit."""


def bands(left_out: Errors) -> dict[str, float]:
    """Return the half-width of each quantity's error band: a whole number of percent, by key."""
    result = {}
    for wanted in dict.fromkeys(quantity for _, quantity in left_out):
        found = sorted(
            abs(error) for (_, quantity), error in left_out.items() if quantity == wanted
        )
        worst = found[min(int(BAND_SHARE * len(found)), len(found) - 1)]
        result[BAND.format(quantity=wanted)] = float(max(1, round(100 * worst)))
    return result


def table(full: Fit, left_out: Errors, halves: tuple[Errors, Errors]) -> str:
    """Return the comparison as Markdown, with the mean errors below it.

    Args:
        left_out: with constants fitted to all rows but the one.
        halves: by half: errors of the other half's rows with constants fitted to this half.
    """
    fitted = errors(full.models, full.numbers)
    lines = [
        "| row | configuration | quantity | measured us | fitted to all | left out | half |",
        "|---|---|---|--:|--:|--:|---|",
    ]
    for model in full.models:
        row = model.row
        for quantity, measured in row.measured.items():
            key = (row.row, quantity)
            lines.append(
                f"| {row.row} | {row.what} | {quantity} | {measured:.1f} |"
                f" {100 * fitted[key]:+.1f} % | {100 * left_out[key]:+.1f} % |"
                f" {'AB'[row.half]} |"
            )
    lines += [
        "",
        f"| mean absolute error | {' | '.join(_QUANTITIES)} |",
        f"|---|{'--:|' * len(_QUANTITIES)}",
    ]
    lines += [
        f"| {what} | " + " | ".join(_mean(found, pipe) for pipe in _QUANTITIES) + " |"
        for what, found in (
            ("fitted to all rows", fitted),
            ("each row left out of its own fit", left_out),
            ("fitted to half A, on half B", halves[0]),
            ("fitted to half B, on half A", halves[1]),
        )
    ]
    lines += ["", "| faster | slower | because of | measured | model |", "|---|---|---|--:|--:|"]
    times = {model.row.row: _time(model, model.predict(full.numbers)) for model in full.models}
    measured_times = {model.row.row: _time(model, model.row.measured) for model in full.models}
    for faster, slower, why in ORDERS:
        measured_ratio = measured_times[slower] / measured_times[faster]
        ratio = times[slower] / times[faster]
        lines.append(f"| {faster} | {slower} | {why} | {measured_ratio:.2f} x | {ratio:.2f} x |")
    tasks = sum("task" in model.row.measured for model in full.models)
    lines += [
        "",
        f"Mean absolute error: {tasks} task times {_mean(fitted, 'task')} with constants fitted"
        f" to all rows, {_mean(left_out, 'task')} with each row left out of its own fit;"
        f" vector pipe {_mean(left_out, 'V')}, cube {_mean(left_out, 'M')}.",
    ]
    return "\n".join(lines)


_QUANTITIES = ("task", "V", "M", "MTE1", "MTE2", "MTE3", "S")


def _mean(found: Errors, wanted: str) -> str:
    values = [abs(error) for (_, quantity), error in found.items() if quantity == wanted]
    return f"{100 * sum(values) / len(values):.1f} %" if values else "-"


def _time(model: Model, times: dict[str, float] | object) -> float:
    assert isinstance(times, dict)
    return float(times.get("task", times.get("V", times.get("M", 0.0))))


def write_document(text: str) -> None:
    """Put `text` between the markers of the document."""
    document = DOCUMENT.read_text(encoding="utf-8")
    head, rest = document.split(BEGIN)
    _replace(DOCUMENT, f"{head}{BEGIN}\n{text}\n{END}{rest.split(END)[1]}")


def write_chip(full: Fit, found_bands: dict[str, float]) -> None:
    """Put the fitted constants and the bands into the chip's file, line by line."""
    values = {key: float(f"{value:.4g}") for key, value in full.numbers.items()} | found_bands
    lines = CHIP.read_text(encoding="utf-8").splitlines()
    for index, line in enumerate(lines):
        key, _, entry = line.strip().partition(": ")
        name = key.strip('"')
        if name in values:
            found = json.loads(entry.rstrip(","))
            found["value"] = values.pop(name)
            comma = "," if line.endswith(",") else ""
            lines[index] = f"    {key}: {json.dumps(found)}{comma}"
    if values:
        raise SystemExit(f"{CHIP.name} lacks {', '.join(values)}")
    _replace(CHIP, "\n".join(lines) + "\n")


def _replace(path: Path, text: str) -> None:
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    aside.write_text(text, encoding="utf-8")
    aside.replace(path)


def main() -> None:
    """Fit, compare, print, and write where asked."""
    parser = argparse.ArgumentParser(description="Fit the timing model to published times.")
    parser.add_argument("--write", action="store_true", help="update the document and the chip")
    arguments = parser.parse_args()
    runtime.load_emulator()
    models = [row.load() for row in PUBLISHED]
    print(f"{len(models)} rows, {len(PARAMETERS)} fitted constants", file=sys.stderr)
    full = fit(models)
    halves = [[model for model in models if model.row.half == half] for half in (0, 1)]
    others = (
        errors(halves[1], fit_half(full, 0)),
        errors(halves[0], fit_half(full, 1)),
    )
    left_out = left_out_errors(full)
    found_bands = bands(left_out)
    text = table(full, left_out, others)
    print(text)
    print("\n" + "\n".join(f"{key} {value:.4g}" for key, value in full.numbers.items()))
    print("\n".join(f"{key} {value:g}" for key, value in found_bands.items()))
    if arguments.write:
        write_document(text)
        write_chip(full, found_bands)


if __name__ == "__main__":
    main()
