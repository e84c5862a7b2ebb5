"""What became of a program as one HTML page: its graph, kernels, tiles on cores, memory plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from opkit.dtypes import find_dtype
from opkit.errors import UsageError
from opkit.templating import render_template

from ..codegen import DoesNotFit, Launch, Plan, Split, VectorKernel, cut_of, fitting_launch
from ..ir import Node, Tensor, evaluate, shape_text
from ..stages import Stages
from .explanation import explain

__all__ = ["compiled_page"]

_View = dict[str, object]

_BOX_WIDTH, _BOX_HEIGHT = 190, 38
_GAP_X, _GAP_Y = 18, 34
_STEP_WIDTH, _SLOT_HEIGHT, _LABEL_WIDTH = 16, 20, 90
_CORE_HEIGHT, _TILES_WIDTH = 8, 720
_BLOCKS_SIDE = 360
_INPUT_COLOUR = "var(--track)"
_AREAS = ("input", "mask", "scratch", "row", "column", "one", "output")
_AREA_COLOURS = dict(
    zip(
        _AREAS,
        ("#1a7f37", "#8250df", "#0969da", "#bf8700", "#9a6700", "#6e7781", "#cf222e"),
        strict=True,
    )
)


def compiled_page(stages: Stages, sizes: Mapping[str, int] | None, *, made: str = "") -> str:
    """Return the page.

    Args:
        stages: what a compilation made of a program.
        sizes: of its named dimensions; without them there are no tiles and no bytes.
        made: by which version.
    """
    groups = [group for group in stages.fused.groups if group.kind != "view"]
    colours = {group.name: f"hsl({at * 137 % 360} 55% 62%)" for at, group in enumerate(groups)}
    notes = explain(stages, sizes)
    kernels = [
        {
            "note": note,
            "colour": colours[note.name],
            "operators": ", ".join(note.operators),
            "lines": _lines(stages, note.name),
            "tiles": _tiles(stages, note.name, sizes),
            "plans": _plans(stages, note.name, sizes),
            "texts": _texts(stages, note.name),
        }
        for note in notes
    ]
    view: _View = {
        "title": f"{stages.traced.name}: {_count(len(notes), 'kernel')} for {stages.chip.name}",
        "sizes": ", ".join(f"{name} = {size}" for name, size in (sizes or {}).items()),
        "graph": _graph(stages, colours, sizes),
        "kernels": kernels,
        "made": made,
    }
    return render_template("pages/compiled.html.jinja", {"view": view})


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' if number != 1 else ''}"


def _lines(stages: Stages, name: str) -> str:
    group = next(each for each in stages.fused.groups if each.name == name)
    lines = dict.fromkeys(str(node.location) for node in group.all_nodes if node.location)
    return ", ".join(lines)


# The graph


def _graph(stages: Stages, colours: Mapping[str, str], sizes: Mapping[str, int] | None) -> _View:
    """Return boxes and lines: what is read lies above what reads it.

    The first line that leaves a tensor says how many bytes it has, where its sizes are known.
    """
    graph = stages.graph
    uniform = stages.fused.uniform
    nodes = [node for node in graph.nodes if node.output.name not in uniform]
    home = {
        node.output.name: group.name for group in stages.fused.groups for node in group.all_nodes
    }
    level = {tensor.name: 0 for tensor in graph.inputs}
    for node in nodes:
        known = [level[name] for name in node.inputs if name in level]
        level[node.output.name] = 1 + max(known, default=0)
    outputs = {tensor: name for name, tensor in graph.outputs}
    rows: dict[int, list[_View]] = {}
    places: dict[str, tuple[int, int]] = {}

    def add(tensor: Tensor, text: str, colour: str, title: str) -> None:
        depth = level[tensor.name]
        row = rows.setdefault(depth, [])
        x, y = 10 + len(row) * (_BOX_WIDTH + _GAP_X), 10 + depth * (_BOX_HEIGHT + _GAP_Y)
        places[tensor.name] = (x, y)
        name = outputs.get(tensor.name)
        row.append(
            {
                **{"x": x, "y": y, "colour": colour, "text": text, "title": title},
                "shape": f"{tensor.dtype}{shape_text(tensor.shape)}",
                "output": name or "",
            }
        )

    for tensor in graph.inputs:
        add(tensor, tensor.name, _INPUT_COLOUR, str(tensor))
    for node in nodes:
        colour = colours.get(home.get(node.output.name, ""), _INPUT_COLOUR)
        add(node.output, _label(node), colour, str(node))
    tensors = {tensor.name: tensor for tensor in graph.inputs}
    tensors |= {node.output.name: node.output for node in nodes}
    lines: list[_View] = []
    told: set[str] = set()
    for node in nodes:
        for name in dict.fromkeys(node.inputs):
            if name not in places:
                continue
            amount = _bytes_text(tensors[name], sizes)
            lines.append(
                {
                    "x1": places[name][0] + _BOX_WIDTH // 2,
                    "y1": places[name][1] + _BOX_HEIGHT,
                    "x2": places[node.output.name][0] + _BOX_WIDTH // 2,
                    "y2": places[node.output.name][1],
                    "text": amount if name not in told else "",
                    "title": f"{tensors[name]}: {amount}" if amount else str(tensors[name]),
                }
            )
            told.add(name)
    return {
        "boxes": [box for row in rows.values() for box in row],
        "lines": lines,
        "width": 10 + max(len(row) for row in rows.values()) * (_BOX_WIDTH + _GAP_X),
        "height": 20 + (max(rows) + 1) * (_BOX_HEIGHT + _GAP_Y),
        "box_width": _BOX_WIDTH,
        "box_height": _BOX_HEIGHT,
    }


def _bytes_text(tensor: Tensor, sizes: Mapping[str, int] | None) -> str:
    """Return how many bytes a tensor has; empty where a size is not known."""
    if sizes is None:
        return ""
    row = find_dtype(tensor.dtype)
    try:
        count = evaluate(tensor.size, sizes)
    except UsageError:
        return ""
    value = float(count * row.size_bytes) if row is not None else 0.0
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.4g} {unit}"
        value /= 1024
    return f"{value:.4g} GiB"


def _texts(stages: Stages, name: str) -> list[_View]:
    """Return the sources of the kernels of a group."""
    names = [kernel.name for kernel in stages.kernels.get(name, ())]
    if name in stages.products:
        names += stages.products[name].sources()
    if name in stages.attentions:
        names.append(name)
    texts = stages.texts
    return [
        {"name": each, "text": texts[each], "lines": texts[each].count("\n")}
        for each in dict.fromkeys(names)
        if each in texts
    ]


def _label(node: Node) -> str:
    place = f"  {node.location}" if node.location else ""
    return f"{node.operator}{place}"


# Tiles and cores


def _tiles(stages: Stages, name: str, sizes: Mapping[str, int] | None) -> _View | None:
    if sizes is None:
        return None
    if name in stages.products:
        return _blocks(stages, name, sizes)
    found = _launch(stages, name, sizes)
    return None if found is None else _cores(found[1].split)


def _launch(
    stages: Stages, name: str, sizes: Mapping[str, int]
) -> tuple[VectorKernel, Launch] | None:
    uniform = dict.fromkeys(stages.fused.uniform, 0.0)
    kernels = stages.vector.get(name, ())
    if not kernels:
        return None
    try:
        return fitting_launch(kernels, stages.chip, sizes, uniform, stages.choices)
    except DoesNotFit:
        return None


def _cores(split: Split) -> _View:
    scale = _TILES_WIDTH / max(1, split.tiles)
    bars = []
    for core in range(split.cores):
        tiles = split.tiles_of(core)
        numbers = f"{tiles[0]}" if len(tiles) == 1 else f"{tiles[0]} to {tiles[-1]}"
        bars.append(
            {
                "x": _LABEL_WIDTH + tiles[0] * scale,
                "y": core * _CORE_HEIGHT,
                "width": max(len(tiles) * scale - 0.5, 0.5),
                "height": _CORE_HEIGHT - 1,
                "title": f"core {core}: {numbers}",
                "text": "",
                "colour": "#0969da",
            }
        )
    labels = [
        {"x": 0, "y": core * _CORE_HEIGHT + _CORE_HEIGHT, "text": f"core {core}"}
        for core in range(0, split.cores, 4)
    ]
    what = "rows" if split.tile == 1 else f"tiles of {split.tile} elements or rows"
    return {
        "text": f"{split.extent} in {split.tiles} {what} on {_count(split.cores, 'core')}",
        "bars": bars,
        "labels": labels,
        "width": _LABEL_WIDTH + _TILES_WIDTH,
        "height": split.cores * _CORE_HEIGHT + 4,
    }


def _blocks(stages: Stages, name: str, sizes: Mapping[str, int]) -> _View:
    """Return the first batch's blocks where they lie in the result."""
    cut = cut_of(stages.products[name], stages.graph, stages.chip, sizes, stages.choices)
    m, n = cut.shape.m, cut.shape.n
    scale = _BLOCKS_SIDE / max(m, n)
    bars = []
    for index in range(cut.down * cut.across):
        _, row, column, rows, columns = cut.block(index)
        core = index % cut.cores
        bars.append(
            {
                **{"x": column * scale, "y": row * scale},
                "width": max(columns * scale - 1, 0.5),
                "height": max(rows * scale - 1, 0.5),
                "colour": f"hsl({core * 360 // cut.cores} 55% 70%)",
                "title": f"block {index}: core {core}, {rows} x {columns}",
                "text": str(core) if min(rows, columns) * scale > 14 else "",
            }
        )
    batches = f" of {cut.shape.batches} batches, the first shown," if cut.shape.batches > 1 else ""
    return {
        "text": f"{m} x {n}{batches} in {cut.down} x {cut.across} blocks on"
        f" {_count(cut.cores, 'core')}; numbers are cores",
        "bars": bars,
        "labels": [],
        "width": n * scale + 2,
        "height": m * scale + 2,
    }


# The memory plan


def _plans(stages: Stages, name: str, sizes: Mapping[str, int] | None) -> list[_View]:
    product = stages.products.get(name)
    if product is not None:
        parts = [part.name for part in product.group.before if part.kind == "vector"]
        views = [view for part in parts for view in _plans(stages, part, sizes)]
        if product.epilogue is not None:
            views.append(_plan(product.epilogue.plan, "of the vector cores", 0, stages))
        return views
    found = _launch(stages, name, sizes) if sizes is not None else None
    if found is not None:
        kernel, launch = found
        tile = int(launch.values["tileLength"])
        return [_plan(kernel.plan, f"schedule {kernel.plan.program.schedule}", tile, stages)]
    return [
        _plan(kernel.plan, f"schedule {kernel.plan.program.schedule}", 0, stages)
        for kernel in stages.vector.get(name, ())
    ]


def _plan(plan: Plan, title: str, tile: int, stages: Stages) -> _View:
    """Return slots, down, over steps, across; bars are the values that live in them."""
    begins, labels, total = [], [], 0
    for section in plan.program.sections:
        begins.append(total)
        if section.steps:
            labels.append({"x": _LABEL_WIDTH + total * _STEP_WIDTH, "text": section.name})
        total += len(section.steps)
    lives: list[tuple[str, int, int, int, str]] = []
    for each in plan.lifetimes:
        first, last = begins[each.section] + each.first, begins[each.section] + each.last
        step = plan.program.sections[each.section].steps[each.first]
        edge = f"; waits for step {each.waits_for}" if each.waits_for >= 0 else ""
        note = f"{step}    steps {each.first} to {each.last}{edge}"
        lives.append((each.place.area, each.place.index, first, last, note))
    for tensor, value in plan.program.outputs:
        place = plan.places[value.number]
        written = _written(plan, value.number, begins)
        if place.area == "output" and written is not None:
            lives.append((place.area, place.index, *written, f"{tensor} leaves"))
    slots = sorted({(_AREAS.index(area), area, at) for area, at, *_ in lives})
    row_of = {(area, at): row for row, (_, area, at) in enumerate(slots)}
    bars = [
        {
            "x": _LABEL_WIDTH + first * _STEP_WIDTH,
            "y": 16 + row_of[area, at] * _SLOT_HEIGHT,
            "width": (last - first + 1) * _STEP_WIDTH - 1,
            "height": _SLOT_HEIGHT - 2,
            "colour": _AREA_COLOURS[area],
            "title": note,
        }
        for area, at, first, last, note in lives
    ]
    names = [
        {"y": 30 + row * _SLOT_HEIGHT, "text": f"{area} {at}"}
        for row, (_, area, at) in enumerate(slots)
    ]
    return {
        **{"title": title, "bars": bars, "names": names, "labels": labels},
        "width": _LABEL_WIDTH + max(1, total) * _STEP_WIDTH + 10,
        "height": 20 + len(slots) * _SLOT_HEIGHT,
        "bytes": _bytes(plan, tile),
        "ub": stages.chip.count("memory.ub_bytes"),
        "steps": [str(step) for section in plan.program.sections for step in section.steps],
    }


def _written(plan: Plan, number: int, begins: Sequence[int]) -> tuple[int, int] | None:
    """Return the step that writes a value, and the last of its section."""
    for begin, section in zip(begins, plan.program.sections, strict=True):
        for at, step in enumerate(section.steps):
            if step.target.number == number and step.operation != "Read":
                return begin + at, begin + len(section.steps) - 1
    return None


def _bytes(plan: Plan, tile: int) -> list[dict[str, Any]]:
    """Return what each kind of buffer takes of the unified buffer for a tile's elements."""
    if tile == 0:
        return []
    rows = [(f"input {name}", plan.buffers, size * tile) for name, size in plan.input_bytes]
    rows += [(f"output {name}", plan.buffers, size * tile) for name, size in plan.output_bytes]
    word = find_dtype("float32")
    assert word is not None
    rows.append(("scratch", plan.counts.get("scratch", 0), word.size_bytes * tile))
    rows.append(("mask", plan.counts.get("mask", 0), -(-tile // 8)))
    return [
        {"name": name, "count": count, "each": each, "total": count * each}
        for name, count, each in rows
        if count
    ]
