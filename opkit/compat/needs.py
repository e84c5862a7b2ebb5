"""Packages of operators that a sample's README says to install first, from other samples."""

from __future__ import annotations

import re
from pathlib import Path

from opkit.compat.discover import CMAKE_FILE
from opkit.compat.recipe import READMES, Recipe, find_recipes
from opkit.compat.texts import is_file, read_text

__all__ = ["builds_operators", "installing_recipe", "missing_operators", "needed_folders"]

_LINK = re.compile(r"\]\(([^)#\s:]+)\)")
_PACKAGE = ".run"
_BUILDS = re.compile(r"\bnpu_op_package\s*\(")
_MISSING = re.compile(
    r"(?P<header>aclnn_\w+\.h)['’]?:? (?:No such file|file not found)"
    r"|cannot find -l(?P<library>cust_opapi)\b"
)


def needed_folders(folder: Path) -> tuple[Path, ...]:
    """Return the samples that must be installed before one: its README links to their folders.

    A link counts if the sample there makes and runs a package, and this one does not itself.
    """
    if not is_file(folder / CMAKE_FILE) or _installs(find_recipes(folder)):
        return ()
    found: dict[Path, None] = {}
    for name in READMES:
        for link in _LINK.findall(read_text(folder / name)):
            other = (folder / link).resolve()
            is_elsewhere = other != folder.resolve() and is_file(other / CMAKE_FILE)
            if is_elsewhere and _installs(find_recipes(other)):
                found[other] = None
    return tuple(found)


def installing_recipe(folder: Path) -> Recipe:
    """Return the recipe that installs a needed sample's package."""
    return next(recipe for recipe in find_recipes(folder) if _installs((recipe,)))


def missing_operators(log: str) -> str | None:
    """Return what a failed build lacks of an installed package of operators; None for others."""
    found = _MISSING.search(log)
    return (found["header"] or f"lib{found['library']}.so") if found else None


def builds_operators(folder: Path) -> bool:
    """Whether a sample makes its operators itself."""
    return any(_BUILDS.search(read_text(path)) for path in folder.rglob(CMAKE_FILE))


def _installs(recipes: tuple[Recipe, ...]) -> bool:
    return any(
        step.kind == "run" and step.words[0].endswith(_PACKAGE)
        for recipe in recipes
        for step in recipe.steps
    )
