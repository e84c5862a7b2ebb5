"""Every documented host function of sizes and tiling can be called as its page has it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from opkit import emulator
from opkit.toolchain import find_compiler

TABLE = Path(__file__).parent / "data" / "host_size_functions.tsv"
ROWS = [line.split("\t") for line in TABLE.read_text().splitlines() if not line.startswith("#")]
REFUSED = emulator.include_dir() / "opkit" / "host" / "refused.inc"


def compile_host(text: str, folder: Path, *flags: str) -> str:
    source = folder / "host.cpp"
    source.write_text(f'#include "tiling/tiling_api.h"\nusing namespace AscendC;\n{text}')
    argv = [*find_compiler().argv, "-std=c++17", "-I", str(emulator.include_dir()), *flags]
    done = subprocess.run([*argv, str(source)], capture_output=True, text=True, check=False)
    return done.stderr


def test_every_documented_prototype_compiles_in_its_order_of_parameters(tmp_path: Path) -> None:
    # 72 of 222 did not: another order, another type, or no function of that name.
    lines = [
        f'#line {number} "prototype"\n{result} (*const f{number})({parameters}) = &{name};'
        for number, (name, result, parameters) in enumerate(ROWS)
    ]
    log = compile_host("\n".join(lines), tmp_path, "-fsyntax-only", "-w")
    refused = {int(number) for number in re.findall(r"^prototype:(\d+):\d+: error", log, re.M)}
    assert [ROWS[number][0] for number in sorted(refused)] == []
    assert "error" not in log


def test_what_opkit_lacks_is_documented_and_refused_by_name(tmp_path: Path) -> None:
    listed = set(re.findall(r"^OPKIT_REFUSED\((\w+)", REFUSED.read_text(), re.M))
    assert listed <= {name for name, _, _ in ROWS}
    program = (
        "#include <cstdio>\nint main() {\n  uint32_t most = 0, least = 0;\n"
        "  try { GetLgammaMaxMinTmpSize(TensorShape({32}), 4, false, most, least); }\n"
        "  catch (const std::exception& error) { std::puts(error.what()); }\n"
        "  GetSwiGLUMaxMinTmpSize(TensorShape({1024}), 2, most, least, false);\n"
        "  return least > most || least == 0;\n}\n"
    )
    library = emulator.library_path()
    log = compile_host(
        program,
        tmp_path,
        "-o",
        str(tmp_path / "host"),
        f"-L{library.parent}",
        f"-Wl,-rpath,{library.parent}",
    )
    assert "error" not in log
    words = [str(tmp_path / "host")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("GetLgammaMaxMinTmpSize is not implemented in opkit")
    assert done.returncode == 0
