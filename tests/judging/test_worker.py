"""What leaves the process of a candidate."""

from __future__ import annotations

from pathlib import Path

import pytest

from opkit.judging.worker import checked_finding
from opkit.sanitizer import Finding, Location


@pytest.mark.parametrize("written", ["op_kernel/k.cpp", "/judge/candidate/op_kernel/k.cpp"])
def test_a_finding_names_its_file_as_the_sources_do_wherever_the_process_works(
    written: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It held the working directory: tmp/op_kernel/k.cpp in a sandbox, any path without one.
    monkeypatch.chdir(tmp_path)
    at = Location(Path(written), 3)
    finding = Finding("RACE-RAW", "", "", "k", at, None, 0, 0, "aiv", 0, 1, "UB", 0, 32, 1)
    found = checked_finding(finding, Path("/judge/candidate"))["location"]
    assert isinstance(found, dict)
    assert found["file"] == "op_kernel/k.cpp"
