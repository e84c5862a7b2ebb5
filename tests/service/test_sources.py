"""Where versions come from, and what is refused with the next step."""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from opkit.errors import UsageError
from opkit.service.sources import stage


def staged(source: str, tmp_path: Path, **named: Any) -> tuple[Any, dict[str, Any], list[str]]:
    folder = tmp_path / "staged"
    folder.mkdir()
    found = stage(source, folder, base=tmp_path, **named)
    described = json.loads((folder / "version.json").read_text())
    files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    return found, described, files


def test_an_artifact_folder_and_its_golden(make_version: Any, tmp_path: Path) -> None:
    found, described, files = staged(str(make_version("v1")), tmp_path)
    assert (found.kind, found.has_reference, described["golden"]) == ("operator", True, "twice")
    assert found.interface.variants == (("float32", "float32"),)
    assert {"golden.py", "version.json", "content/libop_host.so", "content/manifest.json"} <= {
        *files
    }


def test_a_wheel(make_version: Any, tmp_path: Path) -> None:
    source = make_version("v1")
    wheel = tmp_path / "twice-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path in sorted(source.rglob("*")):
            if path.is_file():
                archive.write(path, f"twice/{path.relative_to(source)}")
        archive.writestr("twice-1.0.dist-info/METADATA", "Name: twice")
        archive.writestr("../outside", "never")
    found, _, files = staged(wheel.name, tmp_path)
    assert found.has_reference
    assert "content/libop_host.so" in files
    assert not any("METADATA" in name or "unpacked" in name for name in files)
    assert not (tmp_path / "outside").exists()


def test_an_installed_package(
    make_version: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = make_version("twice_installed_here")
    (source / "__init__.py").write_text("raise RuntimeError('nobody imports it')\n")
    monkeypatch.syspath_prepend(str(source.parent))
    found, _, _ = staged("package:twice_installed_here", tmp_path)
    assert found.interface.op == "Twice"
    assert "twice_installed_here" not in sys.modules


def test_a_golden_can_be_named(make_version: Any, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def other(x):\n    return 2 * x\n")
    source = str(make_version("v1", golden=""))
    _, described, _ = staged(source, tmp_path, golden="mine.py:other")
    assert described["golden"] == "other"


def test_what_differs_in_nothing_that_serves_is_one_version(
    make_version: Any, tmp_path: Path
) -> None:
    from opkit.service.contents import digest_of_folder

    source = make_version("v1")
    digests = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        stage(str(source), tmp_path / name, base=tmp_path)
        digests.append(digest_of_folder(tmp_path / name))
        # Bindings for Python and PyTorch are not what is served.
        (source / "_lib" / "_numpy.cpython-310.so").write_bytes(b"other")
    assert digests[0] == digests[1]


@pytest.mark.parametrize(
    ("source", "named", "message"),
    [
        (
            "nowhere",
            {},
            "no project, artifact folder, wheel, installed package, program or model file",
        ),
        ("package:no_such_package", {}, "not installed here"),
        ("package:os.path", {}, "not installed here"),
        ("unbuilt", {}, "is not built"),
        ("broken.whl", {}, "cannot be read as a wheel"),
        ("empty.whl", {}, "carries no operators"),
        ("bare", {}, "a manifest and no libraries"),
        ("bare", {"op": "None"}, 'no operator "None"'),
        ("odd", {}, "no manifest of an artifact folder"),
    ],
)
def test_other_sources_are_refused_with_the_next_step(
    tmp_path: Path, source: str, named: dict[str, str], message: str
) -> None:
    for name in ("unbuilt", "bare", "odd"):
        (tmp_path / name).mkdir()
    (tmp_path / "unbuilt" / "pyproject.toml").write_text("")
    (tmp_path / "broken.whl").write_text("no zip")
    with zipfile.ZipFile(tmp_path / "empty.whl", "w") as archive:
        archive.writestr("a/b", "")
    row = {"op": "Twice", "kernel": "twice", "inputs": [], "outputs": [], "variants": []}
    manifest = {"chip": "Ascend910B2", "operators": [row]}
    (tmp_path / "bare" / "manifest.json").write_text(json.dumps(manifest))
    (tmp_path / "odd" / "manifest.json").write_text("[]")
    with pytest.raises(UsageError, match=message):
        staged(source, tmp_path, **named)
