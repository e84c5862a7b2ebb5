"""`opkit gen` as a user calls it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from opkit.cli.app import main

PROTOTYPES = Path(__file__).parents[2] / "examples" / "prototypes"


def gen(*arguments: str | Path) -> int:
    with pytest.raises(SystemExit) as caught:
        main(["gen", *map(str, arguments)])
    assert isinstance(caught.value.code, int)
    return caught.value.code


def test_a_project_is_written_with_one_line_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert gen("-i", PROTOTYPES / "gelu_custom.json", "-o", tmp_path / "p") == 0
    files = [path for path in (tmp_path / "p").rglob("*") if path.is_file()]
    lines = capsys.readouterr().err.splitlines()
    # One more file than lines: the record of what was generated.
    assert len(lines) == len(files) - 1
    assert all(line.split()[0] == "create" for line in lines)
    assert (tmp_path / "p" / "gelu_custom.json").read_bytes() == (
        PROTOTYPES / "gelu_custom.json"
    ).read_bytes()


def test_msopgen_spellings_of_the_options_are_taken(tmp_path: Path) -> None:
    arguments = [
        "-c",
        "ai_core-Ascend910B2",
        "-f",
        "pytorch",
        "-lan",
        "cpp",
        "-out",
        tmp_path / "p",
    ]
    assert gen("-i", PROTOTYPES / "add_custom.json", *arguments) == 0


def test_a_conflict_keeps_the_edit_and_ends_with_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert gen("-i", PROTOTYPES / "gelu_custom.json", "-o", tmp_path, "-q") == 0
    (tmp_path / "README.md").write_text("mine\n")
    assert gen("-i", PROTOTYPES / "gelu_custom.json", "-o", tmp_path, "-q") == 0
    code = gen("-i", PROTOTYPES / "gelu_custom.json", "-o", tmp_path, "-f", "aclnn")
    assert code == 1
    assert (tmp_path / "README.md").read_text() == "mine\n"
    assert "README.md.new" in capsys.readouterr().err


def test_json_lists_every_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert gen("-i", PROTOTYPES / "gelu_custom.json", "-o", tmp_path, "--json", "-q") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["project"] == "gelu_custom"
    assert {"path": "pyproject.toml", "action": "create", "new_text": None} in document["files"]


def test_several_operators_make_one_project_named_after_the_file(tmp_path: Path) -> None:
    several = [
        json.loads((PROTOTYPES / "gelu_custom.json").read_text()),
        *json.loads((PROTOTYPES / "add_custom.json").read_text()),
    ]
    source = tmp_path / "my_ops.json"
    source.write_text(json.dumps(several))
    assert gen("-i", source, "-o", tmp_path / "all", "-q") == 0
    assert (tmp_path / "all" / "my_ops" / "__init__.py").is_file()
    assert gen("-i", source, "-o", tmp_path / "one", "--op", "AddCustom", "-q") == 0
    assert (tmp_path / "one" / "add_custom" / "__init__.py").is_file()
    assert not (tmp_path / "one" / "op_kernel" / "gelu_custom.cpp").exists()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["-lan", "py"], "TBE"),
        (["-lan", "rust"], "rust"),
        (["-f", "tf"], "tf"),
        (["-c", "ai_core-Ascend99"], "Ascend99"),
        (["--op", "GELUCustm"], 'did you mean "GELUCustom"?'),
    ],
)
def test_what_cannot_be_done_is_wrong_usage_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], text: str
) -> None:
    folder = tmp_path / "p"
    assert gen("-i", PROTOTYPES / "gelu_custom.json", "-o", folder, *arguments) == 2
    assert text in capsys.readouterr().err
    assert not folder.exists()


def test_a_wrong_prototype_is_named_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "op.json"
    text = (PROTOTYPES / "gelu_custom.json").read_text()
    source.write_text(text.replace('"float16"', '"flaot16"', 1))
    assert gen("-i", source, "-o", tmp_path / "p") == 2
    shown = capsys.readouterr().err
    assert "op.json:6" in shown
    assert 'did you mean "float16"?' in shown


def test_a_wrong_formula_is_shown_by_pointer_and_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # The pointer used to name the operator, which is no step of the file, and there was no line.
    tensor = {"type": "fp16"}
    operator = {
        "op": "Twice",
        "input_desc": [{"name": "x", **tensor}],
        "output_desc": [{"name": "y", **tensor, "formula": "2 * z"}],
    }
    file = tmp_path / "twice.json"
    file.write_text(json.dumps([operator], indent=1))
    line = 1 + file.read_text().split('"formula"')[0].count("\n")
    with pytest.raises(SystemExit, match="2"):
        main(["gen", "-i", str(file), "-o", str(tmp_path / "out")])
    printed = capsys.readouterr().err
    assert f"{file}:{line}: /0/output_desc/0/formula: " in printed


def test_mode_1_adds_an_operator_to_a_project(tmp_path: Path) -> None:
    folder = tmp_path / "p"
    assert gen("-i", PROTOTYPES / "gelu_custom.json", "-o", folder, "-q", "-m", "0") == 0
    assert gen("-i", PROTOTYPES / "add_custom.json", "-o", folder, "-q", "-m", "1") == 0
    described = json.loads((folder / "gelu_custom.json").read_text())
    assert [entry["op"] for entry in described] == ["GELUCustom", "AddCustom"]
    assert (folder / "op_kernel" / "add_custom.cpp").is_file()
    # Once more: it is described anew, not twice.
    assert gen("-i", PROTOTYPES / "add_custom.json", "-o", folder, "-q", "-m", "1") == 0
    assert len(json.loads((folder / "gelu_custom.json").read_text())) == 2


def test_projects_are_not_mixed_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "p"
    assert gen("-i", PROTOTYPES / "add_custom.json", "-o", folder, "-m", "1") == 2
    assert "holds no project" in capsys.readouterr().err
    assert gen("-i", PROTOTYPES / "gelu_custom.json", "-o", folder, "-q") == 0
    assert gen("-i", PROTOTYPES / "gelu_custom.json", "-o", folder, "-m", "0") == 2
    assert "is not empty" in capsys.readouterr().err
    assert gen("-i", PROTOTYPES / "add_custom.json", "-o", folder) == 2
    assert "-m 1 adds" in capsys.readouterr().err


def test_an_existing_project_keeps_its_framework(tmp_path: Path) -> None:
    prototype = PROTOTYPES / "gelu_custom.json"
    assert gen("-i", prototype, "-o", tmp_path / "p", "-q", "-f", "aclnn") == 0
    assert gen("-i", prototype, "-o", tmp_path / "p", "-q") == 0
    assert not (tmp_path / "p" / "torch_ext").exists()


def test_a_changed_prototype_is_merged_into_an_edited_kernel(tmp_path: Path) -> None:
    source, folder = tmp_path / "op.json", tmp_path / "p"
    text = (PROTOTYPES / "gelu_custom.json").read_text()
    source.write_text(text)
    assert gen("-i", source, "-o", folder, "-q") == 0
    kernel = folder / "op_host" / "gelu_custom.cpp"
    kernel.write_text("// mine\n" + kernel.read_text())
    document = json.loads(text)
    operator = document[0] if isinstance(document, list) else document
    for tensor in (*operator["input_desc"], *operator["output_desc"]):
        tensor["type"] = ["float16", "float32"]
        tensor["format"] = "ND"
    source.write_text(json.dumps(document))
    assert gen("-i", source, "-o", folder, "-q") == 0
    assert kernel.read_text().startswith("// mine\n")
    assert "ge::DT_FLOAT16, ge::DT_FLOAT}" in kernel.read_text()


def test_check_writes_nothing_and_says_what_is_worth_knowing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert gen("-i", PROTOTYPES / "gelu_custom.json", "--check") == 0
    assert "is a valid prototype of 1 operator" in capsys.readouterr().out
    blank = json.loads((PROTOTYPES / "gelu_custom.json").read_text())
    blank = blank[0] if isinstance(blank, list) else blank
    del blank["output_desc"][0]["formula"]
    (tmp_path / "blank.json").write_text(json.dumps(blank))
    assert gen("-i", "blank.json", "--check", "--json", "-q") == 0
    (operator,) = json.loads(capsys.readouterr().out)["operators"]
    assert operator["notes"] == [
        "no formula: the kernel's Compute is yours to write",
        "no gradient for x: there is no formula and no gradient",
    ]
    assert {path.name for path in tmp_path.iterdir()} == {"blank.json"}


# Of formulas over axes it used to say that there were none, and of places that nothing is floats.
def test_check_knows_formulas_over_axes_and_floats_beside_whole_numbers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    floats = {"type": ["float16", "float32"]}
    entry = {
        "op": "Router",
        "input_desc": [{"name": "x", "shape": ["T", "E"], **floats}],
        "output_desc": [
            {"name": "w", "formula": "softmax(topk(x, 2), axis=-1)", **floats},
            {"name": "i", "type": "int32", "formula": "topk_places(x, 2)"},
        ],
    }
    file = tmp_path / "router.json"
    file.write_text(json.dumps(entry))
    assert gen("-i", file, "--check", "--json", "-q") == 0
    (operator,) = json.loads(capsys.readouterr().out)["operators"]
    assert operator["notes"] == []


def test_a_prototype_is_read_back_out_of_a_host_source(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "p"
    assert gen("-i", PROTOTYPES / "add_custom.json", "-o", folder, "-q") == 0
    capsys.readouterr()
    assert gen("--from-opdef", folder / "op_host" / "add_custom.cpp", "-q") == 0
    found = json.loads(capsys.readouterr().out)
    given = json.loads((PROTOTYPES / "add_custom.json").read_text())[0]
    assert found["op"] == given["op"]
    names = [tensor["name"] for tensor in (*given["input_desc"], *given["output_desc"])]
    assert [t["name"] for t in (*found["input_desc"], *found["output_desc"])] == names
    broken = tmp_path / "broken.cpp"
    broken.write_text("int main( {")
    assert gen("--from-opdef", broken) == 1
    assert gen("--from-opdef", tmp_path / "none.cpp") == 2


def test_a_prototype_read_back_overwrites_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "p"
    assert gen("-i", PROTOTYPES / "add_custom.json", "-o", folder, "-q") == 0
    host = folder / "op_host" / "add_custom.cpp"
    mine = tmp_path / "mine.json"
    mine.write_text("mine")
    assert gen("--from-opdef", host, "-o", mine) == 2
    assert "exists already" in capsys.readouterr().err
    assert mine.read_text() == "mine"
    assert gen("--from-opdef", host, "-o", mine / "below.json") == 2
    assert gen("--from-opdef", host, "-o", tmp_path / "new.json") == 0
    assert json.loads((tmp_path / "new.json").read_text())["op"] == "AddCustom"


def test_gen_alone_regenerates_the_project_around(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    project = tmp_path / "add_custom"
    assert gen("-i", PROTOTYPES / "add_custom.json", "-o", project, "-f", "aclnn", "-q") == 0
    (project / "build.sh").unlink()
    for folder in (project, project / "add_custom"):
        monkeypatch.chdir(folder)
        capsys.readouterr()
        assert gen() == 0
        actions = [line.split()[0] for line in capsys.readouterr().err.splitlines()]
        assert set(actions) <= {"create", "identical"}
    assert (project / "build.sh").is_file()
    assert not (project / "torch_ext").exists(), "the framework is the project's"


def test_gen_outside_of_a_project_asks_for_a_prototype(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert gen() == 2
    assert "opkit gen op.json" in capsys.readouterr().err


def test_a_prototype_may_stand_without_its_option(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prototype = PROTOTYPES / "add_custom.json"
    assert gen(prototype, "--check") == 0
    assert "is a valid prototype" in capsys.readouterr().out
    assert gen(prototype, "-i", prototype, "-o", tmp_path / "x") == 2
    assert "two prototypes are named" in capsys.readouterr().err


def test_no_second_project_is_written_into_the_package_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`opkit gen -i add_custom.json` in add_custom/ wrote another into add_custom/add_custom."""
    project = tmp_path / "add_custom"
    assert gen("-i", PROTOTYPES / "add_custom.json", "-o", project, "-q") == 0
    monkeypatch.chdir(project)
    assert gen("-i", "add_custom.json", "-q") == 0
    assert not (project / "add_custom" / "op_kernel").exists()
    # Another prototype: which project is meant has to be said.
    assert gen("-i", PROTOTYPES / "gelu_custom.json", "-q") == 2
    assert "-m 1 adds" in capsys.readouterr().err
    assert not (project / "gelu_custom").exists()
    assert gen("-i", PROTOTYPES / "gelu_custom.json", "-m", "1", "-q") == 0
    assert (project / "op_kernel" / "gelu_custom.cpp").is_file()
