"""`npu-smi`: the emulated devices, with the memory that processes hold on them now.

What an emulated device does not have (temperature, power, clocks of a board, a bus) is NA. Source:
npu-smi command reference, info; the layout is the one that scripts parse.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import click

import opkit
from opkit.chips import DEFAULT_CHIP, Chip, find_chip
from opkit.errors import UsageError
from opkit.processes import DeviceProcess, device_processes

__all__ = ["command", "overview"]

_MIB = 1 << 20
_NONE = "NA"
_WIDTHS = (27, 15, 52)
_COUNT = "OPKIT_NPU_COUNT"


@dataclass(frozen=True)
class _Device:
    """One emulated device, and who uses it."""

    number: int
    chip: Chip
    users: tuple[DeviceProcess, ...]

    @property
    def name(self) -> str:
        return self.chip.name.removeprefix("Ascend")

    @property
    def total_mib(self) -> int:
        return self.chip.count("memory.hbm_bytes") // _MIB

    @property
    def used_mib(self) -> int:
        return sum(_mib(user, self.number) for user in self.users)


def _mib(process: DeviceProcess, device: int) -> int:
    """Return what a process has reserved of a device, rounded up."""
    return -(-process.reserved_bytes[device] // _MIB)


def _devices() -> list[_Device]:
    """Return the devices: as many as the environment says, or as any process has."""
    processes = device_processes()
    text = os.environ.get(_COUNT, "1")
    count = int(text) if text.isdigit() else 1
    count = max([count, *(process.devices for process in processes)])
    devices = []
    for number in range(count):
        users = tuple(process for process in processes if process.devices > number)
        chip = users[0].chip if users else DEFAULT_CHIP
        devices.append(_Device(number, find_chip(chip), users))
    return devices


@click.group(
    "npu-smi",
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
)
@click.version_option(opkit.__version__, "-v", "--version", message="npu-smi of opkit %(version)s")
def command() -> None:
    """Show the emulated devices.

    Example: npu-smi info
    """


@command.command("info")
@click.option("-l", "lists", is_flag=True, help="List the devices.")
@click.option("-m", "maps", is_flag=True, help="List the chips of all devices.")
@click.option("-t", "kind", metavar="TYPE", help="board, memory, usages, proc-mem, health, ...")
@click.option("-i", "number", type=click.IntRange(min=0), metavar="ID", help="The device.")
@click.option("-c", "chip", type=click.IntRange(min=0), metavar="CHIP", help="0: each has one.")
def info(lists: bool, maps: bool, kind: str | None, number: int | None, chip: int | None) -> None:
    """Print what is known of the devices and of the processes on them."""
    devices = _devices()
    if lists:
        click.echo("\n".join(_listed(devices)))
    elif maps:
        click.echo("\n".join(_mapped(devices)))
    elif kind is None:
        click.echo(overview(devices))
    else:
        if chip not in (None, 0):
            raise UsageError(f"-c {chip}: each device has one chip, number 0")
        _show_kind(kind, _picked(devices, number), chip)


def _picked(devices: Sequence[_Device], number: int | None) -> _Device:
    if number is None and len(devices) > 1:
        raise UsageError("-t needs a device", help=f"-i 0 to -i {len(devices) - 1}")
    if (number or 0) >= len(devices):
        raise UsageError(
            f"-i {number}: there are {len(devices)} devices, from 0 on",
            help=f"{_COUNT} says how many there are",
        )
    return devices[number or 0]


@command.command("set", context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def set_(arguments: tuple[str, ...]) -> None:
    """Refused: an emulated device has nothing to set."""
    raise UsageError("npu-smi set: an emulated device has nothing to set or to reset")


def _row(*cells: str) -> str:
    return (
        "|"
        + "|".join(f" {cell:<{width - 1}}" for cell, width in zip(cells, _WIDTHS, strict=True))
        + "|"
    )


def _rule(mark: str) -> str:
    return "+" + "+".join(mark * width for width in _WIDTHS) + "+"


def overview(devices: Sequence[_Device] | None = None) -> str:
    """Return the two tables of `npu-smi info`: devices, and processes on them."""
    devices = _devices() if devices is None else devices
    whole = sum(_WIDTHS) + len(_WIDTHS) - 1
    version = f"opkit {opkit.__version__}"
    lines = [
        "+" + "-" * whole + "+",
        f"| {f'npu-smi of {version}':<33}Version: {version}".ljust(whole + 1) + "|",
        _rule("-"),
        _row("NPU   Name", "Health", "Power(W)    Temp(C)           Hugepages-Usage(page)"),
        _row("Chip", "Bus-Id", "AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)"),
        _rule("="),
    ]
    for device in devices:
        hbm = f"{device.used_mib:<5}/ {device.total_mib}"
        lines += [
            _row(f"{device.number:<6}{device.name}", "OK", f"{_NONE:<12}{_NONE:<18}0    / 0"),
            _row("0", _NONE, f"{_NONE:<12}{'0    / 0':<18}{hbm}"),
            _rule("="),
        ]
    lines += [
        _rule("-"),
        _row("NPU     Chip", "Process id", f"{'Process name':<25}| Process memory(MB)"),
        _rule("="),
    ]
    for device in devices:
        for user in device.users:
            cell = f"{user.name[:24]:<25}| {_mib(user, device.number)}"
            lines.append(_row(f"{device.number:<8}0", str(user.pid), cell))
        if not device.users:
            text = f"No running processes found in NPU {device.number}"
            lines.append(f"| {text}".ljust(whole + 1) + "|")
        lines.append(_rule("="))
    return "\n".join(lines)


def _pair(name: str, value: object) -> str:
    return f"\t{name:<31}: {value}"


def _listed(devices: Sequence[_Device]) -> list[str]:
    lines = [_pair("Total Count", len(devices))]
    for device in devices:
        fields = {"Product Name": _NONE, "Serial Number": _NONE, "Chip Count": 1}
        lines += ["", _pair("NPU ID", device.number)]
        lines += [_pair(name, value) for name, value in fields.items()]
    return lines


def _mapped(devices: Sequence[_Device]) -> list[str]:
    columns = ("NPU ID", "Chip ID", "Chip Logic ID", "Chip Name")
    rows = [(str(d.number), "0", str(d.number), f"Ascend {d.name}") for d in devices]
    return ["\t" + "".join(f"{cell:<31}" for cell in row).rstrip() for row in (columns, *rows)]


def _board(device: _Device) -> dict[str, object]:
    return {
        "Product Name": "opkit, an emulator",
        "Chip Name": device.chip.name,
        "NPU Name": device.name,
        "Manufacturer": _NONE,
        "Serial Number": _NONE,
        "Software Version": f"opkit {opkit.__version__}",
        "Firmware Version": _NONE,
        "PCIe Bus Info": _NONE,
        "Chip Count": 1,
    }


def _memory(device: _Device) -> dict[str, object]:
    return {
        "HBM Capacity(MB)": device.total_mib,
        "HBM Clock Speed(MHz)": _NONE,
        "HBM Temperature(C)": _NONE,
        "HBM Usage Rate(%)": _percent(device),
        "HBM Manufacturer ID": _NONE,
    }


def _usages(device: _Device) -> dict[str, object]:
    return {
        "HBM Capacity(MB)": device.total_mib,
        "HBM Usage Rate(%)": _percent(device),
        "DDR Capacity(MB)": 0,
        "Aicore Usage Rate(%)": _NONE,
        "Aivector Usage Rate(%)": _NONE,
        "Aicpu Usage Rate(%)": _NONE,
        "Ctrlcpu Usage Rate(%)": _NONE,
        "HBM Bandwidth Usage Rate(%)": _NONE,
    }


def _percent(device: _Device) -> int:
    return round(100 * device.used_mib / device.total_mib)


def _common(device: _Device) -> dict[str, object]:
    clock = round(device.chip.number("clock.mhz"))
    return {
        "Memory Usage Rate(%)": 0,
        "HBM Usage Rate(%)": _percent(device),
        "Aicore Usage Rate(%)": _NONE,
        "Aicore Freq(MHZ)": clock,
        "Aicore curFreq(MHZ)": clock,
        "Aicore Count": device.chip.count("cores.aic"),
        "Temperature(C)": _NONE,
        "NPU Real-time Power(W)": _NONE,
    }


_KINDS: Mapping[str, Callable[[_Device], dict[str, object]]] = MappingProxyType(
    {
        "board": _board,
        "common": _common,
        "health": lambda device: {"Health": "OK"},
        "memory": _memory,
        "power": lambda device: {"NPU Real-time Power(W)": _NONE},
        "product": lambda device: {"Product Type": "opkit, an emulator"},
        "temp": lambda device: {"NPU Temperature (C)": _NONE},
        "usages": _usages,
    }
)


def _show_kind(kind: str, device: _Device, chip: int | None) -> None:
    if kind == "proc-mem":
        click.echo("\n".join(_process_memory(device)))
        return
    if kind not in _KINDS:
        raise UsageError(
            f"-t {kind}: an emulated device has nothing of this kind",
            help=f"there is {', '.join(sorted((*_KINDS, 'proc-mem')))}",
        )
    fields = _KINDS[kind](device)
    head = {"NPU ID": device.number}
    tail = {} if chip is None and kind == "board" else {"Chip ID": 0}
    click.echo("\n".join(_pair(name, value) for name, value in (head | fields | tail).items()))


def _process_memory(device: _Device) -> list[str]:
    lines = [_pair("NPU ID", device.number), _pair("Chip ID", 0)]
    for user in device.users:
        memory = _mib(user, device.number)
        lines.append(
            f"\tProcess id:{user.pid}  Process name:{user.name}  Process memory(MB):{memory}"
        )
    return lines if device.users else [*lines, "\tNo process in device."]
