"""Small models of `transformers` with random weights, compiled against eager: forward and backward.

    python benchmarks/graph_models.py [NAME ...] [--forward]

Each model runs on the CPU in float32, eager and through `torch.compile(backend="opkit")`; results
and gradients may differ by 1e-3 of their largest value. Printed: how many agree, and the share of
the nodes that kernels compute. A model takes about a minute of one core where the cache is empty.
"""

from __future__ import annotations

import argparse
import importlib
import time
from collections.abc import Callable, Mapping
from typing import Any

import torch
from table import print_figure, print_head

from opkit.chips import DEFAULT_CHIP, find_chip
from opkit.graph.backend import opkit, watching
from opkit.graph.explanation import described

t: Any = importlib.import_module("transformers")
LIMIT = 1e-3
_NOISE = 1e-6
"""Share of a model's largest value below which a whole tensor counts as zeros."""
_WIDTH, _HEADS, _LAYERS, _INNER, _WORDS = 32, 2, 1, 64, 60
_BERT = {
    "hidden_size": _WIDTH,
    "num_hidden_layers": _LAYERS,
    "num_attention_heads": _HEADS,
    "intermediate_size": _INNER,
    "vocab_size": _WORDS,
    "pad_token_id": 0,
}
_LLAMA = {**_BERT, "num_key_value_heads": _HEADS, "bos_token_id": 1, "eos_token_id": 2}
_VISION = {
    **{key: value for key, value in _BERT.items() if key not in ("vocab_size", "pad_token_id")},
    "image_size": 16,
    "patch_size": 8,
}


def _tokens() -> dict[str, Any]:
    return {"input_ids": torch.randint(3, _WORDS, (2, 8))}


def _image() -> dict[str, Any]:
    return {"pixel_values": torch.randn(2, 3, 16, 16)}


def _pair() -> dict[str, Any]:
    return {**_tokens(), "decoder_input_ids": torch.randint(3, _WORDS, (2, 6))}


Row = tuple[Callable[[], torch.nn.Module], Callable[[], dict[str, Any]]]
_PLAIN = {"n_layer": _LAYERS, "n_head": _HEADS, "vocab_size": _WORDS}

MODELS: Mapping[str, Row] = {
    "bert": (lambda: t.BertModel(t.BertConfig(**_BERT)), _tokens),
    "roberta": (lambda: t.RobertaModel(t.RobertaConfig(**_BERT)), _tokens),
    "electra": (lambda: t.ElectraModel(t.ElectraConfig(**_BERT, embedding_size=16)), _tokens),
    "albert": (lambda: t.AlbertModel(t.AlbertConfig(**_BERT, embedding_size=16)), _tokens),
    "distilbert": (
        lambda: t.DistilBertModel(
            t.DistilBertConfig(
                dim=_WIDTH, n_layers=_LAYERS, n_heads=_HEADS, hidden_dim=_INNER, vocab_size=_WORDS
            )
        ),
        _tokens,
    ),
    "mobilebert": (
        lambda: t.MobileBertModel(
            t.MobileBertConfig(**_BERT, embedding_size=16, intra_bottleneck_size=16)
        ),
        _tokens,
    ),
    "deberta-v2": (lambda: t.DebertaV2Model(t.DebertaV2Config(**_BERT)), _tokens),
    "gpt2": (lambda: t.GPT2Model(t.GPT2Config(**_PLAIN, n_embd=_WIDTH, n_positions=32)), _tokens),
    "gpt-neox": (lambda: t.GPTNeoXModel(t.GPTNeoXConfig(**_BERT)), _tokens),
    "bloom": (
        lambda: t.BloomModel(t.BloomConfig(**_PLAIN, hidden_size=_WIDTH, pad_token_id=0)),
        _tokens,
    ),
    "opt": (
        lambda: t.OPTModel(
            t.OPTConfig(
                hidden_size=_WIDTH,
                num_hidden_layers=_LAYERS,
                num_attention_heads=_HEADS,
                ffn_dim=_INNER,
                vocab_size=_WORDS,
                word_embed_proj_dim=_WIDTH,
            )
        ),
        _tokens,
    ),
    "llama": (lambda: t.LlamaModel(t.LlamaConfig(**_LLAMA)), _tokens),
    "mistral": (lambda: t.MistralModel(t.MistralConfig(**_LLAMA)), _tokens),
    "qwen2": (lambda: t.Qwen2Model(t.Qwen2Config(**_LLAMA)), _tokens),
    "qwen3": (lambda: t.Qwen3Model(t.Qwen3Config(**_LLAMA, head_dim=16)), _tokens),
    "gemma": (lambda: t.GemmaModel(t.GemmaConfig(**_LLAMA, head_dim=16)), _tokens),
    "phi": (lambda: t.PhiModel(t.PhiConfig(**_LLAMA)), _tokens),
    "t5": (
        lambda: t.T5Model(
            t.T5Config(
                d_model=_WIDTH,
                d_kv=16,
                d_ff=_INNER,
                num_layers=_LAYERS,
                num_heads=_HEADS,
                vocab_size=_WORDS,
            )
        ),
        _pair,
    ),
    "vit": (lambda: t.ViTModel(t.ViTConfig(**_VISION)), _image),
    "deit": (lambda: t.DeiTModel(t.DeiTConfig(**_VISION)), _image),
}


def _results(model: Any, inputs: Mapping[str, Any], *, backward: bool) -> list[torch.Tensor]:
    """Return the first result and the parameters' gradients."""
    model.zero_grad()
    result = model(**inputs)[0]
    if not backward:
        return [result.detach()]
    weight = torch.linspace(-1, 1, result.numel()).reshape(result.shape)
    (result * weight).sum().backward()
    # What nothing reads has no gradient in eager, and one of zeros where a whole graph is traced.
    gradients = [
        torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in model.parameters()
    ]
    return [result.detach(), *gradients]


def compare(name: str, *, backward: bool) -> tuple[float, Any]:
    """Return by how much a model differs, and what became of it."""
    make, inputs = MODELS[name]
    torch._dynamo.reset()
    torch.manual_seed(0)
    model, given = make().eval(), inputs()
    with torch.set_grad_enabled(backward):
        expected = _results(model, given, backward=backward)
        compiled = torch.compile(model, backend=opkit)
        with watching() as graphs:
            found = _results(compiled, given, backward=backward)
    assert len(found) == len(expected)
    # Some gradients are nothing but rounding, as those of keys' biases, which a softmax cancels.
    noise = _NOISE * max(float(b.abs().max()) for b in expected)
    worst = max(
        float((a - b).abs().max()) / max(float(b.abs().max()), noise)
        for a, b in zip(found, expected, strict=True)
    )
    return worst, described(graphs, find_chip(DEFAULT_CHIP), False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *MODELS], help="all without any")
    parser.add_argument("--forward", action="store_true", help="without the backward")
    options = parser.parse_args()
    print(f"transformers {t.__version__}, torch {torch.__version__}\n")
    print_head()
    agree, nodes, compiled = 0, 0, 0
    names = options.names or list(MODELS)
    for name in names:
        begin = time.perf_counter()
        try:
            worst, what = compare(name, backward=not options.forward)
        except Exception as err:  # a model that fails is a row, not the end
            text = (str(err) or repr(err)).splitlines()[0][:120]
            print_figure(name, f"fails: {type(err).__name__}: {text}", "agrees")
            continue
        work = sum(not left.is_view for left in what.left)
        agree += worst <= LIMIT
        nodes, compiled = nodes + what.compiled + work, compiled + what.compiled
        left = sorted({each.operator for each in what.left if not each.is_view})
        taken = time.perf_counter() - begin
        print_figure(
            name,
            f"differs by {worst:.1e}, {what.share:.0%} of {what.compiled + work} nodes compiled,"
            f" {taken:.0f} s{'; left: ' + ', '.join(left) if left else ''}",
            "1e-3",
        )
    print_figure("models that agree", f"{agree} of {len(names)}", "20 of 20")
    if nodes:
        print_figure("nodes compiled", f"{compiled / nodes:.1%}", ">= 95 %")


if __name__ == "__main__":
    main()
