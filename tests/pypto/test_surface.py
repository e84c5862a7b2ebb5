"""The public project's names: outputs as parameters, tiles, loops; and what users run into."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opkit import pypto
from opkit.compiler import GraphError


def array(*shape: int) -> Any:
    return np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32)


def test_an_output_is_a_parameter() -> None:
    @pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
    def add(
        x: pypto.Tensor((pypto.DYNAMIC, 64), pypto.DT_FP32),
        y: pypto.Tensor[...],
        out: pypto.Tensor[...],
    ):
        pypto.set_vec_tile_shapes(32, 64)
        out[:] = x + y

    x, y = array(8, 64), array(8, 64)
    out = np.zeros_like(x)
    assert add(x, y, out) is None
    np.testing.assert_allclose(out, x + y, rtol=1e-6)
    assert add.last.runs_in == "kernels"


def test_tiles_are_viewed_in_a_loop_and_assembled() -> None:
    @pypto.frontend.jit
    def by_tiles(x: pypto.Tensor[...], out: pypto.Tensor[...], tile):
        for i in pypto.loop(pypto.ceildiv(x.shape[0], tile), name="rows", idx_name="i"):
            rows = min(tile, x.shape[0] - i * tile)
            part = pypto.view(x, (rows, x.shape[1]), (i * tile, 0))
            pypto.assemble(pypto.exp(part) * 2, (i * tile, 0), out)

    x = array(10, 8)
    out = np.zeros_like(x)
    by_tiles(x, out, 4)
    np.testing.assert_allclose(out, 2 * np.exp(x), rtol=1e-5)


def test_a_view_holds_zeros_behind_its_valid_shape() -> None:
    @pypto.jit
    def padded(x):
        return pypto.view(x, (4, 8), (8, 0), valid_shape=(2, 8))

    x = array(10, 8)
    np.testing.assert_array_equal(padded(x), np.pad(x[8:], ((0, 2), (0, 0))))


def test_loops_are_unrolled_by_the_factors_that_fit() -> None:
    assert list(pypto.loop_unroll(7, unroll_list=[1, 2, 4])) == [(0, 4), (4, 2), (6, 1)]
    assert list(pypto.loop(1, 7, 2)) == [1, 3, 5]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("amax", lambda x: x.max(-1, keepdims=True)),
        ("amin", lambda x: x.min(-1, keepdims=True)),
        ("sum", lambda x: x.sum(-1, keepdims=True)),
    ],
)
def test_reductions_keep_their_axis_when_asked(name: str, expected: Any) -> None:
    reduce = pypto.jit(lambda x: getattr(pypto, name)(x, -1, True))
    x = array(4, 32)
    np.testing.assert_allclose(reduce(x), expected(x), rtol=1e-5)


@pytest.mark.torch
def test_torch_tensors_go_in_and_come_out() -> None:
    import torch

    @pypto.jit
    def double(x, out):
        out[:] = x * 2
        return x + 1

    x, out = torch.randn(4, 32), torch.zeros(4, 32)
    result = double(x, out)
    assert torch.equal(out, 2 * x) and torch.allclose(result, x + 1)


def _cycle(x: Any, out: Any) -> None:
    part = pypto.view(out, (2, 8), (0, 0))
    pypto.assemble(part + 1, (2, 0), out)


def _branch(x: Any, out: Any) -> None:
    if x[0, 0] > 0:
        out[:] = x


def _loop(x: Any, out: Any) -> None:
    for row in x:
        out[:] = row


def _undefined(x: Any, out: Any) -> None:
    out[:] = pypto.tensor((4, 8), pypto.DT_FP32)


def _valid_shape(x: Any, out: Any) -> None:
    out[:] = pypto.view(x, (4, 8), (2, 0), valid_shape=(4, 8))


def _large_tiles(x: Any, out: Any) -> None:
    pypto.set_vec_tile_shapes(512, 512)
    out[:] = x


def test_tiles_beyond_the_unified_buffer_are_told() -> None:
    x, out = array(4, 8), np.zeros((4, 8), np.float32)
    message = r"unified buffer of Ascend910B2 has 196608; .*\(128, 128\) fits"
    with pytest.warns(pypto.PyptoWarning, match=message) as caught:
        pypto.jit(_large_tiles)(x, out)
    assert caught[0].lineno == _large_tiles.__code__.co_firstlineno + 1
    np.testing.assert_array_equal(out, x)


def _too_far(x: Any, out: Any) -> None:
    pypto.assemble(x, (2, 0), out)


def _nothing(x: Any, out: Any) -> None:
    x + 1


def _mixed(x: Any, out: Any) -> None:
    out[:] = pypto.matmul(x, pypto.cast(x, pypto.DT_FP16))


@pytest.mark.parametrize(
    ("program", "offset", "message"),
    [
        (_cycle, 2, "a cycle.*\n  help: assemble into a tensor of its own"),
        (_branch, 1, r"an `if` on a tensor's values.*\n  help: choose with pypto.where"),
        (_loop, 1, "a loop over a tensor cannot be traced"),
        (_undefined, 1, "nothing has been written to it"),
        (_valid_shape, 1, r"valid_shape says 4 elements from 2 on.*\n  help: valid_shape=2"),
        (_too_far, 1, "4 elements from 2 on do not fit into axis 0"),
        (_nothing, 0, "returns nothing and writes to none of its arguments"),
        (_mixed, 1, "matmul takes equal data types, not float32 and float16"),
    ],
)
def test_a_mistake_is_one_line_at_its_place_with_what_to_do(
    program: Any, offset: int, message: str
) -> None:
    x, out = array(4, 8), np.zeros((4, 8), np.float32)
    with pytest.raises(GraphError, match=message) as caught:
        pypto.jit(program)(x, out)
    assert caught.value.location is not None
    assert caught.value.location.file == __file__
    assert caught.value.location.line == program.__code__.co_firstlineno + offset
    assert not out.any()


def test_an_argument_that_its_annotation_does_not_allow_is_refused() -> None:
    @pypto.jit
    def twice(x: pypto.Tensor((4, 8), pypto.DT_FP16)):
        return x + x

    with pytest.raises(GraphError, match='axis 0 of "x" has 4 elements, and the argument has 3'):
        twice(np.zeros((3, 8), np.float16))
    with pytest.raises(GraphError, match='"x" is float16, and the argument is float32'):
        twice(np.zeros((4, 8), np.float32))


def test_an_unknown_name_fails_by_name() -> None:
    with pytest.raises(AttributeError, match=r"opkit has no pypto.matmull; did you mean matmul"):
        _ = pypto.matmull
    with pytest.raises(GraphError, match='jit has no option "fuse"'):
        pypto.jit(fuse=True)
    with pytest.raises(GraphError, match="work inside of functions that"):
        pypto.zeros((2, 2))


def test_programs_that_say_import_pypto_run_without_edits(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import numpy as np\nimport pypto\n"
        "@pypto.frontend.jit\ndef add(x, out):\n    out[:] = x + 1\n"
        "out = np.zeros((2, 32), np.float32)\nadd(np.ones((2, 32), np.float32), out)\n"
        "print(out.sum(), pypto.__name__)\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "opkit", "run", str(program)], capture_output=True, text=True
    )
    assert done.stdout.split() == ["128.0", "opkit.pypto"], done.stderr
    plain = subprocess.run([sys.executable, str(program)], capture_output=True, text=True)
    assert "No module named 'pypto'" in plain.stderr


def test_a_pypto_that_is_there_is_the_one_that_programs_get(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pypto.py").write_text("mine = True\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pypto.as_pypto():
        import pypto as found  # type: ignore[import-not-found]

        assert found.mine
    del sys.modules["pypto"]


@pytest.mark.torch
def test_elements_are_numbers_and_torch_tensors_are_taken_as_they_are() -> None:
    import torch

    two = pypto.Element(pypto.DT_FP32, 2)
    assert two.value == 2 and two.dtype == pypto.DT_FP32

    @pypto.jit
    def program(x, out):
        low = pypto.clip(x, pypto.Element(pypto.DT_FP32, -0.5), pypto.Element(pypto.DT_FP32, 0.5))
        out[:] = pypto.add(low, two) * pypto.full([4, 32], two, pypto.DT_FP32)

    x, out = torch.randn(4, 32), torch.zeros(4, 32)
    program(pypto.from_torch(x, "x", dynamic_axis=[0]), pypto.from_torch(out))
    assert torch.allclose(out, 2 * (x.clamp(-0.5, 0.5) + 2))
    with pytest.raises(GraphError, match="from_torch takes a torch tensor, not ndarray"):
        pypto.from_torch(np.zeros(3))
    with pytest.raises(GraphError, match="takes contiguous tensors"):
        pypto.from_torch(x.T)
    with pytest.raises(GraphError, match="does not see float32 as float16"):
        pypto.from_torch(x, dtype=pypto.DT_FP16)
    with pytest.raises(GraphError, match="TILEOP_ND"):
        pypto.from_torch(x, tensor_format=pypto.TileOpFormat.TILEOP_NZ)


def test_variances_divide_as_each_surface_says() -> None:
    x = np.random.default_rng(5).normal(size=(4, 12)).astype(np.float32)
    wanted = {
        # The public project's divided by all elements, and took no correction.
        "public": (lambda x: pypto.var(x, -1), x.var(-1, ddof=1)),
        "correction": (lambda x: x.var(dim=-1, correction=2, keepdim=True), x.var(-1, ddof=2)),
        "positional": (lambda x: pypto.var(x, -1, 0), x.var(-1)),
        "biased": (lambda x: x.var(dim=-1, unbiased=False), x.var(-1)),
        "all": (lambda x: pypto.var(x), x.var(ddof=1)),
        "article": (lambda x: pypto.var(x, axis=-1, keepdim=True), x.var(-1)),
    }
    for function, expected in wanted.values():
        found = pypto.jit(function)(x)
        np.testing.assert_allclose(found.reshape(-1), np.ravel(expected), rtol=1e-5)


def test_shapes_come_as_one_argument_or_as_several() -> None:
    program = pypto.jit(lambda x: x + pypto.zeros(2, 8, dtype=pypto.DT_FP32) + pypto.ones([2, 8]))
    assert (program(np.zeros((2, 8), np.float32)) == 1).all()
