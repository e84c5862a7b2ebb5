"""`python -m opkit`, or this file's path, which starts the package that it is part of."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path


def _import_by_path() -> None:
    """Put this package where `import opkit` finds it, in place of its folder's own modules."""
    here = Path(__file__).resolve().parent
    # Not there where PYTHONSAFEPATH is set.
    sys.path = [entry for entry in sys.path if Path(entry).resolve() != here]
    found = find_spec("opkit")
    if found is None or found.origin is None or not here.samefile(Path(found.origin).parent):
        sys.path.insert(0, str(here.parent))


if __name__ == "__main__":
    if not __package__:
        _import_by_path()
    from opkit.cli import main

    main()
