"""The rule by which a version runs what another one has built."""

from __future__ import annotations

import pytest

from opkit.versions import first_incompatible, is_compatible


@pytest.mark.parametrize("version", ["0.1.0", "0.1.7", "1.9.3", "0.1"])
def test_the_pin_ends_where_the_rule_does(version: str) -> None:
    below = first_incompatible(version)
    major, minor = version.split(".")[:2]
    assert is_compatible(version, f"{major}.{minor}.99")
    assert not is_compatible(version, below)
    assert not is_compatible(version, f"{int(major) + 1}.{minor}.0")
    # The one before is none either, and was as good to this test (benchmarks/source_mutants.py).
    assert [int(number) for number in below.split(".")] == [int(major), int(minor) + 1]
