"""The module torch_npu for programs that import it; never found where the real one is."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Mapping
from pathlib import Path

__all__ = ["offer", "offering_variables"]

_FOLDER = str(Path(__file__).parent)


def offer() -> None:
    """Let `import torch_npu` find opkit's, behind everything that is installed."""
    if _FOLDER not in sys.path:
        sys.path.append(_FOLDER)


def offering_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables with which other Python processes find it; none where it is found."""
    if importlib.util.find_spec("torch_npu") is not None:
        return {}
    paths = [environment.get("PYTHONPATH", ""), _FOLDER]
    return {"PYTHONPATH": os.pathsep.join(path for path in paths if path)}
