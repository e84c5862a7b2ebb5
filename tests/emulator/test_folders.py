"""Which folders of the emulator's sources may include which, and that headers include one another in no circle."""

from __future__ import annotations

import re
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2] / "opkit" / "emulator" / "src"
INCLUDE = re.compile(r'^#include "([\w/.]+)"', re.MULTILINE)

# A folder may include itself and these. `core` is the state of a core; `sched` runs cores; observers watch, and nothing
# that executes knows one of them.
MAY_INCLUDE = {
    "memory": {"core", "isa"},
    "isa": {"core", "memory", "sync"},
    "sync": {"core", "isa", "memory", "sched"},
    "core": {"isa", "memory", "observe", "sched", "sync"},
    "sched": {"core", "memory", "observe", "sync"},
    "observe": {"core", "isa", "memory", "sync"},
    "host": {"core", "observe", "sched"},
    "mm": {"core"},
    "acl": {"core", "mm", "observe", "sched"},
    "debug": {"core", "isa", "memory", "observe"},
    "td": {"acl", "core", "host"},
    "aclnn": {"acl", "host"},
}
# What watching is to those who run kernels: the interface, and the list that a device is born with.
OBSERVERS_OUTSIDE = {"observe/observer.h", "observe/builtin.h"}

pytestmark = pytest.mark.skipif(not SOURCES.is_dir(), reason="needs a checkout")


def includes() -> list[tuple[str, str]]:
    """Return (file, what it includes), both relative to the sources, of includes among them."""
    found = []
    for path in sorted([*SOURCES.rglob("*.h"), *SOURCES.rglob("*.cpp"), *SOURCES.rglob("*.inc")]):
        name = path.relative_to(SOURCES).as_posix()
        for target in INCLUDE.findall(path.read_text(encoding="utf-8")):
            if (SOURCES / target).is_file():
                found.append((name, target))
    return found


def folder(name: str) -> str:
    return name.split("/")[0]


def test_folders_include_only_what_their_layer_may() -> None:
    strangers = [
        f"{name} includes {target}"
        for name, target in includes()
        if folder(name) != folder(target)
        and folder(target) not in MAY_INCLUDE.get(folder(name), set())
    ]
    assert strangers == []


def test_what_executes_names_no_observer() -> None:
    named = [
        f"{name} includes {target}"
        for name, target in includes()
        if folder(target) == "observe"
        and folder(name) in ("core", "sched")
        and target not in OBSERVERS_OUTSIDE
    ]
    assert named == []


def test_headers_include_one_another_in_no_circle() -> None:
    graph: dict[str, set[str]] = {}
    for name, target in includes():
        if name.endswith((".h", ".inc")):
            graph.setdefault(name, set()).add(target)
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the circle
