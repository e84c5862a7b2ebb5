"""Kernels start on the default device."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def default_device() -> Iterator[None]:
    """Start every test on the default configuration and leave it so."""
    from opkit.emulator import _emulator

    initial = _emulator.configuration()
    yield
    _emulator.configure(**initial)
