"""Limits that the pages of the API state, and what becomes of them here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

__all__ = ["STATES", "Limit", "stated_limits"]

STATES = ("modelled", "checked", "left")


@dataclass(frozen=True)
class Limit:
    """One limit, in our words."""

    api: str
    """What it is of: names of the API."""
    text: str
    state: str
    """`modelled`: a launch behaves as the page says, or faults; `checked`: `opkit check` reports
    it; `left`: neither."""
    id: str
    """The class of finding, or of fault, that reports it; empty where none does."""
    sentences: int
    """Sentences of the pages that say so."""
    held_by: str
    """The test, as FILE or FILE::FUNCTION; of what is left the reason."""


def stated_limits() -> tuple[Limit, ...]:
    """Return the rows of limits.tsv, modelled ones first."""
    text = (Path(__file__).parent / "limits.tsv").read_text(encoding="utf-8")
    rows = [line.split("\t") for line in text.splitlines() if not line.startswith("#")]
    return tuple(
        Limit(api, limit, state, id, int(sentences), held_by)
        for api, limit, state, id, sentences, held_by in rows
    )
