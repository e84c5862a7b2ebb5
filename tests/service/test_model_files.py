"""Model files as versions: what they take and return, who judges them, what is refused."""

from __future__ import annotations

import contextlib
import json
import shutil
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")
from torch import nn  # noqa: E402

from opkit import graph  # noqa: E402
from opkit.errors import OperatorError, UsageError  # noqa: E402
from opkit.service import Client, Service, ServiceSettings, make_app  # noqa: E402
from opkit.service.workers.closeness import readable  # noqa: E402


class Small(nn.Module):
    """Picks rows of a table and adds them."""

    def __init__(self, scale: float = 1.0) -> None:
        super().__init__()
        self.table = nn.Embedding(6, 32)
        self.table.weight.data = scale * torch.linspace(-1, 1, 6 * 32).reshape(6, 32)

    def forward(self, tokens: Any, x: Any) -> Any:
        return x + self.table(tokens)


TOKENS = np.array([[0, 5, 2, 1]])
X = np.linspace(-2, 2, 128, dtype=np.float32).reshape(1, 4, 32)
TABLE = np.linspace(-1, 1, 6 * 32, dtype=np.float32).reshape(6, 32)
WANTED = X + TABLE[TOKENS]
GOLDEN = """
import numpy as np

def small(tokens, x):
    return x + np.linspace(-1, 1, 192).reshape(6, 32)[tokens.astype(int)]
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of one model in two precisions, and of one with another table and shape."""
    folder = tmp_path_factory.mktemp("models")
    example = (torch.from_numpy(TOKENS), torch.from_numpy(X))
    for name, precision in (("half", "float16"), ("single", "float32")):
        graph.build(Small(), example, precision=precision).save(folder / f"{name}.opkit")
    graph.build(Small(3.0), example, precision="float16").save(folder / "wrong.opkit")
    longer = tuple(torch.cat([each, each]) for each in example)
    graph.build(Small(), longer, precision="float16").save(folder / "longer.opkit")
    (folder / "golden.py").write_text(GOLDEN)
    return folder


@pytest.fixture
def open_models(files: Path, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Return a function that opens a service of the model `small`; sources are relative."""
    with contextlib.ExitStack() as stack:

        def open_one(
            versions: dict[str, Any], *, isolation: str = "none", base: Path = files, **named: Any
        ) -> Any:
            settings = {
                "store": tmp_path / "store",
                "isolation": isolation,
                "operators": [
                    {
                        "name": "small",
                        "versions": {
                            label: {"source": item} if isinstance(item, str) else item
                            for label, item in versions.items()
                        },
                        "limits": {"attempt_seconds": 120, "call_seconds": 300},
                        **named,
                    }
                ],
            }
            service = Service(ServiceSettings.model_validate(settings), base=base)
            stack.callback(service.close)
            assert service.wait_until_ready(120)
            return service

        yield open_one


def values(answer: Any) -> Any:
    return readable(answer.outputs[0])


def test_files_of_one_model_answer_the_same_calls_each_in_its_data_type(
    open_models: Callable[..., Any],
) -> None:
    service = open_models({name: f"{name}.opkit" for name in ("half", "single")})
    for label, dtype, limit in (
        ("half", "float16", 2e-3),
        ("single", "float32", 1e-6),
    ):
        answer = service.call("small", [TOKENS, X], version=label)
        assert (answer.version, answer.outputs[0][1]) == (label, dtype)
        np.testing.assert_allclose(values(answer), WANTED, atol=limit)
    # bfloat16 is carried by its bits, and read by every file.
    bits = (X.view(np.uint32) >> 16).astype(np.uint16)
    answer = service.call("small", [TOKENS, bits], dtypes=[None, "bfloat16"], version="single")
    np.testing.assert_allclose(values(answer), WANTED, atol=2e-2)
    with pytest.raises(UsageError, match=r'"x" has the shape \(2, 32\)'):
        service.call("small", [TOKENS, X[0, :2]])
    with pytest.raises(UsageError, match="indices of 6 rows"):
        service.call("small", [TOKENS + 6, X])
    with pytest.raises(UsageError, match='takes no attributes: "scale"'):
        service.call("small", [TOKENS, X], {"scale": 2})


@pytest.mark.slow
def test_bfloat16_goes_by_its_bits_both_ways(
    open_models: Callable[..., Any], tmp_path: Path
) -> None:
    example = (torch.from_numpy(TOKENS), torch.from_numpy(X))
    graph.build(Small(), example, precision="bfloat16").save(tmp_path / "brain.opkit")
    service = open_models({"half": "half.opkit", "brain": str(tmp_path / "brain.opkit")})
    bits = (X.view(np.uint32) >> 16).astype(np.uint16)
    for label, dtype in (("brain", "bfloat16"), ("half", "float16")):
        answer = service.call("small", [TOKENS, bits], dtypes=[None, "bfloat16"], version=label)
        assert answer.outputs[0][1] == dtype
        np.testing.assert_allclose(values(answer), WANTED, atol=3e-2)


def test_half_and_single_share_the_callers_and_shadows_are_compared(
    open_models: Callable[..., Any],
) -> None:
    service = open_models(
        {"half": "half.opkit", "single": "single.opkit"},
        deployment={"shares": {"single": 0.5}, "shadow": {"half": 1.0}},
    )
    answers = [service.call("small", [TOKENS, X], caller=f"c{at}") for at in range(30)]
    service.settle()
    assert {answer.version for answer in answers} == {"half", "single"}
    shadow = service.operator("small").shadows["half"]
    # No reference can tell which of two data types is right.
    assert shadow.calls == shadow.unjudged == sum(a.version == "single" for a in answers)
    assert 0 < shadow.largest_difference < 2e-3
    text = service.metrics.text()
    counts = [line for line in text.splitlines() if line.startswith("opkit_attempts_total")]
    shapes = 'shapes="int64[1,4] float32[1,4,32]"'
    assert any(shapes in line and 'version="single"' in line for line in counts)


@pytest.mark.parametrize("golden", ["single.opkit", "golden.py:small"])
def test_what_is_wrong_by_the_reference_is_not_given(
    open_models: Callable[..., Any], golden: str
) -> None:
    right = {"source": "half.opkit", "golden": golden}
    service = open_models({"wrong": "wrong.opkit", "half": right})
    answer = service.call("small", [TOKENS, X])
    assert (answer.version, answer.attempts[0].kind, answer.checked) == ("half", "wrong", True)
    assert "of its largest value, 0.05 is allowed" in answer.attempts[0].message
    service.operator("small").versions["half"].breaker.fail("wrong", "by hand")
    last = service.call("small", [TOKENS, X])
    assert (last.version, last.outputs[0][1]) == ("reference", "float16")
    np.testing.assert_allclose(values(last), WANTED, atol=2e-3)


def test_without_a_reference_the_error_says_that_there_is_none(
    open_models: Callable[..., Any],
) -> None:
    service = open_models({"half": "half.opkit"})
    served = service.operator("small")
    assert service.operator_report("small")["reference"]["problem"] == "no version has brought one"

    def crash(*_: object) -> Any:
        from opkit.service.workers.attempts import AttemptFailed

        raise AttemptFailed("crash", "by hand")

    served.versions["half"].runner.run = crash
    with pytest.raises(OperatorError, match=r"none has brought a reference\. half: crash"):
        service.call("small", [TOKENS, X])


def test_over_http_the_file_says_names_shapes_and_types_and_others_are_deployed(
    open_models: Callable[..., Any], serve: Callable[[Any], str], files: Path, tmp_path: Path
) -> None:
    shutil.copyfile(files / "half.opkit", tmp_path / "now.opkit")
    service = open_models({"v1": "now.opkit"}, isolation="process", base=tmp_path)
    with Client(serve(make_app(service)), seconds=120) as client:
        model = client.get("/v2/models/small")
        assert model["inputs"] == [
            {"name": "tokens", "datatype": "INT32", "shape": [1, 4]},
            {"name": "x", "datatype": "FP16", "shape": [1, 4, 32]},
        ]
        (output,) = model["outputs"]
        assert (output["datatype"], output["shape"]) == ("FP16", [1, 4, 32])
        inputs = {"tokens": TOKENS, "x": X}
        first = client.call("small", inputs)
        np.testing.assert_allclose(first.outputs[0], WANTED, atol=2e-3)

        # What becomes of the file that a version was made from changes nothing.
        shutil.copyfile(files / "wrong.opkit", tmp_path / "now.opkit")
        path = "/opkit/v1/operators/small"
        single = {"source": str(files / "single.opkit"), "label": "v2"}
        client.post(f"{path}/versions", single)
        assert client.post(f"{path}/deployment", {"default": "v2"})["revision"] == 2
        second = client.call("small", inputs)
        assert (second.version, second.outputs[0].dtype) == ("v2", np.float32)
        client.post(f"{path}/rollback", {})
        third = client.call("small", inputs)
        assert (third.version, third.outputs[0].tolist()) == ("v1", first.outputs[0].tolist())

        kept = sorted((tmp_path / "store" / "versions").iterdir())
        with pytest.raises(UsageError, match=r"takes and returns \[2, 4\]"):
            client.post(f"{path}/versions", {"source": str(files / "longer.opkit"), "label": "v3"})
        assert sorted((tmp_path / "store" / "versions").iterdir()) == kept
        assert client.get("/v2/models/small")["versions"] == ["v1", "v2"]


def changed(file: Path, target: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Write a model file again with another description."""
    with zipfile.ZipFile(file) as source, zipfile.ZipFile(target, "w") as copy:
        for name in source.namelist():
            content = source.read(name)
            if name == "model.json":
                document = json.loads(content)
                change(document)
                content = json.dumps(document).encode()
            copy.writestr(name, content)


@pytest.mark.parametrize("isolation", ["none", pytest.param("process", marks=pytest.mark.slow)])
def test_damaged_foreign_and_other_chips_files_leave_nothing_in_the_store(
    open_models: Callable[..., Any], files: Path, tmp_path: Path, isolation: str
) -> None:
    service = open_models({"v1": "half.opkit"}, isolation=isolation)
    kept = sorted((tmp_path / "store" / "versions").iterdir())
    bad = tmp_path / "bad.opkit"

    def refused(message: str, **named: Any) -> None:
        with pytest.raises(UsageError, match=message):
            service.add_version("small", "v2", named.pop("source", str(bad)), **named)
        assert sorted((tmp_path / "store" / "versions").iterdir()) == kept
        assert list((tmp_path / "store").glob(".aside-*")) == []
        assert list(service.operator("small").versions) == ["v1"]

    bad.write_bytes((files / "half.opkit").read_bytes()[:-100])
    refused("bad.opkit is no model file, or a damaged one")
    changed(files / "half.opkit", bad, lambda d: d.update(chip="Ascend310P3", npu_arch="dav-2002"))
    refused(r"bad.opkit was built for the Ascend310P3 .* the device is an Ascend910B2")
    changed(files / "half.opkit", bad, lambda d: d["sha256"].update({"weights.safetensors": "0"}))
    refused("bad.opkit is damaged: weights.safetensors")
    changed(files / "half.opkit", bad, lambda d: d.update(format="something"))
    refused("bad.opkit is no model file of opkit's")
    half = str(files / "half.opkit")
    refused("has no other", source=half, op="other")
    refused("there is no", source=half, golden="nowhere.opkit")
    refused(r"\[2, 4\]", source=half, golden=str(files / "longer.opkit"))
    refused("bad.opkit is no model file", source=half, golden=str(bad))
    refused("has no function half", source=half, golden=str(files / "golden.py"))


def test_what_was_built_of_other_shapes_is_an_operator_of_its_own(
    open_models: Callable[..., Any], files: Path
) -> None:
    service = open_models({"v1": "half.opkit"})
    with pytest.raises(UsageError, match="takes and returns") as refused:
        service.add_version("small", "v2", "longer.opkit")
    assert refused.value.help == "serve it as an operator of its own"
    service.add_version("longer", "v1", "longer.opkit")
    answer = service.call("longer", [np.tile(TOKENS, (2, 1)), np.tile(X, (2, 1, 1))])
    np.testing.assert_allclose(values(answer), np.tile(WANTED, (2, 1, 1)), atol=2e-3)


@pytest.mark.slow
def test_the_file_with_the_least_modelled_time_is_chosen(open_models: Callable[..., Any]) -> None:
    service = open_models(
        {"single": "single.opkit", "half": "half.opkit"},
        isolation="process",
        deployment={"choice": "modelled"},
    )
    for _ in range(2):
        service.call("small", [TOKENS, X])
        service.settle()
    answer = service.call("small", [TOKENS, X])
    versions = service.operator("small").versions
    times = {
        label: next(iter(versions[label].modelled.values())).task_us for label in ("single", "half")
    }
    assert answer.version == min(times, key=lambda label: times[label])
    assert "half" in answer.reason
    assert "us" in answer.reason
