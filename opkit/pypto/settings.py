"""What programs set for the vendor's compiler: kept and given back, without effect on results."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from opkit.compiler import GraphError

from .diagnostics import check_tile_shapes
from .location import here

__all__ = ["FUNCTIONS", "OPTION_GROUPS", "TakesOptions", "options", "options_of", "refuse_unknown"]

OPTION_GROUPS = ("codegen", "debug", "host", "pass", "runtime", "verify")
"""`set_pass_options`, `get_pass_options` and jit's `pass_options=` are of a group each."""

_options: dict[str, dict[str, Any]] = {group: {} for group in (*OPTION_GROUPS, "operation")}
_tiles: dict[str, Any] = {}


def refuse_unknown(lacking: str, given: Iterable[str], known: Sequence[str]) -> None:
    """Refuse names of options that there are not; `lacking` begins the message.

    Raises:
        GraphError: the first of them, and those that there are.
    """
    for name in given:
        if name not in known:
            raise GraphError(
                f'{lacking} "{name}"', location=here(), help=f"it has {', '.join(known)}"
            )


class TakesOptions:
    """A program that keeps the options that were set for it."""

    options: dict[str, Any]


class options:
    """Options for a program or a part of one: `@pypto.options(pass_options={...})`, or `with`.

    Raises:
        GraphError: a group of options that there is not.
    """

    def __init__(self, **given: Any) -> None:
        known = {f"{group}_options": group for group in OPTION_GROUPS}
        refuse_unknown("options has no", given, sorted(known))
        self._given = {known[name]: dict(value or {}) for name, value in given.items()}
        self._before: list[dict[str, dict[str, Any]]] = []

    def __enter__(self) -> options:
        self._before.append({group: dict(_options[group]) for group in self._given})
        for group, value in self._given.items():
            _options[group].update(value)
        return self

    def __exit__(self, *_: object) -> None:
        _options.update(self._before.pop())

    def __call__(self, decorated: Any) -> Any:
        """Return a function, or one of jit's, that runs with these options."""
        if isinstance(decorated, TakesOptions):
            decorated.options.update(
                {f"{group}_options": value for group, value in self._given.items()}
            )
            return decorated

        @functools.wraps(decorated)
        def call(*args: Any, **kwargs: Any) -> Any:
            with self:
                return decorated(*args, **kwargs)

        return call


def _setter(group: str) -> Callable[..., None]:
    def set_options(**given: Any) -> None:
        _options[group].update({name: each for name, each in given.items() if each is not None})

    set_options.__name__ = f"set_{group}_options"
    return set_options


def _getter(group: str) -> Callable[[], dict[str, Any]]:
    def get_options() -> dict[str, Any]:
        return dict(_options[group])

    get_options.__name__ = f"get_{group}_options"
    return get_options


def options_of(group: str) -> dict[str, Any]:
    """Return what a program has set of a group."""
    return dict(_options[group])


def _reset_options() -> None:
    for group in _options.values():
        group.clear()
    _tiles.clear()


def _set_vec_tile_shapes(*sizes: int) -> None:
    check_tile_shapes(sizes)
    _tiles["vec"] = [int(size) for size in sizes]


def _set_cube_tile_shapes(m: Any, k: Any, n: Any, enable_split_k: bool = False) -> None:
    _tiles["cube"] = (*map(_listed, (m, k, n)), enable_split_k)


def _listed(size: Any) -> list[int]:
    """Return the sizes along an axis, in the first and the second level of memory, as a list."""
    return list(size) if isinstance(size, Sequence) else [int(size)]


def _set_conv_tile_shapes(*sizes: Any, **named: Any) -> None:
    _tiles["conv"] = (*sizes, *named.values())


def _ignored(*_: object, **__: object) -> None:
    """Names and sizes that the vendor's compiler takes from a program."""


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{f"set_{group}_options": _setter(group) for group in OPTION_GROUPS},
    **{f"get_{group}_options": _getter(group) for group in OPTION_GROUPS},
    "reset_options": _reset_options,
    "options": options,
    "set_vec_tile_shapes": _set_vec_tile_shapes,
    "get_vec_tile_shapes": lambda: list(_tiles.get("vec", ())),
    "set_cube_tile_shapes": _set_cube_tile_shapes,
    "get_cube_tile_shapes": lambda: _tiles.get("cube", ([], [], [], False)),
    "set_conv_tile_shapes": _set_conv_tile_shapes,
    "get_conv_tile_shapes": lambda: _tiles.get("conv", ()),
    "set_semantic_label": _ignored,
    "set_matrix_size": _ignored,
}

OPERATION_OPTIONS = {
    "set_operation_options": _setter("operation"),
    "get_operation_options": _getter("operation"),
}
"""Functions of `pypto.experimental`."""
