"""C++ names for what a prototype names: none that the generated text uses for something else.

What is taken is read off the text itself: it is rendered once with placeholders for the prototype's
names; every other word in it is the generator's own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from opkit.schema import is_reserved

__all__ = ["camel", "choose_stems", "upper"]

_WORD = re.compile(r"[A-Za-z_]\w*")
_PLACEHOLDER = re.compile(r"^(\w*?)[qQ]z(\d+)zq(\w*)$")

# Macros without arguments that headers of C, C++ and POSIX define: they are replaced wherever they
# stand. Those in capitals matter as type names: `EOF` is what an input `eof_` would not get.
_MACROS = frozenset(
    (
        *("bool", "complex", "environ", "errno", "i386", "imaginary", "linux", "stderr", "stdin"),
        *("stdout", "unix"),
    )
)


def camel(name: str) -> str:
    """Return a name as lowerCamelCase: `grad_x` is `gradX`."""
    words = [word for word in name.split("_") if word]
    text = "".join(upper(word) for word in words)
    text = text[:1].lower() + text[1:]
    return text if text[:1].isalpha() else f"value{text}"


def upper(stem: str) -> str:
    """Return a stem as a type's name: `gradX` is `GradX`."""
    return stem[:1].upper() + stem[1:]


def choose_stems(
    names: Sequence[str], render: Callable[[Mapping[str, str]], Iterable[str]]
) -> dict[str, str]:
    """Return a C++ stem for each name, so that no word of the rendered text means two things.

    Args:
        names: of the prototype; each once.
        render: the texts that are generated with given stems.
    """
    placeholders = {name: f"qz{index}zq" for index, name in enumerate(names)}
    own: set[str] = set(_MACROS)
    made: dict[int, set[tuple[str, str]]] = {}
    for text in render(placeholders):
        for word in _WORD.findall(_without_comments(text)):
            found = _PLACEHOLDER.match(word)
            if found is None:
                own.add(word)
            else:
                made.setdefault(int(found[2]), set()).add((found[1], found[3]))
    stems: dict[str, str] = {}
    for index, name in enumerate(names):
        shapes = made.get(index, set()) | {("", "")}
        stem = camel(name)
        while own & (words := _words(stem, shapes)) or any(map(_is_taken, words)):
            stem += "Value"
        own |= words
        stems[name] = stem
    return stems


def _words(stem: str, shapes: Iterable[tuple[str, str]]) -> set[str]:
    """Return every word that the text makes of a stem, as a variable and as a type."""
    return {f"{before}{form}{behind}" for before, behind in shapes for form in (stem, upper(stem))}


def _is_taken(word: str) -> bool:
    # Two capitals or more and nothing else: headers keep such names for macros (EOF, NAN, SIGINT).
    return (len(word) > 1 and word.isupper()) or is_reserved(word)


def _without_comments(text: str) -> str:
    return re.sub(r"//[^\n]*|\"(?:[^\"\\\n]|\\.)*\"", " ", text)
