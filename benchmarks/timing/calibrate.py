"""Fit the timing model to published measurements and print the table of docs/profile.md.

    python benchmarks/timing/calibrate.py [--benchmark DIR --library DIR] [--write]

`--benchmark` is a checkout of the public benchmark of operators, `--library` one of the library
whose operators it measures: with both, its rows are built, run and fitted, too (libraries.py).
`--write` puts the table into docs/profile.md, and the fitted constants and the error band into the
chip's file; build the emulator anew after that.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from fit import (
    LIBRARY_PARAMETERS,
    PARAMETERS,
    SAMPLES_ALONE,
    Errors,
    Fit,
    Laws,
    errors,
    fit,
    left_out_errors,
)
from libraries import library_rows, loaded
from published import ORDERS, PUBLISHED, Model
from traces import Traces

from opkit import runtime
from opkit.profiling import SHORT_TASK_US, advise, band_key, read_timeline

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs" / "profile.md"
CHIP = ROOT / "opkit" / "emulator" / "chips" / "ascend910b2.json"
ASSUMED = "assumed: as on 910B"
BEGIN, END = "<!-- calibration: begin -->", "<!-- calibration: end -->"

BAND_SHARE = 0.8
"""A band holds this share of the times that were left out of the fit."""
CLASSES = ("vector", "cube", "matmul", "mixed")
QUANTITIES = ("task", "V", "M", "MTE1", "MTE2", "MTE3", "S", "FIX")
FEWEST = 5
"""Times below which a kind of kernel is judged together with the others, and more widely."""
BEYOND = 1.3
"""How much wider than the worst of few times a band is."""


def shown(quantity: str) -> str:
    """Return the quantity whose band holds for it: the slowest core is the task's time."""
    return "task" if quantity == "core" else quantity


def off(error: float) -> float:
    """Return how far the truth is from the model, as a share of the model's time or of itself."""
    return max(abs(error), abs(1 / (1 + error) - 1))


def bands(rows: Sequence[Model], left_out: Errors) -> dict[str, float]:
    """Return the half-widths of the error bands: whole numbers of percent, by key."""
    every_key: dict[str, list[tuple[str, float]]] = {}
    for model in rows:
        for quantity, measured in model.row.measured.items():
            error = left_out[model.row.row, quantity]
            key = band_key("{}", shown(quantity), measured * (1 + error))
            every_key.setdefault(key, []).append((model.row.kernel_class, off(error)))
    result = {}
    for kernel_class in CLASSES:
        for key, every in every_key.items():
            own = sorted(error for found, error in every if found == kernel_class)
            others = sorted(error for _, error in every)
            wide = _quantile(others)
            if len(own) < FEWEST:
                wide = max(wide, BEYOND * max(own, default=0.0)) if own else BEYOND * wide
            else:
                wide = _quantile(own)
            result[key.format(kernel_class)] = float(max(1, math.ceil(100 * wide)))
    return result


def _quantile(ordered: Sequence[float]) -> float:
    """Return what so many of all times, not only of these, are expected to stay below."""
    place = math.ceil(BAND_SHARE * (len(ordered) + 1)) - 1
    return ordered[place] if place < len(ordered) else BEYOND * ordered[-1]


def coverage(rows: Sequence[Model], left_out: Errors) -> dict[str, tuple[int, int]]:
    """Return by quantity how many times bands from the other families hold, and of how many."""
    result: dict[str, list[int]] = {}
    for family in dict.fromkeys(model.row.family for model in rows):
        found = bands([model for model in rows if model.row.family != family], left_out)
        for model in rows:
            if model.row.family != family:
                continue
            for quantity in model.row.measured:
                wanted = shown(quantity)
                error = left_out[model.row.row, quantity]
                time_us = model.row.measured[quantity] * (1 + error)
                key = band_key(model.row.kernel_class, wanted, time_us)
                if key not in found:
                    continue
                wanted = "short task" if "short_task" in key else wanted
                count = result.setdefault(wanted, [0, 0])
                count[0] += 100 * off(error) <= found[key]
                count[1] += 1
    return {quantity: (held, of) for quantity, (held, of) in result.items()}


def table(
    full: Fit, models: Sequence[Model], fitted: Errors, left_out: Errors, samples_alone: Errors
) -> str:
    """Return the comparison as Markdown, with the mean errors below it.

    Args:
        full: the fit to the samples.
        models: the samples, and library operators where they are given.
        left_out: with constants fitted to the rows of all other families.
        samples_alone: of library operators, with the constants that samples tell.
    """
    lines = [
        "| row | family | kind | configuration | quantity | measured us | fitted to all |"
        " left out |",
        "|---|---|---|---|---|--:|--:|--:|",
    ]
    for model in models:
        row = model.row
        for quantity, measured in row.measured.items():
            key = (row.row, quantity)
            lines.append(
                f"| {row.row} | {row.family} | {row.kernel_class} | {row.what} | {quantity} |"
                f" {measured:.1f} | {100 * fitted[key]:+.1f} % | {100 * left_out[key]:+.1f} % |"
            )
    lines += [
        "",
        f"| mean absolute error | {' | '.join(QUANTITIES)} |",
        f"|---|{'--:|' * len(QUANTITIES)}",
    ]
    lines += [
        f"| {what} | " + " | ".join(_mean(models, found, pipe) for pipe in QUANTITIES) + " |"
        for what, found in (
            ("fitted to all rows", fitted),
            ("each family left out of its own fit", left_out),
        )
    ]
    lines += [
        f"| of these, {kernel_class} | "
        + " | ".join(_mean(models, left_out, pipe, (kernel_class,)) for pipe in QUANTITIES)
        + " |"
        for kernel_class in CLASSES
    ]
    lines += _coverage_lines(models, left_out)
    lines += _group_lines(models, fitted, left_out, samples_alone)
    lines += _order_lines(full)
    everything = _mean(models, left_out, "task")
    without = _mean(models, left_out, "task", ("vector", "cube"))
    objects = _mean(models, left_out, "task", ("matmul", "mixed"))
    lines += [
        "",
        f"Mean absolute error of task times with the row's family left out of the fit:"
        f" {everything}; without Matmul objects {without}, with Matmul objects {objects}."
        f" Fitted to all rows it is {_mean(models, fitted, 'task')}.",
    ]
    return "\n".join(lines)


def _coverage_lines(models: Sequence[Model], left_out: Errors) -> list[str]:
    held = coverage(models, left_out)
    total, of = (sum(count[i] for count in held.values()) for i in (0, 1))
    names = [QUANTITIES[0], "short task", *QUANTITIES[1:]]
    cells = " | ".join(
        f"{held[pipe][0]} of {held[pipe][1]}" if pipe in held else "-" for pipe in names
    )
    return [
        "",
        f"| within bands from the other families | {' | '.join(names)} |",
        f"|---|{'--:|' * len(names)}",
        f"| {total} of {of}, {100 * total / max(1, of):.0f} % | {cells} |",
    ]


def _group_lines(
    models: Sequence[Model], fitted: Errors, left_out: Errors, samples_alone: Errors
) -> list[str]:
    """Return the errors of task times by source, by operator, and of short kernels."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for model in models:
        row = model.row
        for quantity, measured in row.measured.items():
            if shown(quantity) != "task":
                continue
            key = (row.row, quantity)
            names = [row.source]
            if row.source != PUBLISHED[0].source:
                names.append(f"{row.source}: {row.family}")
            if measured < SHORT_TASK_US:
                names += [
                    f"below {SHORT_TASK_US:g} us",
                    f"below {SHORT_TASK_US:g} us, {row.kernel_class}",
                ]
            for name in names:
                groups.setdefault(name, []).append(key)
    lines = [
        "",
        "| task times of | rows | fitted to all | left out | by constants of the samples alone |",
        "|---|--:|--:|--:|--:|",
    ]
    for name, keys in groups.items():
        cells = " | ".join(
            f"{100 * sum(abs(found[key]) for key in keys) / len(keys):.1f} %"
            if all(key in found for key in keys)
            else "-"
            for found in (fitted, left_out, samples_alone)
        )
        lines.append(f"| {name} | {len(keys)} | {cells} |")
    return lines


def _order_lines(full: Fit) -> list[str]:
    """Return the pairs, before and after, and what advice the model gives to the slower."""
    lines = ["", "| faster | slower | because of | measured | model | advice |"]
    lines.append("|---|---|---|--:|--:|---|")
    models = {model.row.row: model for model in full.models}
    right = hits = advised = 0
    for faster, slower, why, remedies in ORDERS:
        after, before = models[faster], models[slower]
        measured = _time(before.row.measured) / _time(after.row.measured)
        ratio = _time(before.predict(full.numbers)) / _time(after.predict(full.numbers))
        right += (ratio > 1) == (measured > 1)
        advice = "-"
        if remedies:
            numbers = list(full.numbers.items())
            clock_mhz = before.row.clock_mhz
            text = before.streams.time(
                "Ascend910B2", 0, clock_mhz, lift_limits=True, numbers=numbers
            )
            given = [item.pattern for item in advise(read_timeline(json.loads(text)))]
            place = next((i for i, item in enumerate(given, 1) if item in remedies), 0)
            advice = f"{given[place - 1]}, place {place}" if place else f"none of {remedies}"
            hits += 0 < place <= 3
            advised += 1
        lines.append(
            f"| {faster} | {slower} | {why} | {measured:.2f} x | {ratio:.2f} x | {advice} |"
        )
    lines += [
        "",
        f"{right} of {len(ORDERS)} pairs are in the right order;"
        f" the remedy is among the first three pieces of advice for {hits} of {advised}.",
    ]
    return lines


def _mean(
    models: Sequence[Model], found: Errors, wanted: str, classes: Sequence[str] = CLASSES
) -> str:
    values = [
        abs(found[model.row.row, quantity])
        for model in models
        if model.row.kernel_class in classes
        for quantity in model.row.measured
        if shown(quantity) == wanted
    ]
    return f"{100 * sum(values) / len(values):.1f} %" if values else "-"


def _time(times: Mapping[str, float]) -> float:
    return next(times[key] for key in ("task", "core", "V", "M") if key in times)


def write_document(text: str) -> None:
    """Put `text` between the markers of the document."""
    document = DOCUMENT.read_text(encoding="utf-8")
    head, rest = document.split(BEGIN)
    _replace(DOCUMENT, f"{head}{BEGIN}\n{text}\n{END}{rest.split(END)[1]}")


_BAND_SOURCE = (
    "benchmarks/timing/calibrate.py: four of five published times of the kind are closer than this"
    " to the model fitted to other families"
)


def write_chip(full: Fit, found_bands: dict[str, float]) -> None:
    """Put the fitted constants and the bands into the chip's file, line by line."""
    values = {key: float(f"{value:.4g}") for key, value in full.numbers.items()}
    lines = [
        line
        for line in CHIP.read_text(encoding="utf-8").splitlines()
        if not line.strip().startswith('"accuracy.')
    ]
    first = next(i for i, line in enumerate(lines) if line.strip().startswith('"timing.'))
    lines[first:first] = [
        f"    {json.dumps(key)}: {json.dumps({'value': value, 'source': _BAND_SOURCE})},"
        for key, value in sorted(found_bands.items())
    ]
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
    for other in CHIP.parent.glob("*.json"):
        write_assumed(other)


def write_assumed(chip: Path) -> None:
    """Bring what a chip's file assumes to be as on the 910B up to date."""
    numbers = json.loads(CHIP.read_text(encoding="utf-8"))["numbers"]
    lines = chip.read_text(encoding="utf-8").splitlines()
    for index, line in enumerate(lines):
        if f'"source": "{ASSUMED}' in line:
            key, _, entry = line.strip().partition(": ")
            found = json.loads(entry.rstrip(","))
            found["value"] = numbers[key.strip('"')]["value"]
            lines[index] = f"    {key}: {json.dumps(found)}{',' if line.endswith(',') else ''}"
    _replace(chip, "\n".join(lines) + "\n")


def _replace(path: Path, text: str) -> None:
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    aside.write_text(text, encoding="utf-8")
    aside.replace(path)


def main() -> None:
    """Fit, compare, print, and write where asked."""
    parser = argparse.ArgumentParser(description="Fit the timing model to published times.")
    parser.add_argument("--benchmark", type=Path, help="the benchmark of operators")
    parser.add_argument("--library", type=Path, help="the library that it measures")
    parser.add_argument(
        "--built",
        type=Path,
        help="where operators are built and recorded launches are kept",
    )
    parser.add_argument("--write", action="store_true", help="update the document and the chip")
    arguments = parser.parse_args()
    if (arguments.benchmark is None) != (arguments.library is None):
        parser.error("--benchmark and --library belong together")
    runtime.load_emulator()
    with tempfile.TemporaryDirectory(prefix="opkit-timing-") as folder:
        built = arguments.built or Path(folder)
        traces = Traces(arguments.built and arguments.built / "traces")
        library: list[Model] = []
        if arguments.library is not None:
            rows = list(library_rows(arguments.benchmark, arguments.library, built))
            library = loaded(rows, traces, lambda text: print(text, file=sys.stderr))
        calibrate([row.load(traces) for row in PUBLISHED], library, writes=arguments.write)


def calibrate(samples: Sequence[Model], library: Sequence[Model], *, writes: bool) -> None:
    """Fit the constants to the rows, and print how far they are off."""
    print(f"{len(samples)} samples, {len(library)} of libraries", file=sys.stderr)
    of_library = fit(library, Laws(LIBRARY_PARAMETERS, {}), rounds=2) if library else None
    full = fit(samples, Laws(PARAMETERS, of_library.numbers if of_library else {}))
    models = [*samples, *library]
    left_out = left_out_errors(full)
    samples_alone: Errors = {}
    if of_library is not None:
        left_out |= left_out_errors(of_library)
        samples_alone = errors(library, {**full.numbers, **SAMPLES_ALONE})
    found_bands = bands(models, left_out)
    text = table(full, models, errors(models, full.numbers), left_out, samples_alone)
    print(text)
    print("\n" + "\n".join(f"{key} {value:.4g}" for key, value in full.numbers.items()))
    print("\n".join(f"{key} {value:g}" for key, value in found_bands.items()))
    if writes:
        write_document(text)
        write_chip(full, found_bands)


if __name__ == "__main__":
    main()
