"""Advice for matrix products, on launches before and after it is followed."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from opkit.profiling import Timeline, advise
from opkit.profiling.shown import read_timeline

PRODUCTS = Path(__file__).parents[2] / "benchmarks" / "timing" / "products.py"
BASE = (128, 256, 64)
DEEP = {"stepKa": 4, "stepKb": 4, "depthA1": 8, "depthB1": 8}


@pytest.fixture(scope="module")
def products() -> Any:
    spec = importlib.util.spec_from_file_location("products", PRODUCTS)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["products"] = module
    spec.loader.exec_module(module)
    return module


def on_cubes(products: Any, form: int, base: tuple[int, int, int], n: int, k: int) -> Any:
    single = (128, n, k)
    return products.Product(256, n, k, base, 2, single, form, DEEP)


def handed_over(products: Any, mode: str, slots: int) -> Any:
    fields = {"stepKa": 8, "stepKb": 4, "depthA1": 16, "depthB1": 8}
    base = (128, 256, 128)
    return products.Product(256, 2048, 1024, base, 2, (128, 2048, 1024), 2, fields, mode, slots)


PAIRS: dict[str, Callable[[Any], tuple[Any, Any]]] = {
    "small-base-blocks": lambda p: (
        on_cubes(p, p.NORM, (64, 64, 64), 1024, 1024),
        on_cubes(p, p.NORM, BASE, 1024, 1024),
    ),
    "variable-tiling": lambda p: (
        on_cubes(p, p.MDL, BASE, 1280, 64),
        on_cubes(p, p.KNOWN, BASE, 1280, 64),
    ),
    "one-vector-core": lambda p: (handed_over(p, "Mix11", 4), handed_over(p, "Mix12", 4)),
    "no-unit-flag": lambda p: (
        on_cubes(p, p.MDL, BASE, 1024, 256),
        on_cubes(p, p.UNITS, BASE, 1024, 256),
    ),
    "shallow-pipeline": lambda p: (handed_over(p, "Mix11", 1), handed_over(p, "Mix11", 2)),
    "same-addresses": lambda p: (
        p.Product(256, 2048, 4096, BASE, 16, (128, 256, 4096), p.MDL, DEEP),
        p.Product(256, 2048, 4096, BASE, 16, (128, 256, 4096), p.REORDERED, DEEP),
    ),
}

NOT_AGAIN = {
    "no-unit-flag": lambda p: on_cubes(p, p.UNITS, BASE, 1024, 256),
    "variable-tiling": lambda p: on_cubes(p, p.KNOWN, BASE, 1280, 64),
    "one-vector-core": lambda p: handed_over(p, "Mix12", 1),
    "shallow-pipeline": lambda p: handed_over(p, "Mix11", 4),
    "single-buffer": lambda p: on_cubes(p, p.MDL, BASE, 1024, 1024),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("pattern", PAIRS)
def test_following_the_advice_brings_the_gain_that_it_promised(products: Any, pattern: str) -> None:
    before, after = (timed(product) for product in PAIRS[pattern](products))
    # Two of the chip's cores work here: that they are few goes without saying.
    found = {item.pattern: item for item in advise(before) if item.pattern != "idle-cores"}
    assert pattern in list(found)[:3], f"only {list(found)}"
    gain = before.task_us - after.task_us
    assert found[pattern].gain_us == pytest.approx(gain, rel=0.3)
    again = [item for item in advise(after) if item.pattern == pattern]
    assert all(item.gain_us < 0.5 * found[pattern].gain_us for item in again)


@pytest.mark.parametrize("pattern", NOT_AGAIN)
def test_what_a_product_does_already_is_not_proposed(products: Any, pattern: str) -> None:
    assert pattern not in [item.pattern for item in advise(timed(NOT_AGAIN[pattern](products)))]


def timed(product: Any) -> Timeline:
    return read_timeline(json.loads(product.run().time("Ascend910B2", 0, lift_limits=True)))
