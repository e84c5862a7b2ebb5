"""What the timing model says of one version and signature."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Modelled"]


@dataclass(frozen=True)
class Modelled:
    """Times and energy of one call on the modelled chip, all its launches together."""

    task_us: float
    band_percent: float | None
    """How far the time may be off, either way; None where nothing is published to tell."""
    energy_uj: float
    """An estimate: see `opkit.service.energy`."""
