"""The state of processes that use emulated devices, as others see it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from opkit.cli.vendor import run_tool
from opkit.processes import device_folder, device_processes

# Holds 3 MiB and 100 bytes, says so, waits, frees them, waits.
HOLDER = """
import ctypes, sys
import opkit.runtime as runtime
library = runtime.load_emulator()
import opkit.emulator._emulator as emulator
library.opkit_memory_set_devices(2)
emulator.show_process("Ascend910B2", 2)
library.opkit_memory_allocate.restype = ctypes.c_void_p
library.opkit_memory_allocate.argtypes = [ctypes.c_int32, ctypes.c_uint64, ctypes.c_uint64]
library.opkit_memory_free.argtypes = [ctypes.c_void_p]
blocks = [library.opkit_memory_allocate(1, size, 0) for size in (3 << 20, 100)]
print("held", flush=True)
sys.stdin.readline()
for block in blocks:
    library.opkit_memory_free(block)
print("freed", flush=True)
sys.stdin.readline()
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.delenv("OPKIT_NPU_COUNT", raising=False)
    return device_folder()


def start() -> subprocess.Popen[str]:
    command = [sys.executable, "-c", HOLDER]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_a_process_is_seen_with_what_it_holds_and_gone_when_it_ends(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with start() as holder:
        assert holder.stdin is not None and holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        (process,) = device_processes()
        assert (process.pid, process.chip, process.devices) == (holder.pid, "Ascend910B2", 2)
        assert process.held_bytes == (0, (3 << 20) + 512)
        assert process.reserved_bytes[0] == 0
        assert process.reserved_bytes[1] >= process.held_bytes[1]

        assert run_tool("npu-smi", ["info"]) == 0
        shown = capsys.readouterr().out
        assert "No running processes found in NPU 1" not in shown
        megabytes = process.reserved_bytes[1] >> 20
        assert f"| {megabytes} " in shown
        assert f"{megabytes:<5}/ 65536" in shown
        assert run_tool("npu-smi", ["info", "-t", "proc-mem", "-i", "1"]) == 0
        assert f"Process id:{holder.pid}" in capsys.readouterr().out

        holder.stdin.write("\n")
        holder.stdin.flush()
        assert holder.stdout.readline() == "freed\n"
        assert device_processes()[0].held_bytes == (0, 0)
        holder.stdin.write("\n")
        holder.stdin.flush()
    assert device_processes() == []
    assert run_tool("npu-smi", ["info"]) == 0
    assert "No running processes found in NPU 0" in capsys.readouterr().out


def test_the_file_of_a_killed_process_is_swept(folder: Path) -> None:
    with start() as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        assert len(list(folder.iterdir())) == 1
        holder.kill()
    assert len(list(folder.iterdir())) == 1
    assert device_processes() == []
    assert list(folder.iterdir()) == []


def test_a_number_that_another_process_has_now_is_not_taken_for_it(folder: Path) -> None:
    folder.mkdir(parents=True)
    text = {"pid": 1, "start_ticks": -1, "name": "x", "chip": "Ascend910B2", "devices": 1}
    (folder / "1.state").write_bytes(bytes(1024) + json.dumps(text).encode() + b"\0")
    assert device_processes() == []
