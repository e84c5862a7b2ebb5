"""READMEs become recipes."""

from __future__ import annotations

from pathlib import Path

import pytest

from opkit.compat.recipe import Recipe, find_recipes, read_readme, steps_of

USUAL = """
# A sample

```
├── scripts
```

```bash
N=1  # the scenario
mkdir -p build && cd build
cmake -DN=$N -DCMAKE_ASC_ARCHITECTURES=dav-2201 ..;make -j;
python3 ../scripts/gen_data.py -n=$N
./demo
python3 ../scripts/verify_result.py out.bin golden.bin
```

With another mode:

```bash
cmake -DN=$N -DCMAKE_ASC_RUN_MODE=sim ..;make -j;
./demo
```

It prints:

```bash
test pass!
```
"""


def one(text: str) -> Recipe:
    recipes = read_readme(text, "README.md")
    assert len(recipes) == 1
    return recipes[0]


def test_the_usual_block_becomes_steps_in_its_order() -> None:
    kinds = [step.kind for step in one(USUAL).steps]
    assert kinds == ["set", "folder", "enter", "configure", "build", "generate", "run", "verify"]


def test_the_block_of_another_run_mode_counts_only_where_it_is_alone() -> None:
    assert one(USUAL).configure_values() == {"N": "1", "CMAKE_ASC_ARCHITECTURES": "dav-2201"}
    alone = "```bash\ncmake -DCMAKE_ASC_RUN_MODE=cpu .. && make\n./demo\n```\n"
    assert one(alone).configure_values() == {"CMAKE_ASC_RUN_MODE": "cpu"}


def test_what_the_program_prints_is_the_block_without_commands() -> None:
    assert one(USUAL).shown_output == ("test pass!",)


def test_a_heading_that_a_program_prints_is_no_comment() -> None:
    text = USUAL.replace("test pass!", "##### matched\ntest pass!")
    assert one(text).shown_output == ("##### matched", "test pass!")


def test_a_block_that_only_builds_is_joined_by_the_one_that_runs() -> None:
    text = "```sh\ncmake ..\nmake\n```\nThen:\n```sh\n./demo 7\n```\n"
    assert [step.words for step in one(text).steps][-1] == ("./demo", "7")


def test_a_block_that_runs_nothing_is_no_recipe() -> None:
    assert read_readme("```bash\ncmake ..\nmake\n```\n", "README.md") == ()


def test_two_complete_blocks_are_two_recipes() -> None:
    block = "```bash\ncmake {} ..\nmake\n./demo\n```\n"
    recipes = read_readme(block.format("") + block.format("-DFRONT=ON"), "README.md")
    assert [recipe.configure_values() for recipe in recipes] == [{}, {"FRONT": "ON"}]


def test_an_open_fence_does_not_swallow_the_next_block() -> None:
    text = "```bash\nsource set_env.sh\n\n```bash\ncmake ..\nmake\n./demo\n```\n"
    assert one(text).has("configure")


def test_another_value_goes_through_the_variable_that_carries_it() -> None:
    changed = one(USUAL).with_values({"N": "3"})
    assert changed.configure_values()["N"] == "3"
    assert changed.assignments() == {"N": "3"}


def test_a_literal_value_is_replaced_in_the_scripts_arguments_too() -> None:
    text = "```bash\ncmake -DM=0 ..\nmake\npython3 gen_data.py -m=0 --size 10\n./demo\n```\n"
    changed = one(text).with_values({"M": "2"})
    assert changed.configure_values() == {"M": "2"}
    generate = next(step for step in changed.steps if step.kind == "generate")
    assert generate.words == ("python3", "gen_data.py", "-m=2", "--size", "10")


@pytest.mark.parametrize("tool", ["msopprof", "mssanitizer", "gdb --args"])
def test_a_tool_around_a_program_leaves_the_program(tool: str) -> None:
    assert [(step.kind, step.words) for step in steps_of([f"{tool} ./demo --leak"])] == [
        ("run", ("./demo",))
    ]


def test_a_tool_may_be_given_the_program_as_an_option() -> None:
    line = 'msopprof --application="python3 ../report.py" --output="../result"'
    assert [(step.kind, step.words) for step in steps_of([line])] == [
        ("run", ("python3", "../report.py"))
    ]


def test_a_program_under_several_tools_runs_once() -> None:
    assert len(steps_of(["tool_a=1", "mssanitizer ./demo", "mssanitizer ./demo -t race"])) == 2


def test_a_program_that_only_the_vendor_has_is_foreign() -> None:
    assert [step.kind for step in steps_of(["atc --model=x.onnx"])] == ["foreign"]


def test_a_sample_without_readme_is_done_by_custom(tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text("add_executable(main_program a.asc)")
    (recipe,) = find_recipes(tmp_path)
    assert recipe.source == "custom"
    assert [step.words for step in recipe.steps if step.kind == "run"] == [("./main_program",)]
    assert not recipe.has("verify")
