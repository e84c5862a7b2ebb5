"""`opkit upgrade-project`: generated again, pinned, built anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from opkit.cli import group
from opkit.cli.commands import upgrade_project as module
from opkit.cli.console import run_guarded


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, object]]:
    """The builds that were asked for; nothing is compiled."""
    calls: list[dict[str, object]] = []

    def callback(**options: object) -> None:
        calls.append(options)

    monkeypatch.setattr(module.build_command, "callback", callback)
    return calls


def test_an_older_project_gets_the_pin_and_keeps_what_was_edited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, built: list[dict[str, object]]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_guarded(group, ["init", "Swish", "--formula", "x * sigmoid(x)"]) == 0
    project = tmp_path / "swish"
    settings = project / "pyproject.toml"
    kernel = project / "op_kernel" / "swish.cpp"
    kernel.write_text(f"// mine\n{kernel.read_text()}")
    settings.write_text(settings.read_text().replace("opkit>=0.1.0,<0.2", "opkit>=0.0.9,<0.1"))
    (project / ".clangd").unlink()
    assert run_guarded(group, ["upgrade-project", "swish"]) in (0, 1)
    assert kernel.read_text().startswith("// mine")
    assert (project / ".clangd").is_file()


def test_it_is_built_from_the_first_file_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, built: list[dict[str, object]]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_guarded(group, ["init", "Swish", "--formula", "x * sigmoid(x)"]) == 0
    assert run_guarded(group, ["upgrade-project", "swish"]) == 0
    (options,) = built
    assert options["clean"] is True
    assert Path(str(options["project"])).resolve() == tmp_path / "swish"


def test_a_folder_without_a_project_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_guarded(group, ["upgrade-project", str(tmp_path)]) == 2
    assert "no project that opkit has generated" in capsys.readouterr().err
