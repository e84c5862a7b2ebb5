"""Functions of PyTorch in formulas give what PyTorch gives."""

from __future__ import annotations

import numpy as np
import pytest

from opkit.compiler import evaluate_formulas
from opkit.schema.familiar import familiar

torch = pytest.importorskip("torch")

AXES = {
    **{"x": ("N", "D"), "y": ("N", "D"), "z": ("N", "D"), "p": ("N", "D"), "q": ("N", "D")},
    **{"s": ("N", "D"), "w": ("D",), "v": ("D",), "m": ("N", "N"), "t": ("N", 3), "u": ("N", 3)},
    "image": ("N", "C", "H", "W"),
    "c": ("C",),
}
TEXTS = [
    "x.take_along_dim(torch.argmax(x, dim=-1)[:, None], dim=-1)",
    *("F.kl_div(x, q, reduction='batchmean')", "F.kl_div(x, q, reduction='none')"),
    *("torch.cdist(x, y)", "torch.diff(x, dim=-1)", "torch.diff(x, n=2, dim=0)"),
    *("x + torch.ones(N, D)", "torch.zeros((N, D)) + x", "x * torch.full((N, D), 2.0)"),
    *("torch.logaddexp(x, y)", "torch.hypot(x, y)", "torch.xlogy(x, q)", "torch.sinc(x)"),
    *("torch.fmin(x, y)", "torch.fmax(x, y)", "torch.copysign(x, y)", "torch.frac(x)"),
    *("torch.heaviside(torch.round(x), y)", "x.sgn()", "F.threshold(x, 0.1, 20)"),
    *("F.softmin(x, dim=-1)", "F.prelu(x, w)", "F.prelu(image, c)", "F.celu(x, 1.5)"),
    *("F.softshrink(x, 0.3)", "F.hardshrink(x, 0.3)", "torch.logit(p, eps=0.01)", "torch.logit(p)"),
    *("x.unbind(-1)[1]", "torch.unbind(image, 1)[0]", "torch.dot(w, v)", "torch.mv(x, w)"),
    *("torch.diagonal(m)", "torch.trace(m)", "torch.cross(t, u, dim=-1)", "torch.inner(x, y)"),
    *("torch.inner(w, v)", "torch.outer(w, v)", "torch.addr(torch.zeros(D, D), w, v)"),
    *("F.smooth_l1_loss(x, y, beta=0.5)", "F.huber_loss(x, y, reduction='none', delta=0.7)"),
    *("F.binary_cross_entropy(p, q)", "F.soft_margin_loss(x, s)", "F.hinge_embedding_loss(x, s)"),
    *("F.margin_ranking_loss(x, y, s, margin=0.1)", "F.poisson_nll_loss(x, q)"),
    *("F.gaussian_nll_loss(x, y, q)", "F.triplet_margin_loss(x, y, z, reduction='sum')"),
    *("F.pairwise_distance(x, y)", "F.batch_norm(image, c, c * c + 1, c, c)"),
    *("F.instance_norm(image)", "F.instance_norm(image, weight=c, bias=c)"),
    *("(x > 0).any(-1)", "torch.all(x > -1, dim=-1)", "torch.count_nonzero(x > 0, dim=-1)"),
    *("torch.nansum(torch.log(x), dim=-1)", "torch.nan_to_num(x / 0, 3.0, 8.0, -9.0)"),
    *("torch.where(torch.isfinite(torch.log(x)), x, 0)", "torch.isinf(x / 0)"),
    *("image.movedim(1, 3)", "image.mT", "F.linear(x, y, bias=None)", "torch.hstack([x, y])"),
    *("torch.vstack((x, y))", "torch.flipud(x)", "x.fliplr()", "torch.deg2rad(x)"),
    *("torch.float_power(p, 2)", "F.leaky_relu(x, negative_slope=0.1)", "w.expand_as(x) + x"),
    *("torch.reshape(x, (D, N)).view_as(y)", "x.sum() / x.numel()", "x.mean(-1) * len(x)"),
    *("torch.var(x, dim=-1)", "x.std(dim=0)", "x.var(dim=-1, unbiased=False)", "torch.std(x)"),
    *(
        "torch.lgamma(x * 4)",
        "torch.digamma(q * 9)",
        "torch.erfinv(p)",
        "torch.polygamma(1, q * 9)",
    ),
    *("torch.median(x, dim=-1).values", "x.median(dim=0).values", "torch.median(x)", "x.median()"),
    *("x - torch.median(x, dim=-1, keepdim=True).values", "torch.kthvalue(x, 2, dim=-1).values"),
    *("torch.quantile(x, 0.3, dim=-1)", "torch.quantile(x, 0.75)", "x.quantile(1.0, dim=0)"),
    *("torch.kron(t, m)", "torch.kron(w, x)", "torch.cummax(x, dim=-1).values"),
    *("torch.cummin(x, dim=0).values", "torch.logcumsumexp(x, dim=-1)", "x.logcumsumexp(0)"),
    *("torch.rot90(x)", "torch.rot90(x, 2)", "torch.rot90(x, -1)", "torch.rot90(image, 1, (2, 3))"),
    *("x.unfold(1, 3, 2)", "x.unfold(0, 2, 1)", "torch.histc(x, bins=7, min=-1, max=2)"),
    *("torch.searchsorted(torch.sort(w).values, x)", "torch.bucketize(x, torch.sort(w).values)"),
    "torch.searchsorted(torch.sort(x, dim=-1).values, y, right=True)",
    *("torch.special.entr(p)", "torch.logical_xor(x > 0, y > 0)", "F.normalize(x, dim=-1)"),
]


def arrays() -> dict[str, np.ndarray]:
    sizes = {"N": 4, "D": 6, "C": 5, "H": 2, "W": 3}
    generator = np.random.default_rng(5)

    def normal(name: str) -> np.ndarray:
        shape = [sizes[each] if isinstance(each, str) else each for each in AXES[name]]
        return generator.standard_normal(shape)

    found = {name: normal(name) for name in AXES}
    found |= {name: 1 / (1 + np.exp(-found[name])) for name in ("p", "q")}
    return found | {"s": np.sign(found["s"])}


@pytest.mark.parametrize("text", TEXTS)
def test_a_function_gives_what_pytorch_gives(text: str) -> None:
    found = arrays()
    tensors = {name: torch.from_numpy(array) for name, array in found.items()}
    names = {"torch": torch, "F": torch.nn.functional, "N": 4, "D": 6, **tensors}
    wanted = np.asarray(eval(text, names))
    given = evaluate_formulas({"out": familiar(text, AXES)}, found, axes=AXES)
    assert given.shape == wanted.shape
    np.testing.assert_allclose(given, wanted, rtol=2e-6, atol=1e-7)


PLACED = [
    *("x.index_add(0, k, z[:3])", "torch.index_add(x, 0, k, z[:3], alpha=2)"),
    *(
        "x.index_copy(0, k, z[:3])",
        "torch.index_fill(x, 0, k, 2.5)",
        "x[:, :5].index_fill(1, k, 3)",
    ),
    *("x.scatter_add(1, l, z)", "torch.scatter(x, 1, l, z)", "torch.scatter(x, 1, l, 0.5)"),
    *("torch.bincount(k, minlength=4)", "torch.bincount(k, w[:3], minlength=7)"),
    *("np.bincount(k, minlength=9)", "k << 3", "(k - 7) >> 1", "(k << 2 >> 1) + 1"),
]


@pytest.mark.parametrize("text", PLACED)
def test_elements_are_placed_and_counted_as_pytorch_and_numpy_do(text: str) -> None:
    found: dict[str, np.ndarray] = {name: arrays()[name] for name in ("x", "z", "w")}
    found |= {"k": np.array([3, 0, 1]), "l": np.argsort(found["z"], axis=1)}
    tensors = {name: torch.from_numpy(array.copy()) for name, array in found.items()}
    given_to = found if text.startswith("np.") else tensors
    wanted = np.asarray(eval(text, {"torch": torch, "np": np, **given_to}))
    axes = {**{name: AXES[name] for name in ("x", "z", "w")}, "k": (3,), "l": ("N", "D")}
    whole = {name: found[name].astype(np.int32) for name in ("k", "l")}
    given = evaluate_formulas({"out": familiar(text, axes)}, {**found, **whole}, axes=axes)
    np.testing.assert_allclose(given, wanted, rtol=2e-6)


NUMPYS = [
    *("np.median(x, axis=-1)", "np.median(x)", "x - np.median(x, axis=0)", "np.ptp(x, axis=-1)"),
    *("np.percentile(x, 30, axis=-1)", "np.quantile(x, 0.5, axis=0)", "np.kron(x, w)"),
    *("np.searchsorted(np.sort(w), x, side='right')", "np.digitize(x, np.sort(w))"),
    *("np.rot90(x)", "np.tile(x, (2, 3))"),
]


@pytest.mark.parametrize("text", NUMPYS)
def test_a_function_gives_what_numpy_gives(text: str) -> None:
    found = arrays()
    wanted = eval(text, {"np": np, **found})
    given = evaluate_formulas({"out": familiar(text, AXES)}, found, axes=AXES)
    assert given.shape == wanted.shape
    np.testing.assert_allclose(given, wanted, rtol=2e-6, atol=1e-7)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("torch.bincount(k)", "depends on the largest value"),
        ("torch.histc(x, bins=4)", "give bins, min and max"),
        ("np.searchsorted(w, x, side='middle')", 'side is "middle"'),
        ("x >> 1", "shifts whole numbers"),
        ("torch.quantile(x, 1.5)", "from 0 to 1"),
    ],
)
def test_what_cannot_be_says_what_to_give(text: str, message: str) -> None:
    from opkit.errors import UsageError

    found = {**arrays(), "k": np.array([3, 0, 1], np.int32)}
    with pytest.raises(UsageError) as error:
        evaluate_formulas(
            {"out": familiar(text, {**AXES, "k": ("K",)})}, found, axes={**AXES, "k": ("K",)}
        )
    assert message in f"{error.value} {error.value.help}"


@pytest.mark.parametrize(
    "text",
    [
        *("F.normalize(x, p=1)", "F.pairwise_distance(x, y, p=1.5)", "torch.cdist(x, y, p=1)"),
        *("torch.nan_to_num(x)", "F.prelu(image[0], c)"),
        *("F.kl_div(x, y, log_target=True)", "F.batch_norm(x, w, w, w, w, training=True)"),
        *("torch.vstack((w, v))", "F.mse_loss(x, y, reduction='max')"),
    ],
)
def test_what_is_not_written_out_for_other_arguments_is_refused(text: str) -> None:
    from opkit.errors import UsageError

    with pytest.raises(UsageError, match="calls no operator"):
        evaluate_formulas({"out": familiar(text, AXES)}, arrays(), axes=AXES)
