"""What operators of matrix products compute that are called, or take flags, otherwise than torch's.

Matrices are the last two axes. Sources: the documents of each operator, formula and parameters.
"""

from __future__ import annotations

from opkit.testing.documented.table import Array, Number, Tensor, documented, torch

_PRODUCTS = ("batch_mat_mul", "mat_mul", "matmul_fp32")


def product(x1: Tensor, x2: Tensor, turns_first: bool, turns_second: bool) -> Tensor:
    """Return x1 @ x2, each of them transposed first where its flag says so."""
    return torch.matmul(x1.mT if turns_first else x1, x2.mT if turns_second else x2)


@documented(*_PRODUCTS)
def mat_mul_with_bias(
    x1: Tensor,
    x2: Tensor,
    *,
    bias: Tensor | None,
    transpose_x1: bool = False,
    transpose_x2: bool = False,
    adj_x1: bool = False,
    adj_x2: bool = False,
    adj_x: bool = False,
    adj_y: bool = False,
) -> Tensor:
    """x1 @ x2 + bias, each transposed where its flag says so; a bias may be left out."""
    found = product(x1, x2, transpose_x1 or adj_x1 or adj_x, transpose_x2 or adj_x2 or adj_y)
    return found + (0 if bias is None else bias)


@documented(*_PRODUCTS)
def mat_mul(
    x1: Tensor,
    x2: Tensor,
    *,
    transpose_x1: bool = False,
    transpose_x2: bool = False,
    adj_x1: bool = False,
    adj_x2: bool = False,
    adj_x: bool = False,
    adj_y: bool = False,
) -> Tensor:
    """x1 @ x2, each transposed where its flag says so."""
    return product(x1, x2, transpose_x1 or adj_x1 or adj_x, transpose_x2 or adj_x2 or adj_y)


@documented("fused_matmul_gelu")
def fused_matmul_gelu(
    x: Tensor, weight: Tensor, bias: Tensor | None, *, approximate: int
) -> Tensor | None:
    """gelu(x @ weight^T + bias), by tanh (approximate 1)."""
    if approximate != 1:
        return None
    whole = torch.nn.functional.linear(x, weight, bias)
    return torch.nn.functional.gelu(whole, approximate="tanh")


@documented("gemm")
def gemm(
    a: Tensor,
    b: Tensor,
    alpha: Number,
    beta: Number,
    c: Tensor,
    *,
    transpose_a: bool,
    transpose_b: bool,
) -> Tensor:
    """alpha * a @ b + beta * c."""
    return alpha * product(a, b, transpose_a, transpose_b) + beta * c


@documented("gemm")
def gemm_by_attributes(
    a: Tensor,
    b: Tensor,
    c: Tensor,
    *,
    alpha: float,
    beta: float,
    transpose_a: bool,
    transpose_b: bool,
) -> Tensor:
    """alpha * a @ b + beta * c, alpha and beta attributes."""
    return alpha * product(a, b, transpose_a, transpose_b) + beta * c


@documented("ger")
def ger(x: Tensor, y: Tensor, a: Tensor, *, alpha: float) -> Tensor:
    """a + alpha * x y^T."""
    return a + alpha * torch.outer(x, y)


@documented("transform_bias_rescale_qkv")
def transform_bias_rescale_qkv(qkv: Tensor, bias: Tensor, *, num_heads: int) -> tuple[Tensor, ...]:
    """q, k and v of all heads, q divided by the root of a head's size.

    Args:
        qkv: (batch, rows, 3 * size).
        bias: (3 * size,).
    """
    found: tuple[Tensor, ...] = torch._transform_bias_rescale_qkv(qkv, bias, num_heads)
    return found


@documented("transpose_batch_mat_mul")
def transpose_batch_mat_mul(
    x1: Tensor,
    x2: Tensor,
    bias: Tensor | None,
    scale: Tensor | None,
    *,
    perm_x1: list[int],
    perm_x2: list[int],
    perm_y: list[int],
    batch_split_factor: int,
) -> Tensor | None:
    """x1 @ x2, the axes of each and of the result in an order of their own."""
    if bias is not None or scale is not None or batch_split_factor != 1:
        return None
    return torch.matmul(x1.permute(perm_x1), x2.permute(perm_x2)).permute(perm_y)


@documented("weight_quant_batch_matmul_v2")
def weight_quant_batch_matmul(
    x: Tensor,
    weight: Tensor,
    scale: Tensor,
    offset: Tensor | None,
    quant_scale: Tensor | None,
    quant_offset: Tensor | None,
    bias: Tensor | None,
    *,
    transpose_x: bool,
    transpose_weight: bool,
    antiquant_group_size: int,
    inner_precise: int,
) -> Tensor | None:
    """x @ ((weight + offset) * scale) + bias, of whole-number weights."""
    if antiquant_group_size != 0 or inner_precise != 0 or not scale.is_floating_point():
        return None
    if quant_scale is not None or quant_offset is not None:
        return None
    whole = (weight if offset is None else weight + offset) * scale
    return product(x, whole, transpose_x, transpose_weight) + (0 if bias is None else bias)


@documented("quant_batch_matmul_v3")
def quant_batch_matmul(
    x1: Tensor,
    x2: Tensor,
    scale: Tensor,
    offset: Tensor | None,
    bias: Tensor | None,
    row_scale: Tensor | None,
    *,
    transpose_x1: bool,
    transpose_x2: bool,
    group_size: int,
) -> Tensor | None:
    """(x1 @ x2 + bias) * scale * row_scale + offset; a bias of floats is added at the end."""
    # Scales of whole numbers are bits of a number, which no values here are.
    if group_size != 0 or not scale.is_floating_point():
        return None
    is_whole = bias is not None and not bias.is_floating_point()
    summed = product(x1, x2, transpose_x1, transpose_x2) + (bias if is_whole else 0)
    scaled = summed * scale * (1 if row_scale is None else row_scale.unsqueeze(-1))
    shifted = scaled + (0 if offset is None else offset)
    return shifted + (0 if bias is None or is_whole else bias)


@documented("dequant_bias")
def dequant_bias(x: Array, scale: Array) -> Array | None:
    """x * scale, a scale a column."""
    return x * scale if scale.shape == x.shape[-1:] else None
