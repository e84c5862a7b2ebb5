"""PyTorch's own lists of operators, modules and optimizers, run on `npu` beside the CPU.

The lists are those of the installed wheel (`torch.testing._internal`). What the CPU refuses is no
test. A pass on the CPU fallback counts as fallback.
"""

from __future__ import annotations

import contextlib
import copy
import itertools
import re
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.nn.parameter import is_lazy

__all__ = [
    "Tally",
    "run_errors",
    "run_layouts",
    "run_modules",
    "run_mutations",
    "run_operators",
    "run_optimizers",
    "run_outputs",
]

TYPES = (
    torch.float32,
    torch.float16,
    torch.bfloat16,
    torch.int8,
    torch.int32,
    torch.int64,
    torch.bool,
)
FLOATS = TYPES[:3]
TOLERANCE = {torch.float32: 1e-4, torch.float16: 4e-3, torch.bfloat16: 4e-2}
# Their results are of chance, or memory that nobody wrote.
NO_REFERENCE = re.compile(
    r"empty|rand|normal|bernoulli|multinomial|dropout|uniform|exponential|cauchy|geometric|"
    r"log_normal|poisson|new_empty|resize|rrelu|jiterator"
)


@dataclass
class Tally:
    """What a suite has found."""

    passed: int = 0
    native: int = 0
    """Tests that only kernels served."""
    failures: list[str] = field(default_factory=list)
    calls: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)

    @property
    def tests(self) -> int:
        return self.passed + len(self.failures)

    def judge(self, name: str, expected: Any, run: Callable[[], Any], exact: Any = None) -> None:
        """Compare what `run` gives on the device with what the CPU gave.

        With `exact`, the CPU's float32 results, errors up to twice the CPU's own pass too: half
        types in long chains differ by what each rounds.
        """
        torch.npu.reset_fallbacks()
        try:
            actual = run()
            wrong = difference(actual, expected)
            if wrong is not None and exact is not None and is_as_near(actual, expected, exact):
                wrong = None
        except Exception as error:
            wrong = f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"
        rows = torch.npu.kernel_calls()
        on_the_cpu = sum(row.fallback for row in rows)
        self.calls["native"] += sum(row.native for row in rows)
        self.calls["cpu"] += on_the_cpu
        self.native += on_the_cpu == 0
        for row in rows:
            for why, count in row.reasons.items():
                self.reasons[f"{row.operator}: {why}"] += count
        if wrong is None:
            self.passed += 1
        else:
            self.failures.append(f"{name}: {wrong}")

    def print(self) -> None:
        for failure in self.failures:
            print(failure)
        tests, calls = max(self.tests, 1), max(sum(self.calls.values()), 1)
        print(f"tests: {self.tests}; passed: {100 * self.passed / tests:.2f} %")
        print(f"tests that only kernels served: {100 * self.native / tests:.1f} %")
        print(f"calls that kernels served: {100 * self.calls['native'] / calls:.1f} %")
        for why, count in self.reasons.most_common(25):
            print(f"  {count:6} on the CPU  {why}")


def to_device(value: Any, device: str) -> Any:
    def move(x: torch.Tensor) -> torch.Tensor:
        return x.detach().to(device).requires_grad_(x.requires_grad)

    return torch.utils._pytree.tree_map_only(torch.Tensor, move, value)


def difference(actual: Any, expected: Any) -> str | None:
    ours, theirs = (
        [x for x in torch.utils._pytree.tree_leaves(value) if isinstance(x, torch.Tensor)]
        for value in (actual, expected)
    )
    if len(ours) != len(theirs):
        return f"{len(ours)} tensors instead of {len(theirs)}"
    for mine, other in zip(ours, theirs, strict=True):
        if mine.device.type != "npu" and other.numel() and mine.device.type != "cpu":
            return f"a result on {mine.device}"
        tolerance = TOLERANCE.get(other.dtype, 0)
        try:
            torch.testing.assert_close(
                mine.detach().cpu(), other.detach(), rtol=tolerance, atol=tolerance, equal_nan=True
            )
        except AssertionError as error:
            return " ".join(str(error).split())[:160]
    return None


def is_as_near(actual: Any, expected: Any, exact: Any) -> bool:
    """Whether results are no further from the exact ones than twice the CPU's are."""

    def worst(values: Any) -> list[float]:
        found = [x for x in torch.utils._pytree.tree_leaves(values) if torch.is_tensor(x)]
        return [
            (x.detach().cpu().double() - e.detach().double()).abs().max().item() if e.numel() else 0
            for x, e in zip(found, right, strict=True)
        ]

    right = [x for x in torch.utils._pytree.tree_leaves(exact) if torch.is_tensor(x)]
    return all(a <= 2 * b for a, b in zip(worst(actual), worst(expected), strict=True))


def run_operators(
    step: int, names: list[str], samples: int, seconds: float = float("inf")
) -> tuple[Tally, int]:
    """Run each `step`-th operator of op_db; return what was found and how many operators ran."""
    tally, done = Tally(), 0
    for op in _operators(step, names, seconds):
        done += 1
        for dtype in TYPES:
            if not op.supports_dtype(dtype, "cpu"):
                continue
            for index, sample in enumerate(_samples(op, dtype, samples)):
                try:
                    expected = _call(op, sample, "cpu")
                except Exception:
                    continue
                name = f"{op.formatted_name} {dtype} sample {index}"
                tally.judge(name, expected, lambda op=op, x=sample: _call(op, x, "npu"))
    return tally, done


def _operators(step: int, names: list[str], seconds: float) -> Iterator[Any]:
    """Yield each `step`-th operator of op_db that has a reference, for at most so many seconds."""
    from torch.testing._internal.common_methods_invocations import op_db

    warnings.simplefilter("ignore")
    begin = time.monotonic()
    for op in [op for op in op_db if not names or op.name in names][::step]:
        if time.monotonic() - begin > seconds:
            return
        if not NO_REFERENCE.search(op.name):
            yield op


def _strided(x: torch.Tensor) -> torch.Tensor:
    """Each second element of a wider tensor, from an odd place of its memory on."""
    wide = x.new_zeros((*x.shape[:-1], 2 * x.shape[-1] + 1))
    wide[..., 1::2] = x
    return wide[..., 1::2]


def _turned(x: torch.Tensor) -> torch.Tensor:
    order = tuple(reversed(range(x.dim())))
    return x.permute(order).contiguous().permute(order)


def _expanded(x: torch.Tensor) -> torch.Tensor:
    return x[:1].expand(x.shape)


LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "turned": _turned,
    "strided": _strided,
    "expanded": _expanded,
    "channels last": lambda x: x.contiguous(memory_format=torch.channels_last),
}


def run_layouts(step: int, names: list[str], seconds: float) -> tuple[Tally, int]:
    """Run operators with operands that lie otherwise than one element after the other."""
    tally, done = Tally(), 0
    for op in _operators(step, names, seconds):
        done += 1
        for dtype, (layout, lay) in itertools.product(
            (torch.float32, torch.float16, torch.int64, torch.bool), LAYOUTS.items()
        ):
            if not op.supports_dtype(dtype, "cpu"):
                continue
            for index, sample in enumerate(_samples(op, dtype, 3)):

                def call(device: str, given: Any = sample, lay: Any = lay, op: Any = op) -> Any:
                    # Copies to a device keep no stride of 0: each device lays its own.
                    moved = to_device((given.input, given.args, given.kwargs), device)
                    x, args, kwargs = torch.utils._pytree.tree_map_only(
                        torch.Tensor, lambda t: _laid(t, lay), moved
                    )
                    return op(
                        x, *args, **({**kwargs, "device": device} if "device" in kwargs else kwargs)
                    )

                try:
                    expected = call("cpu")
                except Exception:
                    continue
                name = f"{op.formatted_name} {dtype} {layout} sample {index}"
                tally.judge(name, expected, lambda call=call: call("npu"))
    return tally, done


def _laid(x: torch.Tensor, lay: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    is_plain = x.layout == torch.strided and not x.is_nested and not x.is_quantized
    if not is_plain or x.dim() == 0 or (lay is LAYOUTS["channels last"] and x.dim() != 4):
        return x
    return lay(x.detach()).requires_grad_(x.requires_grad)


def run_outputs(step: int, names: list[str], seconds: float) -> tuple[Tally, int]:
    """Run operators with `out=`: as it has to be, strided, empty, of other shapes and types, one of
    the inputs. Where the CPU refuses, the device has to."""
    tally, done = Tally(), 0
    for op in _operators(step, names, seconds):
        if not op.supports_out:
            continue
        done += 1
        for dtype in (torch.float32, torch.float16, torch.int64):
            if not op.supports_dtype(dtype, "cpu"):
                continue
            for sample in _samples(op, dtype, 1):
                try:
                    plain = _call(op, sample, "cpu")
                except Exception:
                    continue
                if not isinstance(plain, torch.Tensor):
                    continue
                for kind, make in OUTPUTS.items():
                    if kind == "expanded" and op.name in BEYOND_EXPANDED:
                        continue
                    name = f"{op.formatted_name} {dtype} out= {kind}"
                    _judge_refusal(
                        tally, name, lambda d, m=make, p=plain, s=sample, o=op: _into(o, s, m, p, d)
                    )
    return tally, done


OUTPUTS: dict[str, Callable[[torch.Tensor, Any], torch.Tensor]] = {
    "right": lambda y, _: torch.full_like(y, 1),
    "empty": lambda y, _: y.new_empty(0),
    "of another shape": lambda y, _: y.new_ones((*y.shape, 2)),
    "strided": lambda y, _: _strided(y.new_ones(y.shape)) if y.dim() else y.new_ones(()),
    "turned": lambda y, _: _turned(y.new_ones(y.shape)),
    "of double": lambda y, _: y.new_ones(y.shape, dtype=torch.float64),
    "of half": lambda y, _: y.new_ones(y.shape, dtype=torch.float16),
    "of int32": lambda y, _: y.new_ones(y.shape, dtype=torch.int32),
    "expanded": lambda y, _: y.new_ones((1,) * y.dim()).expand(y.shape),
    "the input": lambda y, x: x,
}


BEYOND_EXPANDED = ("nn.functional.avg_pool3d", "narrow_copy")
"""Operators that write beyond an expanded `out=` on the CPU, which ends the process."""


def _into(op: Any, sample: Any, make: Any, plain: torch.Tensor, device: str) -> Any:
    x, args, kwargs = to_device((sample.input, sample.args, sample.kwargs), device)
    x, args, kwargs = torch.utils._pytree.tree_map_only(
        torch.Tensor, lambda t: t.detach().clone(), (x, args, kwargs)
    )
    out = make(plain.detach().to(device), x)
    result = op.op(
        x, *args, **{**kwargs, **({"device": device} if "device" in kwargs else {})}, out=out
    )
    return [result, out]


def _judge_refusal(tally: Tally, name: str, call: Callable[[str], Any]) -> None:
    """Compare a call on both devices; what the CPU refuses has to be refused."""
    try:
        expected = call("cpu")
    except Exception as error:
        said = " ".join(str(error).split())[:120]
        _judge_refused(tally, name, call, f"{type(error).__name__}: {said}")
        return
    tally.judge(name, expected, lambda: call("npu"))


def _judge_refused(tally: Tally, name: str, call: Callable[[str], Any], on_cpu: str) -> None:
    """The device has to refuse a call; `on_cpu`: what becomes of it there."""
    torch.npu.reset_fallbacks()
    try:
        call("npu")
    except Exception:
        tally.passed += 1
        tally.native += 1
    else:
        tally.failures.append(f"{name}: not refused; the CPU: {on_cpu}")


def run_errors(step: int, names: list[str], seconds: float) -> tuple[Tally, int]:
    """Run what op_db says that operators refuse (`error_inputs`)."""
    tally, done = Tally(), 0
    for op in _operators(step, names, seconds):
        if op.error_inputs_func is None:
            continue
        done += 1
        given: dict[str, list[Any]] = {}
        with contextlib.suppress(Exception):  # what PyTorch cannot make for the CPU is no test
            # Made on each device: a copy from one to the other would not overlap itself.
            given = {device: list(op.error_inputs(device)) for device in ("cpu", "npu")}
        for index in range(len(given.get("cpu", ()))):
            _judge_refusal(
                tally,
                f"{op.formatted_name} error {index}",
                lambda device, g=given, i=index, o=op: _as_given(o, g[device][i].sample_input),
            )
    return tally, done


MUTATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "shorter": lambda x: x.narrow(-1, 0, x.shape[-1] - 1) if x.dim() and x.shape[-1] > 1 else x,
    "fewer rows": lambda x: x.narrow(0, 0, x.shape[0] - 1) if x.dim() > 1 and x.shape[0] > 1 else x,
    "of one dim more": lambda x: torch.stack((x, x)),
    "of none": lambda x: x.flatten()[0] if x.numel() else x,
    "half": lambda x: x.half() if x.dtype != torch.float16 else x.float(),
    "whole": lambda x: x.long() if x.dtype != torch.int64 else x.int(),
    "double": lambda x: x.double(),
    "empty": lambda x: x[:0] if x.dim() else x,
}


READS_BEYOND = ("native_batch_norm", "_native_batch_norm_legit", "_batch_norm_with_update")
READS_BEYOND_EMPTY = ("nn.functional.embedding_bag",)
"""Operators that read beyond weights and statistics of fewer elements, or of none, on the CPU,
which can end the process: the device has to refuse them."""


def run_mutations(step: int, names: list[str], seconds: float) -> tuple[Tally, int]:
    """Run operators with one of their tensors of another shape or type: where the CPU takes it, the
    values have to be the same, and where it refuses, the device has to."""
    tally, done = Tally(), 0
    for op in _operators(step, names, seconds):
        done += 1
        if not op.supports_dtype(torch.float32, "cpu"):
            continue
        for index, sample in enumerate(_samples(op, torch.float32, 6)):
            given = (sample.input, sample.args, sample.kwargs)
            leaves, spec = torch.utils._pytree.tree_flatten(given)
            places = [i for i, x in enumerate(leaves) if isinstance(x, torch.Tensor)]
            plain = [i for i in places if leaves[i].layout == torch.strided]
            for place, (kind, change) in itertools.product(plain, MUTATIONS.items()):
                changed = change(leaves[place].detach())
                if changed.shape == leaves[place].shape and changed.dtype == leaves[place].dtype:
                    continue

                given = [*leaves[:place], changed, *leaves[place + 1 :]]
                mutant = _Sample(*torch.utils._pytree.tree_unflatten(given, spec))

                def call(device: str, mutant: Any = mutant, op: Any = op) -> Any:
                    with torch.no_grad():
                        return _call(op, mutant, device)

                name = f"{op.formatted_name} sample {index} tensor {place} {kind}"
                has_other_size = changed.numel() != leaves[place].numel()
                reads_beyond = op.name in READS_BEYOND and has_other_size
                reads_beyond |= op.name in READS_BEYOND_EMPTY and changed.numel() == 0
                if reads_beyond and place != places[0]:
                    _judge_refused(tally, name, call, "it reads beyond")
                else:
                    _judge_refusal(tally, name, call)
    return tally, done


@dataclass
class _Sample:
    input: Any
    args: Any
    kwargs: Any


def _as_given(op: Any, sample: Any) -> Any:
    return op(sample.input, *sample.args, **sample.kwargs)


def _samples(op: Any, dtype: torch.dtype, count: int) -> list[Any]:
    try:
        return list(itertools.islice(op.sample_inputs("cpu", dtype), count))
    except Exception:  # what PyTorch cannot make for the CPU is no sample
        return []


def _call(op: Any, sample: Any, device: str) -> Any:
    inputs = to_device(sample.input, device)
    # Its numbers stay with the host on any device.
    args = sample.args if op.name == "tensor_split" else to_device(sample.args, device)
    kwargs = dict(to_device(sample.kwargs, device))
    if "device" in kwargs:
        kwargs["device"] = device
    return op(inputs, *args, **kwargs)


def run_modules(step: int) -> Tally:
    """Run each `step`-th module of module_db: outputs and gradients, training and evaluation."""
    from torch.testing._internal.common_modules import module_db

    warnings.simplefilter("ignore")
    tally = Tally()
    for info in module_db[::step]:
        for dtype, training in itertools.product(FLOATS, (True, False)):
            if dtype not in info.dtypes and dtype == torch.float32:
                continue
            torch.manual_seed(0)
            try:
                inputs = info.module_inputs_func(
                    info, device="cpu", dtype=dtype, requires_grad=True, training=training
                )
            except Exception:
                continue
            for index, given in enumerate(inputs):
                mode = "training" if training else "evaluation"
                name = f"{info.name} {dtype} {mode} input {index}"
                _judge_module(tally, name, info, given, dtype, training)
    return tally


def _judge_module(
    tally: Tally, name: str, info: Any, given: Any, dtype: torch.dtype, training: bool
) -> None:
    if re.search("Dropout|RReLU|FractionalMaxPool", info.name) and training:
        return
    try:
        torch.manual_seed(0)
        made = info.module_cls(*given.constructor_input.args, **given.constructor_input.kwargs)
        module = made.to(dtype).train(training)
        if any(is_lazy(each) for each in module.parameters()):
            # Each device draws its own weights.
            _forward_and_backward(module, given.forward_input, "cpu")
        if any(getattr(each, "dropout", 0) and training for each in module.modules()):
            return
        there, wide = copy.deepcopy(module).to("npu"), copy.deepcopy(module).float()
        expected = _forward_and_backward(module, given.forward_input, "cpu")
        exact = _forward_and_backward(wide, _widened(given.forward_input), "cpu")
    except Exception:
        return

    def run() -> list[Any]:
        return _forward_and_backward(there, given.forward_input, "npu")

    tally.judge(name, expected, run, exact if dtype != torch.float32 else None)


def _widened(given: Any) -> Any:
    def widen(x: torch.Tensor) -> torch.Tensor:
        return x.float() if x.dtype in FLOATS else x

    moved = copy.copy(given)
    moved.args, moved.kwargs = torch.utils._pytree.tree_map_only(
        torch.Tensor, widen, (given.args, given.kwargs)
    )
    return moved


def _forward_and_backward(module: torch.nn.Module, given: Any, device: str) -> list[Any]:
    args, kwargs = to_device(given.args, device), to_device(given.kwargs, device)
    outputs = [
        x
        for x in torch.utils._pytree.tree_leaves(module(*args, **kwargs))
        if isinstance(x, torch.Tensor)
    ]
    moving = [x for x in outputs if x.requires_grad]
    leaves = torch.utils._pytree.tree_leaves((args, kwargs))
    wanted = [x for x in leaves if isinstance(x, torch.Tensor) and x.requires_grad]
    wanted += list(module.parameters())
    if not moving or not wanted:
        return outputs
    total = sum((x.float().square().mean() for x in moving), torch.zeros((), device=device))
    gradients = torch.autograd.grad(total, wanted, allow_unused=True)
    return [*outputs, *(x for x in gradients if x is not None)]


def run_optimizers(steps: int = 5) -> Tally:
    """Take steps with every optimizer of optim_db, plain, foreach and fused; compare parameters."""
    from torch.testing._internal.common_optimizers import optim_db

    warnings.simplefilter("ignore")
    tally = Tally()
    for info in optim_db:
        if info.only_supports_sparse_grads:
            continue
        for given, extra in itertools.product(
            info.optim_inputs_func(device="cpu"), _implementations(info)
        ):
            kwargs = {**given.kwargs, **extra}
            named = ", ".join(f"{key}={value}" for key, value in kwargs.items())
            for dtype in FLOATS:
                name = f"{info.optim_cls.__name__} {dtype} {named}"
                # The CPU's own fused SGD steps half types wrongly (torch 2.13): its loop is right.
                is_sgd = info.optim_cls is torch.optim.SGD
                loop = {**kwargs, **dict.fromkeys(extra, False)} if is_sgd else kwargs
                try:
                    expected = _stepped(info, loop, dtype, "cpu", steps)
                except Exception:
                    continue
                tally.judge(
                    name,
                    expected,
                    lambda i=info, k=kwargs, d=dtype: _stepped(i, k, d, "npu", steps),
                )
    return tally


def _implementations(info: Any) -> Iterator[dict[str, bool]]:
    # Left to itself, PyTorch takes its loops on the CPU and foreach on devices.
    yield {"foreach": False} if "foreach" in info.supported_impls else {}
    for name in ("foreach", "fused"):
        if name in info.supported_impls:
            yield {name: True}


def _stepped(
    info: Any, kwargs: dict[str, Any], dtype: torch.dtype, device: str, steps: int
) -> list[torch.Tensor]:
    torch.manual_seed(0)
    shapes = ((5, 7), (7,), (3, 1, 2))
    parameters = [torch.randn(shape).to(dtype).to(device).requires_grad_() for shape in shapes]
    gradients = [[torch.randn(shape).to(dtype) for shape in shapes] for _ in range(steps)]
    if info.optim_cls is torch.optim.Muon:
        parameters, gradients = parameters[:1], [each[:1] for each in gradients]
    moved = {k: v.to(device) if isinstance(v, torch.Tensor) else v for k, v in kwargs.items()}
    optimizer = info.optim_cls(parameters, **moved)

    def loss() -> torch.Tensor:
        return sum((x.float().square().sum() for x in parameters), torch.zeros((), device=device))

    for row in gradients:
        for parameter, gradient in zip(parameters, row, strict=True):
            parameter.grad = gradient.to(device)
        optimizer.step(loss) if info.step_requires_closure else optimizer.step()
    return parameters
