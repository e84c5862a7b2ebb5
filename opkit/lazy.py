"""Names of a package that load the module that defines them on first use."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module

__all__ = ["lazy_names"]


def lazy_names(package: str, homes: Mapping[str, Sequence[str]]) -> Callable[[str], object]:
    """Return a package's `__getattr__`, so that importing it loads none of its modules.

    Args:
        package: the package's `__name__`.
        homes: which names each of its modules defines.
    """
    home_of = {name: home for home, names in homes.items() for name in names}

    def __getattr__(name: str) -> object:
        home = home_of.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name)
        module = import_module(f"{package}.{home}")
        # Bound once, all of a module together: a name that a module of the package has too, which
        # importing it has just bound, is then what the module defines.
        bound = {key: getattr(module, key) for key in homes[home]}
        vars(sys.modules[package]).update(bound)
        value: object = bound[name]
        return value

    return __getattr__
