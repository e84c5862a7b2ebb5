"""The lines of a program that PyTorch's and opkit's own frames stand on."""

from __future__ import annotations

import functools
import os
import sysconfig
from pathlib import Path
from types import FrameType

__all__ = ["belongs_to_program", "calling_line"]

_OPKIT = f"{Path(__file__).parents[1]}{os.sep}"
_STANDARD = f"{sysconfig.get_path('stdlib')}{os.sep}"


@functools.cache
def _torch_folder() -> str:
    import torch

    return f"{Path(torch.__file__).parent}{os.sep}"


@functools.cache
def belongs_to_program(file: str) -> bool:
    """Whether a frame's file is neither PyTorch's, nor opkit's, nor of the standard library."""
    is_standard = file.startswith(_STANDARD) and "-packages" not in file
    return not is_standard and not file.startswith((_torch_folder(), _OPKIT, "<frozen"))


def calling_line(frame: FrameType | None, *, until: str = "") -> tuple[str, int]:
    """Return file and line of the innermost frame of the program; an empty file if there is none.

    Args:
        until: the name of a function behind which no more is looked for.
    """
    while frame is not None and frame.f_code.co_name != until:
        if belongs_to_program(frame.f_code.co_filename):
            return frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back
    return "", 0
