"""Samples that run operators which another sample installs."""

from __future__ import annotations

from pathlib import Path

import pytest

from opkit.compat import find_samples
from opkit.compat.needs import (
    builds_operators,
    installing_recipe,
    missing_operators,
    needed_folders,
)

INSTALLS = "```bash\ncmake ..\nmake package\n./custom_opp_*.run\n```\n"


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    """A sample that installs operators, one that runs them, and one beside them."""
    texts = {
        "operators": "find_package(ASC REQUIRED)\nnpu_op_package(mine TYPE RUN)\n",
        "caller": "include_directories($ENV{ASCEND_OPP_PATH}/vendors/mine/op_api/include)\n",
        "other": "find_package(ASC REQUIRED)\n",
    }
    for name, text in texts.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "CMakeLists.txt").write_text(text)
    (tmp_path / "operators" / "README.md").write_text(f"{INSTALLS} Seen in [it](../caller).\n")
    (tmp_path / "caller" / "README.md").write_text(
        "First [the operators](../operators), as [here](../other/README.md), [there](../other),"
        " [nowhere](../absent) and [outside](https://example.org/operators).\n"
        "```bash\ncmake ..\n./demo\n```\n"
    )
    return tmp_path


def test_a_link_to_a_sample_that_installs_a_package_is_a_need(folders: Path) -> None:
    assert needed_folders(folders / "caller") == (folders / "operators",)
    assert installing_recipe(folders / "operators").has("run")
    # It needs nobody, although it links to others.
    assert needed_folders(folders / "operators") == ()
    assert builds_operators(folders / "operators")
    assert not builds_operators(folders / "caller")


@pytest.mark.parametrize(
    ("log", "lacks"),
    [
        ("main.cpp:3:10: fatal error: aclnn_add.h: No such file or directory", "aclnn_add.h"),
        ("main.cpp:3:10: fatal error: 'aclnn_add.h' file not found", "aclnn_add.h"),
        ("ld: cannot find -lcust_opapi: No such file or directory", "libcust_opapi.so"),
        ("ld: cannot find -lcust", None),
    ],
)
def test_a_build_without_installed_operators_says_what_it_lacks(log: str, lacks: str) -> None:
    assert missing_operators(log) == lacks


def test_a_project_that_only_builds_other_projects_is_one_sample(folders: Path) -> None:
    (folders / "CMakeLists.txt").write_text("include(ExternalProject)\nproject(all)\n")
    assert len(find_samples(folders)) == 3
    (folders / "CMakeLists.txt").write_text("ExternalProject_Add(one SOURCE_DIR operators)\n")
    assert [sample.folder for sample in find_samples(folders)] == [folders]
