"""Published kernel configurations as instruction streams, written from their descriptions.

A stream is what a core issues, in program order; the model times it without executing anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Instr = dict[str, Any]

GM, UB, L1, L0A, L0B, L0C = range(6)
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
    core: int,
    *,
    cores: int,
    rows: int,
    columns: int,
    tile: int,
    buffers: int,
    scalar: bool = False,
) -> Iterator[Instr]:
    """Add two float16 matrices tile by tile, with the flags of one or two buffers.

    Each core has whole rows, the first ones a row more where they do not come out even; its last
    tile is what is left. x, y and z of a buffer lie one behind the other in UB, so x and y share
    bank groups.
    """
    base, extra = divmod(rows, cores)
    first = columns * (core * base + min(core, extra))
    behind = first + columns * (base + (core < extra))
    for index, begin in enumerate(range(first, behind, tile)):
        count = min(tile, behind - begin)
        at, size_bytes = 2 * begin, 2 * count
        slot = index % buffers
        x = slot * 6 * tile
        y, z = x + 2 * tile, x + 4 * tile
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
            yield from scalar_add(count)
            yield signal("S", "MTE3", slot)
            yield wait("S", "MTE3", slot)
        else:
            yield add(count, z, x, y)
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
    parts: int = 1,
    reorder: bool = False,
) -> Iterator[Instr]:
    """Read a core's rows of a float16 matrix tile by tile, or the first `part`-th of them.

    `parts`: of the columns, each read `rounds` times before the next.
    `reorder`: into L1 as columns of 32 bytes, with ND2NZ.
    """
    pitch = 2 * columns
    share = rows // cores
    first = core * share
    width = columns // parts
    for begin in (begin for begin in range(0, columns, width) for _ in range(rounds)):
        for row in range(first, first + share // part, tile_rows):
            for column in range(begin, begin + width, tile_columns):
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


def repeated_add(times: int, second: int, result: int = 0x20000) -> Iterator[Instr]:
    """Repeat one float32 Add of 4096 elements in UB, onto the same result."""
    instr = add(4096, result, 0, second, FLOAT32)
    for _ in range(times):
        yield instr


def load_2d(space: int, size_bytes: int) -> Instr:
    """Copy fractals from L1 to L0A or L0B with one instruction."""
    return {
        "op": "LoadData2D",
        "pipe": "MTE1",
        "dst": {"space": space},
        "src": [{"space": L1}],
        "load": {"repeat": size_bytes // 512},
    }


def load_3d(space: int, rows: int, columns: int) -> Instr:
    """Unroll a tile of halves from L1 to L0A or L0B with one instruction."""
    return {
        "op": "LoadData3D",
        "pipe": "MTE1",
        "dst": {"space": space},
        "src": [{"space": L1}],
        "image": {"repeat": 1, "rows": rows, "columns": columns},
    }


def mmad(m: int, n: int, k: int, dtype: int = FLOAT16, *, unit_flag: int = 0) -> Instr:
    return {
        "op": "Mmad",
        "pipe": "M",
        "dst": {"space": L0C, "dtype": FLOAT32},
        "src": [{"space": L0A, "dtype": dtype}, {"space": L0B, "dtype": dtype}],
        "product": {"m": m, "n": n, "k": k, "unit_flag": unit_flag},
    }


def fixpipe(gm: int, m: int, n: int, pitch: int, *, unit_flag: int = 0) -> Instr:
    """Carry m x n halves out to rows of a matrix in global memory."""
    return {
        "op": "Fixpipe",
        "pipe": "FIX",
        "dst": {"space": GM, "address": gm, "dtype": FLOAT16},
        "src": [{"space": L0C, "dtype": FLOAT32}],
        "fixpipe": {"m": m, "n": n, "is_nd": True, "unit_flag": unit_flag, "dst_stride": pitch},
    }


def fill_l2(core: int, *, cores: int, size: int, rows: int) -> Iterator[Instr]:
    """Read A's first rows and all of B once, so that what follows finds them in L2."""
    for base, height in ((0, rows), (TENSOR_STRIDE, size)):
        share = 2 * size * height // cores
        for at in range(core * share, (core + 1) * share, 65536):
            yield copy_in(base + at, 0, min(65536, (core + 1) * share - at))


def matmul(core: int, *, size: int, rows: int) -> Iterator[Instr]:
    """Multiply float16 matrices, the first `rows` rows of A: 4 x 6 cores, tiles of 128 x 256 x 64.

    L1 and L0 have two buffers each; 8 tiles of A, 4 of B are copied in at a time, B's first; unit
    flags let FIX follow M.
    """
    base_m, base_n, base_k = 128, 256, 64
    chunk_a, chunk_b = 8, 4
    down, across = core % 4, core // 4
    single_m, single_n = rows // 4, 1536
    steps = size // base_k
    pitch = 2 * size
    buffer_a = buffer_b = 0
    slot = 0

    def in_a(row: int, step: int, buffer: int) -> Iterator[Instr]:
        yield wait("MTE1", "MTE2", buffer)
        at = row * pitch + 2 * step * base_k
        yield as_nd_to_nz(copy_in(at, 0, 2 * base_k * chunk_a, base_m, pitch))
        yield signal("MTE2", "MTE1", buffer)

    def in_b(column: int, step: int, buffer: int) -> Iterator[Instr]:
        yield wait("MTE1", "MTE2", 2 + buffer)
        at = TENSOR_STRIDE + step * base_k * pitch + 2 * column
        yield as_nd_to_nz(copy_in(at, 0, 2 * base_n, base_k * chunk_b, pitch))
        yield signal("MTE2", "MTE1", 2 + buffer)

    for buffer in range(4):
        yield signal("MTE1", "MTE2", buffer)
    for buffer in range(2):
        yield signal("M", "MTE1", buffer)
    columns = range(across * single_n, min(size, (across + 1) * single_n), base_n)
    for row in range(down * single_m, (down + 1) * single_m, base_m):
        for column in columns:
            yield from in_a(row, 0, buffer_a)
            yield from in_b(column, 0, buffer_b)
            for step in range(steps):
                yield wait("M", "MTE1", slot)
                if step % chunk_a == 0:
                    yield wait("MTE2", "MTE1", buffer_a)
                if step % chunk_b == 0:
                    yield wait("MTE2", "MTE1", 2 + buffer_b)
                yield load_3d(L0A, base_m, base_k)
                yield load_3d(L0B, base_k, base_n)
                if (step + 1) % chunk_a == 0:
                    yield signal("MTE1", "MTE2", buffer_a)
                if (step + 1) % chunk_b == 0:
                    yield signal("MTE1", "MTE2", 2 + buffer_b)
                yield signal("MTE1", "M", slot)
                yield wait("MTE1", "M", slot)
                yield mmad(base_m, base_n, base_k, unit_flag=3 if step + 1 == steps else 2)
                yield signal("M", "MTE1", slot)
                slot ^= 1
                # The next chunk is asked for as soon as the current one is begun.
                if step % chunk_b == 0 and step + chunk_b < steps:
                    yield from in_b(column, step + chunk_b, buffer_b ^ 1)
                if step % chunk_a == 0 and step + chunk_a < steps:
                    yield from in_a(row, step + chunk_a, buffer_a ^ 1)
                if (step + 1) % chunk_b == 0:
                    buffer_b ^= 1
                if (step + 1) % chunk_a == 0:
                    buffer_a ^= 1
            at = 2 * TENSOR_STRIDE + row * pitch + 2 * column
            yield fixpipe(at, base_m, base_n, pitch, unit_flag=3)
