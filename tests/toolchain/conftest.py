"""A small operator project, and an emulator of a few lines to compile it against."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from opkit.toolchain import Artifact, BuildEvent, Project, Toolkit, build, load_project

KERNEL_HEADER = """\
#pragma once
#define GM_ADDR unsigned char*
#define __aicore__
#define __global__ __attribute__((visibility("default")))
using half = unsigned short;
namespace AscendC {
template <typename T>
struct LocalTensor {
  T* data;
};
namespace detail {
template <typename T>
void issue(LocalTensor<T>& tensor, int count) {
  static_assert(sizeof(T) <= 4, "Add takes half, float, int16_t and int32_t");
  tensor.data[0] += static_cast<T>(count);
}
template <typename T>
void check(T value) {
  value.has_no_such_member();
}
}  // namespace detail
template <typename T>
void Add(LocalTensor<T>& destination, int count) {
  detail::issue(destination, count);
}
template <typename T>
void Broken(T value) {
  detail::check(value);
}
#define MAKE_TENSOR(type, name) LocalTensor<type> name = type##_is_unknown
}  // namespace AscendC
"""

KERNEL_ENTRY = """\
#pragma once
#define OPKIT_KERNEL_TABLE(kernel) \\
  extern "C" __attribute__((visibility("default"))) const char opkit_kernel_name[] = #kernel; \\
  extern "C" __attribute__((visibility("default"))) const char opkit_dtype = sizeof(DTYPE_X);
"""

KERNEL = """\
#include "kernel_operator.h"
#include "twice_tiling.h"
extern "C" __global__ __aicore__ void twice(GM_ADDR x, GM_ADDR y) {
  AscendC::LocalTensor<DTYPE_X> tensor{reinterpret_cast<DTYPE_X*>(x)};
  AscendC::Add(tensor, kTile);
}
extern "C" __global__ const char* where() { return __builtin_FILE(); }
"""

HOST = """\
#include "../op_kernel/twice_tiling.h"
extern "C" __attribute__((visibility("default"))) int tile() { return kTile; }
"""


@dataclass
class Workshop:
    """A project on disk with everything that a build of it takes."""

    root: Path
    toolkit: Toolkit
    cache_dir: Path
    events: list[BuildEvent]
    commands: list[list[str]]
    warnings: list[str]

    @property
    def kernel(self) -> Path:
        return self.root / "op_kernel" / "twice.cpp"

    @property
    def tiling(self) -> Path:
        return self.root / "op_kernel" / "twice_tiling.h"

    @property
    def project(self) -> Project:
        return load_project(self.root)

    def build(self, **options: object) -> Artifact:
        """Build with this workshop's toolkit and cache; events and commands are of this build."""
        self.events.clear()
        self.commands.clear()
        defaults = {
            "toolkit": self.toolkit,
            "cache_dir": self.cache_dir,
            "jobs": 2,
            "progress": self.events.append,
            "verbose": self.commands.append,
            "warn": self.warnings.append,
        }
        return build(self.project, **{**defaults, **options})

    def statuses(self) -> dict[str, str]:
        """Status by unit of the last build."""
        return {event.name: event.status for event in self.events}


def write_toolkit(folder: Path) -> Toolkit:
    (folder / "opkit").mkdir(parents=True)
    (folder / "kernel_operator.h").write_text(KERNEL_HEADER)
    (folder / "opkit" / "kernel_entry.h").write_text(KERNEL_ENTRY)
    (folder / "opkit" / "kernel_constants.h").write_text(
        "#define DT_FLOAT 0\n#define DT_FLOAT16 1\n"
    )
    (folder / "opkit" / "types.h").write_text("constexpr unsigned kAbiVersion = 7;\n")
    return Toolkit(include_dir=folder, library=None)


def write_project(root: Path, *, dtypes: tuple[str, ...] = ("float16", "float")) -> None:
    for folder in ("op_kernel", "op_host"):
        (root / folder).mkdir(parents=True)
    tensor = {"param_type": "required", "type": list(dtypes), "format": ["ND"] * len(dtypes)}
    prototype = {
        "op": "Twice",
        "input_desc": [{"name": "x", **tensor}],
        "output_desc": [{"name": "y", **tensor}],
    }
    (root / "twice.json").write_text(json.dumps([prototype]))
    (root / "pyproject.toml").write_text(
        '[project]\nname = "twice-op"\n[tool.opkit]\noperators = ["twice.json"]\n'
    )
    (root / "op_kernel" / "twice.cpp").write_text(KERNEL)
    (root / "op_kernel" / "twice_tiling.h").write_text("constexpr int kTile = 8;\n")
    (root / "op_host" / "twice.cpp").write_text(HOST)


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    if shutil.which("c++") is None and shutil.which("g++") is None:
        pytest.skip("no C++ compiler")
    root = tmp_path / "twice op"
    write_project(root)
    return Workshop(
        root=root,
        toolkit=write_toolkit(tmp_path / "emulator"),
        cache_dir=tmp_path / "cache",
        events=[],
        commands=[],
        warnings=[],
    )


@pytest.fixture
def make_project() -> Callable[[Path], None]:
    """Writes the project into a folder."""
    return write_project
