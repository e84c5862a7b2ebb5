"""An estimate of a launch's energy, from its modelled times and traffic. Nothing here is measured.

    energy = idle power x task time
           + for each pipe: its share of the dynamic power x busy time x cores that were busy
           + bytes that global memory and L2 moved x energy of a byte

No document gives a power figure by pipe. The split below is an assumption, good for comparing two
versions of an operator on one chip, and for nothing else; reports call the result an estimate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opkit.profiling import Timeline

__all__ = ["MODEL", "energy_uj"]

MAX_POWER_W = 310.0
"""Most power of the chip. Source: the published maximum of Ascend 910; assumed for all chips."""
IDLE_SHARE = 0.3
"""Share of the maximum that an idle chip draws: leakage, clocks, refresh. Source: assumed."""
HBM_PJ_PER_BYTE = 31.0
"""HBM2, 3.9 pJ a bit. Source: O'Connor et al., Fine-Grained DRAM, MICRO 2017, table of HBM2."""
L2_PJ_PER_BYTE = 4.0
"""Source: assumed, an eighth of HBM."""
PIPE_SHARES = {
    "S": 0.03,
    "V": 0.30,
    "M": 0.50,
    "MTE1": 0.05,
    "MTE2": 0.05,
    "MTE3": 0.04,
    "FIX": 0.03,
}
"""Share of the dynamic power with every core's pipe busy. Source: assumed."""
CORES = 24.0
"""Cube cores of the chip; a vector kernel's sub-cores count half. Source: Ascend910B2's table."""

MODEL = (
    f"estimate: {IDLE_SHARE:.0%} of {MAX_POWER_W:g} W while the task runs, the rest by busy pipes"
    f" and cores, {HBM_PJ_PER_BYTE:g} pJ a byte of global memory; assumed, not measured"
)


def energy_uj(timeline: Timeline) -> float:
    """Return the estimated energy of a launch, in microjoules."""
    dynamic_w = MAX_POWER_W * (1 - IDLE_SHARE)
    busy = 0.0
    for core in timeline.cores:
        weight = 0.5 if core.kind == "aiv" else 1.0
        for pipe, cycles in core.busy_cycles.items():
            busy += weight * PIPE_SHARES.get(pipe, 0.0) * cycles / timeline.clock_mhz
    hbm = timeline.hbm_read_bytes + timeline.hbm_write_bytes
    # Watts times microseconds are microjoules; picojoules are a millionth of them.
    return (
        MAX_POWER_W * IDLE_SHARE * timeline.task_us
        + dynamic_w * busy / CORES
        + (hbm * HBM_PJ_PER_BYTE + timeline.l2_hit_bytes * L2_PJ_PER_BYTE) * 1e-6
    )
