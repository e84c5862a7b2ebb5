"""A launch as the CSV files that `msprof op` leaves, with its file and column names.

A row is a sub-core. Every documented column is there: those of the other kind of core say NA, as in
the vendor's files, and so do those that the model has no figure for.

Source: msprof op, its documented output files for A2 and A3 chips.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from opkit.chips import find_chip
from opkit.profiling.timeline import CoreTime, Timeline

__all__ = ["csv_texts"]

NOT_AVAILABLE = "NA"
_KIB = 1024.0
_GIGA = 1e9

_AIV_PIPES = (("vec", "V"), ("scalar", "S"), ("mte2", "MTE2"), ("mte3", "MTE3"))
_AIC_PIPES = (
    ("cube", "M"),
    ("scalar", "S"),
    ("mte1", "MTE1"),
    ("mte2", "MTE2"),
    ("mte3", "MTE3"),
    ("fixpipe", "FIX"),
)
_PIPES_OF = MappingProxyType({"aic": _AIC_PIPES, "aiv": _AIV_PIPES})

Values = dict[str, object]


def csv_texts(timeline: Timeline) -> dict[str, str]:
    """Return the text of each file by its name, such as `PipeUtilization.csv`."""
    basic = _basic(timeline)
    texts = {"OpBasicInfo.csv": _csv([basic], list(basic))}
    for name, (columns, values) in _FILES.items():
        rows = [_common(core, timeline) | values(core, timeline) for core in timeline.cores]
        texts[name] = _csv(rows, (*_COMMON, *_expanded(columns)))
    texts |= _instruction_files(timeline)
    return texts


def _expanded(columns: str) -> tuple[str, ...]:
    """Return the names, those of `ai*` once for each kind of core."""
    names = (
        (name.replace("ai*", "aic"), name.replace("ai*", "aiv")) if "ai*" in name else (name,)
        for name in columns.split()
    )
    return tuple(item for group in names for item in group)


def _csv(rows: list[Values], columns: Sequence[str]) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, restval=NOT_AVAILABLE, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _shown(value) for name, value in row.items()} for row in rows)
    return out.getvalue()


def _shown(value: object) -> object:
    return f"{value:.6f}" if isinstance(value, float) else value


def _basic(timeline: Timeline) -> Values:
    kinds = {core.kind for core in timeline.cores}
    op_type = "mix" if len(kinds) > 1 else "cube" if "aic" in kinds else "vector"
    aiv = sum(core.kind == "aiv" for core in timeline.cores)
    return {
        "Op Name": timeline.kernel,
        "Op Type": op_type,
        "Task Duration(us)": timeline.task_us,
        "Block Dim": timeline.block_dim,
        "Mix Block Dim": aiv if len(kinds) > 1 else NOT_AVAILABLE,
        "Device ID": 0,
        "PID": NOT_AVAILABLE,
        "Current Freq": timeline.clock_mhz,
        "Rated Freq": find_chip(timeline.chip).number("clock.mhz"),
    }


def _common(core: CoreTime, timeline: Timeline) -> Values:
    row: Values = {"block_id": core.block, "sub_block_id": f"{_unit(core)}{core.sub_block}"}
    for kind in ("aic", "aiv"):
        is_own = core.kind == kind
        row[f"{kind}_time(us)"] = _us(core.cycles, timeline) if is_own else NOT_AVAILABLE
        row[f"{kind}_total_cycles"] = round(core.cycles) if is_own else NOT_AVAILABLE
    return row


def _unit(core: CoreTime) -> str:
    return "cube" if core.kind == "aic" else "vector"


def _us(cycles: float, timeline: Timeline) -> float:
    return cycles / timeline.clock_mhz


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _rate(size_bytes: float, cycles: float, timeline: Timeline) -> float:
    """Return GB/s."""
    return _ratio(size_bytes, _us(cycles, timeline) * 1e-6) / _GIGA


def _pipe_utilization(core: CoreTime, timeline: Timeline) -> Values:
    kind = core.kind
    row: Values = {}
    for name, pipe in _PIPES_OF[kind]:
        busy = core.busy_cycles.get(pipe, 0.0)
        row[f"{kind}_{name}_time(us)"] = _us(busy, timeline)
        row[f"{kind}_{name}_ratio"] = _ratio(busy, core.cycles)
        if name == "mte2":
            row[f"{kind}_mte2_active_bw(GB/s)"] = _rate(core.gm_read_bytes, busy, timeline)
        if pipe == _way_out(core):
            row[f"{kind}_{name}_active_bw(GB/s)"] = _rate(core.gm_write_bytes, busy, timeline)
    return row


def _way_out(core: CoreTime) -> str:
    return "FIX" if core.kind == "aic" else "MTE3"


def _arithmetic(core: CoreTime, timeline: Timeline) -> Values:
    kind = core.kind
    name, pipe = ("cube", "M") if kind == "aic" else ("vec", "V")
    done = sum(line.operations for line in timeline.lines if line.pipe == pipe)
    row: Values = {
        f"{kind}_{name}_ratio": _ratio(core.busy_cycles.get(pipe, 0.0), core.cycles),
        f"{kind}_{name}_fops": round(done * _share(core, pipe, timeline)),
    }
    if kind == "aic":
        row["aic_cube_total_instr_number"] = core.instructions.get(pipe, 0)
    return row


def _share(core: CoreTime, pipe: str, timeline: Timeline) -> float:
    """Return a core's part of a pipe's work, which the model knows by line: by its busy time."""
    everyone = sum(other.busy_cycles.get(pipe, 0.0) for other in timeline.cores)
    return _ratio(core.busy_cycles.get(pipe, 0.0), everyone)


def _memory_l0(core: CoreTime, timeline: Timeline) -> Values:
    if core.kind != "aic":
        return {}
    row: Values = {}
    for space in ("L0A", "L0B"):
        moved = sum(line.bytes for line in timeline.lines if line.target == space)
        size = moved * _share(core, "MTE1", timeline)
        row[f"aic_{space.lower()}_write_bw(GB/s)"] = _rate(size, core.cycles, timeline)
    return row


def _memory_ub(core: CoreTime, timeline: Timeline) -> Values:
    return {}


def _l2(core: CoreTime, timeline: Timeline) -> Values:
    kind = core.kind
    line = 128
    reads = core.l2_read_hit_bytes + core.hbm_read_bytes
    writes = core.gm_write_bytes
    write_hits = min(core.l2_write_hit_bytes, writes)
    hits = core.l2_read_hit_bytes + write_hits
    return {
        f"{kind}_write_cache_hit": write_hits // line,
        f"{kind}_write_cache_miss_allocate": (writes - write_hits) // line,
        f"{kind}_r0_read_cache_hit": core.l2_read_hit_bytes // line,
        f"{kind}_r0_read_cache_miss_allocate": core.hbm_read_bytes // line,
        f"{kind}_write_hit_rate(%)": 100 * _ratio(write_hits, writes),
        f"{kind}_read_hit_rate(%)": 100 * _ratio(core.l2_read_hit_bytes, reads),
        f"{kind}_total_hit_rate(%)": 100 * _ratio(hits, reads + writes),
    }


def _memory(core: CoreTime, timeline: Timeline) -> Values:
    kind = core.kind
    row: Values = {}
    if kind == "aiv":
        row["aiv_ub_to_gm_bw(GB/s)"] = _rate(core.gm_write_bytes, core.cycles, timeline)
        row["aiv_gm_to_ub_bw(GB/s)"] = _rate(core.gm_read_bytes, core.cycles, timeline)
    row[f"{kind}_main_mem_read_bw(GB/s)"] = _rate(core.hbm_read_bytes, core.cycles, timeline)
    row[f"{kind}_main_mem_write_bw(GB/s)"] = _rate(core.hbm_write_bytes, core.cycles, timeline)
    for name, pipe in _PIPES_OF[kind]:
        if name.startswith("mte"):
            row[f"{kind}_{name}_instructions"] = int(core.instructions.get(pipe, 0))
            row[f"{kind}_{name}_ratio"] = _ratio(core.busy_cycles.get(pipe, 0.0), core.cycles)
    row["read_main_memory_datas(KB)"] = core.hbm_read_bytes / _KIB
    row["write_main_memory_datas(KB)"] = core.hbm_write_bytes / _KIB
    ways = ("GM_to_L1", "L0C_to_GM") if kind == "aic" else ("GM_to_UB", "UB_to_GM")
    row[f"{ways[0]}_datas(KB)"] = core.gm_read_bytes / _KIB
    row[f"{ways[1]}_datas(KB)"] = core.gm_write_bytes / _KIB
    return row


def _conflicts(core: CoreTime, timeline: Timeline) -> Values:
    kind = core.kind
    row: Values = {
        f"{kind}_{name}_wait_ratio": _ratio(core.wait_cycles.get(pipe, 0.0), core.cycles)
        for name, pipe in _PIPES_OF[kind]
        if name in ("cube", "vec", "mte1", "mte2", "mte3")
    }
    if kind == "aiv":
        # The model knows conflicts by source line; cores run the same lines.
        vector = [line for line in timeline.lines if line.pipe == "V"]
        lost = _ratio(sum(x.conflict_cycles for x in vector), sum(x.cycles for x in vector))
        share = _ratio(core.busy_cycles.get("V", 0.0), core.cycles)
        row["aiv_vec_bankgroup_cflt_ratio"] = lost * share
    return row


_COMMON = _expanded("block_id sub_block_id ai*_time(us) ai*_total_cycles")

# File name: its documented columns, and the values that the model has for some of them.
_FILES: Mapping[str, tuple[str, Callable[[CoreTime, Timeline], Values]]] = MappingProxyType(
    {
        "PipeUtilization.csv": (
            "aiv_vec_time(us) aiv_vec_ratio aic_cube_time(us) aic_cube_ratio ai*_scalar_time(us)"
            " ai*_scalar_ratio aic_fixpipe_time(us) aic_fixpipe_ratio aic_mte1_time(us)"
            " aic_mte1_ratio ai*_mte2_time(us) ai*_mte2_ratio ai*_mte3_time(us) ai*_mte3_ratio"
            " ai*_icache_miss_rate aic_mte3_active_bw(GB/s) aiv_mte3_active_bw(GB/s)"
            " aic_fixpipe_active_bw(GB/s) aiv_mte2_active_bw(GB/s) aic_mte1_active_bw(GB/s)"
            " aic_mte2_active_bw(GB/s)",
            _pipe_utilization,
        ),
        "ArithmeticUtilization.csv": (
            "aic_cube_ratio aic_cube_fp16_ratio aic_cube_int8_ratio aic_cube_fops"
            " aic_cube_total_instr_number aic_cube_fp_instr_number aic_cube_int_instr_number"
            " aiv_vec_ratio aiv_vec_fp32_ratio aiv_vec_fp16_ratio aiv_vec_int32_ratio"
            " aiv_vec_int16_ratio aiv_vec_misc_ratio aiv_vec_fops",
            _arithmetic,
        ),
        "L2Cache.csv": (
            "ai*_write_cache_hit ai*_write_cache_miss_allocate ai*_r0_read_cache_hit"
            " ai*_r0_read_cache_miss_allocate ai*_write_hit_rate(%) ai*_read_hit_rate(%)"
            " ai*_total_hit_rate(%)",
            _l2,
        ),
        "Memory.csv": (
            "aiv_ub_to_gm_bw(GB/s) aiv_gm_to_ub_bw(GB/s) aic_l1_read_bw(GB/s)"
            " aic_l1_write_bw(GB/s) ai*_main_mem_read_bw(GB/s) ai*_main_mem_write_bw(GB/s)"
            " aic_mte1_instructions aic_mte1_ratio ai*_mte2_instructions ai*_mte2_ratio"
            " ai*_mte3_instructions ai*_mte3_ratio read_main_memory_datas(KB)"
            " write_main_memory_datas(KB) GM_to_L1_datas(KB) L0C_to_L1_datas(KB)"
            " L0C_to_GM_datas(KB) GM_to_UB_datas(KB) UB_to_GM_datas(KB)",
            _memory,
        ),
        "MemoryL0.csv": (
            "aic_l0a_read_bw(GB/s) aic_l0a_write_bw(GB/s) aic_l0b_read_bw(GB/s)"
            " aic_l0b_write_bw(GB/s) aic_l0c_read_bw_cube(GB/s) aic_l0c_write_bw_cube(GB/s)",
            _memory_l0,
        ),
        "MemoryUB.csv": (
            "aiv_ub_read_bw_vector(GB/s) aiv_ub_write_bw_vector(GB/s)"
            " aiv_ub_read_bw_scalar(GB/s) aiv_ub_write_bw_scalar(GB/s)",
            _memory_ub,
        ),
        "ResourceConflictRatio.csv": (
            "aic_cube_wait_ratio aiv_vec_total_cflt_ratio aiv_vec_bankgroup_cflt_ratio"
            " aiv_vec_bank_cflt_ratio aiv_vec_resc_cflt_ratio aiv_vec_mte_cflt_ratio"
            " aiv_vec_wait_ratio aic_mte1_wait_ratio ai*_mte2_wait_ratio ai*_mte3_wait_ratio",
            _conflicts,
        ),
    }
)


def _instruction_files(timeline: Timeline) -> dict[str, str]:
    """Return what the simulator leaves of a core, here of all cores together."""
    code: dict[str, list[float]] = {}
    for line in timeline.lines:
        place = code.setdefault(f"{line.file}:{line.line}", [0, 0.0])
        place[0] += line.count
        place[1] += line.cycles
    by_cost = sorted(code.items(), key=lambda item: -item[1][1])
    code_rows: list[Values] = [
        {
            "code": where,
            "call_count": int(count),
            "cycles": round(cycles),
            "running_time(us)": cycles / timeline.clock_mhz,
        }
        for where, (count, cycles) in by_cost
    ]
    instr_rows: list[Values] = [
        {
            "instr": line.instruction,
            "addr": NOT_AVAILABLE,
            "pipe": line.pipe,
            "call_count": line.count,
            "cycles": round(line.cycles),
            "running_time(us)": line.cycles / timeline.clock_mhz,
            "detail": f"{line.file}:{line.line}",
        }
        for line in timeline.lines
    ]
    code_columns = "code call_count cycles running_time(us)"
    instr_columns = "instr addr pipe call_count cycles running_time(us) detail"
    return {
        "code_exe.csv": _csv(code_rows, code_columns.split()),
        "instr_exe.csv": _csv(instr_rows, instr_columns.split()),
    }
