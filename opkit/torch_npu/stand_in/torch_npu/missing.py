"""Functions of torch_npu's documents that are not on the emulated device, each with the reason.

They are no attributes, so that libraries which ask `hasattr` go their other way; whoever takes one
gets an error that says why.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["REASONS", "reason_of"]

_COLLECTIVE = "it sends to other chips while it computes; call torch.distributed and torch.matmul"
_PACKED = "its numbers of 4 or 8 bits are packed as the hardware's cube reads them"
_QUANTISED = "products of quantised numbers are not written; multiply what npu_anti_quant gives"
_CACHE = "attention over a paged cache is not written; use scaled_dot_product_attention"
_SPARSE = "sparse attention is not written; use scaled_dot_product_attention with a mask"
_LATENT = "fused multi-head latent attention is not written; its parts are"
_BOXES = "its documents do not say how boxes of no area, ends and ties are counted"
_REGIONS = "pooling of regions is not written"
_RECURRENT = "its weights lie as the hardware's operator has them; use torch.nn.LSTM or GRU"
_STATUS = "the emulated device keeps no flags of overflow; torch.amp.GradScaler finds it in tensors"
_ADAM = "its documents do not give its steps; use torch.optim.Adam with fused=True"
_GRAPH = "graphs of the device are not recorded"
_ATTENTION = "use npu_fusion_attention or scaled_dot_product_attention"
_EXPERTS = "this step of routing between experts is not written"
_DELTA = "the gated delta rule is not written"
_MHC = "manifold-constrained connections are not written"
_SWAPPED = "memory of the host has no address on the emulated device"

_NAMES: Mapping[str, str] = {
    _COLLECTIVE: """npu_all_gather_base_mm npu_all_to_all_matmul npu_alltoallv_gmm
        npu_alltoallv_quant_gmm npu_attention_to_ffn npu_ffn_to_attention npu_gmm_alltoallv
        npu_matmul_all_to_all npu_mm_all_reduce_base npu_mm_reduce_scatter_base
        npu_moe_distribute_combine npu_moe_distribute_combine_add_rms_norm
        npu_moe_distribute_combine_v2 npu_moe_distribute_dispatch
        npu_moe_distribute_dispatch_v2""",
    _PACKED: """npu_convert_weight_to_int4pack npu_dynamic_block_quant
        npu_dynamic_dual_level_mx_quant npu_group_quant npu_grouped_dynamic_block_quant
        npu_trans_quant_param npu_rotate_quant""",
    _QUANTISED: """matmul_checksum npu_add_quant_matmul_ npu_add_rms_norm_dynamic_quant
        npu_add_rms_norm_quant npu_dequant_swiglu_quant npu_dynamic_quant_asymmetric npu_ffn
        npu_grouped_matmul_finalize_routing npu_grouped_matmul_swiglu_quant_v2 npu_quant_matmul
        npu_quant_matmul_gelu npu_quant_matmul_reduce_sum npu_quant_scatter npu_quant_scatter_
        npu_rms_norm_quant npu_swiglu_quant npu_transpose_quant_batchmatmul
        npu_weight_quant_batchmatmul""",
    _CACHE: """npu_advance_step_flashattn npu_fused_infer_attention_score
        npu_fused_infer_attention_score_v2 npu_incre_flash_attention npu_kv_rmsnorm_rope_cache
        npu_prompt_flash_attention npu_scatter_pa_kv_cache""",
    _SPARSE: """npu_block_sparse_attention npu_dense_lightning_indexer_grad_kl_loss
        npu_dense_lightning_indexer_softmax_lse npu_gather_sparse_index
        npu_kv_quant_sparse_flash_attention npu_lightning_indexer npu_quant_lightning_indexer
        npu_sparse_flash_attention npu_sparse_lightning_indexer_grad_kl_loss""",
    _LATENT: "npu_mla_prolog npu_mla_prolog_v2 npu_mla_prolog_v3",
    _BOXES: """npu_batch_nms npu_ciou npu_diou npu_giou npu_grid_assign_positive npu_iou
        npu_nms_rotated npu_nms_v4 npu_nms_with_mask npu_ptiou npu_random_choice_with_mask
        npu_rotated_iou npu_rotated_overlaps npu_yolo_boxes_encode""",
    _REGIONS: "npu_deformable_conv2d npu_ps_roi_pooling npu_roi_align",
    _RECURRENT: "npu_gru npu_lstm",
    _STATUS: "npu_alloc_float_status npu_clear_float_status npu_get_float_status",
    _ADAM: "npu_apply_adam npu_bert_apply_adam",
    _GRAPH: "erase_stream print_npugraph_tensor save_npugraph_tensor",
    _ATTENTION: """apply_rotary_pos_emb npu_dropout_with_add_softmax npu_fused_attention_score
        npu_fused_floyd_attention npu_fusion_attention_v3 npu_mrope npu_multi_head_attention
        _npu_dropout""",
    _EXPERTS: """npu_moe_finalize_routing npu_moe_gating_top_k npu_moe_init_routing_v2
        npu_moe_re_routing npu_moe_update_expert npu_top_k_top_p_sample""",
    _DELTA: "npu_chunk_gated_delta_rule npu_fused_causal_conv1d npu_recurrent_gated_delta_rule",
    _MHC: "npu_mhc_post npu_mhc_pre npu_mhc_sinkhorn",
    _SWAPPED: "empty_with_swapped_memory",
    "its loss comes with npu_fused_cross_entropy_loss_with_max_sum, its gradient by autograd": (
        "npu_fused_linear_cross_entropy_loss_with_max_sum_backward"
    ),
}

REASONS: Mapping[str, str] = {
    name: reason for reason, names in _NAMES.items() for name in names.split()
}
"""Why a function of the documents is not here, by its name."""


def reason_of(name: str) -> str | None:
    """Return why a name of torch_npu's documents is not here; None for names that they lack."""
    return REASONS.get(name)
