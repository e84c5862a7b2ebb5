"""What of candidates is kept: what was built, and no more of it than there is room for."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from opkit.chips import find_chip
from opkit.judging import Limits, candidate
from opkit.judging.candidate import Built, built_candidate
from opkit.schema import OpSpec

_LOST = {"failure": {"error": "the build ended by the limit of 1 s", "kind": "Lost", "code": 1}}
_DONE = {"op": "Judged", "inputs": 1, "outputs": 1}


@pytest.fixture
def builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Return what the next builds say; the cache is an empty one."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    answers: list[dict[str, Any]] = []
    monkeypatch.setattr(candidate, "_build", lambda *given: answers.pop(0))
    return answers


def _built(folder: Path, text: str) -> Built:
    folder.mkdir(exist_ok=True)
    (folder / "kernel.cpp").write_text(text)
    spec = OpSpec(op="Judged", name="judged", inputs=(), outputs=(), attrs=(), source=folder)
    chip = find_chip("Ascend910B2")
    return built_candidate(folder, spec, list, chip=chip, limits=Limits(), sandboxed=False)


def test_what_a_limit_has_ended_is_built_again(
    builds: list[dict[str, Any]], tmp_path: Path
) -> None:
    # It was kept, and the candidate refused for good by one slow moment of the machine.
    builds[:] = [_LOST, _DONE]
    assert _built(tmp_path / "one", "1").failure
    assert _built(tmp_path / "one", "1").op == "Judged"
    # And that is kept.
    assert _built(tmp_path / "one", "1").op == "Judged"
    assert not builds


def test_what_was_judged_longest_ago_makes_room(
    builds: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nothing was ever deleted.
    monkeypatch.setattr(candidate, "DEFAULT_MAX_BYTES", 4000)
    builds[:] = [_DONE] * 3
    first = _built(tmp_path / "one", "1" * 1500)
    os.utime(first.sources.parent, (1, 1))
    second = _built(tmp_path / "one", "2" * 1500)
    third = _built(tmp_path / "one", "3" * 1500)
    assert [each.sources.is_dir() for each in (first, second, third)] == [False, True, True]


def test_the_digest_that_inputs_are_drawn_from_is_that_of_the_sources_alone(
    builds: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It held the times of opkit's own files: another result after each installation.
    builds[:] = [_DONE] * 3
    first = _built(tmp_path / "one", "1")
    library = tmp_path / "library.so"
    library.write_bytes(b"another")
    monkeypatch.setattr(candidate, "library_path", lambda: library)
    second = _built(tmp_path / "one", "1")
    assert second.artifact != first.artifact
    assert second.digest == first.digest
    assert _built(tmp_path / "one", "2").digest != first.digest
