"""`opkit build` as a user runs it; compiling itself is tests/toolchain/test_project_build.py."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import opkit.toolchain
from opkit.chips import find_chip
from opkit.cli import group
from opkit.cli.console import run_guarded
from opkit.errors import BuildError, Diagnostic, SetupError
from opkit.toolchain import Artifact, BuildEvent, Project


@pytest.fixture
def root(tmp_path: Path) -> Path:
    tensor = {"param_type": "required", "type": ["fp16"], "format": ["ND"]}
    prototype = {"op": "Twice", "input_desc": [{"name": "x", **tensor}]}
    prototype["output_desc"] = [{"name": "y", **tensor}]
    (tmp_path / "twice.json").write_text(json.dumps(prototype))
    (tmp_path / "pyproject.toml").write_text('[tool.opkit]\noperators = ["twice.json"]\n')
    return tmp_path


class Recorder:
    """Stands in for `opkit.toolchain.build`: keeps its arguments, reports two units."""

    def __init__(self, error: Exception | None = None) -> None:
        self.options: dict[str, object] = {}
        self.error = error

    def __call__(self, project: Project, **options: object) -> Artifact:
        self.options = options
        options["verbose"](["g++", "a file.cpp"])
        options["progress"](BuildEvent("compile", "a.so", 1.25))
        options["progress"](BuildEvent("fresh", "b.so"))
        options["progress"](BuildEvent("skip", "_torch.so", detail="torch is not installed here"))
        options["warn"]("the cache cannot be written")
        if self.error is not None:
            raise self.error
        return Artifact(
            folder=options["out"] or project.root / "build" / "opkit",
            project=project,
            chip=find_chip(str(options["chip"])),
            compiled=1,
            cached=0,
            fresh=1,
            skipped=(("_torch.so", "torch is not installed here"),),
            warnings=(),
            seconds=2.0,
        )


@pytest.fixture
def builder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    recorder = Recorder()
    monkeypatch.setattr(opkit.toolchain, "build", recorder)
    return recorder


def test_the_result_is_the_folder_on_stdout_and_the_steps_on_stderr(
    root: Path, builder: Recorder, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_guarded(group, ["build", str(root)]) == 0
    out, err = capsys.readouterr()
    assert out == f"{root / 'build' / 'opkit'}\n"
    lines = [" ".join(line.split()) for line in err.splitlines()]
    assert "compile a.so (1.2 s)" in lines
    assert "skip _torch.so (torch is not installed here)" in lines
    assert "warning: the cache cannot be written" in lines
    assert not any("b.so" in line for line in lines)
    assert "g++" not in err


def test_verbose_shows_each_command_as_a_shell_takes_it(
    root: Path, builder: Recorder, capsys: pytest.CaptureFixture[str]
) -> None:
    run_guarded(group, ["build", str(root), "-v"])
    assert "$ g++ 'a file.cpp'" in capsys.readouterr().err


def test_options_reach_the_builder(root: Path, builder: Recorder, tmp_path: Path) -> None:
    arguments = ["build", str(root), "-c", "310p3", "-j", "3", "--into", str(tmp_path / "o")]
    assert run_guarded(group, [*arguments, "--cache-dir", str(tmp_path / "c")]) == 0
    expected = {"chip": "310p3", "jobs": 3, "out": tmp_path / "o", "cache_dir": tmp_path / "c"}
    assert {name: builder.options[name] for name in expected} == expected


def test_json_is_one_document(
    root: Path, builder: Recorder, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_guarded(group, ["build", str(root), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["artifact"] == str(root / "build" / "opkit")
    assert (document["chip"], document["compiled"], document["wheel"]) == ("Ascend910B2", 1, None)
    assert document["skipped"] == [{"file": "_torch.so", "reason": "torch is not installed here"}]


def test_a_rejected_source_exits_1_with_line_and_caret(
    root: Path, builder: Recorder, capsys: pytest.CaptureFixture[str]
) -> None:
    file = root / "op_kernel" / "twice.cpp"
    error = Diagnostic(file, 5, 3, "error", "no such name", "  Adds(x);")
    builder.error = BuildError("twice.cpp does not compile: 1 error", diagnostics=(error,))
    assert run_guarded(group, ["build", str(root)]) == 1
    printed = capsys.readouterr().err
    assert "error: no such name" in printed
    assert "op_kernel/twice.cpp:5:3" in printed
    assert "Adds(x);" in printed
    assert printed.index("no such name") < printed.index("does not compile")


def test_a_missing_compiler_exits_3(
    root: Path, builder: Recorder, capsys: pytest.CaptureFixture[str]
) -> None:
    builder.error = SetupError("no C++17 compiler was found", help="sudo apt-get install g++")
    assert run_guarded(group, ["build", str(root)]) == 3
    assert "sudo apt-get install g++" in capsys.readouterr().err


def test_a_folder_that_is_no_project_exits_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_guarded(group, ["build", str(tmp_path)]) == 2
    assert "not in an operator project" in capsys.readouterr().err


def test_an_unknown_chip_exits_2_and_names_the_nearest(
    root: Path, builder: Recorder, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_guarded(group, ["build", str(root), "-c", "910b9"]) == 2
    assert "did you mean Ascend910B2" in capsys.readouterr().err


def test_a_library_builds_each_operator_and_counts_causes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "cmake").mkdir()
    (tmp_path / "cmake" / "functions.cmake").write_text("")
    (tmp_path / "CMakeLists.txt").write_text("project(library)\n")
    for name in ("first", "second"):
        host = tmp_path / "math" / name / "op_host"
        host.mkdir(parents=True)
        (host.parent / "op_kernel").mkdir()
        (host / f"{name}_def.cpp").write_text('#include "is_not_there.h"\n')
    code = run_guarded(group, ["build", str(tmp_path / "math"), "--json"])
    told = capsys.readouterr()
    assert code == 1
    assert "built 0 of 2 operators" in " ".join(told.err.split())
    assert "cause 2 x No such file or directory" in " ".join(told.err.split())
    document = json.loads(told.out)
    assert [operator["artifact"] for operator in document["operators"]] == [None, None]
    assert document["operators"][0]["cause"].startswith("first_def.cpp:1: is_not_there.h")
    # One operator of it is an ordinary build.
    assert run_guarded(group, ["build", str(tmp_path / "math" / "first")]) == 1
    assert "first_def.cpp" in capsys.readouterr().err


def test_cleaning_deletes_nothing_behind_a_link_out_of_the_project(
    root: Path, builder: Recorder, tmp_path_factory: pytest.TempPathFactory
) -> None:
    # It used to delete what the link's target held.
    target = tmp_path_factory.mktemp("elsewhere")
    (target / "opkit").mkdir()
    kept = target / "opkit" / "manifest.json"
    kept.write_text('{"files": []}')
    (root / "build").symlink_to(target)
    assert run_guarded(group, ["build", str(root), "--clean"]) == 2
    assert kept.exists()


@pytest.mark.torch
def test_the_device_is_built_ahead(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    from opkit import torch_npu

    pytest.importorskip("torch")
    paths = tmp_path / "device.so", tmp_path / "kernels.so"
    monkeypatch.setattr(torch_npu, "is_built", lambda: False, raising=False)
    monkeypatch.setattr(torch_npu, "libraries", lambda: paths, raising=False)
    assert run_guarded(group, ["build", "--device", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found == {"device": str(paths[0]), "kernels": str(paths[1]), "was_built": False}
    assert run_guarded(group, ["build", "--device", "--wheel"]) == 2
    assert "--device builds no project" in capsys.readouterr().err
