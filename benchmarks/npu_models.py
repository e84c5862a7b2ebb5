"""Models trained on `npu` beside the CPU: errors, and the share of the calls that kernels serve.

    python benchmarks/npu_models.py [NAME ...] [--types float32 float16 bfloat16] [--steps 20]
    python benchmarks/npu_models.py --layer

Small models of `transformers` with random weights, and a residual network in resnet50's shape, with
AdamW: float32, and autocast in float16 (with a gradient scaler) and bfloat16. The truth is the
same training in float64 on the CPU: float32 that a model asks for on its way, as transformers does
for norms and losses, is float64 there too. What is compared is how far from it the device and the
CPU get in the same type: the logits and the gradients of the first step (norm of the difference,
over all parameters), and the worst loss of all steps, as a share of the first. The CPU runs
several times, with weights that differ by a rounding of the type: where a ReLU's input is nearly
0, a rounding decides about a whole gradient. Within: no further off than twice the CPU's worst, or
than PyTorch's own tests allow in that type. `--layer` times a BERT-base layer.
"""

from __future__ import annotations

import argparse
import copy
import importlib
import time
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from measure import compare, pin_to_one_core
from table import print_figure, print_head
from torch import nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

t: Any = importlib.import_module("transformers")
_WORDS = 100
_CPU_RUNS = 4
_SIZES: dict[str, Any] = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 128,
}
_NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
_TOLERANCES = {torch.float32: 1.3e-6, torch.float16: 1e-3, torch.bfloat16: 1.6e-2}
"""Those of torch.testing.assert_close: what a result may be off by where the CPU was lucky."""


class Bottleneck(nn.Module):
    """1x1, 3x3 and 1x1 convolutions with batch norms around an identity, as resnet50 has them."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        sizes = [(inputs, width, 1, 1), (width, width, 3, stride), (width, 4 * width, 1, 1)]
        self.convolutions = nn.ModuleList(
            nn.Conv2d(a, b, size, step, size // 2, bias=False) for a, b, size, step in sizes
        )
        self.norms = nn.ModuleList(nn.BatchNorm2d(b) for _, b, _, _ in sizes)
        # What a block adds is small at first: a rounding would grow through sixteen of them.
        nn.init.constant_(self.norms[2].weight, 0.25)
        self.shortcut = nn.Sequential()
        if stride != 1 or inputs != 4 * width:
            convolution = nn.Conv2d(inputs, 4 * width, 1, stride, bias=False)
            self.shortcut = nn.Sequential(convolution, nn.BatchNorm2d(4 * width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.relu(self.norms[0](self.convolutions[0](x)))
        y = F.relu(self.norms[1](self.convolutions[1](y)))
        return F.relu(self.norms[2](self.convolutions[2](y)) + self.shortcut(x))


class Residual(nn.Module):
    """Resnet50's stages of 3, 4, 6 and 3 blocks; its own width is 64."""

    def __init__(self, width: int = 4, classes: int = 10) -> None:
        super().__init__()
        first = nn.Conv2d(3, width, 7, 2, 3, bias=False)
        layers: list[nn.Module] = [first, nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
        inputs = width
        for stage, count in enumerate((3, 4, 6, 3)):
            for block in range(count):
                own = width << stage
                layers.append(Bottleneck(inputs, own, 2 if stage and not block else 1))
                inputs = 4 * own
        self.layers = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.head = nn.Linear(inputs, classes)

    def forward(self, pixel_values: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        logits = self.head(self.layers(pixel_values))
        return {"loss": F.cross_entropy(logits, labels), "logits": logits}


def _tokens() -> dict[str, torch.Tensor]:
    ids = torch.randint(3, _WORDS, (2, 16))
    return {"input_ids": ids, "labels": ids}


def _images(side: int, count: int) -> dict[str, torch.Tensor]:
    return {
        "pixel_values": torch.randn(count, 3, side, side),
        "labels": torch.randint(0, 10, (count,)),
    }


def _llama() -> nn.Module:
    words = {"vocab_size": _WORDS, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
    return t.LlamaForCausalLM(t.LlamaConfig(**_SIZES, **words, num_key_value_heads=2))


def _bert() -> nn.Module:
    return t.BertForMaskedLM(t.BertConfig(**_SIZES, **_NO_DROPOUT, vocab_size=_WORDS))


def _gpt2() -> nn.Module:
    sizes = {"n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 32, "vocab_size": _WORDS}
    dropout = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    ends = {"bos_token_id": 1, "eos_token_id": 2}
    return t.GPT2LMHeadModel(t.GPT2Config(**sizes, **dropout, **ends))


def _vit() -> nn.Module:
    images = {"image_size": 16, "patch_size": 4, "num_labels": 10}
    return t.ViTForImageClassification(t.ViTConfig(**_SIZES, **_NO_DROPOUT, **images))


MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[], dict[str, torch.Tensor]]]] = {
    "Llama": (_llama, _tokens),
    "BERT": (_bert, _tokens),
    "GPT-2": (_gpt2, _tokens),
    "ViT": (_vit, lambda: _images(16, 2)),
    "resnet50": (Residual, lambda: _images(32, 8)),
}
TYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}


@dataclass
class Run:
    """What a training gave."""

    losses: list[float]
    logits: torch.Tensor
    """Of the first forward, float64."""
    gradients: torch.Tensor
    """Of all parameters after the first backward, one behind the other, float64."""

    def errors(self, truth: Run) -> tuple[float, float, float]:
        """Return relative errors: logits, gradients, worst loss of all steps."""
        first = abs(truth.losses[0])
        off = [abs(a - b) / first for a, b in zip(self.losses, truth.losses, strict=True)]
        logits = (self.logits - truth.logits).norm() / truth.logits.norm()
        gradients = (self.gradients - truth.gradients).norm() / truth.gradients.norm()
        return logits.item(), gradients.item(), max(off)


def first_of(results: Any) -> torch.Tensor:
    """Return the first tensor of floats in what a model returns, beside its loss."""
    if isinstance(results, torch.Tensor):
        return results
    values = results.values() if hasattr(results, "values") else vars(results).values()
    for value in list(values):
        if isinstance(value, torch.Tensor) and value.is_floating_point() and value.dim() > 0:
            return value
    raise TypeError(f"{type(results).__name__} has no tensor")


def loss_of(results: Any) -> torch.Tensor:
    """Return a model's loss; of one that gives none, how far its result is from 1."""
    loss = getattr(results, "loss", None)
    if loss is None and hasattr(results, "keys") and "loss" in results:
        loss = results["loss"]
    return loss if loss is not None else (first_of(results) - 1).square().mean()


def moved(given: dict[str, Any], device: str, dtype: torch.dtype = torch.float32) -> dict[str, Any]:
    """Return a model's arguments on a device; tensors of floats have the data type there."""
    return {
        key: value.to(device, dtype if value.is_floating_point() else None)
        if isinstance(value, torch.Tensor)
        else value
        for key, value in given.items()
    }


class AllInFloat64(TorchFunctionMode):
    """Computes in float64 what a model asks to have in float32, or in no type by name."""

    def __enter__(self) -> AllInFloat64:
        self._before = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        torch.set_default_dtype(self._before)

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        def widened(value: Any) -> Any:
            return torch.float64 if value is torch.float32 else value

        if function is torch.Tensor.float:
            function = torch.Tensor.double
        named = {key: widened(value) for key, value in (kwargs or {}).items()}
        return function(*map(widened, args), **named)


def train(
    model: nn.Module,
    inputs: dict[str, Any],
    device: str,
    dtype: torch.dtype,
    steps: int,
    rate: float = 1e-3,
    *,
    is_compiled: bool = False,
) -> Run:
    """Take AdamW's steps on one batch; half types by autocast, float16 with a gradient scaler.

    Args:
        is_compiled: the model's forward and backward are opkit's graphs.
    """
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    model = copy.deepcopy(model).to(device, wide).train()
    if wide == torch.float64 and hasattr(model, "set_experts_implementation"):
        model.set_experts_implementation("eager")  # PyTorch's grouped_mm takes no float64
    given = moved(inputs, device, wide)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    is_half = dtype in (torch.float16, torch.bfloat16)
    scaler = torch.amp.GradScaler(device, init_scale=16.0, enabled=dtype == torch.float16)
    losses, logits, gradients = [], torch.empty(0), torch.empty(0)
    call = torch.compile(model, backend="opkit") if is_compiled else model
    context: Any = torch.autocast(device, dtype=dtype) if is_half else nullcontext()
    if wide == torch.float64:
        context = AllInFloat64()
    for step in range(steps):
        optimizer.zero_grad()
        with context:
            results = call(**given)
            loss = loss_of(results)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        if step == 0:
            logits = first_of(results).detach().cpu().double()
            parts = [p.grad for p in model.parameters() if p.grad is not None]
            gradients = torch.cat([part.detach().cpu().double().flatten() for part in parts])
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    return Run(losses, logits, gradients)


def nudged(model: nn.Module, dtype: torch.dtype, seed: int) -> nn.Module:
    """Return a copy whose weights differ by up to a rounding of the type; itself for seed 0."""
    made, generator = copy.deepcopy(model), torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in made.parameters() if seed else ():
            noise = torch.rand(weight.shape, generator=generator) * 2 - 1
            weight.mul_(1 + torch.finfo(dtype).eps / 2 * noise)
    return made


@dataclass
class Judgement:
    """How far a training on `npu` is from float64, and how far trainings on the CPU are."""

    ours: tuple[float, float, float]
    """Relative errors: logits, gradients, worst loss of all steps (`Run.errors`)."""
    theirs: tuple[float, float, float]
    """The worst of the CPU's runs."""
    is_within: bool
    native: int
    """Calls that kernels served."""
    cpu: int
    seconds: float
    """What the training on `npu` took."""

    def text(self) -> str:
        """Say it in one cell of a table: the device's errors and the CPU's, and its calls."""
        errors = ", ".join(
            f"{a:.1e} / {b:.1e}" for a, b in zip(self.ours, self.theirs, strict=True)
        )
        share = self.native / (self.native + self.cpu)
        calls = f"native {share:.1%} of {self.native + self.cpu} calls, {self.seconds:.0f} s"
        return f"{'within' if self.is_within else 'DIFFERS'}: {errors}; {calls}"


def judge(
    model: nn.Module,
    given: dict[str, Any],
    dtype: torch.dtype,
    steps: int,
    rate: float = 1e-3,
    *,
    is_compiled: bool = False,
) -> Judgement:
    """Train on `npu` and, several times, on the CPU, and compare both with float64."""
    truth = train(model, given, "cpu", torch.float64, steps, rate)
    runs = [
        train(nudged(model, dtype, seed), given, "cpu", dtype, steps, rate).errors(truth)
        for seed in range(_CPU_RUNS)
    ]
    logits, gradients, loss = (max(errors) for errors in zip(*runs, strict=True))
    theirs = logits, gradients, loss
    torch.npu.init()
    torch.npu.reset_fallbacks()
    begin = time.perf_counter()
    ours = train(model, given, "npu", dtype, steps, rate, is_compiled=is_compiled).errors(truth)
    seconds = time.perf_counter() - begin
    rows = torch.npu.kernel_calls()
    limit = _TOLERANCES[dtype]
    is_within = all(a <= max(2 * b, limit) for a, b in zip(ours, theirs, strict=True))
    native, cpu = sum(row.native for row in rows), sum(row.fallback for row in rows)
    return Judgement(ours, theirs, is_within, native, cpu, seconds)


def _show(name: str, dtype_names: list[str], steps: int) -> tuple[int, Counter[str]]:
    """Print a model's rows; return how many are within, and its calls."""
    make, inputs = MODELS[name]
    torch.manual_seed(0)
    model, given = make(), inputs()
    within, calls = 0, Counter[str]()
    for dtype_name in dtype_names:
        judged = judge(model, given, TYPES[dtype_name], steps)
        calls.update(native=judged.native, cpu=judged.cpu)
        within += judged.is_within
        print_figure(f"{name}, {dtype_name}", judged.text(), "within, 90 %")
        for row in torch.npu.fallbacks():
            print(f"  {row.fallback:5} on the CPU  {row.operator}: {'; '.join(row.reasons)}")
    return within, calls


def time_layer() -> None:
    """Time a BERT-base layer of transformers, batch 1 x 128, forward, on one thread."""
    pin_to_one_core()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    layer = t.models.bert.modeling_bert.BertLayer(t.BertConfig(attn_implementation="sdpa")).eval()
    x = torch.randn(1, 128, 768)
    there, y = copy.deepcopy(layer).half().to("npu"), x.half().to("npu")
    with torch.no_grad():
        pair = compare(lambda: there(y), lambda: layer(x), rounds=31)
    print_figure(
        "BERT-base layer, 1 x 128, float16 emulated / torch CPU float32, one thread",
        f"{pair.ratio:.2f} ({1e3 * pair.first_seconds:.1f} / {1e3 * pair.second_seconds:.1f} ms)",
        "<= 4, goal 1.5",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *MODELS], help="all without any")
    parser.add_argument("--types", nargs="+", choices=list(TYPES), default=list(TYPES))
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--layer", action="store_true", help="time a BERT-base layer instead")
    options = parser.parse_args()
    torch.set_num_threads(1)  # two threads wait for each other where others have the cores
    from opkit.torch_npu.build import kernel_library
    from opkit.torch_npu.native import load

    load().opkit_npu_kernels(str(kernel_library()).encode())
    print(f"transformers {t.__version__}, torch {torch.__version__}\n")
    print_head()
    if options.layer:
        time_layer()
        return
    names = options.names or list(MODELS)
    within, calls = 0, Counter[str]()
    for name in names:
        own, counted = _show(name, options.types, options.steps)
        within, calls = within + own, calls + counted
    of = len(names) * len(options.types)
    print_figure("models that agree, by type", f"{within} of {of}", "all")
    print_figure("calls that kernels serve", f"{calls['native'] / calls.total():.1%}", ">= 90 %")


if __name__ == "__main__":
    main()
