"""GELU in versions that go astray from a call on, each in one way, for benchmarks/service.py."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

__all__ = ["MODES", "build_versions"]

_GELU = Path(__file__).resolve().parents[1] / "examples" / "gelu_custom"
MODES = ("segfault", "hang", "nan", "grow", "wrong")
AFTER_CALLS = 200
"""Calls that a version answers well before it goes astray."""

_MISBEHAVE = r"""
#include <dlfcn.h>
#include <signal.h>
#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

static void Here() {}

// What the file `mode` beside this library says, from that call on: "hang 200".
static std::string ModeNow()
{
    static char mode[32] = "good";
    static int after = -1;
    static int calls = 0;
    if (after < 0) {
        after = 0;
        Dl_info info;
        dladdr(reinterpret_cast<void*>(&Here), &info);
        std::string path = info.dli_fname;
        path = path.substr(0, path.rfind('/')) + "/mode";
        if (FILE* file = std::fopen(path.c_str(), "r")) {
            if (std::fscanf(file, "%31s %d", mode, &after) < 1) { std::strcpy(mode, "good"); }
            std::fclose(file);
        }
    }
    return calls++ < after ? "good" : mode;
}

"""
_TILING = r"""
static ge::graphStatus TilingFunc(gert::TilingContext* context)
{
    const std::string mode = ModeNow();
    if (mode == "segfault") {
        signal(SIGSEGV, SIG_DFL);
        *static_cast<volatile int*>(nullptr) = 1;
    }
    while (mode == "hang") { usleep(100000); }
    for (long held = 0; mode == "grow" && held < 4L << 30; held += 1 << 20) {
        void* more = std::malloc(1 << 20);
        if (more != nullptr) { std::memset(more, 1, 1 << 20); }
    }
    const ge::graphStatus status = TilingAsItWas(context);
    auto* tiling = context->GetTilingData<GeluCustomTiling>();
    if (mode == "nan") { tiling->extra = -1 - tiling->extra; }
    if (mode == "wrong") { tiling->perBlock = tiling->extra = 0; }
    return status;
}

}  // namespace optiling
"""
_HOST = (
    ("namespace optiling {", f"{_MISBEHAVE}namespace optiling {{"),
    ("TilingFunc(gert::TilingContext* context)\n", "TilingAsItWas(gert::TilingContext* context)\n"),
    ("}  // namespace optiling\n", _TILING),
)
_KERNEL = (
    (
        "const int64_t extra = tiling.extra;",
        "isBad = tiling.extra < 0;\n"
        "        const int64_t extra = isBad ? -1 - tiling.extra : tiling.extra;",
    ),
    (
        "Adds(scratch1, scratch1, 1.0f, count);",
        'Adds(scratch1, scratch1, isBad ? __builtin_nanf("") : 1.0f, count);',
    ),
    ("    TPipe pipe;\n", "    bool isBad = false;\n    TPipe pipe;\n"),
)


def build_versions(folder: Path) -> dict[str, Path]:
    """Return the artifact folders by name: `good`, and one a mode; built once in a folder."""
    good = _project(folder / "gelu", {})
    chaos = _project(
        folder / "chaos", {"op_host/gelu_custom.cpp": _HOST, "op_kernel/gelu_custom.cpp": _KERNEL}
    )
    found = {"good": good}
    for mode in MODES:
        version = folder / mode / "_lib"
        if not version.is_dir():
            shutil.copytree(chaos / "build" / "opkit", version)
            shutil.copy(good / "gelu_custom" / "golden.py", folder / mode / "golden.py")
            (version / "mode").write_text(f"{mode} {AFTER_CALLS}\n")
        found[mode] = folder / mode
    return found


def _project(root: Path, edits: dict[str, tuple[tuple[str, str], ...]]) -> Path:
    if not root.is_dir():
        left_out = shutil.ignore_patterns("*_ext", "*_grad*", "*_tuned*", "build", "tests", "dist")
        shutil.copytree(_GELU, root, ignore=left_out)
        settings = root / "pyproject.toml"
        text = settings.read_text()
        for name in ("grad", "tuned"):
            text = text.replace(f', "gelu_custom_{name}.json"', "")
        settings.write_text(text)
        for name, replacements in edits.items():
            source = (root / name).read_text()
            for before, after in replacements:
                if source.count(before) != 1:
                    raise RuntimeError(f"{name} no longer has {before!r} once: mend this benchmark")
                source = source.replace(before, after)
            (root / name).write_text(source)
    subprocess.run([sys.executable, "-m", "opkit", "build", "-q", str(root)], check=True)
    return root
