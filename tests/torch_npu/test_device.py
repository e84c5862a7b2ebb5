"""The device as users of PyTorch see it."""

from __future__ import annotations

import contextvars
import io
import json
import os
import subprocess
import sys
import threading
import weakref
from multiprocessing.reduction import ForkingPickler
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from opkit.torch_npu import native  # noqa: E402 - needs torch


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_tensor_goes_there_and_back() -> None:
    x = torch.arange(6.0).reshape(2, 3)
    there = x.to("npu")
    assert there.device == torch.device("npu", 0)
    assert there.is_npu
    assert torch.equal(there.cpu(), x)
    assert torch.equal(x.npu().t().cpu(), x.t())


def test_tensors_print() -> None:
    text = repr(torch.ones(2, device="npu"))
    assert "1." in text and "npu:0" in text


def test_a_saved_tensor_is_loaded_to_either_side() -> None:
    buffer = io.BytesIO()
    torch.save(torch.ones(3, device="npu"), buffer)
    buffer.seek(0)
    assert torch.load(buffer).device.type == "npu"
    buffer.seek(0)
    assert torch.load(buffer, map_location="cpu").device.type == "cpu"


def test_the_accelerator_is_the_npu() -> None:
    assert torch.accelerator.current_accelerator().type == "npu"
    assert torch.accelerator.device_count() == torch.npu.device_count()


def test_random_numbers_follow_the_seed() -> None:
    torch.npu.manual_seed(3)
    first = torch.randn(5, device="npu")
    torch.npu.manual_seed(3)
    assert torch.equal(first.cpu(), torch.randn(5, device="npu").cpu())
    state = torch.npu.get_rng_state()
    again = torch.randn(5, device="npu").cpu()
    torch.npu.set_rng_state(state)
    assert torch.equal(again, torch.randn(5, device="npu").cpu())


def test_pinned_memory_is_known() -> None:
    x = torch.ones(4).pin_memory()
    assert x.is_pinned()
    assert not torch.ones(4).is_pinned()
    assert torch.equal(x.to("npu", non_blocking=True).cpu(), x)


def test_mixed_devices_are_refused() -> None:
    with pytest.raises(RuntimeError, match="same device"):
        torch.i0(torch.ones(2, device="npu")) + torch.ones(2)


def test_what_the_cpu_computes_moves_into_device_memory() -> None:
    before = torch.npu.memory_allocated()
    x = torch.arange(1000.0, device="npu")
    y = torch.i0(x)
    assert torch.npu.memory_allocated() - before == 2 * 4096
    assert torch.equal(y.cpu(), torch.i0(x.cpu()))


def test_fallbacks_are_counted_with_their_reason() -> None:
    torch.npu.reset_fallbacks()
    torch.i0(torch.ones(3, device="npu"))
    row = next(row for row in torch.npu.fallbacks() if row.operator.startswith("aten::i0"))
    assert row.fallback == 1
    assert list(row.reasons) == ["no kernel for this operator"]


def test_memory_runs_out_with_the_sizes() -> None:
    total = torch.npu.mem_get_info()[1]
    with pytest.raises(torch.OutOfMemoryError, match=r"Tried to allocate .* MiB .*total capacity"):
        torch.empty(total + 1, dtype=torch.uint8, device="npu")
    assert torch.ones(1, device="npu").item() == 1


def test_figures_of_the_allocator_are_those_of_a_hand_count() -> None:
    torch.npu.empty_cache()
    before = torch.npu.memory_allocated()
    torch.npu.reset_peak_memory_stats()
    small = torch.empty(100, dtype=torch.uint8, device="npu")  # 512 bytes
    large = torch.empty(3 << 20, dtype=torch.uint8, device="npu")  # as it is
    assert torch.npu.memory_allocated() - before == 512 + (3 << 20)
    del large
    assert torch.npu.memory_allocated() - before == 512
    assert torch.npu.max_memory_allocated() - before == 512 + (3 << 20)
    assert "Allocated memory" in torch.npu.memory_summary()
    del small


def test_the_snapshot_names_the_line_that_allocated() -> None:
    torch.npu.record_memory_history()
    x = torch.empty(5 << 20, dtype=torch.uint8, device="npu")
    try:
        snapshot = torch.npu.memory_snapshot()
    finally:
        torch.npu.record_memory_history(None)
    blocks = [b for s in snapshot["segments"] for b in s["blocks"] if b["address"] == x.data_ptr()]
    assert blocks[0]["state"] == "active_allocated"
    assert any(frame["filename"] == __file__ for frame in blocks[0]["frames"])
    assert any(event["action"] == "alloc" for event in snapshot["device_traces"][0])


def test_figures_of_another_kind_of_device_are_refused() -> None:
    # memory_allocated("cpu") gave those of the current npu.
    with pytest.raises(ValueError, match="cpu is no npu"):
        torch.npu.memory_allocated("cpu")
    with pytest.raises(ValueError, match="cpu:0 is no npu"):
        torch.npu.set_device(torch.device("cpu", 0))
    assert torch.npu.memory_allocated("npu:0") == torch.npu.memory_allocated(0)


def test_settings_of_the_allocator_are_checked() -> None:
    from opkit.errors import UsageError

    torch.npu.set_allocator_settings(max_split_size_mb=128, garbage_collection_threshold=0.8)
    with pytest.raises(UsageError, match="no setting"):
        torch.npu.set_allocator_settings(max_split=1)
    with pytest.raises(UsageError, match="max_split_size_mb is 20 or more"):
        torch.npu.set_allocator_settings("max_split_size_mb:1")
    torch.npu.set_allocator_settings(max_split_size_mb=-1, garbage_collection_threshold=0)


def test_threads_share_the_device() -> None:
    results: list[float] = []

    def work() -> None:
        x = torch.ones(100, device="npu")
        results.append(float((x + x).sum()))

    threads = [threading.Thread(target=work) for _ in range(200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [200.0] * 200


def test_events_measure_modelled_time() -> None:
    begin, end = torch.npu.Event(enable_timing=True), torch.npu.Event(enable_timing=True)
    x = torch.ones(1 << 16, device="npu")
    begin.record()
    x = x + x
    end.record()
    one = begin.elapsed_time(end)
    begin.record()
    for _ in range(3):
        x = x + x
    end.record()
    assert one > 0
    assert begin.elapsed_time(end) == pytest.approx(3 * one, rel=0.3)


def test_streams_take_the_devices_events() -> None:
    event, later = torch.npu.Event(enable_timing=True), torch.npu.Event(enable_timing=True)
    stream = torch.npu.Stream()
    with pytest.raises(RuntimeError, match="must be recorded"):
        event.elapsed_time(later)
    event.record()
    stream.wait_event(event)
    stream.record_event(later)
    assert isinstance(event, torch.Event)
    assert event.elapsed_time(later) == 0
    assert later.query()


@pytest.mark.slow
def test_the_entry_point_makes_the_device() -> None:
    done = run("import torch; print(torch.ones(3, device='npu').sum().item())")
    assert done.stdout.strip() == "3.0", done.stderr


@pytest.mark.slow
def test_the_device_can_be_left_off() -> None:
    done = run("import torch; print(hasattr(torch, 'npu'))", OPKIT_NPU="0")
    assert done.stdout.strip() == "False", done.stderr


@pytest.mark.slow
def test_there_are_as_many_devices_as_asked_for() -> None:
    code = """
import torch
x = torch.ones(3, device="npu:1")
y = torch.ones(3, device="npu:0")
try:
    x + y
except RuntimeError as error:
    print("device" in str(error))
print(x.device, (x * 2).device, torch.npu.device_count())
"""
    done = run(code, OPKIT_NPU_COUNT="2")
    assert done.stdout.split("\n")[:2] == ["True", "npu:1 npu:1 2"], done.stderr


@pytest.mark.slow
def test_fallbacks_can_be_forbidden() -> None:
    done = run("import torch; torch.i0(torch.ones(3, device='npu'))", OPKIT_FALLBACK="error")
    assert "aten::i0" in done.stderr and "OPKIT_FALLBACK=error" in done.stderr


@pytest.mark.slow
def test_a_script_under_opkit_run_imports_torch_npu(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import torch, torch_npu\n"
        "q = torch.randn(1, 2, 8, 16, device='npu')\n"
        "out = torch_npu.npu_fusion_attention(q, q, q, 2, 'BNSD', scale=0.25)[0]\n"
        "ref = torch.nn.functional.scaled_dot_product_attention(q.cpu(), q.cpu(), q.cpu())\n"
        "print(torch.allclose(out.cpu(), ref, atol=1e-5), torch_npu.npu.is_available())\n",
        encoding="utf-8",
    )
    argv = [sys.executable, "-m", "opkit", "run", str(script)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "True True", done.stderr


@pytest.mark.slow
def test_a_model_is_checked_and_profiled_operator_by_operator(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import torch\n"
        "x = torch.randn(32, 32, device='npu').requires_grad_()\n"
        "torch.nn.functional.gelu(x @ x).sum().backward()\n",
        encoding="utf-8",
    )
    page = tmp_path / "page.html"
    for command, options, expected in (
        ("check", (), "no findings"),
        ("profile", ("--html", str(page)), "gelu_backward"),
        ("profile", ("--json",), '"model"'),
    ):
        argv = [sys.executable, "-m", "opkit", command, *options, "--", str(script)]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        assert expected in done.stdout, done.stderr
    assert "Lines of Python" in page.read_text("utf-8")
    model = json.loads(done.stdout)["model"]
    (line,) = [row for row in model["lines"] if row["name"] == "script.py:3"]
    assert line["backward_us"] > 0 and line["task_us"] <= model["task_us"]


@pytest.mark.slow
def test_a_fault_can_wait_for_the_next_synchronisation() -> None:
    code = """
import torch
from opkit.torch_npu.build import kernel_library
from opkit.torch_npu.native import load
load().opkit_npu_kernels(str(kernel_library()).encode())
x = torch.ones(600, device="npu")
x.untyped_storage().resize_(0)
def launch():
    return x + 1
for wait in (torch.npu.synchronize, torch.npu.current_stream().synchronize, lambda: y.cpu()):
    try:
        y = launch()
        print("launched", end=" ")
        wait()
    except RuntimeError as error:
        print("add.out on npu" in str(error), "<string>:9" in str(error))
torch.npu.synchronize()
print((torch.ones(3, device="npu") + 1).sum().item())
"""
    at_once, later = (run(code, ASCEND_LAUNCH_BLOCKING=value) for value in "10")
    assert at_once.stdout.split("\n")[:4] == [*["True False"] * 3, "6.0"], at_once.stderr
    assert later.stdout.split("\n")[:4] == [*["launched True True"] * 3, "6.0"], later.stderr


@pytest.mark.slow
def test_many_steps_leave_memory_where_it_was() -> None:
    model = torch.nn.Linear(4, 4).to("npu")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x = torch.randn(2, 4, device="npu")

    def step() -> None:
        optimizer.zero_grad()
        model(x).square().sum().backward()
        optimizer.step()

    for _ in range(10):
        step()
    before = torch.npu.memory_allocated(), torch.npu.memory_reserved()
    for _ in range(10_000):
        step()
    assert (torch.npu.memory_allocated(), torch.npu.memory_reserved()) == before


def test_scratch_memory_of_the_cpu_finds_its_allocator_again() -> None:
    # A convolution asks for its scratch by raw pointers: giving it back ended the process.
    x, weight = torch.randn(1, 2, 4, 4, 4), torch.randn(2, 2, 3, 3, 3)
    actual = torch.nn.functional.conv_transpose3d(x.npu(), weight.npu())
    expected = torch.nn.functional.conv_transpose3d(x, weight)
    torch.testing.assert_close(actual.cpu(), expected)


def test_lazily_conjugated_tensors_are_copied() -> None:
    # Resolving the conjugate of a copy's source copied it, and so on until the stack ended.
    x = torch.randn(3, dtype=torch.complex64)
    assert torch.equal(x.npu().conj().clone().cpu(), x.conj().resolve_conj())
    assert torch.equal(x.npu().conj().cpu(), x.conj())


def test_lazy_modules_take_their_shape_on_the_device() -> None:
    model = torch.nn.LazyLinear(4).to("npu")
    assert model(torch.ones(2, 3, device="npu")).shape == (2, 4)
    assert model.weight.device.type == "npu"


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_training_that_knows_of_its_quantisation() -> None:
    from torch.ao import quantization

    def losses(device: str) -> list[float]:
        torch.manual_seed(0)
        parts = (quantization.QuantStub(), torch.nn.Linear(8, 4), quantization.DeQuantStub())
        model = torch.nn.Sequential(*parts).train()
        model.qconfig = quantization.get_default_qat_qconfig("fbgemm")
        quantization.prepare_qat(model, inplace=True)
        optimizer = torch.optim.SGD(model.to(device).parameters(), lr=0.1)
        x = torch.randn(16, 8).to(device)
        found = []
        for _ in range(5):
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        return found

    assert losses("npu") == pytest.approx(losses("cpu"), rel=1e-5)


def both_ranks(code: str) -> list[tuple[str, str]]:
    """Run a script in two processes, each with its rank as argument; return what they print."""
    argv = [sys.executable, "-W", "ignore", "-c", code]
    ranks = [
        subprocess.Popen(
            [*argv, str(rank)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for rank in range(2)
    ]
    return [rank.communicate() for rank in ranks]


@pytest.mark.slow
def test_processes_share_gradients_over_hccl(tmp_path: Path) -> None:
    code = f"""
import sys, torch, torch.distributed as distributed
rank = int(sys.argv[1])
store = "file://{tmp_path}/store"
distributed.init_process_group("hccl", init_method=store, rank=rank, world_size=2)
x = torch.full((3,), rank + 1.0, device="npu")
distributed.all_reduce(x)
parts = [torch.empty(1, device="npu") for _ in range(2)]
distributed.all_gather(parts, torch.full((1,), float(rank), device="npu"))
# As SyncBatchNorm does: gloo cut the first dim, which has one place.
row = torch.empty(1, 4, device="npu")
distributed.all_gather_into_tensor(row, torch.full((2,), float(rank), device="npu"))
assert row.tolist() == [[0, 0, 1, 1]]
own = torch.empty(2, 1, device="npu")
distributed.reduce_scatter_tensor(own, row.clone())
assert own.tolist() == [[2.0 * rank], [2.0 * rank]]
torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 2).npu())
model(torch.full((1, 3), float(rank), device="npu")).sum().backward()
distributed.barrier()
print(x[0].item(), parts[1].item(), model.module.weight.grad[0, 0].item())
distributed.destroy_process_group()
"""
    for output, error in both_ranks(code):
        assert output.split() == ["3.0", "1.0", "0.5"], error


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["FullyShardedDataParallel", "fully_shard"])
def test_processes_share_a_models_parameters_over_hccl(tmp_path: Path, kind: str) -> None:
    code = f"""
import copy, sys, torch, torch.distributed as distributed
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
rank = int(sys.argv[1])
store = "file://{tmp_path}/store"
distributed.init_process_group("hccl", init_method=store, rank=rank, world_size=2)
torch.manual_seed(0)
plain = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 4))
model = copy.deepcopy(plain).npu()
if "{kind}" == "fully_shard":
    fully_shard(model, mesh=init_device_mesh("npu", (2,)))
else:
    model = FullyShardedDataParallel(model, device_id=torch.device("npu", 0))
optimizers = [torch.optim.SGD(each.parameters(), lr=0.1) for each in (plain, model)]
x = torch.randn(4, 8)
for _ in range(2):
    for each, optimizer, part in zip((plain, model), optimizers, (x, x[2 * rank :][:2].npu())):
        optimizer.zero_grad()
        each(part).square().mean().backward()
        optimizer.step()
torch.testing.assert_close(model(x.npu()).cpu(), plain(x))
distributed.destroy_process_group()
print("the same")
"""
    for output, error in both_ranks(code):
        assert output.strip() == "the same", error


def test_gradients_are_at_rest_before_the_interpreter_ends() -> None:
    """The device's thread drops what a graph holds of Python only after `backward` has returned."""

    class Held:
        pass

    held = contextvars.ContextVar[Held]("held")
    x = torch.randn(4, device="npu", requires_grad=True)

    def backward() -> weakref.ref[Held]:
        mine = Held()
        held.set(mine)
        x.view(4).backward(torch.ones_like(x))
        return weakref.ref(mine)

    for _ in range(100):
        left = contextvars.copy_context().run(backward)
        native.library().opkit_npu_settle()
        assert left() is None


def test_gradients_before_the_device_is_there_do_not_take_it_theirs() -> None:
    code = """if True:
        import torch
        torch.ones(4, requires_grad=True).sum().backward()
        from opkit.torch_npu.autoload import autoload
        autoload()
        x = torch.ones(4, device="npu", requires_grad=True)
        (x * 2).sum().backward()
        print(x.grad.cpu().tolist())
    """
    done = run(code, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert (done.returncode, done.stdout) == (0, "[2.0, 2.0, 2.0, 2.0]\n"), done.stderr


def test_the_device_is_there_whatever_of_it_is_imported_first() -> None:
    # torch's own import asked for the device while the module that imported torch was half done.
    done = run("import opkit.torch_npu.build, torch; print(torch.ones(2, device='npu').tolist())")
    assert (done.stdout, done.stderr) == ("[1.0, 1.0]\n", "")


def test_every_type_can_be_held() -> None:
    found = torch.accelerator.get_device_capability("npu:0")["supported_dtypes"]
    assert {torch.float16, torch.float64, torch.complex64, torch.bool} <= found


def test_all_devices_are_seeded_by_chance() -> None:
    seeds = set()
    for _ in range(2):
        torch.npu.seed_all()
        seeds.add(torch.npu.initial_seed())
    assert len(seeds) == 2


def test_copies_are_counted_where_they_run() -> None:
    # Those that no kernel took ran on the CPU, and the table had no row of them.
    x = torch.ones(4, device="npu")
    torch.npu.reset_fallbacks()
    x.double()
    x.half()
    (row,) = [row for row in torch.npu.kernel_calls() if row.operator == "aten::copy_"]
    assert (row.native, row.fallback) == (1, 1)
    assert list(row.reasons) == ["the chip has no such data type"]


def test_tensors_are_refused_on_their_way_to_another_process() -> None:
    # Pickling one ended in an error about file descriptors of the CPU.
    with pytest.raises(RuntimeError, match="cannot be sent to another process"):
        ForkingPickler.dumps(torch.ones(2, device="npu"))
    assert ForkingPickler.dumps(torch.ones(2))


def test_dynamo_has_an_interface_of_the_device() -> None:
    from torch._dynamo.device_interface import get_interface_for_device

    interface = get_interface_for_device("npu")
    assert interface is get_interface_for_device(torch.device("npu", 0))
    assert interface.is_available() and interface.device_count() == torch.npu.device_count()
    stream = torch.npu.Stream()
    with interface.stream(stream):
        assert interface.current_stream().stream_id == stream.stream_id
        assert interface.get_raw_stream(0) == stream.stream_id
    assert interface.exchange_device(0) == interface.current_device() == 0
    assert interface.Worker.get_device_properties().name == torch.npu.get_device_name()


def test_a_stream_is_one_of_the_c_api() -> None:
    stream, other = torch.npu.Stream(), torch.npu.Stream()
    assert stream.npu_stream and stream.npu_stream == stream.npu_stream
    assert stream.npu_stream != other.npu_stream
    with torch.npu.stream(stream):
        assert torch.npu.current_stream().npu_stream == stream.npu_stream


@pytest.mark.slow
def test_the_interface_does_not_bring_dynamo_into_every_program() -> None:
    code = """
import sys, torch
print("torch._dynamo.device_interface" in sys.modules)
import torch._dynamo.device_interface as interfaces
print(interfaces.get_interface_for_device("npu:0").device_count())
"""
    assert run(code).stdout == "False\n1\n"


def test_the_first_call_may_be_for_a_stream() -> None:
    # Streams, events and generators found no device where its library had yet to be loaded.
    from opkit.torch_npu.first_use import load_before_first_use, restore

    loads = []
    stream_class = torch.Stream
    load_before_first_use(lambda: loads.append(1))
    try:
        assert isinstance(torch.Generator("cpu"), torch.Generator) and not loads
        assert torch.Stream(device="npu").device == torch.device("npu", 0) and loads == [1]
        assert isinstance(torch.npu.Stream(), torch.Stream)

        class Own(torch.Stream):
            pass

        assert Own.__mro__[1] is stream_class
        assert torch.Event("npu:0") is not None and loads == [1, 1]
    finally:
        restore()
    assert torch.Stream is stream_class


LATE_BUILD = """
import threading, time
from opkit.torch_npu import build
def late():
    time.sleep(0.5)
    build._run_together([(["true"], "no"), (["true"], "no")])
    print("made")
threading.Thread(target=late).start()
"""


def test_a_build_goes_on_while_the_program_ends() -> None:
    # A pool of threads took no work by then: the end of the program was a traceback.
    done = run(LATE_BUILD)
    assert (done.returncode, done.stdout, done.stderr) == (0, "made\n", "")


def test_of_builds_side_by_side_the_one_that_fails_is_told() -> None:
    from opkit.errors import SetupError
    from opkit.torch_npu import build

    commands = [(["true"], "a"), (["sh", "-c", "echo wrong >&2; exit 1"], "b does not compile")]
    with pytest.raises(SetupError, match="b does not compile:\nwrong"):
        build._run_together(commands)


def test_a_killed_build_goes_on_from_the_objects_that_are_whole(tmp_path: Path) -> None:
    from opkit.torch_npu import build

    target = tmp_path / "device-1234.so"
    folder = target.with_suffix(".parts")
    folder.mkdir()
    whole, missing = folder / "whole.o", folder / "missing.o"
    whole.write_text("kept\n")
    made = ["/bin/sh", "-c", 'echo made > "$0"', str(missing)]
    link = ["/bin/sh", "-c", 'cat "$0" "$1" > "$3"', str(whole), str(missing)]
    plan = build._Library(target, {whole: ["false"], missing: made}, link, lambda _: ["true"])
    build._build(plan)
    assert target.read_text() == "kept\nmade\n"
    assert not folder.exists()


def test_the_same_sources_have_the_same_library_whenever_they_were_written(tmp_path: Path) -> None:
    # Every installation and checkout gave files other times, and built the library again.
    from opkit.torch_npu import build

    source = tmp_path / "device.cpp"
    source.write_text("int a;")
    before = build._contents(tmp_path, [source])
    os.utime(source, (1, 1))
    assert build._contents(tmp_path, [source]) == before
    source.write_text("int b;")
    assert build._contents(tmp_path, [source]) != before
