"""`opkit compile`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from opkit import compiler as oc
from opkit.cli import main
from opkit.profiling import Profile

PROGRAM = """
def norm(x: "float16[M, 64]", weight: "float16[64]"):
    mean = (x * x).mean(axis=-1, keepdims=True)
    return x / (mean + 1e-6).apply("sqrt") * weight
"""


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as leaving:
        main(["compile", *arguments])
    captured = capsys.readouterr()
    return int(leaving.value.code or 0), captured.out, captured.err


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "norm.py"
    path.write_text(PROGRAM)
    return str(path)


def test_the_kernel_is_printed(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, program)
    assert code == 0
    assert "SumRows(" in out and "norm.py:3" in out


@pytest.mark.parametrize("stage", ["traced", "graph", "fused", "steps", "plan", "ascendc"])
def test_every_stage_is_printed(
    stage: str, program: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = run(capsys, program, "--dump", stage)
    assert code == 0 and "norm" in out


def test_the_program_is_printed_after_a_pass(
    program: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = run(capsys, program, "--dump", "expand")
    assert code == 0 and "= sum(" in out and "= mean(" not in out
    code, out, _ = run(capsys, program, "--dump", "list")
    assert code == 0 and re.search(r"^expand +nodes: 9 ", out, re.MULTILINE)
    assert re.search(r"^collapse +did not run .*for model", out, re.MULTILINE)


def test_passes_come_as_json(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, program, "--dump", "list", "--json")
    rows = {row["name"]: row for row in json.loads(out)["passes"]}
    assert code == 0 and rows["fuse"]["kernels"] == 1 and not rows["collapse"]["ran"]
    code, out, _ = run(capsys, program, "--dump", "simplify", "--json")
    assert code == 0 and json.loads(out)["stage"].startswith("graph norm(")


def test_a_pass_that_there_is_not_is_an_error_with_those_that_there_are(
    program: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(capsys, program, "--dump", "fusd")
    assert code == 2 and 'no stage or pass "fusd"' in err and "fuse_prologues" in err
    code, _, err = run(capsys, program, "--dump", "collapse")
    assert code == 2 and "did not run" in err


def test_stages_are_verified(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, program, "--verify", "--size", "M=5")
    assert code == 0 and "all stages agree" in out


def test_notes_come_as_json(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, program, "--json", "--size", "M=1000")
    (kernel,) = json.loads(out)["kernels"]
    assert code == 0 and kernel["schedule"] == "rows" and kernel["cores"] > 0


def test_kernels_are_written(
    program: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, _ = run(capsys, program, "-o", str(tmp_path / "out"))
    assert code == 0 and (tmp_path / "out" / "norm.cpp").read_text().startswith("#include")


def test_a_mistake_is_told_at_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "wrong.py"
    path.write_text('def f(x: "float16[4, 8]"):\n    return x @ x\n')
    code, _, err = run(capsys, str(path))
    assert code == 2 and f"{path}:2: matmul" in err


def test_a_size_that_lacks_is_asked_for(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, program, "--dump", "split")
    assert code == 2 and "--size" in err


@pytest.fixture
def fixed(tmp_path: Path) -> str:
    path = tmp_path / "norm.py"
    path.write_text(PROGRAM.replace("M, 64", "8, 64"))
    return str(path)


def test_other_targets_are_printed_verified_and_written(
    fixed: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = run(capsys, fixed, "--target", "pto")
    assert code == 0 and "pto.trowsum" in out
    code, out, _ = run(capsys, fixed, "--target", "triton")
    assert code == 0 and "@triton.jit\ndef norm_kernel(" in out
    code, out, _ = run(capsys, fixed, "--target", "cpp", "--verify")
    assert code == 0 and "all stages agree" in out
    code, _, _ = run(capsys, fixed, "--target", "cpp", "-o", str(tmp_path / "out"))
    assert code == 0 and "std::thread" in (tmp_path / "out" / "norm.cpp").read_text()


def test_a_page_shows_graph_kernels_tiles_and_memory(
    program: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "norm.html"
    code, out, _ = run(capsys, program, "--html", str(page), "--size", "M=1000")
    text = page.read_text()
    assert code == 0 and out == ""
    assert "norm: 1 kernel for Ascend910B2" in text and "M = 1000" in text
    # A box for each tensor, a bar for each core and for each value in the unified buffer.
    assert text.count('class="dark"') >= 2 * 8 and "core 3: " in text
    assert "scratch 0" in text and "buffers of 196608 bytes" in text
    assert "norm.py:3" in text
    # What a tensor takes stands where its line leaves; the kernel's text is there to unfold.
    assert re.search(r"<text [^>]*>[0-9.]+ (KiB|MiB)</text>", text)
    assert "<summary>norm: " in text and "kernel_operator.h" in text


def test_a_page_shows_a_products_blocks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "gate.py"
    path.write_text(
        'def gate(x: "float16[64, 64]", y: "float16[64, 300]"):\n    return (x @ y).apply("silu")\n'
    )
    code, _, _ = run(capsys, str(path), "--html", str(tmp_path / "gate.html"))
    text = (tmp_path / "gate.html").read_text()
    assert code == 0 and "blocks on" in text and "of the vector cores" in text


def test_a_target_without_stages_says_so(fixed: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, fixed, "--target", "cpp", "--dump", "plan")
    assert code == 2 and "--target cpp has no stages" in err


def test_sorts_and_moves_are_explained_as_they_are_launched(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Their rows used to be blank.
    path = tmp_path / "moves.py"
    path.write_text(
        'def f(x: "float16[M, 64]", i: "int32[M]"):\n'
        '    y = x.apply("sort", axis=-1)\n'
        '    return y.T, x.apply("take", i, axis=0)\n'
    )
    program = oc.compile(oc.load_program(path))
    arrays = oc.random_arrays(program.graph, {"M": 256})
    with Profile(event_limit=0) as session:
        program(*arrays)
    launched = [f"    {timeline.block_dim} cores" for timeline in session.timelines]
    code, out, _ = run(capsys, str(path), "--explain", "--size", "M=256")
    assert code == 0 and "schedule lines: a core sorts whole ones in UB" in out
    assert [line for line in out.splitlines() if line.endswith(" cores")] == launched


def test_blocks_of_a_product_are_explained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "product.py"
    path.write_text(
        'def f(x: "float16[256, 64]", y: "float16[64, 512]"):\n    return x @ y + 1.0\n'
    )
    code, out, _ = run(capsys, str(path), "--explain")
    assert code == 0 and "blocks, finished by vector cores" in out
    code, out, _ = run(capsys, str(path), "--dump", "split")
    assert code == 0 and "core | blocks" in out


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("import nosuchmodule", 3, "No module named 'nosuchmodule'"),
        ("LIMIT = 1 / 0", 2, "wrong.py:1: ZeroDivisionError: division by zero"),
        (
            'def f(x: "float16[M]"):\n    return x.exp()',
            2,
            "wrong.py:2: f cannot be traced: 'Value' object has no attribute 'exp'\n"
            '  help: operators are applied by name: x.apply("exp")',
        ),
        (
            'def f(x: "float16[M]"):\n    return scale * x',
            2,
            "wrong.py:2: f cannot be traced: name 'scale' is not defined",
        ),
        (
            'def f(x: "float16[M]"):\n    x[0] = 1\n    return x',
            2,
            'wrong.py:2: "x" does not change',
        ),
        (
            'def f(x: "float16[M]"):\n    return x[x > 0]',
            2,
            "wrong.py:2: an index of type Value cannot be traced",
        ),
        (
            'def f(x: "int32[M]"):\n    return 2 + x % 0',
            2,
            "wrong.py:2: whole numbers do not divide",
        ),
    ],
)
def test_what_is_wrong_with_a_program_is_said_at_its_line(
    text: str, code: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "wrong.py"
    path.write_text(text + "\n")
    left, out, err = run(capsys, str(path))
    assert (left, out) == (code, "")
    assert said in err and "Traceback" not in err


@pytest.mark.parametrize(
    ("size", "message"),
    [
        # The tiling data have no room for it: exit code 70.
        ("M=99999999999999999999", "more than 1099511627776: no chip has the memory"),
        # A digit that int() does not take: 70, too.
        ("M=\u00b2", "is no size"),
        ("N=4", "the size of M is missing"),
        ("M=4 --size Q=9", "the program has no size Q"),
    ],
)
def test_a_size_that_is_none_is_an_error_of_usage(
    program: str, capsys: pytest.CaptureFixture[str], size: str, message: str
) -> None:
    code, _, said = run(capsys, program, "--explain", "--size", *size.split())
    assert code == 2
    assert message in said


def test_a_folder_is_no_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, said = run(capsys, str(tmp_path))
    assert code == 2
    assert "is a folder, expected a Python file" in said
