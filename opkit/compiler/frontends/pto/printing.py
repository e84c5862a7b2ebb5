"""A tile program as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .parts import Body, Branch, Index, Loop, Memory, Step, Tile

__all__ = ["program_text"]


def program_text(name: str, memories: Sequence[Memory], body: Body) -> str:
    """Return a program as text, with its loops."""
    head = ", ".join(f"{'out ' if m.is_output else ''}@{m.name}: {_type(m)}" for m in memories)
    return "\n".join([f"pto.program @{name}({head}) {{", *_lines(body, 1), "}"])


def _type(tile: Tile | Memory) -> str:
    return f"{'x'.join(map(str, tile.shape))}x{tile.dtype}"


def _text(value: Any) -> str:
    if isinstance(value, Index):
        return (
            value.text.removeprefix("(").removesuffix(")")
            if value.text.count("(") == 1
            else value.text
        )
    if isinstance(value, tuple):
        return f"[{', '.join(map(_text, value))}]"
    return str(value)


def _lines(body: Body, level: int) -> list[str]:
    pad = "    " * level
    lines: list[str] = []
    for step in body:
        if isinstance(step, Loop):
            begin, end, by = step.bounds
            lines.append(f"{pad}pto.for %{step.variable} = {begin} to {end} step {by} {{")
            lines += [*_lines(step.body, level + 1), f"{pad}}}"]
        elif isinstance(step, Branch):
            lines.append(f"{pad}pto.if {step.condition.text} {{")
            lines += _lines(step.body, level + 1)
            if step.otherwise:
                lines += [f"{pad}}} else {{", *_lines(step.otherwise, level + 1)]
            lines.append(f"{pad}}}")
        else:
            lines.append(pad + _line(step))
    return lines


def _line(step: Step) -> str:
    names = [f"@{o.name}" if isinstance(o, Memory) else f"%{o.name}" for o in step.operands]
    settings = [f"{key} = {_text(value)}" for key, value in step.settings]
    attributes = f" {{{', '.join(settings)}}}" if settings else ""
    text = f"pto.{step.name.lower()} {', '.join(names)}".rstrip() + attributes
    if step.target is None:
        return text
    return f"%{step.target.name} = {text} : {_type(step.target)}"
