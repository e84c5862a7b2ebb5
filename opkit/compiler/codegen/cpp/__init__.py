"""The target `cpp`: a program as plain C++ with threads, for the machine at hand."""

from __future__ import annotations

from .program import HostProgram, compile_host

__all__ = ["HostProgram", "compile_host"]
