"""Where opkit keeps its own files: the rules of the base directory specification."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from opkit.errors import SetupError
from opkit.folders import cache_folder, filling_cache, runtime_folder, state_folder


@pytest.mark.parametrize(
    ("variable", "folder", "default"),
    [
        ("XDG_CACHE_HOME", cache_folder, ".cache"),
        ("XDG_STATE_HOME", state_folder, ".local/state"),
        ("XDG_RUNTIME_DIR", runtime_folder, ".cache"),
    ],
)
@pytest.mark.parametrize("value", ["/var/c", "", "relative"])
def test_a_folder_follows_its_variable_where_that_is_absolute(
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
    folder: Callable[[], Path],
    default: str,
    value: str,
) -> None:
    monkeypatch.setenv("HOME", "/home/u")
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setenv(variable, value)
    base = Path(value) if value.startswith("/") else Path("/home/u") / default
    assert folder() == base / "opkit"


def test_a_cache_that_cannot_be_filled_is_said_with_the_way_to_another(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("no folder")
    with (
        pytest.raises(SetupError, match="images cannot be written: Not a directory") as caught,
        filling_cache(tmp_path / "cache" / "images"),
    ):
        pass
    assert caught.value.help == "give another folder with XDG_CACHE_HOME"
