"""Chips: names, numbers with sources, and the rows that are compiled into the emulator."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from opkit.chips import DEFAULT_CHIP, all_chips, find_chip
from opkit.errors import OpkitError, UsageError

EMULATOR = Path(__file__).parents[1] / "opkit" / "emulator"


@pytest.mark.parametrize(
    "name",
    ["Ascend910B2", "ascend910b2", "910b2", "910B", "ai_core-Ascend910B2", "ascend910b", " 910B2 "],
)
def test_any_spelling_of_910b2_finds_it(name: str) -> None:
    assert find_chip(name).name == "Ascend910B2"


def test_the_compute_unit_of_a_310p_finds_it() -> None:
    assert find_chip("ai_core-ascend310p3").npu_arch_number == 2002


def test_an_unknown_chip_names_the_nearest_one() -> None:
    with pytest.raises(UsageError) as caught:
        find_chip("Ascend910B9")
    assert caught.value.exit_code == 2
    assert "Ascend910B9" in str(caught.value)
    assert "did you mean Ascend910B2" in str(caught.value)


def test_the_default_chip_comes_first() -> None:
    assert all_chips()[0].name == DEFAULT_CHIP


def test_no_two_chips_share_a_name() -> None:
    names = [alias.lower() for chip in all_chips() for alias in {chip.name, *chip.aliases}]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("chip", all_chips(), ids=lambda chip: chip.name)
def test_every_number_has_a_source_and_every_chip_the_sizes(chip) -> None:
    for key, number in chip.numbers.items():
        assert number.source.strip(), key
        assert number.value >= 0, key
    for memory in ("ub", "l1", "l0a", "l0b", "l0c", "bt", "fb"):
        assert chip.count(f"memory.{memory}_bytes") >= 0
    assert chip.count("cores.aiv") > 0
    assert chip.count("clock.mhz") > 0


def test_the_sizes_of_910b2_are_those_of_its_architecture_guide() -> None:
    chip = find_chip("910B2")
    sizes = [chip.count(f"memory.{name}_bytes") // 1024 for name in ("ub", "l1", "l0a", "l0c")]
    assert sizes == [192, 512, 64, 128]
    assert (chip.count("cores.aic"), chip.count("cores.aiv")) == (24, 48)


def test_a_missing_number_is_named() -> None:
    with pytest.raises(OpkitError, match=r"timing\.none"):
        find_chip("910B2").number("timing.none")


def test_the_embedded_rows_compile_and_hold_the_same_numbers(tmp_path: Path) -> None:
    compiler = shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    rows = tmp_path / "rows.cpp"
    chips = sorted((EMULATOR / "chips").glob("*.json"))
    embed = [sys.executable, str(EMULATOR / "cmake" / "embed_chips.py"), str(rows)]
    subprocess.run([*embed, *map(str, chips)], check=True)
    main = tmp_path / "main.cpp"
    main.write_text(
        "#include <cstdio>\n"
        '#include "core/chip_rows.h"\n'
        "int main() {\n"
        "  for (unsigned c = 0; c < opkit::kChipRowCount; ++c) {\n"
        "    const auto& row = opkit::kChipRows[c];\n"
        "    for (unsigned i = 0; i < row.number_count; ++i)\n"
        '      std::printf("%s %s %.17g\\n", row.name, row.numbers[i].key, row.numbers[i].value);\n'
        "    for (const char* const* alias = row.aliases; *alias; ++alias)\n"
        '      std::printf("%s alias %s\\n", row.name, *alias);\n'
        "  }\n"
        "}\n"
    )
    program = tmp_path / "main"
    command = [compiler, "-std=c++17", "-Wall", "-Werror", f"-I{EMULATOR / 'src'}"]
    subprocess.run([*command, str(rows), str(main), "-o", str(program)], check=True)
    text = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    assert text.startswith(f"{DEFAULT_CHIP} ")
    for chip in all_chips():
        printed = dict(re.findall(rf"^{chip.name} (?!alias)(\S+) (\S+)$", text, flags=re.M))
        assert {key: float(value) for key, value in printed.items()} == {
            key: number.value for key, number in chip.numbers.items()
        }
        aliases = re.findall(rf"^{chip.name} alias (.+)$", text, flags=re.M)
        assert set(aliases) == {*chip.aliases, chip.soc_config}


def test_what_a_chip_assumes_to_be_as_on_the_910b_is_as_on_the_910b() -> None:
    known = find_chip(DEFAULT_CHIP).numbers
    for chip in all_chips():
        assumed = [key for key, n in chip.numbers.items() if n.source.startswith("assumed: as on")]
        if chip.name == "Ascend310P3":
            assert assumed
        for key in assumed:
            assert chip.numbers[key].value == known[key].value, (chip.name, key)


@pytest.mark.parametrize("kind", ["aiv", "aic"])
def test_a_launch_takes_longer_with_each_core_that_there_is(kind: str) -> None:
    # A change of any number in it was noticed by no test (benchmarks/source_mutants.py).
    chip = find_chip("Ascend910B2")
    limit = chip.count(f"cores.{kind}")
    one, all_cores = (chip.number(f"timing.launch.{key}_us") for key in ("one_core", "all_cores"))
    assert [chip.launch_us(cores, kind) for cores in (0, 1)] == [one, one]
    assert chip.launch_us(limit, kind) == pytest.approx(all_cores)
    assert chip.launch_us(2, kind) - one == pytest.approx((all_cores - one) / (limit - 1))
    assert chip.launch_us(limit + 9, kind) == chip.launch_us(limit, kind)
