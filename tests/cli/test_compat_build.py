"""`opkit compat build`: a survey of a library that can be taken up again."""

from __future__ import annotations

import json
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from opkit.cli.commands.compat import command
from opkit.errors import UsageError

LIBRARY = Path(__file__).parents[1] / "toolchain" / "data" / "library"


def survey(*arguments: str) -> Result:
    return CliRunner().invoke(command, ["build", "--json", *arguments])


def test_what_is_known_is_not_built_again(tmp_path: Path) -> None:
    known = tmp_path / "known.jsonl"
    rows = [
        {"operator": "math/running_sum", "built": True, "cause": None, "notes": [], "seconds": 1.0},
        {
            "operator": "math/shift",
            "built": False,
            "cause": "shift.cpp:3: no",
            "notes": [],
            "seconds": 1.0,
        },
    ]
    known.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    done = survey(str(LIBRARY), "--resume", str(known))
    document = json.loads(done.stdout)
    assert done.exit_code == 1
    assert (document["operators"], document["built"]) == (2, 1)
    assert document["causes"] == [{"cause": "no", "operators": 1}]
    done = survey(str(LIBRARY), "--resume", str(known), "-k", "not shift")
    assert (done.exit_code, json.loads(done.stdout)["operators"]) == (0, 1)
    assert known.read_text().count("\n") == 2


def test_a_draw_is_the_same_for_the_same_seed(tmp_path: Path) -> None:
    known = tmp_path / "known.jsonl"
    row = {"built": True, "cause": None, "notes": [], "seconds": 1.0}
    names = ("math/running_sum", "math/shift")
    known.write_text("".join(f"{json.dumps({'operator': name, **row})}\n" for name in names))
    drawn = [
        json.loads(survey(str(LIBRARY), "--resume", str(known), "--sample", "1").stdout)
        for _ in range(2)
    ]
    assert drawn[0] == drawn[1] and drawn[0]["operators"] == 1


def test_an_operator_that_takes_too_long_is_left_and_said_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def endless(*_: object, **__: object) -> Iterator[object]:
        while True:
            time.sleep(0.01)
        yield

    monkeypatch.setattr("opkit.toolchain.build_operators", endless)
    known = tmp_path / "known.jsonl"
    before = signal.getsignal(signal.SIGALRM)
    done = survey(str(LIBRARY), "--timeout", "0.1", "--resume", str(known), "-k", "running_sum")
    document = json.loads(done.stdout)
    assert document["causes"] == [{"cause": "takes more than 0.1 s", "operators": 1}]
    assert json.loads(known.read_text())["built"] is False
    assert signal.getsignal(signal.SIGALRM) is before


def test_a_file_that_is_no_survey_and_a_folder_without_operators_are_refused(
    tmp_path: Path,
) -> None:
    known = tmp_path / "known.jsonl"
    known.write_text("[1]\n")
    with pytest.raises(UsageError, match="is no file of results"):
        CliRunner().invoke(
            command, ["build", str(LIBRARY), "--resume", str(known)], catch_exceptions=False
        )
    with pytest.raises(UsageError, match="has no operator for ascend910b"):
        CliRunner().invoke(command, ["build", str(tmp_path)], catch_exceptions=False)


@pytest.mark.slow
def test_operators_are_built_aside_and_results_are_added(tmp_path: Path) -> None:
    root, known = tmp_path / "library", tmp_path / "known.jsonl"
    shutil.copytree(LIBRARY, root)
    done = survey(str(root / "math"), "-k", "running_sum", "--resume", str(known))
    assert done.exit_code == 0, done.output
    assert json.loads(known.read_text())["built"] is True
    assert not (root / "math/running_sum/build").exists()
