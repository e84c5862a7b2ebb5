"""Published kernel configurations as instruction streams, written from their descriptions.

A stream is what a core issues, in program order; the model times it without executing anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Instr = dict[str, Any]

GM, UB, L1 = 0, 1, 2
FLOAT16, FLOAT32 = 0, 2

# Tensors lie in address ranges that never meet.
TENSOR_STRIDE = 1 << 40


def signal(source: str, target: str, identity: int = 0) -> Instr:
    return {"op": "SetFlag", "pipe": source, "peer_pipe": target, "event_id": identity}


def wait(source: str, target: str, identity: int = 0) -> Instr:
    return {**signal(source, target, identity), "op": "WaitFlag"}


def copy_in(
    gm: int, ub: int, size_bytes: int, bursts: int = 1, stride: int = 0, *, past_l2: bool = False
) -> Instr:
    return {
        "op": "DataCopy",
        "pipe": "MTE2",
        "dst": {"space": UB, "address": ub},
        "src": [{"space": GM, "address": gm, "bypasses_l2": past_l2}],
        "burst_bytes": size_bytes,
        "burst_count": bursts,
        "src_stride": stride,
    }


def copy_out(gm: int, ub: int, size_bytes: int, bursts: int = 1, stride: int = 0) -> Instr:
    return {
        "op": "DataCopy",
        "pipe": "MTE3",
        "dst": {"space": GM, "address": gm},
        "src": [{"space": UB, "address": ub}],
        "burst_bytes": size_bytes,
        "burst_count": bursts,
        "dst_stride": stride,
    }


def add(count: int, dst: int, first: int, second: int, dtype: int = FLOAT16) -> Instr:
    def operand(address: int) -> Instr:
        return {"address": address, "dtype": dtype}

    sources = [operand(first), operand(second)]
    return {"op": "Add", "count": count, "dst": operand(dst), "src": sources}


def add_tiles(
    core: int, *, cores: int, elements: int, tile: int, buffers: int, scalar: bool = False
) -> Iterator[Instr]:
    """Add two float16 vectors tile by tile, with the flags of one or two buffers.

    x, y and z of a buffer lie one behind the other in UB, so x and y share bank groups.
    """
    share = elements // cores
    size_bytes = 2 * tile
    for index in range(share // tile):
        at = 2 * (core * share + index * tile)
        slot = index % buffers
        x = slot * 3 * size_bytes
        y, z = x + size_bytes, x + 2 * size_bytes
        if index >= buffers:
            yield wait("V", "MTE2", slot)
        yield copy_in(at, x, size_bytes)
        yield copy_in(TENSOR_STRIDE + at, y, size_bytes)
        yield signal("MTE2", "V", slot)
        yield wait("MTE2", "V", slot)
        if index >= buffers:
            yield wait("MTE3", "V", slot)
        if scalar:
            # The scalar pipe works on UB, so it is what the copies wait for.
            yield signal("MTE2", "S", slot)
            yield wait("MTE2", "S", slot)
            yield from scalar_add(tile)
            yield signal("S", "MTE3", slot)
            yield wait("S", "MTE3", slot)
        else:
            yield add(tile, z, x, y)
        yield signal("V", "MTE2", slot)
        yield signal("V", "MTE3", slot)
        yield wait("V", "MTE3", slot)
        yield copy_out(2 * TENSOR_STRIDE + at, z, size_bytes)
        yield signal("MTE3", "V", slot)


def scalar_add(count: int) -> Iterator[Instr]:
    read = {"op": "GetValue", "pipe": "S", "src": [{"address": 0}]}
    write = {"op": "SetValue", "pipe": "S", "dst": {"address": 0}}
    for _ in range(count):
        yield read
        yield read
        yield write


def read_matrix(
    core: int,
    *,
    cores: int,
    rows: int,
    columns: int,
    tile_rows: int,
    tile_columns: int,
    rounds: int = 1,
    part: int = 1,
    reorder: bool = False,
) -> Iterator[Instr]:
    """Read a core's rows of a float16 matrix tile by tile, or the first `part`-th of them.

    `reorder`: into L1 as columns of 32 bytes, with ND2NZ.
    """
    pitch = 2 * columns
    share = rows // cores
    first = core * share
    for _ in range(rounds):
        for row in range(first, first + share // part, tile_rows):
            for column in range(0, columns, tile_columns):
                at = row * pitch + 2 * column
                tile = copy_in(at, 0, 2 * tile_columns, tile_rows, pitch)
                yield as_nd_to_nz(tile) if reorder else tile


def as_nd_to_nz(tile: Instr) -> Instr:
    """Return the copy with its planes: one column of 32 bytes after the other."""
    return {
        **tile,
        "op": "DataCopyNd2Nz",
        "dst": {"space": L1, "address": 0},
        "burst_bytes": 32,
        "plane_count": tile["burst_bytes"] // 32,
        "last_plane_bytes": 32,
    }


def read_shared(
    core: int,
    *,
    cores: int,
    rows: int,
    columns: int,
    tile_rows: int,
    tile_columns: int,
    staggered: bool,
) -> Iterator[Instr]:
    """Read a whole float16 matrix on every core, past L2: all in one order, or each from its own
    block of rows on."""
    pitch = 2 * columns
    share = rows // cores
    for turn in range(cores):
        block = (turn + core) % cores if staggered else turn
        for row in range(block * share, (block + 1) * share, tile_rows):
            for column in range(0, columns, tile_columns):
                at = row * pitch + 2 * column
                yield copy_in(at, 0, 2 * tile_columns, tile_rows, pitch, past_l2=True)


def nd_to_nz(core: int, *, size: int, dst_stride: int) -> Iterator[Instr]:
    """Reorder a square float16 matrix by vector copies, in tiles of 144 x 128, double-buffered.

    48 cores: 6 by rows times 8 by columns, so some have a row of tiles more than others.
    """
    tile_rows, tile_columns = 144, 128
    tiles_down = -(-size // tile_rows)
    tiles_across = size // tile_columns // 8
    split, across = divmod(core, 8)
    base, extra = divmod(tiles_down, 6)
    first = split * base + min(split, extra)
    places = [
        (row * tile_rows, (across * tiles_across + column) * tile_columns)
        for row in range(first, first + base + (split < extra))
        for column in range(tiles_across)
    ]
    for slot in range(2):
        yield signal("V", "MTE2", slot)
        yield signal("MTE3", "V", slot)
    for index, (row, column) in enumerate(places):
        rows = min(tile_rows, size - row)
        slot = index % 2
        source = slot * 0x9000
        target = 0x12000 + slot * 0x9100
        yield wait("V", "MTE2", slot)
        yield copy_in(2 * (row * size + column), source, 2 * tile_columns, rows, 2 * size)
        yield signal("MTE2", "V", slot)
        yield wait("MTE2", "V", slot)
        yield wait("MTE3", "V", slot)
        yield {
            "op": "Copy",
            "repeat": rows,
            "dst": {"address": target, "block_stride": dst_stride, "repeat_stride": 1},
            "src": [{"address": source}],
        }
        yield signal("V", "MTE2", slot)
        yield signal("V", "MTE3", slot)
        yield wait("V", "MTE3", slot)
        at = TENSOR_STRIDE + column * size * 2 + row * 32
        yield copy_out(at, target, rows * 32, tile_columns // 16, size * 32)
        yield signal("MTE3", "V", slot)


def repeated_add(times: int, second: int) -> Iterator[Instr]:
    """Repeat one float32 Add of 4096 elements in UB, onto the same result."""
    instr = add(4096, 0x20000, 0, second, FLOAT32)
    for _ in range(times):
        yield instr
