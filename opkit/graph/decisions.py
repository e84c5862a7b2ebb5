"""What precision was decided for each operator of a model, and what else there was."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["Decision", "Option", "Schedule"]


@dataclass(frozen=True)
class Option:
    """One way to compute an operator."""

    compute: str
    """`float32`, `bfloat16`, `float16` or `int8`."""
    error: float
    """Relative error of the model's results if only this operator computes so: the norm of the
    difference over the results' norm."""
    us: float | None
    """Modelled time of the operator alone; None where it has no kernel."""


@dataclass(frozen=True)
class Decision:
    """What was decided for one operator."""

    node: str
    operator: str
    location: str
    compute: str
    memory: str
    """What its result lies in memory as."""
    options: tuple[Option, ...]

    @property
    def chosen(self) -> Option:
        """The option that was taken."""
        return next(each for each in self.options if each.compute == self.compute)

    @property
    def gain(self) -> float | None:
        """Modelled time in float32 over the chosen one's, of the operator alone."""
        whole = next(each.us for each in self.options if each.compute == "float32")
        return whole / self.chosen.us if whole and self.chosen.us else None


@dataclass(frozen=True)
class Schedule:
    """Decisions for all operators; `print` it for a table, `to_json` for a document."""

    decisions: tuple[Decision, ...]
    error: float
    """Error of the model with all decisions, in the calibration runs."""
    max_error: float

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        rows = []
        for each in self.decisions:
            row = asdict(each)
            row["options"] = [asdict(option) for option in each.options]
            rows.append({**row, "error": each.chosen.error, "gain": each.gain})
        return {"max_error": self.max_error, "error": self.error, "decisions": rows}

    def __str__(self) -> str:
        rows = [("operator", "line", "computes", "memory", "error", "us", "gain", "others")]
        for each in self.decisions:
            others = [_option_text(o) for o in each.options if o.compute != each.compute]
            name = each.operator.removeprefix("aten.").removesuffix(".default")
            taken = each.chosen
            rows.append(
                (
                    f"{each.node} ({name})",
                    each.location.rpartition("/")[2],
                    each.compute,
                    each.memory,
                    f"{taken.error:.1e}",
                    "" if taken.us is None else f"{taken.us:.1f}",
                    "" if each.gain is None else f"{each.gain:.2f}",
                    ", ".join(others),
                )
            )
        widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
        lines = ["  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)) for r in rows]
        lines = [line.rstrip() for line in lines]
        lines.append(f"error of the whole model {self.error:.2e}, at most {self.max_error:.2e}")
        return "\n".join(lines)


def _option_text(option: Option) -> str:
    us = "" if option.us is None else f" {option.us:.1f} us"
    return f"{option.compute} {option.error:.1e}{us}"
