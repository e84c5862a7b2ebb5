"""What operators compute that turn pairs of elements by their position.

Sources: the documents of each operator, formula and parameters.
"""

from __future__ import annotations

from collections.abc import Callable

from opkit.testing.documented.table import Tensor, documented, torch


def _turned(x: Tensor, parts: int) -> Tensor:
    """Return (-second, first) for each two of so many parts of the last axis."""
    pieces = torch.chunk(x, parts, -1)
    return torch.cat(
        [y for a, b in zip(pieces[::2], pieces[1::2], strict=True) for y in (-b, a)], -1
    )


def _half(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    return x * cos + _turned(x, 2) * sin


def _quarter(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    return x * cos + _turned(x, 4) * sin


def _interleave(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    turned = torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2)
    return x * cos + turned * sin


def _interleave_half(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    return _half(torch.cat((x[..., ::2], x[..., 1::2]), -1), cos, sin)


_BY_MODE: tuple[Callable[..., Tensor], ...] = (_half, _interleave, _quarter, _interleave_half)
_BY_NAME = {"half": _half, "quarter": _quarter, "interleave": _interleave}


@documented("rotary_position_embedding")
def rotary_position_embedding(x: Tensor, cos: Tensor, sin: Tensor, *, mode: int) -> Tensor:
    """x * cos + turned(x) * sin: in halves, in pairs side by side, in quarters, or joined first."""
    return _BY_MODE[mode](x, cos, sin)


@documented("rotary_position_embedding_grad")
def rotary_position_embedding_grad(
    dy: Tensor, cos: Tensor, sin: Tensor, x: Tensor | None, *, mode: int
) -> tuple[Tensor, Tensor, Tensor] | None:
    """The gradients of x * cos + turned(x) * sin."""
    if x is None:
        return None
    _, (to_x, to_cos, to_sin) = torch.autograd.functional.vjp(_BY_MODE[mode], (x, cos, sin), dy)
    return to_x, to_cos, to_sin


@documented("apply_rotary_pos_emb")
def apply_rotary_pos_emb(
    query: Tensor, key: Tensor, cos: Tensor, sin: Tensor, *, layout: int, rotary_mode: str
) -> tuple[Tensor, Tensor] | None:
    """x * cos + turned(x) * sin of query and key, in halves, quarters or pairs side by side."""
    turn = _BY_NAME.get(rotary_mode)
    if turn is None or layout != 1:
        return None
    return turn(query, cos, sin), turn(key, cos, sin)


@documented("interleave_rope")
def interleave_rope(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Even places before odd ones, then x * cos + turned(x) * sin in halves."""
    return _interleave_half(x, cos, sin)


@documented("rope_with_sin_cos_cache")
def rope_with_sin_cos_cache(
    positions: Tensor,
    query: Tensor,
    key: Tensor,
    cache: Tensor,
    *,
    numQHeads: int,
    numKHeads: int,
    headSize: int,
    mropeSection: list[int],
    isNeoxStyle: bool,
    qStride: int,
    kStride: int,
) -> tuple[Tensor, Tensor] | None:
    """The first columns of each head turned by the cosines and sines of the token's position.

    Args:
        positions: (tokens,).
        query, key: (tokens, heads * headSize).
        cache: (positions, turned columns): half of a row are cosines, half sines.
    """
    del qStride, kStride  # where rows lie
    if any(mropeSection) or positions.dim() != 1:
        return None
    cos, sin = cache[positions.long()].unsqueeze(1).chunk(2, -1)
    turned = []
    for rows, heads in ((query, numQHeads), (key, numKHeads)):
        x = rows.reshape(-1, heads, headSize)
        first, rest = x[..., : cache.shape[-1]], x[..., cache.shape[-1] :]
        if isNeoxStyle:
            first = _half(first, torch.cat((cos, cos), -1), torch.cat((sin, sin), -1))
        else:
            pairs = (cos.repeat_interleave(2, -1), sin.repeat_interleave(2, -1))
            first = _interleave(first, *pairs)
        turned.append(torch.cat((first, rest), -1).reshape(rows.shape))
    return turned[0], turned[1]
