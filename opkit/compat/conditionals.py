"""Leaving out the parts of a source that are for other chips.

Only conditions that ask for nothing but the architecture are decided; of every other `#if` all
branches stay, since data types and tiling keys choose among them later.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass

from opkit.chips import Chip

__all__ = ["drop_other_chips"]

_DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(?P<word>if|ifdef|ifndef|elif|else|endif)\b(?P<rest>.*)$")
_DEFINED = re.compile(r"\bdefined\s*(?:\(\s*(\w+)\s*\)|(\w+))")
_ARCHITECTURE = re.compile(r"^__(?:NPU_ARCH__|CCE_AICORE__|DAV_\w+__|CCE_KT_TEST__|CCE_UT_TEST__)$")


@dataclass
class _Level:
    kept: bool
    """Whether lines of the current branch stay."""
    settled: bool
    """Whether an earlier branch was surely taken."""


def drop_other_chips(code: str, chip: Chip) -> str:
    """Return `code` with the lines that `chip` never compiles blanked."""
    macros = _macros_of(chip)
    levels: list[_Level] = []
    lines = code.replace("\\\n", " ").split("\n")
    for index, line in enumerate(lines):
        found = _DIRECTIVE.match(line)
        if found is None:
            if not all(level.kept for level in levels):
                lines[index] = ""
            continue
        word, rest = found["word"], found["rest"]
        if word in ("if", "ifdef", "ifndef"):
            answer = _decide(_as_condition(word, rest), macros)
            levels.append(_Level(kept=answer is not False, settled=answer is True))
        elif not levels:
            continue
        elif word == "endif":
            levels.pop()
        else:
            level = levels[-1]
            answer = True if word == "else" else _decide(rest, macros)
            level.kept = not level.settled and answer is not False
            level.settled = level.settled or answer is True
        lines[index] = ""
    return "\n".join(lines)


def _macros_of(chip: Chip) -> Mapping[str, int]:
    arch = chip.architecture
    macros = {"__NPU_ARCH__": arch.number, "__CCE_AICORE__": arch.traits["cce_aicore"]}
    # A kernel is compiled for both kinds of cores.
    of_cores = [name for names in arch.core_macros.values() for name in names]
    return macros | dict.fromkeys([*arch.macros, *of_cores], 1)


def _as_condition(word: str, rest: str) -> str:
    if word == "if":
        return rest
    return f"{'!' if word == 'ifndef' else ''}defined({rest.strip()})"


def _decide(condition: str, macros: Mapping[str, int]) -> bool | None:
    """Return what an architecture condition says; None where it asks for more than that."""
    if condition.strip() in ("0", "1"):
        return condition.strip() == "1"
    names = set(re.findall(r"\b[^\W\d]\w*", condition)) - {"defined"}
    if not names or not all(_ARCHITECTURE.match(name) for name in names):
        return None

    def defined(found: re.Match[str]) -> str:
        return str(int((found[1] or found[2]) in macros))

    text = _DEFINED.sub(defined, condition)
    text = re.sub(r"\b[^\W\d]\w*", lambda found: str(macros.get(found[0], 0)), text)
    text = re.sub(r"!(?!=)", " not ", text.replace("&&", " and ").replace("||", " or "))
    try:
        return bool(_value(ast.parse(text.strip(), mode="eval").body))
    except (SyntaxError, ValueError):
        return None


def _value(node: ast.expr) -> int:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return int(not _value(node.operand))
    if isinstance(node, ast.BoolOp):
        values = [bool(_value(part)) for part in node.values]
        return int(all(values) if isinstance(node.op, ast.And) else any(values))
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        left, right = _value(node.left), _value(node.comparators[0])
        by_kind = {
            ast.Eq: left == right,
            ast.NotEq: left != right,
            ast.Lt: left < right,
            ast.LtE: left <= right,
            ast.Gt: left > right,
            ast.GtE: left >= right,
        }
        return int(by_kind[type(node.ops[0])])
    raise ValueError(f"not a condition of numbers: {ast.dump(node)}")
