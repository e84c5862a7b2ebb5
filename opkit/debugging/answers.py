"""An answer to `why`, as data and as text."""

from __future__ import annotations

from typing import Any

from opkit.debugging.why import Answer, Reason

__all__ = ["answer_data", "answer_text"]


def answer_data(answer: Answer) -> dict[str, Any]:
    """Return an answer as JSON has it."""
    return {
        "asked": answer.asked,
        "value": answer.value,
        "golden": answer.golden,
        "first": None if answer.first is None else _reason_data(answer.first),
        "reasons": [_reason_data(reason) for reason in answer.reasons],
        "chain": [
            {
                "step": link.step,
                "core": link.core,
                "op": link.op,
                "file": str(link.file),
                "line": link.line,
                "result": link.result,
                "value": link.value,
                "operands": [list(operand) for operand in link.operands],
                "scalar": link.scalar,
            }
            for link in answer.chain
        ],
        "origins": list(answer.origins),
        "is_cut": answer.is_cut,
    }


def _reason_data(reason: Reason) -> dict[str, Any]:
    return {
        "kind": reason.kind,
        "file": None if reason.file is None else str(reason.file),
        "line": reason.line,
        "other_line": reason.other_line,
        "step": reason.step,
        "text": reason.text,
    }


_TOLD_LINKS = 24


def answer_text(answer: Answer) -> str:
    """Return an answer in words."""
    lines = []
    if answer.value is not None:
        head = f"{answer.asked} = {answer.value!r}"
        head += f", golden {answer.golden!r}" if answer.golden is not None else ""
        lines.append(head)
    told = answer.chain[-_TOLD_LINKS:]
    if len(told) < len(answer.chain) or answer.is_cut:
        lines.append(f"  {len(answer.chain) - len(told)} instructions before these")
    off = {(reason.file, reason.line) for reason in answer.reasons[:1]}
    for link in told:
        operands = ", ".join(f"{name} = {_number_text(value)}" for name, value in link.operands)
        scalar = f", scalar {link.scalar!r}" if link.scalar is not None else ""
        mark = "->" if (link.file, link.line) in off else "  "
        lines.append(
            f"{mark} {link.file.name}:{link.line}  {link.op:<14} {link.result} ="
            f" {_number_text(link.value)}  of {operands or 'nothing'}{scalar}"
        )
    if answer.origins:
        lines.append("  from " + ", ".join(answer.origins[:8]))
    for number, reason in enumerate(answer.reasons[:4]):
        place = "" if reason.file is None else f"{reason.file.name}:{reason.line}: "
        lines.append(f"{'first off' if number == 0 else '  then'}: {place}{reason.text}")
    if not answer.reasons:
        lines.append("nothing on the way is off by what the debugger can tell")
    return "\n".join(lines)


def _number_text(value: float | int | None) -> str:
    return "?" if value is None else f"{value:.9g}"
