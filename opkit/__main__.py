"""`python -m opkit`."""

from __future__ import annotations

from opkit.cli import main

if __name__ == "__main__":
    main()
