"""What a library's operators lack, from reading their host code and kernels."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from opkit.chips import DEFAULT_CHIP, find_chip
from opkit.cli.commands.compat import command
from opkit.compat import KernelNames, operator_scan, scan_operators
from opkit.compat.declared import ask_compiler as ask

LIBRARY = Path(__file__).parents[1] / "toolchain" / "data" / "library"
KERNEL = "math/running_sum/op_kernel/running_sum.cpp"


@pytest.fixture
def library(tmp_path: Path) -> Path:
    return Path(shutil.copytree(LIBRARY, tmp_path / "library"))


def lacks(library: Path, *, names: tuple[str, ...] = (), kernel: str = KERNEL) -> tuple[str, ...]:
    operator = library / "math" / "running_sum"
    kernels = [KernelNames(kernel, names, names)]
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


def test_a_kernel_is_found_in_the_file_that_the_chips_configuration_names(library: Path) -> None:
    # A kernel that is not named like its operator was told as lacking.
    kernel = library / KERNEL
    renamed = kernel.with_name("sums_in_order.cpp")
    renamed.write_text(kernel.read_text().replace("running_sum(", "sums_in_order("))
    kernel.unlink()
    assert lacks(library) == ("a kernel of RunningSum",)
    host = next((library / "math/running_sum/op_host").glob("*_def.cpp"))
    text = host.read_text()
    configured = """
        OpAICoreConfig later;
        later.ExtendCfgInfo("opFile.value", "running_sum_later");
        OpAICoreConfig config;
        config.DynamicRankSupportFlag(true)
            .ExtendCfgInfo("opFile.value", "sums_in_order");
        this->AICore().AddConfig("ascend910b", config).AddConfig("ascend950", later);
    OP_ADD("""
    host.write_text(text.replace("OP_ADD(", configured, 1))
    assert lacks(library) == ()


def test_names_count_that_the_chips_own_kernel_uses(library: Path) -> None:
    # Operators that build were told as lacking what their other chips' kernels use.
    other = KERNEL.replace(".cpp", "_later.cpp")
    shutil.copy(library / KERNEL, library / other)
    assert lacks(library, names=("Wish",), kernel=other) == ()
    assert lacks(library, names=("Wish",)) == ("Wish",)
    # Where no kernel is the chip's, each may be meant.
    (library / KERNEL).unlink()
    (library / other).write_text("\n")
    assert lacks(library, names=("Wish",), kernel=other) == ("a kernel of RunningSum", "Wish")


def test_sources_are_read_with_all_headers_only_where_that_decides(
    library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Most of a scan's time went into headers that every source includes.
    asked: list[Sequence[str]] = []
    monkeypatch.setattr(
        operator_scan, "ask_compiler", lambda argv, **how: asked.append(argv) or ask(argv, **how)
    )
    assert lacks(library) == ()
    assert not any("-M" in argv and "-nostdinc" not in argv for argv in asked)
    host = next((library / "math/running_sum/op_host").glob("*_def.cpp"))
    text = host.read_text()
    host.write_text("#if __has_include(<vector>)\n#else\n#include <absent>\n#endif\n" + text)
    assert lacks(library) == ()
    assert any("-M" in argv and "-nostdinc" not in argv for argv in asked)
    host.write_text('#include "acl/acl_op.h"\n' + text)
    (refused,) = lacks(library)
    assert "opkit has no aclop calls" in refused
