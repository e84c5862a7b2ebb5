"""The article's programs, traced by opkit and run by NumPy as they are written."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from opkit import pypto

FOLDER = Path(__file__).parents[2] / "examples" / "pypto"


def _softmax(x: Any, axis: int) -> Any:
    powers = np.exp(x - x.max(axis=axis, keepdims=True))
    return powers / powers.sum(axis=axis, keepdims=True)


def _jit(function: Any = None, **_: object) -> Any:
    return function if function is not None else lambda each: each


NUMPY = SimpleNamespace(
    jit=_jit,
    zeros=np.zeros,
    empty_like=np.empty_like,
    matmul=np.matmul,
    add=np.add,
    div=np.divide,
    sqrt=np.sqrt,
    relu=lambda x: np.maximum(x, 0),
    softmax=_softmax,
    reshape=np.reshape,
    mean=lambda x, axis, keepdim: np.mean(x, axis=axis, keepdims=keepdim),
    var=lambda x, axis, keepdim: np.var(x, axis=axis, keepdims=keepdim),
    maximum=np.maximum,
)
"""Every function of the article's surface, as NumPy has it."""


def load(name: str, module: Any) -> ModuleType:
    """Return an example whose `import pypto` gives `module`."""
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    before = sys.modules.get("pypto")
    sys.modules["pypto"] = module
    try:
        spec.loader.exec_module(found)
    finally:
        del sys.modules["pypto"]
        if before is not None:
            sys.modules["pypto"] = before
    return found


@pytest.fixture(scope="session")
def article() -> ModuleType:
    return load("article", pypto)


@pytest.fixture(scope="session")
def corrected() -> ModuleType:
    return load("corrected", pypto)


@pytest.fixture(scope="session")
def in_numpy() -> SimpleNamespace:
    return SimpleNamespace(article=load("article", NUMPY), corrected=load("corrected", NUMPY))


@pytest.fixture(scope="session")
def load_example() -> Any:
    return load
