"""`.vscode/launch.json`: what is missing is added, what is there stays."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from opkit.debugging import write_launch_json
from opkit.errors import UsageError


def test_a_configuration_is_written_for_each_operator(tmp_path: Path) -> None:
    path, verb = write_launch_json(tmp_path, ["add", "add_grad"])
    assert verb == "created"
    document = json.loads(path.read_text())
    names = [entry["name"] for entry in document["configurations"]]
    assert names == ["opkit: add", "opkit: add_grad"]
    tasks = json.loads((tmp_path / ".vscode" / "tasks.json").read_text())["tasks"]
    wanted = {entry["preLaunchTask"] for entry in document["configurations"]}
    assert wanted == {task["label"] for task in tasks}


def test_the_users_edits_stay(tmp_path: Path) -> None:
    path, _ = write_launch_json(tmp_path, ["add"])
    document = json.loads(path.read_text())
    document["configurations"][0]["stopOnEntry"] = False
    document["configurations"].append({"name": "mine", "type": "x", "request": "launch"})
    path.write_text(json.dumps(document))
    before = path.read_bytes()
    assert write_launch_json(tmp_path, ["add"])[1] == "identical"
    assert path.read_bytes() == before
    assert write_launch_json(tmp_path, ["add", "add_grad"])[1] == "added to"
    kept = json.loads(path.read_text())["configurations"]
    assert kept[:2] == document["configurations"]
    assert kept[2]["name"] == "opkit: add_grad"


@pytest.mark.parametrize("text", ["// comments\n{}", "[]", '{"configurations": 3}'])
def test_a_file_that_cannot_be_read_is_left_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / ".vscode" / "launch.json"
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises(UsageError, match=r"launch\.json"):
        write_launch_json(tmp_path, ["add"])
    assert path.read_text() == text
