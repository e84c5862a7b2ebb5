"""Extensions in C++ for `setup.py`, compiled against opkit's headers of the device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch.utils.cpp_extension import CppExtension

from opkit.torch_npu import extension_include_dirs, extension_link_flags

__all__ = ["NpuExtension"]


def NpuExtension(name: str, sources: Sequence[str], *args: Any, **kwargs: Any) -> Any:
    """Return a CppExtension with the folders and libraries of the device added."""
    folders = [*kwargs.pop("include_dirs", ()), *extension_include_dirs()]
    flags = [*kwargs.pop("extra_link_args", ()), *extension_link_flags()]
    kwargs |= {"include_dirs": folders, "extra_link_args": flags}
    return CppExtension(name, list(sources), *args, **kwargs)  # type: ignore[no-untyped-call]
