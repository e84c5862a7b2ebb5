"""C++ text under construction: lines with their indent and, where there is one, the user's line."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from ..ir import Location

__all__ = ["HEAD", "Text", "identifier", "special_number", "upper"]

HEAD = '#include "kernel_operator.h"\n\nusing namespace AscendC;\n\n'
"""What every kernel's file begins with."""

_NOTE_COLUMN = 60
# Names that C++ or Ascend C take; a tensor of that name gets a suffix.
_TAKEN = frozenset(
    [
        "alignas",
        "alignof",
        "and",
        "auto",
        "bool",
        "break",
        "case",
        "catch",
        "char",
        "class",
        "const",
        "constexpr",
        "continue",
        "default",
        "delete",
        "do",
        "double",
        "else",
        "enum",
        "explicit",
        "export",
        "extern",
        "false",
        "float",
        "for",
        "friend",
        "goto",
        "if",
        "inline",
        "int",
        "long",
        "mutable",
        "namespace",
        "new",
        "not",
        "operator",
        "or",
        "private",
        "protected",
        "public",
        "register",
        "return",
        "short",
        "signed",
        "sizeof",
        "static",
        "struct",
        "switch",
        "template",
        "this",
        "throw",
        "true",
        "try",
        "typedef",
        "typename",
        "union",
        "unsigned",
        "using",
        "virtual",
        "void",
        "volatile",
        "while",
        "xor",
        "half",
        "main",
        "pipe",
        "tiling",
        "rows",
        "columns",
        "count",
        "row",
        "column",
        "input",
        "output",
        "scratch",
        "blocks",
        "part",
        "unit",
        *("batch", "block", "extra", "firstRow", "firstTile", "given", "lastRow", "lastTile"),
        *("masks", "op", "stride", "work"),
        # Macros of C's headers.
        *("complex", "environ", "errno", "i386", "imaginary", "linux", "stderr", "stdin"),
        *("stdout", "unix"),
    ]
)
_MEMBERS = ("Buffer", "Global", "Local", "Queue", "Size", "Slots")
"""What the names of kernels' own members end in."""


def identifier(name: str) -> str:
    """Return a name that C++ takes, in the kernel's style: `grad_output` becomes `gradOutput`."""
    words = [word for word in "".join(c if c.isalnum() else "_" for c in name).split("_") if word]
    text = "".join(word[:1].upper() + word[1:] for word in words) or "value"
    text = text[:1].lower() + text[1:]
    if text[0].isdigit():
        text = f"t{text}"
    return f"{text}Value" if text in _TAKEN or text.endswith(_MEMBERS) else text


def special_number(number: float) -> str | None:
    """Return the C++ of infinities and of what is no number; None for others."""
    if math.isfinite(number):
        return None
    return "NAN" if math.isnan(number) else "INFINITY" if number > 0 else "-INFINITY"


def upper(name: str) -> str:
    """Return a name with a capital first letter, as types have it."""
    return name[:1].upper() + name[1:]


class Text:
    """Lines of a file."""

    def __init__(self) -> None:
        self._lines: list[tuple[int, str, Location | None]] = []
        self._indent = 0

    def __call__(self, text: str = "", location: Location | None = None) -> None:
        """Add one line; what opens a brace indents what follows, what closes one ends that."""
        if text.startswith(("}", "private:", "public:")) and not text.startswith("} else"):
            self._indent -= text.startswith("}")
        elif text.startswith("} else"):
            self._indent -= 1
        level = self._indent - (text in ("private:", "public:"))
        self._lines.append((level, text, location))
        if text.endswith("{"):
            self._indent += 1

    def all(self, lines: Iterable[str]) -> None:
        """Add lines."""
        for line in lines:
            self(line)

    def mark(self, location: Location | None, *begins: str) -> None:
        """Give the lines that begin so the user's line."""
        self._lines = [
            (level, text, location if text.startswith(begins) else own)
            for level, text, own in self._lines
        ]

    def extend(self, other: Text) -> None:
        """Add another text's lines."""
        self._lines += [(self._indent + level, text, place) for level, text, place in other._lines]

    def with_words(self, words: str, others: str) -> Text:
        """Return the text with the only line that has some words saying others in their place.

        Raises:
            ValueError: no line has them, or several.
        """
        having = [at for at, (_, text, _) in enumerate(self._lines) if words in text]
        if len(having) != 1:
            raise ValueError(f"{len(having)} lines have {words!r}, expected one")
        found = Text()
        found._lines = [
            (level, text.replace(words, others), place) for level, text, place in self._lines
        ]
        return found

    def mentions(self, name: str) -> bool:
        """Return whether any line has a name as a word."""
        word = re.compile(rf"\b{re.escape(name)}\b")
        return any(word.search(text) for _, text, _ in self._lines)

    def say_once(self, name: str, value: str) -> bool:
        """Replace a call by its value where a single line makes it; return whether none is left."""
        call = f"{name}()"
        calling = [at for at, (_, text, _) in enumerate(self._lines) if call in text]
        if len(calling) == 1 and self._lines[calling[0]][1].count(call) == 1:
            (at,) = calling
            level, text, location = self._lines[at]
            # `template` is for what the class's functions say.
            text = text.replace(f"[{call}].template ", f"[{value}].")
            value = f"({value})" if f"{call} *" in text else value
            self._lines[at] = (level, text.replace(call, value), location)
            return True
        return not calling

    def render(self, *, with_lines: bool = False, file: str = "") -> str:
        """Return the text.

        Args:
            with_lines: give the compiler the user's lines, so that faults and findings name them;
            else
                they stand in comments.
            file: the text's own name, which lines that are no user's get.
        """
        result: list[str] = []
        own = True
        places = [location for _, _, location in self._lines]
        for at, (level, text, location) in enumerate(self._lines):
            line = f"{'    ' * level}{text}" if text else ""
            if with_lines:
                if location is not None:
                    quoted = location.file.replace("\\", "\\\\").replace('"', '\\"')
                    result.append(f'#line {location.line} "{quoted}"')
                    own = False
                elif not own:
                    result.append(f'#line {len(result) + 2} "{file}"')
                    own = True
                result.append(line)
            else:
                # The last of the instructions that compute a part of a formula says which part.
                is_last = location is None or location.file != "formula"
                is_last = is_last or places[at + 1 : at + 2] != [location]
                is_noted = location is not None and is_last
                result.append(f"{line:<{_NOTE_COLUMN}}  // {location}" if is_noted else line)
        return "\n".join(result) + "\n"
