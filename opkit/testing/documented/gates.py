"""What gated operators and the cell of a recurrent network compute.

A gate and what it is multiplied by are the two halves of an axis. Sources: the documents of each
operator, formula and parameters.
"""

from __future__ import annotations

from opkit.testing.documented.table import Number, Tensor, documented, torch


def halves(x: Tensor, dim: int, activate_left: bool) -> tuple[Tensor, Tensor]:
    """Return the half of an axis that is activated, and the other."""
    left, right = x.chunk(2, dim)
    return (left, right) if activate_left else (right, left)


def _approximation(approximate: object) -> str:
    return "tanh" if approximate else "none"


@documented("fatrelu_mul")
def fatrelu_mul(x: Tensor, threshold: Number) -> Tensor:
    """The gate where it is above the threshold, else 0, times the other half."""
    gate, other = x.chunk(2, -1)
    return torch.where(gate > threshold, gate, 0.0) * other


@documented("ge_glu")
def ge_glu(x: Tensor, *, dim: int, activate_left: bool, approximate: int) -> tuple[Tensor, Tensor]:
    """gelu(gate) * other, and gelu(gate)."""
    gate, other = halves(x, dim, activate_left)
    gelu = torch.nn.functional.gelu(gate, approximate=_approximation(approximate))
    return gelu * other, gelu


@documented("ge_glu_grad")
def ge_glu_grad(
    dy: Tensor, x: Tensor, gelu: Tensor, *, dim: int, activate_left: bool, approximate: int
) -> Tensor:
    """The gradient of gelu(gate) * other by x, the halves in x's order.

    Args:
        gelu: what the forward operator gave, of the gate's shape.
    """
    gate, other = halves(x, dim, activate_left)
    to_gate = torch.ops.aten.gelu_backward(
        dy * other, gate, approximate=_approximation(approximate)
    )
    return torch.cat([to_gate, dy * gelu] if activate_left else [dy * gelu, to_gate], dim)


@documented("gelu_mul")
def gelu_mul(x: Tensor, *, approximate: str) -> Tensor:
    """gelu(gate) * other."""
    gate, other = x.chunk(2, -1)
    return torch.nn.functional.gelu(gate, approximate=approximate) * other


@documented("silu_mul")
def silu_mul(x: Tensor, y: Tensor) -> Tensor:
    """silu(x) * y."""
    return torch.nn.functional.silu(x) * y


@documented("situ_glu")
def situ_glu(
    x: Tensor, *, dim: int, activate_left: bool, beta: float, linear_beta: float
) -> Tensor:
    """beta * tanh(gate / beta) * sigmoid(gate) * other, the other one bounded by linear_beta."""
    gate, up = halves(x, dim, activate_left)
    bounded = linear_beta * torch.tanh(up / linear_beta) if linear_beta > 0 else up
    return beta * torch.tanh(gate / beta) * torch.sigmoid(gate) * bounded


@documented("swi_glu")
def swi_glu(x: Tensor, *, dim: int) -> Tensor:
    """silu(gate) * other."""
    gate, other = x.chunk(2, dim)
    return torch.nn.functional.silu(gate) * other


@documented("swiglu_clamp")
def swiglu_clamp(x: Tensor, *, limit: float) -> Tensor:
    """min(silu(gate), limit) * the other half within -limit and limit."""
    gate, other = x.chunk(2, -1)
    silu = torch.clamp(torch.nn.functional.silu(gate), max=limit)
    return silu * torch.clamp(other, -limit, limit)


def _clipped_swiglu(
    x: Tensor, dim: int, interleaved: bool, limit: float, alpha: float, bias: float
) -> Tensor:
    gate, up = (x[..., ::2], x[..., 1::2]) if interleaved else x.chunk(2, dim)
    gate, up = torch.clamp(gate, max=limit), torch.clamp(up, -limit, limit)
    return gate * torch.sigmoid(alpha * gate) * (up + bias)


@documented("clipped_swiglu")
def clipped_swiglu(
    x: Tensor,
    *,
    dim: int,
    interleaved: bool,
    limit: float,
    alpha: float,
    bias: float,
    clamp_mode: int,
) -> Tensor | None:
    """gate * sigmoid(alpha * gate) * (other + bias), both clipped first (clamp_mode 0)."""
    if clamp_mode != 0:
        return None
    return _clipped_swiglu(x, dim, interleaved, limit, alpha, bias)


@documented("clipped_swiglu_grad")
def clipped_swiglu_grad(
    dy: Tensor,
    x: Tensor,
    *,
    dim: int,
    interleaved: bool,
    limit: float,
    alpha: float,
    bias: float,
) -> Tensor:
    """The gradient of clipped_swiglu by x."""

    def forward(x: Tensor) -> Tensor:
        return _clipped_swiglu(x, dim, interleaved, limit, alpha, bias)

    return torch.autograd.functional.vjp(forward, x, dy)[1]


# By its document the gates are i, g, f, o.
@documented("thnn_fused_lstm_cell")
def thnn_fused_lstm_cell(
    input_gates: Tensor,
    hidden_gates: Tensor,
    cell: Tensor,
    input_bias: Tensor | None,
    hidden_bias: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor]:
    """a step of a cell: its output, its state, and its gates after their functions.

    Args:
        input_gates, hidden_gates: (rows, 4 * size).
        cell: the state before, (rows, size).
        input_bias, hidden_bias: (4 * size,).
    """
    whole = (
        input_gates
        + hidden_gates
        + (0 if input_bias is None else input_bias)
        + (0 if hidden_bias is None else hidden_bias)
    )
    storage = torch.cat(
        [
            torch.tanh(gate) if number == 1 else torch.sigmoid(gate)
            for number, gate in enumerate(whole.chunk(4, -1))
        ],
        -1,
    )
    gates = storage.chunk(4, -1)
    state = gates[2] * cell + gates[0] * gates[1]
    return gates[3] * torch.tanh(state), state, storage


@documented("thnn_fused_lstm_cell_grad")
def thnn_fused_lstm_cell_grad(
    dhy: Tensor, dc: Tensor, cx: Tensor, cy: Tensor, storage: Tensor, *, has_bias: bool
) -> tuple[Tensor, Tensor, Tensor] | None:
    """Gradients of a step of a cell: of its gates, of the state before, and of its bias.

    Args:
        storage: the gates i, f, g, o after their functions, (rows, 4 * size).
    """
    if not has_bias:
        return None
    i, f, g, o = storage.chunk(4, -1)
    of_state = dhy * o * (1 - torch.tanh(cy) ** 2) + dc
    gates = torch.cat(
        [
            of_state * g * i * (1 - i),
            of_state * cx * f * (1 - f),
            of_state * i * (1 - g**2),
            dhy * torch.tanh(cy) * o * (1 - o),
        ],
        -1,
    )
    return gates, of_state * f, torch.sum(gates, 0)
