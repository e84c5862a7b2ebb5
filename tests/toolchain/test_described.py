"""What a host library says of itself, as data."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from opkit.errors import BuildError
from opkit.toolchain.building import described
from opkit.toolchain.building.described import parse_description

PARAM = {
    "param_type": "required",
    "dtypes": [1],
    "formats": [2],
    "follows_dtype": False,
    "is_dtype_list": False,
    "follow": "",
    "is_value_dependent": False,
    "scalar_kind": 0,
    "is_auto_contiguous": False,
    "ignores_contiguous": False,
}


def document(**changed: Any) -> dict[str, Any]:
    operator = {
        "op": "Twice",
        "unsupported": "",
        "configs": [],
        "attrs": [],
        "inputs": [{**PARAM, "name": "x", **changed}],
        "outputs": [{**PARAM, "name": "y"}],
    }
    return {"operators": [operator], "tiling_structs": []}


def test_a_format_is_read_by_its_number() -> None:
    found = parse_description(document(), soc_config="ascend910b", source=Path("twice.cpp"))
    assert found.operators[0].spec.inputs[0].formats == ("ND",)


def test_a_format_that_does_not_exist_is_an_error() -> None:
    """It became ND, and so did what was meant."""
    with pytest.raises(BuildError, match="x has the format 9999"):
        parse_description(document(formats=[9999]), soc_config="ascend910b", source=Path("t.cpp"))


def test_a_config_for_another_chip_of_the_family_counts_where_there_is_none() -> None:
    # Contests' projects name ascend310b alone: 58 of 96 were for no chip.
    def config(soc: str, *, stands_in: bool) -> dict[str, Any]:
        return {
            "soc_config": soc,
            "stands_in": stands_in,
            "op_file": soc,
            "inputs": [],
            "outputs": [],
        }

    named = [config("ascend950", stands_in=False), config("ascend310b", stands_in=True)]
    for configs, chosen in (
        (named[:1], None),
        (named, "ascend310b"),
        ([*named, config("ascend910b", stands_in=True)], "ascend910b"),
    ):
        text = document()
        text["operators"][0]["configs"] = configs
        (operator,) = parse_description(
            text, soc_config="ascend910b", source=Path("twice.cpp")
        ).operators
        assert (operator.configured_for, operator.op_file) == (chosen, chosen)


@pytest.mark.parametrize(("kind", "is_scalar"), [(0, False), (1, True), (2, False)])
def test_a_scalar_is_one_number_and_a_list_of_them_is_not(kind: int, is_scalar: bool) -> None:
    text = document(scalar_kind=kind)
    found = parse_description(text, soc_config="ascend910b", source=Path("twice.cpp"))
    assert found.operators[0].spec.inputs[0].is_scalar is is_scalar


HEAD = "#include <cstdio>\n#include <cstdlib>\n#include <unistd.h>\n"


def library(folder: Path, body: str) -> Path:
    source, target = folder / "host.cpp", folder / "libop_host.so"
    source.write_text(f"{HEAD}__attribute__((constructor)) static void begin() {{ {body} }}\n")
    argv = ["c++", "-shared", "-fPIC", "-o", str(target), str(source)]
    subprocess.run(argv, check=True, capture_output=True)
    return target


def test_a_library_that_ends_its_process_is_an_error_of_the_build(tmp_path: Path) -> None:
    # Its exit code was 0 and it had said nothing: a bug of opkit's, said the command.
    with pytest.raises(BuildError, match="ends the process that loads it"):
        described.ask_host(library(tmp_path, "_exit(0);"))


def test_a_library_that_never_loads_is_an_error_of_the_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(described, "_LOAD_SECONDS", 0.5)
    with pytest.raises(BuildError, match=r"not loaded after 0\.5 s"):
        described.ask_host(library(tmp_path, "for (;;) pause();"))


def test_what_a_library_prints_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    program = "import sys; print('hello'); open(sys.argv[2], 'w').write('{}')"
    monkeypatch.setattr(described, "_PROGRAM", program)
    assert described.ask_host(Path("libop_host.so")) == {}
