"""The templates' environment: one for all generated text, and for the pages of reports."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import opkit

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["render_template"]


def render_template(name: str, context: Mapping[str, object]) -> str:
    """Return the text of a template in `opkit/templates`; a name that it lacks is an error."""
    return _environment().get_template(name).render(context)


@functools.cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(Path(opkit.__file__).parent / "templates"),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
        # What is not markup, such as C++, Python and CMake, is written as it is.
        autoescape=lambda name: name is not None and ".html" in name,
    )
