"""The opkit that is running, as a command line for a process of its own."""

from __future__ import annotations

import sys
from pathlib import Path

__all__ = ["OPKIT_COMMAND", "WITHOUT_FOLDER"]

OPKIT_COMMAND = (sys.executable, str(Path(__file__).parents[1] / "__main__.py"))
"""What to write before a command's arguments. `python -m opkit` would take an `opkit` of the folder
that the user is in, such as a checkout's, which has no compiled parts."""

WITHOUT_FOLDER = "import sys\nsys.path = [entry for entry in sys.path if entry]\n"
"""What to write before the text of a `python -c` to the same end."""
