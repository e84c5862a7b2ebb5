"""The little of a shell that READMEs use: words, variables, comments, lists of commands."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence

__all__ = ["assignment_of", "commands_of", "expand"]

_SEPARATORS = {";", "&&", "&", "||"}
_REDIRECTION = re.compile(r"(?:^|(?<=\s))\d?>{1,2}\s*(?:&\d|[^\s;&|]+)")
_ASSIGNMENT = re.compile(r"^(?P<name>[A-Za-z_]\w*)=(?P<value>.*)$", re.DOTALL)
_VARIABLE = re.compile(r"\$(?:\{(?P<braced>\w+)\}|(?P<plain>\w+))")


def commands_of(lines: Sequence[str]) -> list[list[str]]:
    """Return the commands of a script as words, variables not yet replaced.

    Redirections are left out, and so is what a pipe leads to: it only shows the output.

    Raises:
        ValueError: a quotation has no end.
    """
    commands: list[list[str]] = []
    text = "\n".join(lines).replace("\\\n", " ")
    for line in text.split("\n"):
        lexer = shlex.shlex(_REDIRECTION.sub(" ", line), posix=True, punctuation_chars=";&|")
        lexer.whitespace_split = True
        lexer.commenters = "#"
        command: list[str] = []
        piped = False
        for word in lexer:
            # "..;make" gives ";", and "-j;;" gives ";;".
            if word in _SEPARATORS or set(word) == {";"}:
                if command:
                    commands.append(command)
                command, piped = [], False
            elif word == "|":
                piped = True
            elif not piped:
                command.append(word)
        if command:
            commands.append(command)
    return commands


def assignment_of(word: str) -> tuple[str, str] | None:
    """Return the name and value of `NAME=value`, None for other words."""
    found = _ASSIGNMENT.match(word)
    return (found["name"], found["value"]) if found else None


def expand(word: str, variables: Mapping[str, str]) -> str:
    """Return a word with its variables replaced; unknown ones are empty, as in a shell."""
    return _VARIABLE.sub(lambda found: variables.get(found["braced"] or found["plain"], ""), word)
