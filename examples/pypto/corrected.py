"""The programs of article.py that do not do what they mean, put right."""

import pypto


@pypto.jit
def matrix_multiply(A, B, C):
    M, K = A.shape
    K, N = B.shape
    TILE_M = TILE_N = TILE_K = 64
    for i in range(0, M, TILE_M):
        for j in range(0, N, TILE_N):
            # The last tiles are as small as what is left.
            C_tile = pypto.zeros((min(TILE_M, M - i), min(TILE_N, N - j)))
            for k in range(0, K, TILE_K):
                C_tile += A[i : i + TILE_M, k : k + TILE_K] @ B[k : k + TILE_K, j : j + TILE_N]
            C[i : i + TILE_M, j : j + TILE_N] = C_tile
    return C


@pypto.jit
def layer_norm(x, weight):
    mean = pypto.mean(x, axis=-1, keepdim=True)
    var = pypto.var(x, axis=-1, keepdim=True)
    return pypto.div(x - mean, pypto.sqrt(var + 1e-5)) * weight


@pypto.jit
def feed_forward_network(x, weight):
    return pypto.matmul(pypto.relu(pypto.matmul(x, weight["up"])), weight["down"])


@pypto.jit
def multi_head_attention(x, weight):
    batch, seq_len, hidden_dim = x.shape
    num_heads = 8
    head_dim = hidden_dim // num_heads

    def heads(projection):
        split = pypto.reshape(pypto.matmul(x, projection), (batch, seq_len, num_heads, head_dim))
        # (batch, heads, seq_len, head_dim): products run over positions.
        return split.transpose(0, 2, 1, 3)

    q, k, v = (heads(weight[name]) for name in ("q_proj", "k_proj", "v_proj"))
    scores = pypto.div(pypto.matmul(q, k.transpose(0, 1, 3, 2)), pypto.sqrt(head_dim))
    output = pypto.matmul(pypto.softmax(scores, axis=-1), v)
    return pypto.reshape(output.transpose(0, 2, 1, 3), (batch, seq_len, hidden_dim))


@pypto.jit
def transformer_block(x, attn_weight, ffn_weight, norm_weight):
    x = pypto.add(x, multi_head_attention(x, attn_weight))
    x = layer_norm(x, norm_weight)
    x = pypto.add(x, feed_forward_network(x, ffn_weight))
    return layer_norm(x, norm_weight)


@pypto.jit
def convolution(padded, kernel, bias, output):
    """`padded` is the input with kernel - 1 zeros behind its rows and columns."""
    batch, out_channels, height, width = output.shape
    _, in_channels, kernel_h, kernel_w = kernel.shape
    for oc in range(out_channels):
        total = pypto.zeros((batch, height, width))
        for ic in range(in_channels):
            for kh in range(kernel_h):
                for kw in range(kernel_w):
                    part = padded[:, ic, kh : kh + height, kw : kw + width]
                    total += part * kernel[oc, ic, kh, kw]
        output[:, oc] = total + bias[oc]
    return output
