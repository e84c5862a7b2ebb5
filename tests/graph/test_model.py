"""Models as files, and the engine that runs them."""

from __future__ import annotations

import contextlib
import copy
import json
import subprocess
import sys
import threading
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")
from torch import nn  # noqa: E402

from opkit import graph, runtime  # noqa: E402
from opkit.emulator import include_dir, library_path  # noqa: E402
from opkit.errors import UsageError  # noqa: E402
from opkit.toolchain import find_compiler  # noqa: E402


class Small(nn.Module):
    """An embedding, a buffer that only weights meet, and two products."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(20, 32)
        self.register_buffer("places", torch.arange(8))
        self.up = nn.Linear(32, 48)
        self.down = nn.Linear(48, 32)

    def forward(self, tokens: Any, x: Any) -> Any:
        x = x + self.table(tokens) + self.table(self.places)
        return x + self.down(torch.relu(self.up(x)))


TOKENS, X = torch.arange(16).reshape(2, 8), torch.linspace(-2, 2, 512).reshape(2, 8, 32)


@pytest.fixture(scope="module")
def model() -> Any:
    torch.manual_seed(0)
    return Small().eval()


@pytest.fixture(scope="module")
def file(model: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "small.opkit"
    graph.build(model, (TOKENS, X), precision="float16").save(path)
    return path


def expected(model: Any) -> Any:
    with torch.no_grad():
        return model(TOKENS, X).numpy()


def test_a_file_runs_without_torch_and_gives_what_torch_gives(model: Any, file: Path) -> None:
    given = file.with_suffix(".npz")
    np.savez(given, tokens=TOKENS.numpy(), x=X.numpy())
    text = (
        "import sys, numpy as np\nsys.modules['torch'] = None\n"
        "from opkit.graph import Engine\n"
        f"given = np.load({str(given)!r})\n"
        f"context = Engine({str(file)!r}).create_context()\n"
        "(y,) = context.run({'tokens': given['tokens'], 'x': given['x']})\n"
        f"np.save({str(file.with_suffix('.npy'))!r}, y)\n"
    )
    subprocess.run([sys.executable, "-c", text], check=True, timeout=120)
    found = np.load(file.with_suffix(".npy"))
    assert found.dtype == np.float16
    np.testing.assert_allclose(found, expected(model), atol=2e-2)


def test_contexts_run_side_by_side(model: Any, file: Path) -> None:
    engine = graph.Engine(file)
    inputs = [(TOKENS.numpy(), X.numpy() * scale) for scale in (1.0, 0.5, 0.25)]
    alone = [engine.create_context().run(each)[0] for each in inputs]
    found: list[Any] = [None] * len(inputs)

    def run(at: int) -> None:
        context = engine.create_context()
        for _ in range(3):
            found[at] = context.run(inputs[at])[0]

    threads = [threading.Thread(target=run, args=(at,)) for at in range(len(inputs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one, other in zip(found, alone, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((TOKENS.numpy()[:1], X.numpy()), r'"tokens" has the shape \(1, 8\)'),
        ((TOKENS.numpy() + 10, X.numpy()), '"tokens" holds 10 to 25, indices of 20 rows'),
        ((TOKENS.numpy(), TOKENS.numpy()), '"x" has the shape'),
        ((TOKENS.numpy(), np.zeros((2, 8, 32), int)), '"x" has int64, expected fractions'),
        ((TOKENS.numpy(),), r"takes 2 inputs \(tokens, x\), not 1"),
        ({"tokens": TOKENS.numpy(), "y": X.numpy()}, '"x" is not right'),
    ],
)
def test_wrong_inputs_are_named(file: Path, given: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        graph.Engine(file).create_context().run(given)


def changed(file: Path, target: Path, member: str, data: bytes | None) -> Path:
    """Write a model file again with one member changed, or left out."""
    with zipfile.ZipFile(file) as source, zipfile.ZipFile(target, "w") as copy:
        for name in source.namelist():
            if name != member:
                copy.writestr(name, source.read(name))
            elif data is not None:
                copy.writestr(name, data)
    return target


def test_files_that_are_no_models_are_refused(file: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(file) as archive:
        document = json.loads(archive.read("model.json"))
    target = tmp_path / "other.opkit"

    def refused(message: str) -> None:
        with pytest.raises(UsageError, match=message):
            graph.Engine(target)

    refused("does not exist")
    target.write_bytes(b"no zip at all")
    refused("no model file")
    target.write_bytes(file.read_bytes()[:-100])
    refused("no model file")
    changed(file, target, "model.json", None)
    refused("no model file of opkit's")
    changed(file, target, "model.json", b'{"format": "something"}')
    refused("no model file of opkit's")
    changed(file, target, "weights.safetensors", b"12345678")
    refused("weights.safetensors is not what was written")
    changed(file, target, "model.json", json.dumps({**document, "version": 9}).encode())
    refused("version 9")
    lacking = {key: value for key, value in document.items() if key != "plan"}
    changed(file, target, "model.json", json.dumps(lacking).encode())
    refused("damaged")
    document["plan"]["arena_bytes"] = 0
    changed(file, target, "model.json", json.dumps(document).encode())
    refused("the plan reaches bytes")


def places_of(value: Any, path: tuple[Any, ...] = ()) -> Any:
    """Yield where the values of a JSON document stand."""
    yield path
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places_of(value[key], (*path, key))


def with_value(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    made = copy.deepcopy(document)
    place = made
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return made


def broken_descriptions(document: Any) -> list[Any]:
    """Return descriptions that are wrong at one place each."""
    plan = document["plan"]
    launches = range(len(plan["launches"]))
    wrong: list[tuple[tuple[Any, ...], Any]] = [
        ((), None),
        ((), []),
        (("version",), "1"),
        (("sha256",), {}),
        (("chip",), 3),
        (("plan", "arena_bytes"), -1),
        (("plan", "constants", 0, "shape"), [2**40, 2**40]),
        (("plan", "inputs", 0, "size_bytes"), 10**30),
        (("plan", "inputs", 0, "dtype"), "float3"),
        (("plan", "outputs", 0, "shape", 0), "x"),
        *((("plan", "launches", at, "kernel"), 99) for at in launches),
        *((("plan", "launches", at, "block_dim"), 0) for at in launches),
        (("plan", "launches", 0, "block_dim"), 2**32),
        (("plan", "launches", 0, "arguments", 0), ["input", 0, 0, 10**12]),
        (("plan", "launches", 0, "arguments", 0), ["nowhere", 0, 0, 4]),
        (("plan", "launches", 0, "arguments", 0), ["input", 0, 0, -4]),
        (("plan", "launches", 0, "arguments", 0), "0g"),
    ]
    return [with_value(document, path, value) for path, value in wrong]


def test_a_description_that_is_wrong_anywhere_is_an_error_or_does_no_harm(
    file: Path, tmp_path: Path
) -> None:
    with zipfile.ZipFile(file) as archive:
        document = json.loads(archive.read("model.json"))
    target = tmp_path / "other.opkit"
    for each in broken_descriptions(document):
        changed(file, target, "model.json", json.dumps(each).encode())
        with pytest.raises(UsageError):
            graph.Engine(target)
    changed(file, target, "model.json", b"[" * 100_000)
    with pytest.raises(UsageError, match="no model file of opkit's"):
        graph.Engine(target)
    random = np.random.default_rng(0)
    places = [path for path in places_of(document) if path[:1] == ("plan",)]
    for at in random.choice(len(places), 60, replace=False):
        for value in (None, 10**30, float("inf"), [[]], {}):
            text = json.dumps(with_value(document, places[at], value)).encode()
            changed(file, target, "model.json", text)
            with contextlib.suppress(UsageError):
                graph.Engine(target)


def test_a_model_that_needs_more_memory_than_there_is_says_so(file: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(file) as archive:
        document = json.loads(archive.read("model.json"))
    target = tmp_path / "other.opkit"
    text = json.dumps(with_value(document, ("plan", "arena_bytes"), 10**30)).encode()
    engine = graph.Engine(changed(file, target, "model.json", text))
    with pytest.raises(UsageError, match="needs 1000000000000000000000000000000 bytes at once"):
        engine.create_context()


def test_another_chip_is_an_error_that_names_both(file: Path) -> None:
    runtime.configure("Ascend310P3")
    with pytest.raises(UsageError, match=r"built for the Ascend910B2.*Ascend310P3"):
        graph.Engine(file)


def test_operators_without_kernels_are_refused_with_their_lines(tmp_path: Path) -> None:
    class Waves(nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.special.bessel_j0(x * 2)

    with pytest.raises(UsageError, match=r"test_model.py:\d+: special_bessel_j0 \(aten\."):
        graph.build(Waves(), (torch.ones(4, 4),))
    with pytest.raises(UsageError, match="int8 needs calibration"):
        graph.build(nn.Linear(32, 32), (torch.ones(4, 32),), precision="int8")
    with pytest.raises(UsageError, match='no precision "int3"'):
        graph.build(nn.Linear(32, 32), (torch.ones(4, 32),), precision="int3")
    with pytest.raises(UsageError, match='no calibration "guess"'):
        graph.Quantisation(method="guess")


def test_a_file_that_cannot_be_written_leaves_nothing(file: Path, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="cannot be written"):
        graph.Engine(file).model.save(tmp_path / "missing" / "model.opkit")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("method", ["min-max", "percentile", "entropy"])
def test_int8_products_are_near_the_model(model: Any, method: str) -> None:
    how = graph.Quantisation(method=method, per_channel=method != "entropy")
    built = graph.build(
        model, (TOKENS, X), precision="int8", calibration=[(TOKENS, X)], quantisation=how
    )
    assert [note["computes"] for note in built.notes] == ["int8", "int8"]
    # The scales, the bias and the activation are applied as the sums leave the cube.
    products = [k.operators for k in built.plan.kernels if "matmul" in k.operators]
    behind = [each[each.index("matmul") + 1 :] for each in products]
    assert [each[:3] for each in behind] == [("cast", "mul", "add")] * 2
    # What the first multiplies is quantised in its kernel.
    assert any("round" in each[: each.index("matmul")] for each in products)
    (found,) = built.create_context().run([TOKENS.numpy(), X.numpy()])
    wanted = expected(model)
    assert np.abs(found - wanted).mean() < 0.02 * np.abs(wanted).max()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_traced_and_exported_modules_are_taken(model: Any) -> None:
    given = [TOKENS.numpy(), X.numpy()]
    for way in (torch.jit.trace(model, (TOKENS, X)), torch.export.export(model, (TOKENS, X))):
        (found,) = graph.build(way, (TOKENS, X), precision="float32").create_context().run(given)
        np.testing.assert_allclose(found, expected(model), atol=1e-4)


def test_inputs_of_64_bits_that_are_no_places_are_refused() -> None:
    class Counting(nn.Module):
        def forward(self, x: Any) -> Any:
            return (x + 1).to(torch.float16)

    with pytest.raises(UsageError, match="the input x as whole numbers of 64 bits"):
        graph.build(Counting(), (torch.tensor([3, 4]),))


@pytest.mark.slow
def test_a_cpp_program_runs_a_file_and_refuses_a_damaged_one(
    model: Any, file: Path, tmp_path: Path
) -> None:
    library, program = library_path(), tmp_path / "program"
    source = Path(__file__).with_name("program.cpp")
    options = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-pthread", "-I", str(include_dir())]
    argv = [*find_compiler().argv, *options, str(source), "-o", str(program), str(library)]
    subprocess.run([*argv, f"-Wl,-rpath,{library.parent}"], check=True, timeout=300)
    done = subprocess.run(
        [str(program), str(file)], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert '"tokens" holds 20, an index of 20 rows' in done.stderr
    found = np.array(done.stdout.split(), np.float32).reshape(X.shape)
    given = {"tokens": TOKENS.numpy(), "x": X.numpy()}
    (same,) = graph.Engine(file).create_context().run(given)
    np.testing.assert_allclose(found, same.astype(np.float32), atol=4e-3)
    np.testing.assert_allclose(found, expected(model), atol=2e-2)
    whole = file.read_bytes()
    at = whole.index(b"weights.safetensors") + 400
    other = bytes([whole[at] ^ 1])
    for text in (whole[: len(whole) // 2], whole[:at] + other + whole[at + 1 :], b"no zip"):
        damaged = tmp_path / "damaged.opkit"
        damaged.write_bytes(text)
        done = subprocess.run(
            [str(program), str(damaged)], capture_output=True, text=True, check=False, timeout=60
        )
        assert done.returncode == 1
        assert "damaged.opkit is no model file that runs here" in done.stderr
    # Whatever is wrong is an error that names the file, never a crash.
    with zipfile.ZipFile(file) as archive:
        document = json.loads(archive.read("model.json"))
        (kernel, *_) = (name for name in archive.namelist() if name.endswith(".so"))
    descriptions = [json.dumps(each).encode() for each in broken_descriptions(document)]
    descriptions += [b"", b"{", b"[" * 1000, b'{"format": "opkit model", "version": 1e0}']
    wrong = [
        changed(file, tmp_path / f"description{at}.opkit", "model.json", text)
        for at, text in enumerate(descriptions)
    ]
    # Another program's kernel, right as a member of the zip; and one that is not there.
    wrong += [
        changed(file, tmp_path / f"kernel{at}.opkit", kernel, data)
        for at, data in enumerate((library.read_bytes()[:4096], None))
    ]
    random = np.random.default_rng(0)
    ends = tmp_path / "ends.opkit"
    ends.write_bytes(whole[:-1])
    flipped = []
    for at in random.integers(0, len(whole), 150):
        each = tmp_path / f"flipped{at}.opkit"
        each.write_bytes(whole[:at] + bytes([whole[at] ^ 0x5A]) + whole[at + 1 :])
        flipped.append(each)
    done = subprocess.run(
        [str(program), "--open", *map(str, (*wrong, ends, tmp_path, *flipped))],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-500:]
    lines = done.stdout.splitlines()
    assert len(lines) == len(wrong) + 2 + len(flipped)
    for path, line in zip((*wrong, ends), lines, strict=False):
        assert line.startswith(f"{path} is no model file that runs here: "), line
        assert "std::" not in line
    assert lines[len(wrong) + 1] == f"{tmp_path} cannot be read"
    # A few bytes of a zip say nothing that is read, as a member's time.
    taken = [line for line in lines[len(wrong) + 2 :] if "no model file that runs here" not in line]
    assert all(line.endswith(" opens") for line in taken)
    assert len(taken) <= 15
