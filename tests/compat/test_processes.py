"""Commands end, whatever they print and whomever they leave behind."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from opkit.compat.processes import Ran, Running


def python(text: str, here: Path, *, seconds: float = 20) -> Ran:
    return Running().call([sys.executable, "-c", text], cwd=here, env=os.environ, seconds=seconds)


def test_a_command_that_prints_without_end_keeps_its_beginning_and_its_end(tmp_path: Path) -> None:
    ran = python("print('first'); print('x' * (20 << 20)); print('last')", tmp_path)
    assert ran.output.startswith("first\n")
    assert ran.output.endswith("x\nlast\n")
    assert "\n...\n" in ran.output
    assert len(ran.output) < 9 << 20


def test_bytes_that_are_no_text_are_read(tmp_path: Path) -> None:
    ran = python(r"import os; os.write(1, b'\xff\x00pass\n')", tmp_path)
    assert ran.output == "\ufffd\x00pass\n"


@pytest.mark.parametrize("start_new_session", [False, True])
def test_what_a_command_leaves_behind_does_not_hold_it_up(
    tmp_path: Path, start_new_session: bool
) -> None:
    script = (
        "import subprocess, sys\n"
        "code = 'import time; time.sleep(120)'\n"
        "child = subprocess.Popen([sys.executable, '-c', code],"
        f" start_new_session={start_new_session})\n"
        "print(child.pid)\n"
    )
    begin = time.monotonic()
    ran = python(script, tmp_path)
    assert time.monotonic() - begin < 60
    assert (ran.code, ran.timed_out) == (0, False)
    child = int(ran.output)
    if start_new_session:
        os.kill(child, 9)
        return
    # Of the command's own session: ended with it, and gone or waiting for its parent.
    status = Path(f"/proc/{child}/stat")
    for _ in range(100):
        if not status.exists() or status.read_text().split()[2] == "Z":
            return
        time.sleep(0.05)
    pytest.fail("the child lives")


def test_a_limit_ends_a_command_that_prints_all_the_time(tmp_path: Path) -> None:
    ran = python("while True: print('x')", tmp_path, seconds=0.5)
    assert ran.timed_out
