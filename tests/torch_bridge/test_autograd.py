"""How gradients of operators are registered, apart from any built operator."""

from __future__ import annotations

import uuid

import pytest

torch = pytest.importorskip("torch")

from opkit.torch_bridge import operators  # noqa: E402


@pytest.fixture(params=["with torch's own means", "with public functions only"])
def scaled_square(request, monkeypatch):
    """Return an operator `scale * x**2 + z` whose backward is made of torch's own operators."""
    is_public = request.param == "with public functions only"
    if is_public:
        monkeypatch.setattr(operators, "_below_autograd", None)
        monkeypatch.setattr(operators, "_any_requires_grad", None)
    project = f"opkit_test_{uuid.uuid4().hex}"
    library = torch.library.Library(project, "DEF")
    library.define("scaled_square(Tensor x, Tensor? z, float scale=2.0) -> Tensor")

    def run(x, z=None, scale=2.0):
        return scale * x * x + (0 if z is None else z)

    library.impl("scaled_square", run, "CompositeExplicitAutograd")
    monkeypatch.setitem(operators._libraries, project, library)
    call = getattr(torch.ops, project).scaled_square

    def save(ctx, inputs, output):
        assert len(inputs) == 3
        ctx.save_for_backward(inputs[0])
        ctx.scale = inputs[2]

    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        # PyTorch's public way counts only what the call gives.
        assert len(ctx.needs_input_grad) == 3 or is_public
        return 2 * ctx.scale * x * grad, grad if ctx.needs_input_grad[1] else None, None

    operators._register_autograd(f"{project}::scaled_square", call.default, save, backward)
    yield call
    library._destroy()


def test_gradients_reach_the_inputs_that_want_them(scaled_square) -> None:
    x = torch.tensor([1.0, 3.0], requires_grad=True)
    z = torch.zeros(2, requires_grad=True)
    scaled_square(x, z, 0.5).sum().backward()
    assert x.grad.tolist() == [1.0, 3.0]
    assert z.grad.tolist() == [1.0, 1.0]
    y = scaled_square(x.detach(), None)
    assert not y.requires_grad
    with torch.no_grad():
        assert not scaled_square(x, z, 0.5).requires_grad


def test_a_gradient_is_differentiated_again(scaled_square) -> None:
    x = torch.tensor([1.0, 3.0], requires_grad=True)
    (first,) = torch.autograd.grad(scaled_square(x, None, 0.5).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    assert second.tolist() == [1.0, 1.0]


def test_what_a_call_leaves_to_its_defaults_is_there_for_the_gradient(scaled_square) -> None:
    x = torch.tensor([1.0, 3.0], requires_grad=True)
    for arguments in ((None,), (None, 2.0)):
        (gradient,) = torch.autograd.grad(scaled_square(x, *arguments).sum(), x)
        assert gradient.tolist() == [4.0, 12.0]
