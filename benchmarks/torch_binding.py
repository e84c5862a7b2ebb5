"""The generated torch binding beside the same binding written with torch/extension.h.

    python benchmarks/torch_binding.py

Needs torch. The second source is the first with the stable names replaced by torch's own, compiled
with the same flags; each is compiled twice and the faster run counts. CPU seconds, which a loaded
machine changes little.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import torch

from opkit import emulator

_ROOT = Path(__file__).resolve().parent.parent
_SOURCE = _ROOT / "examples/gelu_custom/torch_ext/gelu_custom_torch.cpp"
_HEADER = "opkit/extension/torch.h"
_FLAGS = ["-std=c++17", "-O1", "-fPIC", "-fvisibility=hidden"]
_EXTENSION = (
    ("#include <torch/csrc/stable/library.h>", "#include <torch/extension.h>"),
    ("#include <torch/csrc/stable/ops.h>\n", ""),
    ("#include <torch/csrc/stable/tensor.h>\n", ""),
    ("using torch::headeronly::ScalarType;", "using at::ScalarType;"),
    ("using torch::stable::Tensor;", "using at::Tensor;"),
    ("torch::stable::contiguous(value)", "value.contiguous()"),
    (
        "torch::stable::empty({shape.dims, static_cast<size_t>(shape.rank)}, row.torch)",
        "at::empty(at::IntArrayRef(shape.dims, static_cast<size_t>(shape.rank)), row.torch)",
    ),
    ("STABLE_TORCH_LIBRARY", "TORCH_LIBRARY"),
)


def binding_text() -> str:
    """Return the generated binding with the header of opkit that names torch put into it."""
    include = f'#include "{_HEADER}"'
    source = _SOURCE.read_text()
    if include not in source:
        raise SystemExit(f"the generated binding no longer has {include}: look at binding_text")
    header = (emulator.include_dir() / _HEADER).read_text()
    return source.replace(include, header.replace("#pragma once", ""))


def with_extension(source: str) -> str:
    """Return the binding as it would be written with torch/extension.h."""
    for stable, own in _EXTENSION:
        if stable not in source:
            raise SystemExit(f"the generated binding no longer has {stable!r}: look at _EXTENSION")
        source = source.replace(stable, own)
    return source.replace("TORCH_BOX(&", "(&")


def measured(command: list[str]) -> tuple[float, float]:
    """Return CPU seconds and peak memory in MiB of a command, compilers that it starts included."""
    script = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True);"
        "used = resource.getrusage(resource.RUSAGE_CHILDREN);"
        "print(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *command], check=True, capture_output=True, text=True
    )
    seconds, mebibytes = map(float, done.stdout.split()[-2:])
    return seconds, mebibytes


def main() -> None:
    home = Path(torch.__file__).parent
    includes = ["-isystem", str(emulator.include_dir()), "-isystem", str(home / "include")]
    own = [
        *("-isystem", str(home / "include/torch/csrc/api/include")),
        *("-isystem", sysconfig.get_paths()["include"]),
    ]
    kinds = {
        "stable ABI, as generated": (
            binding_text(),
            ["-DTORCH_TARGET_VERSION=0x020a000000000000"],
            [],
        ),
        "torch/extension.h": (with_extension(binding_text()), own, ["-ltorch", "-lc10"]),
    }
    print(f"torch {torch.__version__}, load {os.getloadavg()[0]:.1f}")
    print(f"{'binding':26} {'CPU seconds':>11} {'peak MiB':>9} {'library KiB':>12}")
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "binding.cpp"), Path(folder, "_torch.so")
        for name, (text, flags, libraries) in kinds.items():
            source.write_text(text)
            command = [
                *(
                    "c++",
                    *_FLAGS,
                    *includes,
                    *flags,
                    "-shared",
                    "-s",
                    str(source),
                    "-o",
                    str(target),
                ),
                *("-Wl,--no-as-needed", "-L", str(home / "lib"), "-ltorch_cpu", *libraries),
                *("-Wl,--as-needed", "-L", str(emulator.library_path().parent), "-lopkit_emulator"),
            ]
            seconds, mebibytes = min(measured(command) for _ in range(2))
            size = target.stat().st_size / 1024
            print(f"{name:26} {seconds:11.1f} {mebibytes:9.0f} {size:12.0f}")


if __name__ == "__main__":
    main()
