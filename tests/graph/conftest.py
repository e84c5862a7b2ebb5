"""torch's compiler starts afresh for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def fresh_dynamo() -> Iterator[None]:
    """Forget what was compiled before, and leave nothing behind."""
    torch = pytest.importorskip("torch")
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()
