"""The programs of the PyPTO article, as the text has them, re-indented.

What the text leaves open, and what opkit says of it:

- matrix_multiply: extents that are no multiple of 64 leave smaller tiles at the edges, to which the
  text does not cut its accumulator: an error at the line that adds.
- transformer_block, and pipelined_transformer with it, calls layer_norm and feed_forward_network,
  which the text does not define: an error at the line that calls.
- multi_head_attention multiplies before the heads have moved in front of the positions: a warning,
  and the numbers that NumPy gives for the text.
- unrolled_convolution reads behind its input for kernels larger than 1 x 1: an error at the line
  that reads.

corrected.py has what they mean.
"""

import pypto


@pypto.jit
def matrix_multiply(A, B, C):
    M, K = A.shape
    K, N = B.shape
    TILE_M = 64
    TILE_N = 64
    TILE_K = 64
    for i in range(0, M, TILE_M):
        for j in range(0, N, TILE_N):
            C_tile = pypto.zeros((TILE_M, TILE_N))
            for k in range(0, K, TILE_K):
                A_tile = A[i : i + TILE_M, k : k + TILE_K]
                B_tile = B[k : k + TILE_K, j : j + TILE_N]
                C_tile += A_tile @ B_tile
            C[i : i + TILE_M, j : j + TILE_N] = C_tile
    return C


@pypto.jit
def residual_block(x, weight, bias):
    hidden = pypto.matmul(x, weight)
    hidden = pypto.add(hidden, bias)
    hidden = pypto.relu(hidden)
    output = pypto.matmul(hidden, weight.T)
    output = pypto.add(output, x)
    return output


@pypto.jit
def transformer_block(x, attn_weight, ffn_weight, norm_weight):
    attn_out = multi_head_attention(x, attn_weight)
    x = pypto.add(x, attn_out)
    x = layer_norm(x, norm_weight)
    ffn_out = feed_forward_network(x, ffn_weight)
    x = pypto.add(x, ffn_out)
    output = layer_norm(x, norm_weight)
    return output


@pypto.jit
def multi_head_attention(x, weight):
    batch, seq_len, hidden_dim = x.shape
    num_heads = 8
    head_dim = hidden_dim // num_heads
    q = pypto.matmul(x, weight["q_proj"])
    k = pypto.matmul(x, weight["k_proj"])
    v = pypto.matmul(x, weight["v_proj"])
    q = pypto.reshape(q, (batch, seq_len, num_heads, head_dim))
    k = pypto.reshape(k, (batch, seq_len, num_heads, head_dim))
    v = pypto.reshape(v, (batch, seq_len, num_heads, head_dim))
    scores = pypto.matmul(q, k.transpose(0, 1, 3, 2))
    scores = pypto.div(scores, pypto.sqrt(head_dim))
    attn_weights = pypto.softmax(scores, axis=-1)
    output = pypto.matmul(attn_weights, v)
    output = pypto.reshape(output, (batch, seq_len, hidden_dim))
    return output


@pypto.jit
def pipelined_transformer(x, stage_weights, num_stages=4):
    pipeline_stages = []
    for stage_id in range(num_stages):
        stage = {"weights": stage_weights[stage_id], "input_buffer": None, "output_buffer": None}
        pipeline_stages.append(stage)
    pipeline_stages[0]["input_buffer"] = x
    for step in range(num_stages + 2):
        for stage_id in range(num_stages):
            stage = pipeline_stages[stage_id]
            input_ready = stage["input_buffer"] is not None
            output_free = stage["output_buffer"] is None
            if input_ready and output_free:
                output = transformer_block(
                    stage["input_buffer"],
                    stage["weights"]["attn"],
                    stage["weights"]["ffn"],
                    stage["weights"]["norm"],
                )
                if stage_id + 1 < num_stages:
                    pipeline_stages[stage_id + 1]["input_buffer"] = output
                stage["output_buffer"] = output
                stage["input_buffer"] = None
    return pipeline_stages[-1]["output_buffer"]


@pypto.jit
def memory_efficient_attention(q, k, v):
    seq_len, hidden_dim = q.shape
    output = pypto.empty_like(q)
    BLOCK_SIZE = 1024
    for i in range(0, seq_len, BLOCK_SIZE):
        end_i = min(i + BLOCK_SIZE, seq_len)
        q_block = q[i:end_i]
        scores = pypto.matmul(q_block, k.T)
        attn_weights = pypto.softmax(scores, axis=-1)
        output[i:end_i] = pypto.matmul(attn_weights, v)
    return output


@pypto.jit(fusion=True)
def fused_layer_norm_relu(x, gamma, beta):
    mean = pypto.mean(x, axis=-1, keepdim=True)
    var = pypto.var(x, axis=-1, keepdim=True)
    normalized = pypto.div(x - mean, pypto.sqrt(var + 1e-5))
    output = gamma * normalized + beta
    output = pypto.maximum(output, 0)
    return output


@pypto.jit(unroll_factor=4)
def unrolled_convolution(input, kernel, bias):
    batch, in_channels, height, width = input.shape
    out_channels, in_channels, kernel_h, kernel_w = kernel.shape
    output = pypto.zeros((batch, out_channels, height, width))
    for oc in range(0, out_channels, 4):
        for b in range(batch):
            for h in range(height):
                for w in range(width):
                    acc0 = acc1 = acc2 = acc3 = 0
                    for ic in range(in_channels):
                        for kh in range(kernel_h):
                            for kw in range(kernel_w):
                                val = input[b, ic, h + kh, w + kw]
                                if oc + 0 < out_channels:
                                    acc0 += val * kernel[oc + 0, ic, kh, kw]
                                if oc + 1 < out_channels:
                                    acc1 += val * kernel[oc + 1, ic, kh, kw]
                                if oc + 2 < out_channels:
                                    acc2 += val * kernel[oc + 2, ic, kh, kw]
                                if oc + 3 < out_channels:
                                    acc3 += val * kernel[oc + 3, ic, kh, kw]
                    if oc + 0 < out_channels:
                        output[b, oc + 0, h, w] = acc0 + bias[oc + 0]
                    if oc + 1 < out_channels:
                        output[b, oc + 1, h, w] = acc1 + bias[oc + 1]
                    if oc + 2 < out_channels:
                        output[b, oc + 2, h, w] = acc2 + bias[oc + 2]
                    if oc + 3 < out_channels:
                        output[b, oc + 3, h, w] = acc3 + bias[oc + 3]
    return output


@pypto.jit
def custom_linear(x, weight, bias):
    return pypto.matmul(x, weight.T) + bias
