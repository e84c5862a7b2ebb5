"""Kernels that move elements, under every check."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opkit import compiler as oc
from opkit.chips import find_chip
from opkit.compiler import TensorSpec as Spec
from opkit.compiler.codegen.moving import pieces_of
from opkit.compiler.launch.launches import launches_of
from opkit.compiler.ops.operators import OPERATORS
from opkit.errors import UsageError
from opkit.profiling import Profile

Run = Callable[..., tuple[np.ndarray, ...]]


def _joined(x: oc.Value, y: oc.Value) -> oc.Value:
    return x.builder.apply("concat", x, y, axis=1)


def _interleaved(*parts: oc.Value) -> oc.Value:
    rows, columns = parts[0].shape
    wide = [each.reshape(rows, columns, 1) for each in parts]
    joined = parts[0].builder.apply("concat", *wide, axis=2)
    return joined.reshape(rows, columns * len(parts))


def _apart(x: oc.Value, step: int, value: float) -> oc.Value:
    wide = x.reshape(*x.shape, 1)
    wide = wide.apply("pad", widths=((0, 0), (0, 0), (1, step - 2)), value=value)
    return wide.reshape(x.shape[0], x.shape[1] * step)


def _repeated(x: oc.Value, times: int) -> oc.Value:
    shape = (*x.shape, times)
    wide = x.reshape(*x.shape, 1).apply("broadcast_to", shape=shape)
    return wide.reshape(*x.shape[:-1], shape[-2] * times)


def _twice(x: oc.Value) -> oc.Value:
    return _repeated(x, 2)


CASES: dict[str, tuple[Callable[..., Any], tuple[oc.TensorSpec, ...]]] = {
    "a transpose": (lambda x: x.T, (Spec("x", (64, 100), "float16"),)),
    "axes in another order": (
        lambda x: x.transpose(0, 2, 1, 3) + 1,
        (Spec("x", (4, 6, 5, 7), "float32"),),
    ),
    "rows and columns of no whole blocks, in several tiles": (
        lambda x: x.transpose(0, 2, 1),
        (Spec("x", (2, 133, 301), "float32"),),
    ),
    "one tile for many cores": (
        lambda x: x.transpose(2, 0, 1),
        (Spec("x", (37, 19, 101), "float16"),),
    ),
    "channels last, and first again": (
        lambda x, y: (x.transpose(0, 2, 3, 1), y.transpose(0, 3, 1, 2)),
        (Spec("x", (2, 3, 33, 35), "float32"), Spec("y", (2, 33, 35, 3), "float16")),
    ),
    "every third of a long row": (lambda x: x[1::3], (Spec("x", (20003,), "float16"),)),
    "neighbours change places": (
        lambda x: _interleaved(x[:, 1::2], x[:, ::2]),
        (Spec("x", (37, 66), "float16"),),
    ),
    "elements of two tensors and of one twice, in turn": (
        lambda x, y: (_interleaved(x, y), _interleaved(x, y, x)),
        (Spec("x", (301, 41), "float32"), Spec("y", (301, 41), "float32")),
    ),
    "one in turn with one that all rows share": (
        lambda x, y: _interleaved(x, y.apply("broadcast_to", shape=(50, 33)), x),
        (Spec("x", (50, 33), "float16"), Spec("y", (33,), "float16")),
    ),
    "elements with others between": (
        lambda x, y: (
            _interleaved(x[:, ::2], y),
            _apart(x, 2, 0.0),
            _apart(x, 3, 1.5),
            _interleaved(y, x[:, 1::2], y),
        ),
        (Spec("x", (37, 66), "float16"), Spec("y", (37, 33), "float16")),
    ),
    "each element a few times": (
        lambda x, y: (_repeated(x, 2), _repeated(x, 7) + 1, _repeated(y, 3)),
        (Spec("x", (9, 131), "float32"), Spec("y", (40,), "int8")),
    ),
    "few columns become rows of one": (
        lambda x: x.transpose(0, 2, 1),
        (Spec("x", (5, 3, 1000), "float16"),),
    ),
    "slices with a step": (lambda x: x[1:50:3, 2:9], (Spec("x", (64, 100), "float16"),)),
    "joined": (_joined, (Spec("x", (64, 100), "float16"), Spec("y", (64, 3), "float16"))),
    "padded": (
        lambda x: x.apply("pad", widths=((1, 2), (0, 3), (2, 0)), value=1.5),
        (Spec("x", (6, 10, 9), "float32"),),
    ),
    "windows of images, also of two steps and with gaps": (
        lambda x: (
            x.apply("windows", kernel=(3, 3), padding=(1, 1), value=1.5),
            x.apply("windows", kernel=(3, 2), stride=(2, 1), padding=(0, 2), dilation=(1, 2)),
        ),
        (Spec("x", (2, 6, 7, 5), "float16"),),
    ),
    "looked up": (
        lambda x, i: x.apply("take", i),
        (Spec("x", (50, 100), "float16"), Spec("i", (7, 9), "uint8")),
    ),
    "elements of rows by index": (
        lambda x, y, i: (
            x.apply("take", i.astype("int32") - 3, axis=2),
            y.apply("take", i.astype("int32") - 3, axis=-1),
        ),
        (
            Spec("x", (3, 50, 77), "float16"),
            Spec("y", (9, 1021), "float32"),
            Spec("i", (301,), "uint8"),
        ),
    ),
    "few neighbours by index": (
        lambda x, y, i: (
            x.apply("take", i.astype("int32") - 3, axis=1),
            y.apply("take", i.astype("int32") - 3, axis=0),
        ),
        (
            Spec("x", (3, 50, 7), "float16"),
            Spec("y", (50, 3, 11), "float32"),
            Spec("i", (701,), "uint8"),
        ),
    ),
    "stacked along a new axis, and split again": (
        lambda x, y: x.builder.apply("stack", [x, y], axis=-2).split([2, 5], axis=2),
        (Spec("x", (3, 7), "float16"), Spec("y", (3, 7), "float16")),
    ),
    "moved, then reduced along the first axis": (
        lambda x, y: (x.T + y).sum(axis=0),
        (Spec("x", (64, 100), "float16"), Spec("y", (100, 64), "float16")),
    ),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", CASES)
def test_a_movement_gives_what_numpy_gives_and_is_clean(name: str, run_program: Run) -> None:
    function, specs = CASES[name]
    run_program(function, *specs)


@pytest.mark.parametrize(
    ("shape", "most"), [((64, 100), 4), ((1024, 1024), 32)], ids=["few elements", "a million"]
)
def test_a_transpose_takes_as_many_cores_as_it_is_worth(shape: tuple[int, int], most: int) -> None:
    kernel = oc.compile(lambda x: x.T, Spec("x", shape, "float16"))
    (group,) = kernel.stages.fused.groups
    (launch,) = launches_of(kernel.stages, group, {}, {})
    assert 0 < launch.block_dim <= most


@pytest.mark.parametrize(
    "move",
    [lambda x: _interleaved(x[:, 1::2], x[:, ::2]), lambda x: _interleaved(x, x), _twice],
    ids=["neighbours", "pairs", "repeats"],
)
def test_elements_in_turn_are_gathered_and_not_copied_one_by_one(
    move: Callable[[oc.Value], oc.Value],
) -> None:
    stages = oc.compile_stages(
        oc.trace(move, [Spec("x", (64, 256), "float32")]), find_chip("Ascend910B2")
    )
    names = [
        launch.code.name
        for group in stages.fused.groups
        for launch in launches_of(stages, group, {}, {})
    ]
    assert len(names) == 1 and names[0].startswith("weave_")


def test_the_lines_of_a_copy_are_the_programs() -> None:
    kernel = oc.compile(lambda x: x.T, Spec("x", (5, 3)))
    with Profile() as profile:
        kernel(np.zeros((5, 3), np.float32))
    (timeline,) = profile.timelines
    assert {line.file for line in timeline.lines if line.bytes} == {__file__}


def test_a_list_of_tensors_is_one_argument() -> None:
    M = oc.dimension("M")

    def scaled(tensors: list[oc.Value], x: oc.Value) -> list[oc.Value]:
        return [each * x for each in tensors]

    kernel = oc.compile(
        scaled, [Spec("a", (M, 3)), Spec("b", (M, 3), "float16")], Spec("x", (3,)), name="scaled"
    )
    a, b, x = np.ones((4, 3), np.float32), np.ones((4, 3), np.float16), np.arange(3, dtype="f4")
    first, second = kernel([a, b], x)
    np.testing.assert_array_equal(first, a * x)
    np.testing.assert_array_equal(second, a * x)


def test_parts_that_do_not_make_up_an_axis_are_refused() -> None:
    with pytest.raises(oc.GraphError, match="7 elements are not 2 equal parts"):
        oc.trace(lambda x: x.split(2, axis=1), [Spec("x", (3, 7))])
    with pytest.raises(oc.GraphError, match="parts of 6 elements do not make up 7"):
        oc.trace(lambda x: x.split([2, 4], axis=1), [Spec("x", (3, 7))])


def test_a_file_says_how_many_tensors_a_list_has(tmp_path: Path) -> None:
    program = tmp_path / "joined.py"
    program.write_text(
        'def joined(xs: "float16[M, 8] * 2", y: "float16[8]"):\n    return xs[0] + xs[1] * y\n'
    )
    graph = oc.load_program(program)
    assert [str(tensor) for tensor in graph.inputs] == [
        "xs0: float16[M, 8]",
        "xs1: float16[M, 8]",
        "y: float16[8]",
    ]


def test_boxes_of_windows_cover_every_element_once() -> None:
    """Also windows that lie beside the image altogether."""
    random = np.random.default_rng(0)
    row = OPERATORS["windows"]
    tried = 0
    while tried < 60:
        shape = tuple(int(each) for each in random.integers(1, 8, 4))
        names, most = ("kernel", "stride", "padding", "dilation"), (4, 3, 3, 2)
        least = (1, 1, 0, 1)
        settings = {
            name: tuple(int(each) for each in random.integers(low, high + 1, 2))
            for name, low, high in zip(names, least, most, strict=True)
        }
        x = np.arange(1, 1 + math.prod(shape)).reshape(shape)
        try:
            target = tuple(row.shape((oc.Tensor("x", shape, "int32"),), settings))
        except UsageError:  # the windows are larger than the image
            continue
        tried += 1
        found, times = np.zeros(math.prod(target), int), np.zeros(math.prod(target), int)
        for piece in pieces_of("windows", settings, [shape], target):
            extents = [extent for extent, _, _ in piece.axes]
            places = np.indices(extents).reshape(len(extents), -1)
            to = piece.target_offset + np.array([t for _, _, t in piece.axes], int) @ places
            times[to] += 1
            if piece.source == 0:
                at = piece.source_offset + np.array([s for _, s, _ in piece.axes], int) @ places
                found[to] = x.reshape(-1)[at]
        assert (times == 1).all(), settings
        np.testing.assert_array_equal(found.reshape(target), row.reference(x, value=0, **settings))
