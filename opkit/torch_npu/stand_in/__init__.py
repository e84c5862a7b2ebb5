"""The module torch_npu for programs that import it; never found where the real one is."""

from __future__ import annotations

import sys
from pathlib import Path

__all__ = ["offer"]


def offer() -> None:
    """Let `import torch_npu` find opkit's, behind everything that is installed."""
    folder = str(Path(__file__).parent)
    if folder not in sys.path:
        sys.path.append(folder)
