"""What a library's operators lack, from reading their host code and kernels."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from opkit.chips import DEFAULT_CHIP, find_chip
from opkit.cli.compat import command
from opkit.compat import KernelNames, scan_operators

LIBRARY = Path(__file__).parents[1] / "toolchain" / "data" / "library"
KERNEL = "math/running_sum/op_kernel/running_sum.cpp"


@pytest.fixture
def library(tmp_path: Path) -> Path:
    return Path(shutil.copytree(LIBRARY, tmp_path / "library"))


def lacks(library: Path, *, names: tuple[str, ...] = ()) -> tuple[str, ...]:
    operator = library / "math" / "running_sum"
    kernels = [KernelNames(KERNEL, names, names)]
    (found,) = scan_operators(library, [operator], kernels, chip=find_chip(DEFAULT_CHIP))
    assert found.operator == "math/running_sum"
    return found.missing


def test_an_operator_lacks_headers_names_and_kernels(library: Path) -> None:
    assert lacks(library) == ()
    assert lacks(library, names=("Wish",)) == ("Wish",)
    host = next((library / "math/running_sum/op_host").glob("*_def.cpp"))
    host.write_text('#include <vector>\n#include "graph/absent.h"\n' + host.read_text())
    assert lacks(library) == ("graph/absent.h",)
    kernel = library / KERNEL
    kernel.write_text('#if __NPU_ARCH__ == 3101\n#include "other_chip.h"\n#endif\n')
    assert lacks(library) == ("graph/absent.h", "a kernel of RunningSum")


def test_a_scan_of_a_library_tells_what_builds(library: Path) -> None:
    chosen = [str(library), "--scan", "-k", "running_sum"]
    done = CliRunner().invoke(command, [*chosen, "--json"])
    assert done.exit_code == 0
    document = json.loads(done.stdout)
    assert document["by_operator"] == [{"operator": "math/running_sum", "missing": []}]
    done = CliRunner().invoke(command, chosen)
    assert "1 of 1 operators (100%) lack no header and no name" in done.output
