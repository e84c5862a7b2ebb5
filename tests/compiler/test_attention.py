"""Attention in one kernel, spelled out or as an operator, under every check."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from opkit import compiler as oc
from opkit.compiler import TensorSpec as Spec
from opkit.errors import UsageError
from opkit.profiling import Profile

Run = Callable[..., tuple[np.ndarray, ...]]
H = "float16"
L = oc.dimension("L")


def _qkv(*shape: Any, dtype: str = H) -> tuple[oc.TensorSpec, ...]:
    return tuple(Spec(name, shape, dtype) for name in "qkv")


def _spelled(q: Any, k: Any, v: Any) -> Any:
    return (q @ k.transpose(0, 2, 1) * 0.125).apply("softmax") @ v


SPELLED: dict[str, tuple[Callable[..., Any], tuple[oc.TensorSpec, ...]]] = {
    "scaled": (_spelled, _qkv(2, 130, 64)),
    "brain floats": (_spelled, _qkv(2, 70, 48, dtype="bfloat16")),
    "a mask added": (
        lambda q, k, v, m: (q @ k.transpose(0, 2, 1) / 8.0 + m).apply("softmax") @ v,
        (*_qkv(4, 96, 64), Spec("m", (4, 1, 96), H)),
    ),
    "hidden by a condition": (
        lambda q, k, v, m: (
            m.apply("where", q @ k.transpose(0, 2, 1) * 0.125, -1e9).apply("softmax") @ v
        ),
        (*_qkv(2, 96, 64), Spec("m", (96, 96), "bool")),
    ),
    "weights in float32": (
        lambda q, k, v: (
            ((q @ k.transpose(0, 1, 3, 2)).astype("float32") * 0.2).apply("softmax").astype(H) @ v
        ),
        _qkv(2, 3, 65, 40),
    ),
}
OPERATOR: dict[str, tuple[Callable[..., Any], tuple[oc.TensorSpec, ...]]] = {
    "causal, more keys than a step": (
        lambda q, k, v: q.apply("attention", k, v, causal=True),
        _qkv(1, 700, 64),
    ),
    "one row": (
        lambda q, k, v: q.apply("attention", k, v),
        (Spec("q", (1, 64), H), *_qkv(600, 64)[1:]),
    ),
    "fewer keys than queries, values of another width": (
        lambda q, k, v: q.apply("attention", k, v, scale=0.3),
        (Spec("q", (257, 128), H), Spec("k", (33, 128), H), Spec("v", (33, 72), H)),
    ),
    "keys shared by the heads of a group": (
        lambda q, k, v: q.apply("attention", k, v),
        (Spec("q", (2, 4, 70, 64), H), Spec("k", (2, 1, 70, 64), H), Spec("v", (2, 1, 70, 64), H)),
    ),
    "keys that are copied in pairs and some that are not, causal": (
        lambda q, k, v: q.apply("attention", k, v, causal=True),
        _qkv(1, 600, 48),
    ),
    "three rounds of queries for each core, causal": (
        lambda q, k, v: q.apply("attention", k, v, causal=True),
        _qkv(26, 140, 16),
    ),
    "four heads of queries for two of keys, behind as many keys as queries, causal": (
        lambda q, k, v: q.apply("attention", k, v, causal=True, ahead=70),
        (Spec("q", (2, 4, 70, 32), H), *(Spec(each, (2, 2, 140, 32), H) for each in "kv")),
    ),
    "a scale below zero": (
        lambda q, k, v: q.apply("attention", k, v, scale=-0.5),
        _qkv(2, 70, 32),
    ),
    "a float32 mask for all, causal": (
        lambda q, k, v, m: q.apply("attention", k, v, m, causal=True),
        (*_qkv(2, 150, 32), Spec("m", (150,), "float32")),
    ),
}


def _heads_apart(*letters: str) -> Callable[..., Any]:
    def program(q: Any, k: Any, v: Any, *mask: Any) -> Any:
        parts = {"q": q, "k": k, "v": v}
        for letter in letters:
            if letter in parts:
                parts[letter] = parts[letter].transpose(0, 2, 1, 3)
        y = parts["q"].apply("attention", parts["k"], parts["v"], *mask)
        return y.transpose(0, 2, 1, 3).reshape(2, 70, 96) if "y" in letters else y

    return program


TURNED: dict[str, tuple[Callable[..., Any], tuple[oc.TensorSpec, ...]]] = {
    "all": (_heads_apart(*"qkvy"), _qkv(2, 70, 3, 32)),
    "queries and values, with a mask": (
        _heads_apart(*"qv"),
        (
            Spec("q", (2, 70, 3, 32), H),
            Spec("k", (2, 3, 40, 32), H),
            Spec("v", (2, 40, 3, 32), H),
            Spec("m", (2, 1, 1, 40), H),
        ),
    ),
    "the result": (_heads_apart("y"), _qkv(2, 3, 70, 32)),
    "all, keys for two heads each": (
        lambda q, k, v: (
            q.transpose(0, 2, 1, 3)
            .apply("attention", k.transpose(0, 2, 1, 3), v.transpose(0, 2, 1, 3))
            .transpose(0, 2, 1, 3)
        ),
        (Spec("q", (2, 70, 4, 32), H), *(Spec(each, (2, 70, 2, 32), H) for each in "kv")),
    ),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", TURNED)
def test_heads_beside_each_other_are_read_and_written_where_they_lie(
    name: str, run_program: Run
) -> None:
    function, specs = TURNED[name]
    groups = oc.compile(function, *specs).stages.fused.groups
    assert [group.kind for group in groups if group.kind != "view"] == ["attention"]
    run_program(function, *specs)


def test_as_many_rows_as_there_are_do_not_matter_where_the_heads_fit_a_row() -> None:
    def program(q: Any, k: Any, v: Any) -> Any:
        parts = (each.reshape(1, 640, 32, 128).transpose(0, 2, 1, 3) for each in (q, k, v))
        first, *rest = parts
        return first.apply("attention", *rest).transpose(0, 2, 1, 3).reshape(1, 640, 4096)

    fused = oc.prepare(oc.trace(program, _qkv(1, 640, 4096)))
    assert [group.kind for group in fused.groups if group.kind != "view"] == ["attention"]


def test_a_result_that_is_also_read_head_by_head_is_turned_by_a_kernel(run_program: Run) -> None:
    def program(q: Any, k: Any, v: Any) -> Any:
        y = q.apply("attention", k, v)
        return y.transpose(0, 2, 1, 3), y

    groups = oc.compile(program, *_qkv(1, 2, 20, 16)).stages.fused.groups
    assert [group.kind for group in groups] == ["attention", "transpose"]
    run_program(program, *_qkv(1, 2, 20, 16))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", SPELLED)
def test_attention_that_is_spelled_out_becomes_one_kernel(name: str, run_program: Run) -> None:
    function, specs = SPELLED[name]
    groups = oc.compile(function, *specs).stages.fused.groups
    assert [g.kind for g in groups if g.kind != "vector"] == ["attention"]
    run_program(function, *specs)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", OPERATOR)
def test_the_operator_gives_what_numpy_gives_and_is_clean(name: str, run_program: Run) -> None:
    function, specs = OPERATOR[name]
    run_program(function, *specs)


def test_one_kernel_serves_every_length(run_program: Run) -> None:
    for length in (5, 300):
        run_program(lambda q, k, v: q.apply("attention", k, v, causal=True), *_qkv(L, 64), L=length)


@pytest.mark.parametrize(
    "function",
    [
        lambda q, k, v: (q @ k.transpose(0, 2, 1) * 0.5).apply("softmax", axis=1) @ v,
        pytest.param(
            lambda q, k, v: (q @ k.transpose(0, 2, 1) * -0.5).apply("softmax") @ v,
            marks=pytest.mark.slow,
        ),
        pytest.param(
            lambda q, k, v: ((q @ k.transpose(0, 2, 1)).apply("relu")).apply("softmax") @ v,
            marks=pytest.mark.slow,
        ),
    ],
    ids=["another axis", "a negative scale", "something in between"],
)
def test_what_only_looks_like_attention_stays_apart(
    function: Callable[..., Any], run_program: Run
) -> None:
    kernel = oc.compile(function, *_qkv(2, 32, 32))
    assert all(group.kind != "attention" for group in kernel.stages.fused.groups)
    run_program(function, *_qkv(2, 32, 32), limit=4e-3)


def test_weights_that_are_returned_too_are_computed_once(run_program: Run) -> None:
    def program(q: Any, k: Any, v: Any) -> Any:
        weights = (q @ k.transpose(0, 2, 1)).apply("softmax")
        return weights @ v, weights

    kernel = oc.compile(program, *_qkv(1, 32, 32))
    assert all(group.kind != "attention" for group in kernel.stages.fused.groups)


def test_scores_leave_l0c_while_their_product_is_written() -> None:
    """They waited for the whole of it: unit flags tell block of L0C by block."""
    kernel = oc.compile(_spelled, *_qkv(1, 256, 128))
    with Profile() as session:
        kernel(*oc.random_arrays(kernel.graph, {}))
    (timeline,) = session.timelines

    def first(pipe: str) -> tuple[float, float]:
        events = [e for e in timeline.events if timeline.lines[e.line].pipe == pipe and e.core == 0]
        return min((event.start_cycle, event.end_cycle) for event in events)

    assert first("FIX")[0] < first("M")[1]


def test_what_one_kernel_cannot_take_is_an_error_that_says_what_to_do() -> None:
    with pytest.raises(UsageError, match="160 wide, expected at most 128"):
        oc.compile(lambda q, k, v: q.apply("attention", k, v), *_qkv(2, 70, 160))
    with pytest.raises(UsageError, match="ahead is -1, expected a whole number from 0"):
        oc.compile(
            lambda q, k, v: q.apply("attention", k, v, causal=True, ahead=-1), *_qkv(2, 70, 64)
        )
    with pytest.raises(UsageError, match="fewer heads than q"):
        shapes = ((2, 8, 70, 64), (2, 4, 70, 64), (2, 2, 70, 64))
        specs = (Spec(name, shape, H) for name, shape in zip("qkv", shapes, strict=True))
        oc.compile(lambda q, k, v: q.apply("attention", k, v), *specs)
    with pytest.raises(UsageError, match="do not broadcast"):
        oc.compile(
            lambda q, k, v, m: q.apply("attention", k, v, m),
            *_qkv(2, 70, 64),
            Spec("m", (3, 70, 70), H),
        )
