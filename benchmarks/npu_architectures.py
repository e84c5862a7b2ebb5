"""Forty architectures on `npu`: each in a process of its own, small, with random weights.

    python benchmarks/npu_architectures.py [NAME ...] [--steps 20] [--limit 300] [--skip compile]

Ten of text, ten of vision, five of audio, five of diffusion, five of tables, graphs and
recommendation, five recurrent or with a state: classes of transformers, timm and diffusers, and of
`architectures_own.py` beside this file. Trained in float32 and judged as `npu_models.py` does: the
first output, its gradients and the losses of AdamW's steps, each beside the CPU's, as far as they
are from float64. A row has these, the share of the calls that kernels serve, what else was tried
(autocast in bfloat16, checkpointing, generate, torch.compile) and the seconds. Compiled are a
forward and, judged as the training is, two of its steps; with them come the graph breaks and what
the graphs leave to torch. What fails is named, and what the CPU took.
"""

from __future__ import annotations

import argparse
import copy
import importlib
import json
import multiprocessing
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from architectures_own import OWN
from npu_models import first_of, judge, loss_of, moved
from table import print_figure, print_head
from torch import nn

RATE = 1e-4
"""How far AdamW goes in a step: a model of four samples and many layers takes no more."""
WORDS = 64
SIZES = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
}
Made = tuple[nn.Module, dict[str, torch.Tensor]]


def _without_chance(config: Any) -> Any:
    """Set all that is dropped or masked by chance to zero."""
    for key, value in config.to_dict().items():
        is_chance = "drop" in key or key in ("mask_time_prob", "mask_feature_prob")
        if is_chance and isinstance(value, float):
            setattr(config, key, 0.0)
    return config


def _hugging(model: str, config: str, given: Callable[[], dict[str, Any]], **sizes: Any) -> Made:
    t = importlib.import_module("transformers")
    made = getattr(t, model)(_without_chance(getattr(t, config)(**sizes)))
    return made, given()


def _tokens() -> dict[str, Any]:
    ids = torch.randint(3, WORDS, (2, 12))
    return {"input_ids": ids, "labels": ids}


def _classes() -> dict[str, Any]:
    return {"input_ids": torch.randint(3, WORDS, (2, 12)), "labels": torch.tensor([0, 1])}


def _image(side: int = 32) -> dict[str, Any]:
    return {"pixel_values": torch.randn(2, 3, side, side), "labels": torch.tensor([0, 1])}


def _wave() -> dict[str, Any]:
    return {"input_values": torch.randn(2, 1600), "labels": torch.tensor([0, 1])}


def _text(model: str, config: str, **sizes: Any) -> Callable[[], Made]:
    ends = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
    return lambda: _hugging(model, config, _tokens, vocab_size=WORDS, **ends, **{**SIZES, **sizes})


def _classifier(model: str, config: str, **sizes: Any) -> Callable[[], Made]:
    return lambda: _hugging(model, config, _classes, vocab_size=WORDS, **{**SIZES, **sizes})


def _vision(model: str, config: str, **sizes: Any) -> Callable[[], Made]:
    return lambda: _hugging(model, config, _image, image_size=32, num_labels=4, **sizes)


def _timm(name: str, side: int = 32, **options: Any) -> Callable[[], Made]:
    def make() -> Made:
        timm = importlib.import_module("timm")
        given = {"x": torch.randn(2, 3, side, side)}
        return timm.create_model(name, num_classes=4, **options), given

    return make


def _sound(model: str, config: str) -> Callable[[], Made]:
    convolutions = {"conv_dim": (16, 16), "conv_kernel": (10, 4), "conv_stride": (5, 4)}
    more = {"num_conv_pos_embeddings": 8, "num_conv_pos_embedding_groups": 2, "num_labels": 4}
    more |= {"classifier_proj_size": 16, "vocab_size": WORDS}
    return lambda: _hugging(model, config, _wave, **SIZES, **convolutions, **more)


def _whisper() -> Made:
    def given() -> dict[str, Any]:
        return {"input_features": torch.randn(1, 16, 60), "labels": torch.randint(3, WORDS, (1, 8))}

    sizes = {"d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "num_mel_bins": 16}
    sizes |= {"encoder_attention_heads": 4, "decoder_attention_heads": 4, "vocab_size": WORDS}
    sizes |= {"encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "max_source_positions": 30}
    sizes |= {"max_target_positions": 32, "decoder_start_token_id": 1, "pad_token_id": 0}
    sizes |= {"bos_token_id": 1, "eos_token_id": 2}
    made = _hugging("WhisperForConditionalGeneration", "WhisperConfig", given, **sizes)
    made[0].generation_config.suppress_tokens = None
    made[0].generation_config.begin_suppress_tokens = None
    return made


def _spectrogram() -> Made:
    def given() -> dict[str, Any]:
        return {"input_values": torch.randn(2, 40, 16), "labels": torch.tensor([0, 1])}

    sizes = {**SIZES, "max_length": 40, "num_mel_bins": 16, "num_labels": 4, "patch_size": 8}
    return _hugging("ASTForAudioClassification", "ASTConfig", given, **sizes)


def _bart(model: str, config: str) -> Callable[[], Made]:
    sizes = {"d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "vocab_size": WORDS}
    sizes |= {"encoder_attention_heads": 4, "decoder_attention_heads": 4}
    sizes |= {"encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "max_position_embeddings": 32}
    sizes |= {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
    sizes |= {"decoder_start_token_id": 1, "forced_eos_token_id": None}
    return lambda: _hugging(model, config, _tokens, **sizes)


def _clip() -> Made:
    def given() -> dict[str, Any]:
        images = {"pixel_values": torch.randn(2, 3, 32, 32), "return_loss": True}
        return {"input_ids": torch.randint(3, WORDS, (2, 8)), **images}

    text = {**SIZES, "vocab_size": WORDS, "max_position_embeddings": 16, "eos_token_id": 2}
    sight = {**SIZES, "image_size": 32, "patch_size": 8}
    sizes = {"text_config": text, "vision_config": sight, "projection_dim": 16}
    return _hugging("CLIPModel", "CLIPConfig", given, **sizes)


def _diffuser(model: str, given: Callable[[], dict[str, Any]], **sizes: Any) -> Callable[[], Made]:
    def make() -> Made:
        diffusers = importlib.import_module("diffusers")
        return getattr(diffusers, model)(**sizes), given()

    return make


def _noise(**more: Any) -> Callable[[], dict[str, Any]]:
    def given() -> dict[str, Any]:
        return {"sample": torch.randn(1, 3, 16, 16), "timestep": torch.tensor([7]), **more}

    return given


_BLOCKS = {"block_out_channels": (16, 32), "norm_num_groups": 8, "layers_per_block": 1}
_SWIN = {"embed_dim": 16, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4, "patch_size": 2}
_SEG = {
    "depths": [1, 1, 1, 1],
    "hidden_sizes": [8, 16, 24, 32],
    "num_attention_heads": [1, 2, 3, 4],
}
_SEG |= {"decoder_hidden_size": 16}
_ENCODE = {"in_channels": 3, "out_channels": 3, **_BLOCKS}

MODELS: dict[str, tuple[str, Callable[[], Made]]] = {
    "Llama": ("text", _text("LlamaForCausalLM", "LlamaConfig", num_key_value_heads=2)),
    "BERT": ("text", _text("BertForMaskedLM", "BertConfig")),
    "GPT-2": (
        "text",
        _text("GPT2LMHeadModel", "GPT2Config", n_embd=32, n_layer=2, n_head=4, n_positions=32),
    ),
    "T5": (
        "text",
        _text(
            "T5ForConditionalGeneration",
            "T5Config",
            d_model=32,
            d_kv=8,
            d_ff=48,
            num_layers=2,
            num_heads=4,
            decoder_start_token_id=0,
        ),
    ),
    "Mixtral": (
        "text",
        _text("MixtralForCausalLM", "MixtralConfig", num_key_value_heads=2, num_local_experts=4),
    ),
    "Qwen3": ("text", _text("Qwen3ForCausalLM", "Qwen3Config", num_key_value_heads=2, head_dim=8)),
    "Gemma2": (
        "text",
        _text("Gemma2ForCausalLM", "Gemma2Config", num_key_value_heads=2, head_dim=8),
    ),
    "DeBERTa-v2": ("text", _classifier("DebertaV2ForSequenceClassification", "DebertaV2Config")),
    "BART": ("text", _bart("BartForConditionalGeneration", "BartConfig")),
    "GPT-NeoX": ("text", _text("GPTNeoXForCausalLM", "GPTNeoXConfig")),
    "ViT": ("vision", _vision("ViTForImageClassification", "ViTConfig", patch_size=8, **SIZES)),
    "Swin": ("vision", _vision("SwinForImageClassification", "SwinConfig", **_SWIN)),
    "SegFormer": (
        "vision",
        lambda: _hugging(
            "SegformerForImageClassification", "SegformerConfig", _image, num_labels=4, **_SEG
        ),
    ),
    "CLIP": ("vision", _clip),
    "ResNet-18": ("vision", _timm("resnet18", zero_init_last=False)),
    "ConvNeXt": ("vision", _timm("convnext_atto", dims=(8, 16, 24, 32), depths=(1, 1, 1, 1))),
    "MobileNetV3": ("vision", _timm("mobilenetv3_small_050")),
    "RegNet": ("vision", _timm("regnetx_002")),
    "MLP-Mixer": (
        "vision",
        _timm("mixer_s32_224", 64, img_size=64),
    ),
    "EfficientNet": ("vision", _timm("efficientnet_lite0")),
    "wav2vec 2.0": ("audio", _sound("Wav2Vec2ForSequenceClassification", "Wav2Vec2Config")),
    "HuBERT": ("audio", _sound("HubertForSequenceClassification", "HubertConfig")),
    "WavLM": ("audio", _sound("WavLMForSequenceClassification", "WavLMConfig")),
    "Whisper": ("audio", _whisper),
    "AST": ("audio", _spectrogram),
    "UNet2D": (
        "diffusion",
        _diffuser(
            "UNet2DModel",
            _noise(),
            sample_size=16,
            in_channels=3,
            out_channels=3,
            **_BLOCKS,
            down_block_types=("DownBlock2D", "AttnDownBlock2D"),
            up_block_types=("AttnUpBlock2D", "UpBlock2D"),
        ),
    ),
    "UNet2D, conditioned": (
        "diffusion",
        _diffuser(
            "UNet2DConditionModel",
            _noise(encoder_hidden_states=torch.randn(1, 4, 16)),
            sample_size=16,
            in_channels=3,
            out_channels=3,
            cross_attention_dim=16,
            attention_head_dim=8,
            **_BLOCKS,
            down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
            up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
        ),
    ),
    "AutoencoderKL": (
        "diffusion",
        _diffuser(
            "AutoencoderKL",
            lambda: {"sample": torch.randn(1, 3, 16, 16)},
            **_ENCODE,
            down_block_types=("DownEncoderBlock2D",) * 2,
            up_block_types=("UpDecoderBlock2D",) * 2,
        ),
    ),
    "DiT": (
        "diffusion",
        _diffuser(
            "DiTTransformer2DModel",
            lambda: {
                "hidden_states": torch.randn(1, 4, 8, 8),
                "timestep": torch.tensor([7]),
                "class_labels": torch.tensor([1]),
            },
            num_attention_heads=2,
            attention_head_dim=8,
            num_layers=2,
            sample_size=8,
            num_embeds_ada_norm=10,
        ),
    ),
    "VQModel": (
        "diffusion",
        _diffuser(
            "VQModel",
            lambda: {"sample": torch.randn(1, 3, 16, 16)},
            **_ENCODE,
            num_vq_embeddings=16,
            latent_channels=3,
            down_block_types=("DownEncoderBlock2D",) * 2,
            up_block_types=("UpDecoderBlock2D",) * 2,
        ),
    ),
    **{name: ("tables", make) for name, make in OWN["tables"].items()},
    **{name: ("recurrent", make) for name, make in OWN["recurrent"].items()},
    "Mamba": (
        "recurrent",
        _text("MambaForCausalLM", "MambaConfig", state_size=8, time_step_rank=4),
    ),
    "Mamba-2": (
        "recurrent",
        _text(
            "Mamba2ForCausalLM",
            "Mamba2Config",
            state_size=8,
            num_heads=4,
            head_dim=16,
            n_groups=1,
            chunk_size=8,
        ),
    ),
    "RWKV": ("recurrent", _text("RwkvForCausalLM", "RwkvConfig", context_length=32)),
}


def _more(model: Any, given: dict[str, Any], skipped: list[str]) -> dict[str, str]:
    """What else a trainer does, each with "" or how it failed."""
    model.eval()

    def cast() -> None:
        model.train()  # RWKV changes its state in place in evaluation, which no device can undo
        with torch.autocast("npu", dtype=torch.bfloat16):
            loss = loss_of(model(**given))
        loss.backward()
        assert loss.isfinite().item()
        model.eval()

    def keep() -> None:
        model.train()
        model.gradient_checkpointing_enable()
        loss_of(model(**given)).backward()
        model.gradient_checkpointing_disable()
        model.eval()

    def write() -> None:
        names = ("input_ids", "input_features")
        found = {key: value for key, value in given.items() if key in names}
        there = model.generate(**found, max_new_tokens=4, do_sample=False).cpu()
        here = copy.deepcopy(model).to("cpu")
        found = {key: value.cpu() for key, value in found.items()}
        assert torch.equal(there, here.generate(**found, max_new_tokens=4, do_sample=False))

    def compiled() -> None:
        with torch.no_grad():
            wanted = first_of(model(**given))
            got = first_of(torch.compile(model, backend="opkit")(**given))
        torch.testing.assert_close(got, wanted, atol=1e-3, rtol=1e-3)

    tried: dict[str, Callable[[], None]] = {"autocast": cast}
    if getattr(model, "supports_gradient_checkpointing", False):
        tried["checkpointing"] = keep
    if getattr(model, "can_generate", lambda: False)():
        tried["generate"] = write
    tried["compile"] = compiled
    tried = {name: call for name, call in tried.items() if name not in skipped}
    found = {}
    for name, call in tried.items():
        try:
            call()
            found[name] = ""
        except Exception as error:
            found[name] = _said(error)
    return found


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


def _train_compiled(model: nn.Module, given: dict[str, Any]) -> dict[str, Any]:
    """What two compiled steps gave: how they are judged, and what was not compiled."""
    from opkit.graph.backend import watching

    torch._dynamo.reset()
    counters = torch._dynamo.utils.counters
    counters.clear()
    with watching() as graphs:
        judged = judge(model, given, torch.float32, 2, RATE, is_compiled=True)
    left = Counter(
        f"{each.operator}: {each.reason}"
        for graph in graphs
        for each in graph.left
        if not each.is_view
    )
    nodes = sum(len(nodes) for graph in graphs for nodes in graph.sources)
    return {
        **asdict(judged),
        "text": judged.text(),
        "graphs": len(graphs),
        "nodes": nodes,
        "left": dict(left),
        "breaks": {why.splitlines()[0]: count for why, count in counters["unimplemented"].items()},
        "fallbacks": _fallbacks(),
    }


def _fallbacks() -> dict[str, Any]:
    """What the CPU took, by operator: how often, and why."""
    return {row.operator: [row.fallback, "; ".join(row.reasons)] for row in torch.npu.fallbacks()}


def run_one(name: str, steps: int, skipped: list[str]) -> dict[str, Any]:
    """Return what one model's run gave, as JSON has it."""
    torch.manual_seed(0)
    model, given = MODELS[name][1]()
    for part in model.modules():
        if hasattr(part, "dropout_prob"):
            part.dropout_prob = 0.0  # of DiT's labels
    for weight in model.parameters():
        if weight.dim() > 1 and not weight.any():
            nn.init.normal_(weight, std=0.1)  # outputs that are 0 would agree whatever is computed
    judged = judge(model, given, torch.float32, steps, RATE)
    row: dict[str, Any] = {**asdict(judged), "text": judged.text(), "fallbacks": _fallbacks()}
    row["more"] = _more(copy.deepcopy(model).to("npu"), moved(given, "npu"), skipped)
    if "compile" not in skipped:
        try:
            row["compiled"] = _train_compiled(model, given)
        except Exception as error:
            row["more"]["compiled steps"] = _said(error)
    return row


def _send(name: str, steps: int, skipped: list[str], answer: Any) -> None:
    try:
        answer.send(run_one(name, steps, skipped))
    except Exception as error:
        answer.send({"failed": _said(error)})


def _run_apart(name: str, steps: int, skipped: list[str], limit: float) -> dict[str, Any]:
    """Run a model in a fork of this process, which has imported what all of them need."""
    processes = multiprocessing.get_context("fork")
    ours, theirs = processes.Pipe(duplex=False)
    child = processes.Process(target=_send, args=(name, steps, skipped, theirs))
    child.start()
    theirs.close()
    try:
        if not ours.poll(limit):
            return {"failed": f"longer than {limit:g} s"}
        found: dict[str, Any] = ours.recv()
        return found
    except EOFError:
        child.join()
        return {"failed": f"the process ended by {child.exitcode}"}
    finally:
        child.kill()
        child.join()


def _print_compiled(row: dict[str, Any]) -> None:
    print(f"  compiled steps {row['text']}")
    print(f"  {row['graphs']} graphs of {row['nodes']} nodes, {sum(row['breaks'].values())} breaks")
    for why, count in row["breaks"].items():
        print(f"  {count:5} times dynamo stops  {why}")
    for operator, count in row["left"].items():
        print(f"  {count:5} left to torch  {operator}")
    for operator, (count, why) in row["fallbacks"].items():
        print(f"  {count:5} on the CPU, compiled  {operator}: {why}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *MODELS], help="all without any")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--limit", type=float, default=300, help="seconds for a model")
    parser.add_argument("--skip", nargs="+", default=[], metavar="compile", help="of what is tried")
    parser.add_argument("--record", type=Path, help="a file of JSON lines; goes on where it ended")
    options = parser.parse_args()
    torch.set_num_threads(1)  # nothing runs on other threads where the process forks
    for library in ("transformers", "timm", "diffusers"):
        importlib.import_module(library)
    known: dict[str, Any] = {}
    if options.record is not None and options.record.exists():
        known = dict(map(json.loads, options.record.read_text().splitlines()))
    print_head()
    agree, native, compiled, names = 0, 0, 0, options.names or list(MODELS)
    for name in names:
        row = known.get(name) or _run_apart(name, options.steps, options.skip, options.limit)
        if options.record is not None and name not in known:
            with options.record.open("a", encoding="utf-8") as file:
                file.write(f"{json.dumps([name, row])}\n")
        what = f"{name} ({MODELS[name][0]})"
        if "failed" in row:
            print_figure(what, f"FAILS: {row['failed']}", "agrees")
            continue
        wrong = {key: text for key, text in row["more"].items() if text}
        share = row["native"] / (row["native"] + row["cpu"])
        agree += row["is_within"] and not wrong
        compiled += row.get("compiled", {}).get("is_within", False)
        native += share >= 0.99
        right = ", ".join(key for key, text in row["more"].items() if not text)
        print_figure(what, f"{row['text']}; also {right}", "within, 99 %")
        for key, text in wrong.items():
            print(f"  {key} FAILS: {text}")
        if "compiled" in row:
            _print_compiled(row["compiled"])
        for operator, (count, why) in row["fallbacks"].items():
            print(f"  {count:5} on the CPU  {operator}: {why}")
    print_figure("architectures that agree in all", f"{agree} of {len(names)}", "all")
    if "compile" not in options.skip:
        print_figure("compiled steps that agree", f"{compiled} of {len(names)}", "all")
    print_figure("native in 99 % of calls", f"{native} of {len(names)}", "38 of 40")


if __name__ == "__main__":
    main()
