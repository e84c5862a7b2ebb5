"""torch_npu's most used names on opkit's emulated device; values are as documented there."""

from __future__ import annotations

import torch

import opkit
from opkit.torch_npu import autoload

from . import contrib
from .boxes import (
    npu_anchor_response_flags,
    npu_bounding_box_decode,
    npu_bounding_box_encode,
)
from .experts import (
    npu_anti_quant,
    npu_attention_update,
    npu_clipped_swiglu,
    npu_grouped_matmul,
    npu_moe_compute_expert_tokens,
    npu_moe_init_routing,
    npu_quantize,
    npu_top_k_top_p,
    npu_transpose_batchmatmul,
)
from .fused import (
    batch_norm_reduce,
    npu_add_rms_norm,
    npu_dynamic_quant,
    npu_fused_cross_entropy_loss_with_max_sum,
    npu_fused_linear_online_max_sum,
    npu_gelu,
    npu_gelu_mul,
    npu_group_norm_silu,
    npu_interleave_rope,
    npu_moe_gating_top_k_softmax,
    npu_rms_norm,
    npu_softmax_cross_entropy_with_logits,
)
from .missing import reason_of
from .operators import (
    Format,
    dropout_with_byte_mask,
    fast_gelu,
    npu_bmmV2,
    npu_broadcast,
    npu_confusion_transpose,
    npu_dtype_cast,
    npu_fast_gelu,
    npu_linear,
    npu_max,
    npu_min,
    npu_mish,
    npu_one_hot,
    npu_pad,
    npu_scaled_masked_softmax,
    npu_scatter_nd_update,
    npu_sign_bits_pack,
    npu_sign_bits_unpack,
    npu_silu,
    npu_silu_,
    npu_slice,
    npu_sort_v2,
    npu_transpose,
)
from .standard import (
    copy_memory_,
    empty_with_format,
    npu_conv2d,
    npu_conv3d,
    npu_conv_transpose2d,
    npu_convolution,
    npu_convolution_transpose,
    npu_cross_entropy_loss,
    npu_group_norm_swish,
    npu_indexing,
    npu_layer_norm_eval,
    npu_masked_causal_conv1d,
    npu_prefetch,
    npu_reshape,
    npu_scatter_nd_update_,
    npu_sim_exponential_,
    one_,
    scatter_update,
    scatter_update_,
)

if not hasattr(torch, "npu"):
    autoload()

npu = getattr(torch, "npu")  # noqa: B009
__version__ = f"{torch.__version__.split('+')[0]}+opkit.{opkit.__version__}"

__all__ = [
    "Format",
    "batch_norm_reduce",
    "contrib",
    "copy_memory_",
    "dropout_with_byte_mask",
    "empty_with_format",
    "fast_gelu",
    "get_npu_format",
    "npu",
    "npu_add_rms_norm",
    "npu_anchor_response_flags",
    "npu_anti_quant",
    "npu_attention_update",
    "npu_bmmV2",
    "npu_bounding_box_decode",
    "npu_bounding_box_encode",
    "npu_broadcast",
    "npu_clipped_swiglu",
    "npu_confusion_transpose",
    "npu_conv2d",
    "npu_conv3d",
    "npu_conv_transpose2d",
    "npu_convolution",
    "npu_convolution_transpose",
    "npu_cross_entropy_loss",
    "npu_dtype_cast",
    "npu_dynamic_quant",
    "npu_fast_gelu",
    "npu_format_cast",
    "npu_format_cast_",
    "npu_fused_cross_entropy_loss_with_max_sum",
    "npu_fused_linear_online_max_sum",
    "npu_fusion_attention",
    "npu_gelu",
    "npu_gelu_mul",
    "npu_group_norm_silu",
    "npu_group_norm_swish",
    "npu_grouped_matmul",
    "npu_indexing",
    "npu_interleave_rope",
    "npu_layer_norm_eval",
    "npu_linear",
    "npu_masked_causal_conv1d",
    "npu_max",
    "npu_min",
    "npu_mish",
    "npu_moe_compute_expert_tokens",
    "npu_moe_gating_top_k_softmax",
    "npu_moe_init_routing",
    "npu_one_hot",
    "npu_pad",
    "npu_prefetch",
    "npu_quantize",
    "npu_reshape",
    "npu_rms_norm",
    "npu_rotary_mul",
    "npu_scaled_masked_softmax",
    "npu_scatter_nd_update",
    "npu_scatter_nd_update_",
    "npu_sign_bits_pack",
    "npu_sign_bits_unpack",
    "npu_silu",
    "npu_silu_",
    "npu_sim_exponential_",
    "npu_slice",
    "npu_softmax_cross_entropy_with_logits",
    "npu_sort_v2",
    "npu_swiglu",
    "npu_top_k_top_p",
    "npu_transpose",
    "npu_transpose_batchmatmul",
    "one_",
    "scatter_update",
    "scatter_update_",
]


def __getattr__(name: str) -> object:
    reason = reason_of(name)
    if reason is None:
        raise AttributeError(f"module 'torch_npu' has no attribute {name!r}")
    raise AttributeError(f"opkit's torch_npu has no {name}: {reason}")


def npu_format_cast(tensor: torch.Tensor, acl_format: int) -> torch.Tensor:
    """Return the tensor under another format, which `get_npu_format` tells.

    On the emulated device a format is a matter of kernels: elements lie as they did.
    """
    return npu_format_cast_(tensor.view_as(tensor), acl_format)


def npu_format_cast_(tensor: torch.Tensor, acl_format: int) -> torch.Tensor:
    """Give a tensor another format, which `get_npu_format` tells."""
    tensor._npu_format = int(acl_format)  # type: ignore[attr-defined]
    return tensor


def get_npu_format(tensor: torch.Tensor) -> int:
    """Return the number of the format that a tensor was given last; ND's where none was."""
    return getattr(tensor, "_npu_format", Format.ND)


def npu_swiglu(self: torch.Tensor, dim: int = -1) -> torch.Tensor:
    """Return silu(first half) * second half along a dim."""
    first, second = torch.chunk(self, 2, dim)
    return torch.nn.functional.silu(first) * second


def npu_rotary_mul(
    self: torch.Tensor, r1: torch.Tensor, r2: torch.Tensor, rotary_mode: str = "half"
) -> torch.Tensor:
    """Return self * r1 + rotated * r2, as rotary position embeddings do."""
    if rotary_mode == "half":
        first, second = torch.chunk(self, 2, -1)
        rotated = torch.cat([-second, first], -1)
    elif rotary_mode == "interleave":
        pairs = torch.stack([-self[..., 1::2], self[..., ::2]], -1)
        rotated = pairs.flatten(-2)
    else:
        raise ValueError(f"rotary_mode is {rotary_mode!r}, expected 'half' or 'interleave'")
    return self * r1 + rotated * r2


def npu_fusion_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    head_num: int,
    input_layout: str,
    pse: torch.Tensor | None = None,
    padding_mask: torch.Tensor | None = None,
    atten_mask: torch.Tensor | None = None,
    scale: float = 1.0,
    keep_prob: float = 1.0,
    **others: object,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, int, int, int]:
    """Return attention as the fused operator gives it: result, row maxima, row sums, then rest.

    Raises:
        NotImplementedError: a layout or option that opkit's lacks.
    """
    if padding_mask is not None or others.get("sparse_mode", 0) or others.get("actual_seq_qlen"):
        raise NotImplementedError("opkit's npu_fusion_attention has no padding and sparse masks")
    q, k, v = (_to_bnsd(each, head_num, input_layout) for each in (query, key, value))
    groups = q.shape[1] // k.shape[1]
    if groups > 1:
        k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
    scores = (q @ k.transpose(-1, -2)).float()
    if pse is not None:
        scores = scores + pse
    scores = scores * scale
    if atten_mask is not None:
        scores = scores.masked_fill(atten_mask.bool(), float(torch.finfo(torch.float32).min))
    largest = scores.amax(-1, keepdim=True)
    weights = torch.exp(scores - largest)
    sums = weights.sum(-1, keepdim=True)
    probabilities = torch.nn.functional.dropout(weights / sums, 1 - keep_prob)
    out = _from_bnsd(probabilities.to(query.dtype) @ v, input_layout)
    statistics = (8,)
    wide = [t.expand(*t.shape[:-1], *statistics).contiguous() for t in (largest, sums)]
    return out, wide[0], wide[1], torch.empty(0, device=query.device), 0, 0, 0


def _to_bnsd(x: torch.Tensor, heads: int, layout: str) -> torch.Tensor:
    if layout == "BNSD":
        return x
    if layout == "BSND":
        return x.transpose(1, 2)
    if layout == "BSH":
        return x.reshape(*x.shape[:-1], heads, -1).transpose(1, 2)
    if layout == "SBH":
        return x.reshape(*x.shape[:-1], heads, -1).permute(1, 2, 0, 3)
    raise NotImplementedError(f"opkit's npu_fusion_attention has no layout {layout}")


def _from_bnsd(x: torch.Tensor, layout: str) -> torch.Tensor:
    if layout == "BNSD":
        return x
    if layout == "BSND":
        return x.transpose(1, 2)
    if layout == "BSH":
        return x.transpose(1, 2).flatten(-2)
    return x.permute(2, 0, 1, 3).flatten(-2)
