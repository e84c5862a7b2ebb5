"""Which kind a candidate is, by what it is made of."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from opkit.errors import UsageError
from opkit.judging.kinds import candidate_files, imports_torch, kind_of, wheel_artifact

LAUNCH = "void run(void* s) { add<<<8, nullptr, s>>>(x, y); }\n"


def kind(path: Path) -> str:
    return kind_of(list(candidate_files(path)), path)


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("a.asc", LAUNCH, "direct-launch"),
        ("a.cpp", LAUNCH, "direct-launch"),
        ("csrc/add.cpp", LAUNCH, "direct-launch"),
        ("op_host/add.cpp", LAUNCH, "project"),
        ("a.py", "import numpy\nimport pypto\n", "program"),
        ("a.py", "from triton import language\n", "program"),
        ("pack/__init__.py", "import triton\n", "program"),
    ],
)
def test_a_candidate_is_of_a_kind(tmp_path: Path, name: str, text: str, found: str) -> None:
    # Each but the project was refused by its name.
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    assert kind(path if "/" not in name else tmp_path) == found


def test_a_wheel_has_operators_or_a_program(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "b.whl", "w") as archive:
        archive.writestr("pack/_lib/manifest.json", "{}")
    assert kind(tmp_path / "b.whl") == "wheel"
    assert wheel_artifact(["pack/__init__.py", "pack/_lib/manifest.json"]) == "pack/_lib"
    with zipfile.ZipFile(tmp_path / "c.whl", "w") as archive:
        archive.writestr("pack/__init__.py", "import pypto\n")
    assert kind(tmp_path / "c.whl") == "program"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.txt", "", "is no candidate"),
        ("a.py", "import numpy\n", "without PyPTO and Triton"),
        ("a.cpp", "int main() {}\n", "launches no kernel"),
        ("a.whl", "no archive", "is no wheel"),
    ],
)
def test_what_is_of_no_kind_is_refused_by_what_it_lacks(
    tmp_path: Path, name: str, text: str, said: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(UsageError, match=said):
        list(candidate_files(tmp_path / name))
    with pytest.raises(UsageError, match="no such candidate"):
        list(candidate_files(tmp_path / "other.py"))


def test_a_wheel_of_another_compiler_is_refused_by_that(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.whl", "w") as archive:
        archive.writestr("pack/_C.abi3.so", "\x7fELF")
    with pytest.raises(UsageError, match="another compiler") as caught:
        list(candidate_files(tmp_path / "a.whl"))
    assert "folder of the sources" in str(caught.value.help)


def test_names_that_lead_out_of_a_wheel_are_left_out(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.whl", "w") as archive:
        archive.writestr("../../outside.py", "import triton\n")
        archive.writestr("pack/__init__.py", "import triton\n")
    assert [name for name, _ in candidate_files(tmp_path / "a.whl")] == ["pack/__init__.py"]


def test_a_wheel_that_unpacks_to_too_much_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.whl", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("pack/__init__.py", "import triton\n" + "#" * (65 << 20))
    with pytest.raises(UsageError, match="more than 64 MiB"):
        list(candidate_files(tmp_path / "a.whl"))


def test_programs_say_whether_they_take_tensors_of_torch() -> None:
    assert imports_torch([("a.py", b"import torch\n")])
    assert not imports_torch([("a.py", b"import triton\n"), ("a.cpp", b"import torch\n")])
