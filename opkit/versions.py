"""Which versions of opkit may run what another one has built."""

from __future__ import annotations

__all__ = ["first_incompatible", "is_compatible"]


def is_compatible(built_by: str, version: str) -> bool:
    """Return whether a version runs what another one has built: the first two numbers are equal.

    The ABI of kernels and host code changes with the second number only.
    """
    return built_by.split(".")[:2] == version.split(".")[:2]


def first_incompatible(version: str) -> str:
    """Return the first version that does not run what this one builds: `0.2` for `0.1.3`."""
    major, minor = version.split(".")[:2]
    return f"{major}.{int(minor) + 1}"
