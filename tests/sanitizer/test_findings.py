"""What findings carry, how they group, and which rules hide them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from opkit.errors import KernelFault, UsageError
from opkit.executor.plain import from_bytes, to_bytes
from opkit.executor.records import plain_record, read_record
from opkit.sanitizer import (
    CLASSES,
    CaseFindings,
    Check,
    CheckedCase,
    CheckReport,
    CheckSettings,
    Finding,
    Location,
    baseline_text,
    check_cases,
    chosen_tools,
    fault_finding,
    find_class,
    finding_text,
    gap_text,
    group_findings,
    junit_xml,
    read_suppressions,
    report_object,
    retold_case,
    sarif_object,
)

CheckKernel = Callable[..., tuple[Finding, ...]]

FINDING = Finding(
    id="RACE-WAR",
    message="DataCopy on MTE2 writes bytes of UB that DataCopy on MTE3 may not have read yet",
    help="put SetFlag behind add.cpp:3",
    kernel="add_custom",
    location=Location(Path("op_kernel/add.cpp"), 2, "DataCopy", "MTE2"),
    other=Location(Path("op_kernel/add.cpp"), 3, "DataCopy", "MTE3"),
    block=4,
    other_block=4,
    sub_core="aiv",
    sub_block=0,
    instruction=17,
    space="UB",
    begin=0,
    end=256,
    count=2,
    cases=("add-float16-7-normal",),
)


def report(root: Path, *findings: Finding) -> CheckReport:
    cases = (
        CaseFindings("add-float16-7-normal", findings),
        CaseFindings("add-float16-1-normal", ()),
    )
    return CheckReport("add_custom", root, ("racecheck",), cases, 0)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "op_kernel").mkdir()
    source = tmp_path / "op_kernel" / "add.cpp"
    source.write_text("first\n  DataCopy(a, x, 64);\n  DataCopy(y, a, 64);\n")
    return tmp_path


@pytest.fixture
def finding(root: Path) -> Finding:
    file = root / "op_kernel" / "add.cpp"
    assert FINDING.location is not None and FINDING.other is not None
    return replace(
        FINDING,
        location=replace(FINDING.location, file=file),
        other=replace(FINDING.other, file=file),
    )


def test_a_race_names_both_lines_and_the_flags_between_them(check_kernel: CheckKernel) -> None:
    (found,) = check_kernel(find_class("RACE-RAW").example())
    lines = find_class("RACE-RAW").example().splitlines()
    assert found.location is not None and found.other is not None
    assert "Adds(b, a" in lines[found.location.line - 1]
    assert "DataCopy(a, input" in lines[found.other.line - 1]
    assert (found.space, found.begin, found.end) == ("UB", 0, 256)
    assert "SetFlag<HardEvent::MTE2_V>" in found.help
    assert (found.other.pipe, found.location.pipe) == ("MTE2", "V")


def test_unwritten_bytes_are_counted_exactly(check_kernel: CheckKernel) -> None:
    (found,) = check_kernel(find_class("INIT-READ").example())
    assert (found.begin, found.end) == (48 * 4, 64 * 4)


def test_padding_behind_the_last_byte_of_a_block_is_not_a_finding(
    check_kernel: CheckKernel,
) -> None:
    text = find_class("INIT-READ").fixed_example()
    # 44 floats written by hand leave the last data block half written; 48 are computed with.
    text = text.replace("DataCopy(a, input, 48);", "Duplicate(a, 1.0f, 44);")
    assert check_kernel(text) == ()


def test_a_reduction_over_padding_is_a_finding(check_kernel: CheckKernel) -> None:
    text = find_class("INIT-READ").fixed_example()
    text = text.replace("DataCopy(a, input, 48);", "Duplicate(a, 1.0f, 44);")
    text = text.replace("Adds(a, a, 1.0f, 48);", "WholeReduceSum<float>(a, a, 48, 1, 1, 1, 8);")
    text = text.replace("DataCopy(output, a, 48);", "")
    assert {found.id for found in check_kernel(text)} == {"INIT-READ"}


POLLING = """
#include "kernel_operator.h"
using namespace AscendC;

extern "C" __global__ __aicore__ void kernel(GM_ADDR x, GM_ADDR y) {
  GlobalTensor<float> data;
  data.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(x), 8);
  GlobalTensor<int32_t> flag;
  flag.SetGlobalBuffer(reinterpret_cast<__gm__ int32_t*>(y), 1);
  LocalTensor<float> a(TPosition::VECIN, 0, 8);
  if (GetBlockIdx() == 1) {
    Duplicate(a, 1.0f, 8);
    PipeBarrier<PIPE_ALL>();
    DataCopy(data, a, 8);
    PipeBarrier<PIPE_ALL>();
    flag.SetValue(0, 1);
    return;
  }
  while (flag.GetValue(0) == 0) {
    DataCacheCleanAndInvalid<int32_t, CacheLine::SINGLE_CACHE_LINE, DcciDst::CACHELINE_OUT>(flag);
  }
  DataCopy(a, data, 8);
}
"""


def test_data_behind_a_polled_flag_is_ordered(check_kernel: CheckKernel) -> None:
    assert check_kernel(POLLING, block_dim=2) == ()


def test_data_that_is_read_before_its_flag_is_polled_is_a_finding(
    check_kernel: CheckKernel,
) -> None:
    early = POLLING.replace("  while (flag", "  DataCopy(a, data, 8);\n  while (flag")
    assert {found.id for found in check_kernel(early, block_dim=2)} == {"RACE-CORES-READ"}


def test_only_the_findings_of_a_chosen_block_are_kept(check_kernel: CheckKernel) -> None:
    text = find_class("INIT-READ").example()
    assert {found.block for found in check_kernel(text, block_dim=3, block=2)} == {2}


SCALAR = """
#include "kernel_operator.h"
using namespace AscendC;

extern "C" __global__ __aicore__ void kernel(GM_ADDR x, GM_ADDR y) {
  (void)x, (void)y;
  LocalTensor<float> a(TPosition::VECCALC, 0, 64);
  Duplicate(a, 1.0f, 64);
  a.SetValue(0, a.GetValue(1));
}
"""


def test_scalar_accesses_are_ordered_by_the_compiler_unless_it_is_told_not_to(
    check_kernel: CheckKernel,
) -> None:
    assert check_kernel(SCALAR) == ()
    ids = {found.id for found in check_kernel(SCALAR, auto_sync=False)}
    assert ids == {"RACE-RAW", "RACE-WAW"}


def test_a_kernel_compiled_without_automatic_synchronisation_is_checked_without_it() -> None:
    # Of a build with --cce-auto-sync=off only "opkit check --no-auto-sync" knew.
    from opkit import runtime
    from opkit.toolchain import compile_kernel

    image = compile_kernel(SCALAR, options=["-DOPKIT_NO_AUTO_SYNC"])
    arrays = [np.zeros(128, np.float32) for _ in range(2)]
    with Check(()) as session:
        runtime.Kernel(image).launch(arrays, block_dim=1)
    assert {finding.id for finding in session.findings} == {"RACE-RAW", "RACE-WAW"}


VECTOR = """
#include "kernel_operator.h"
using namespace AscendC;

extern "C" __global__ __aicore__ void kernel(GM_ADDR x, GM_ADDR y) {
  (void)x, (void)y;
  LocalTensor<float> a(TPosition::VECCALC, 0, 64), b(TPosition::VECCALC, 256, 64);
  Duplicate(a, 1.0f, 64);
  %s
  Exp(b, a, 64);
}
"""


@pytest.mark.parametrize(
    "between",
    [
        "PipeBarrier<PIPE_V>();",
        "PipeBarrier<PIPE_ALL>();",
        "SetFlag<HardEvent::V_S>(EVENT_ID0); WaitFlag<HardEvent::V_S>(EVENT_ID0);",
    ],
)
def test_vector_instructions_that_depend_need_a_barrier_without_automatic_synchronisation(
    check_kernel: CheckKernel, between: str
) -> None:
    # They used to be taken as in order, as they are only where the compiler puts the barrier.
    assert check_kernel(VECTOR % "") == ()
    (found,) = check_kernel(VECTOR % "", auto_sync=False)
    assert found.id == "RACE-RAW"
    assert found.help.startswith("put PipeBarrier<PIPE_V>() before")
    assert check_kernel(VECTOR % between, auto_sync=False) == ()


LAST_BYTE = """
#include "kernel_operator.h"
using namespace AscendC;

extern "C" __global__ __aicore__ void kernel(GM_ADDR x, GM_ADDR y) {
  (void)x;
  GlobalTensor<uint8_t> output;
  output.SetGlobalBuffer((__gm__ uint8_t*)y, 101);
  LocalTensor<uint16_t> a(TPosition::VECCALC, 0, 64);
  Duplicate(a, uint16_t{1}, 50);
  PipeBarrier<PIPE_ALL>();
  DataCopyPad(output, a.ReinterpretCast<uint8_t>(), {1, %d, 0, 0, 0});
}
"""


def test_every_byte_that_a_padded_copy_names_must_be_written(check_kernel: CheckKernel) -> None:
    assert check_kernel(LAST_BYTE % 100) == ()
    # It used to pass for the padding of the block that byte 99 lies in.
    (found,) = check_kernel(LAST_BYTE % 101)
    assert (found.id, found.begin, found.end) == ("INIT-COPY-OUT", 100, 101)


def test_notes_are_no_findings(check_kernel: CheckKernel) -> None:
    text = find_class("NOTE-ACCURACY").example()
    assert check_kernel(text) == ()
    assert [note.id for note in check_kernel(text, notes=True)] == ["NOTE-ACCURACY"]
    assert check_kernel(text, notes=True, tools=("racecheck", "apicheck")) == ()


def test_atomic_writes_of_two_blocks_may_meet(check_kernel: CheckKernel) -> None:
    text = find_class("RACE-CORES-WRITE").example()
    text = text.replace("  DataCopy(output[", "  SetAtomicAdd<float>();\n  DataCopy(output[")
    assert check_kernel(text, block_dim=2) == ()


def test_a_tool_reports_its_own_classes_only(check_kernel: CheckKernel) -> None:
    text = find_class("RACE-RAW").example()
    assert check_kernel(text, tools=("initcheck", "leakcheck")) == ()
    assert [found.id for found in check_kernel(text, tools=("racecheck",))] == ["RACE-RAW"]


def test_a_check_inside_another_takes_nothing_from_it(check_kernel: CheckKernel) -> None:
    # The inner one used to replace the outer one, whose findings were gone.
    text = find_class("RACE-RAW").example()
    with Check(("racecheck",)) as outer:
        inner = check_kernel(text, tools=("racecheck",))
        again = check_kernel(text, tools=("initcheck",))
    assert [found.id for found in inner] == ["RACE-RAW"]
    assert again == ()
    assert [(found.id, found.count) for found in outer.findings] == [("RACE-RAW", 2)]


# As host code does that finds the function in its process, before the launch that it prepares.
@pytest.mark.parametrize("begins", [False, True])
def test_nobody_else_ends_a_check(check_kernel: CheckKernel, begins: bool) -> None:
    from opkit.emulator import _emulator

    with Check(("racecheck",)) as outer:
        assert _emulator.end_checks() == "[]"
        if begins:
            _emulator.begin_checks(detectors="", auto_sync=True, only_block=-1, witness=False)
        check_kernel(find_class("RACE-RAW").example(), tools=("racecheck",))
    assert [finding.id for finding in outer.findings] == ["RACE-RAW"]
    if begins:
        assert _emulator.end_checks() == "[]"


def test_an_end_without_its_check_is_an_error() -> None:
    from opkit.emulator import _emulator

    with pytest.raises(RuntimeError, match="no check of this key"):
        _emulator.end_checks(7)


def test_a_wrong_tool_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(UsageError, match="racecheck"):
        chosen_tools(["rececheck"])


def test_an_unknown_class_names_the_nearest() -> None:
    with pytest.raises(UsageError, match="RACE-RAW"):
        find_class("race-rau")


def test_every_class_has_a_tool_and_a_pair_of_kernels() -> None:
    assert [row.id for row in CLASSES if not (row.example() and row.fixed_example())] == []


def test_faults_that_are_not_the_kernels_are_no_findings() -> None:
    assert fault_finding(KernelFault("no such thing", category="Unimplemented")) is None
    found = fault_finding(KernelFault("outside", category="OutOfBounds", block=3))
    assert found is not None
    assert (found.id, found.block) == ("MEM-BOUNDS", 3)


def test_equal_findings_become_one_with_counts_and_cases() -> None:
    other = replace(FINDING, count=3, cases=("add-float16-9-normal",), block=7)
    (grouped,) = group_findings([FINDING, other])
    assert grouped.count == 5
    assert grouped.cases == ("add-float16-7-normal", "add-float16-9-normal")
    assert grouped.block == 4


def test_findings_at_other_lines_stay_apart() -> None:
    assert FINDING.location is not None
    other = replace(FINDING, location=replace(FINDING.location, line=9))
    assert len(group_findings([FINDING, other])) == 2


def test_the_text_shows_both_source_lines(finding: Finding, root: Path) -> None:
    text = finding_text(finding, root)
    assert "--> op_kernel/add.cpp:2" in text
    assert "2 | DataCopy(a, x, 64);" in text
    assert "3 | DataCopy(y, a, 64);" in text
    assert "[RACE-WAR]" in text


def test_sarif_places_a_finding_at_its_line(finding: Finding, root: Path) -> None:
    log = json.loads(json.dumps(sarif_object(report(root, finding), version="1")))
    (run,) = log["runs"]
    (result,) = run["results"]
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "op_kernel/add.cpp"
    assert place["region"]["startLine"] == 2
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == "RACE-WAR"


def test_junit_fails_the_case_with_findings_alone(finding: Finding, root: Path) -> None:
    suite = ElementTree.fromstring(junit_xml(report(root, finding)))[0]
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    assert suite[0][0].get("message") == "RACE-WAR"


def test_json_holds_the_numbers(finding: Finding, root: Path) -> None:
    fields = report_object(report(root, finding))
    assert fields["clean"] is False
    assert fields["findings"][0]["location"]["line"] == 2  # type: ignore[index]


@pytest.mark.parametrize(
    ("line", "hides"),
    [
        ("RACE-WAR", True),
        ("RACE-*", True),
        ("RACE-WAR op_kernel/add.cpp", True),
        ("RACE-WAR op_kernel/*.cpp:2", True),
        ("RACE-WAR op_kernel/add.cpp:3", False),
        ("RACE-RAW", False),
        ("# RACE-WAR", False),
    ],
)
def test_a_rule_hides_what_it_names(line: str, hides: bool, finding: Finding, root: Path) -> None:
    path = root / "known.txt"
    path.write_text(f"{line}\n")
    assert read_suppressions(path).match(finding, root) is hides


def test_a_baseline_hides_what_it_was_written_from(finding: Finding, root: Path) -> None:
    path = root / "known.txt"
    path.write_text(baseline_text([finding], root))
    assert read_suppressions(path).match(finding, root)


def test_a_rule_that_cannot_be_read_names_its_line(root: Path) -> None:
    path = root / "known.txt"
    path.write_text("RACE-WAR\nRACE-RAW a.cpp:x\n")
    with pytest.raises(UsageError, match=r"known\.txt:2"):
        read_suppressions(path)


def test_a_check_without_cases_is_refused(root: Path) -> None:
    with pytest.raises(UsageError, match="no cases"):
        check_cases("add", root, [], lambda case: None, settings=CheckSettings(()))


def test_a_fault_of_a_case_becomes_its_finding_and_the_next_case_runs(root: Path) -> None:
    def launch(case: SimpleNamespace) -> tuple[Finding, ...]:
        if case.name == "one":
            raise KernelFault("reads outside", category="OutOfBounds")
        return ()

    cases = [SimpleNamespace(name="one", op="Add"), SimpleNamespace(name="two", op="Add")]
    done = check_cases("add", root, cases, launch, settings=CheckSettings(("memcheck",)))
    assert [[found.id for found in case.findings] for case in done.cases] == [["MEM-BOUNDS"], []]
    assert not done.clean


def test_a_fault_that_is_ours_ends_the_check(root: Path) -> None:
    def launch(case: SimpleNamespace) -> None:
        raise KernelFault("Foo is not there yet", category="Unimplemented")

    with pytest.raises(KernelFault, match="Foo"):
        check_cases(
            "add", root, [SimpleNamespace(name="one", op="Add")], launch, settings=CheckSettings(())
        )


OUTSIDE = """
#include "kernel_operator.h"
using namespace AscendC;

extern "C" __global__ __aicore__ void kernel(GM_ADDR x, GM_ADDR y) {
  (void)x;
  GlobalTensor<float> output;
  output.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(y), 128);
  if (GetBlockIdx() > 0) output.SetValue(1 << 20, 1.0f);
}
"""


def test_blocks_that_fault_at_the_same_address_are_no_race(check_kernel: CheckKernel) -> None:
    # The write was recorded before it faulted, in every block that got as far.
    assert [found.id for found in check_kernel(OUTSIDE, block_dim=3)] == ["MEM-BOUNDS"]


def test_a_call_that_the_operator_refuses_does_not_end_the_check(root: Path) -> None:
    # It used to, and the cases behind it were not checked.
    def launch(case: SimpleNamespace) -> tuple[Finding, ...]:
        if case.name == "one":
            raise UsageError("[Add] its tiling function failed:\n    a row is too long")
        return ()

    cases = [SimpleNamespace(name=name, op="Add") for name in ("one", "two")]
    report = check_cases("add", root, cases, launch, settings=CheckSettings(()))
    assert [case.name for case in report.cases] == ["one", "two"]
    (gap,) = report.gaps
    assert gap_text(gap) == (
        "one was not run to its end: [Add] its tiling function failed: a row is too long [Refused]"
    )
    assert not report.clean


def test_sarif_names_files_as_the_repository_does_and_keeps_its_fingerprints(
    finding: Finding, root: Path
) -> None:
    repository = root.parent
    (repository / ".git").mkdir(exist_ok=True)

    def result() -> tuple[dict, dict]:
        log = json.loads(json.dumps(sarif_object(report(root, finding), version="1")))
        (run,) = log["runs"]
        return run, run["results"][0]

    run, before = result()
    place = before["locations"][0]["physicalLocation"]["artifactLocation"]
    assert place["uriBaseId"] == "SRCROOT"
    assert place["uri"].startswith(root.name + "/")
    assert run["originalUriBaseIds"]["SRCROOT"]["uri"] == repository.resolve().as_uri() + "/"
    # A line that moves down by another one above it is the same finding.
    source = root / place["uri"].removeprefix(root.name + "/")
    if source.is_file():
        source.write_text("// a comment\n" + source.read_text())
        moved = replace(
            finding,
            location=replace(finding.location, line=finding.location.line + 1),
            other=replace(finding.other, line=finding.other.line + 1),
        )
        log = json.loads(json.dumps(sarif_object(report(root, moved), version="1")))
        assert log["runs"][0]["results"][0]["partialFingerprints"] == before["partialFingerprints"]


def test_an_operand_of_select_in_its_own_scratch_is_a_finding(check_kernel: CheckKernel) -> None:
    text = find_class("MEM-SCRATCH").fixed_example()
    inside = text.replace("a(TPosition::VECCALC, 0, 64)", "a(TPosition::VECCALC, 191 * 1024, 64)")
    (found,) = check_kernel(inside)
    assert found.id == "MEM-SCRATCH"
    assert found.message.startswith("Select has an operand in the last 8 KiB of UB")


@pytest.mark.parametrize("folder", [".", "..", "op_kernel"])
def test_a_file_that_is_named_from_the_project_is_found_from_every_folder(
    finding: Finding, root: Path, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # In a folder of the project it was told as op_kernel/op_kernel/add.cpp, and outside without
    # its source line; the fingerprint in SARIF depended on where the check was started.
    source = root / "op_kernel" / "add.cpp"
    source.parent.mkdir(exist_ok=True)
    source.write_text("\n" * 6 + "  Add(z, x, y, n);\n")
    monkeypatch.chdir(root / folder)
    told = Location(Path("op_kernel/add.cpp"), 7)
    given = replace(finding, location=told, other=told)
    done = check_cases(
        "add",
        root,
        [SimpleNamespace(name="one", op="Add")],
        lambda case: (given,),
        settings=CheckSettings(()),
    )
    (shown,) = report_object(done)["findings"]  # type: ignore[misc]
    assert (shown["location"]["file"], shown["location"]["source"]) == (
        "op_kernel/add.cpp",
        "Add(z, x, y, n);",
    )


def told_case(**fields: Any) -> CheckedCase:
    finding = Finding(
        *("RACE-RAW", "m", "h", "k", Location(Path("k.cpp"), 3), None, 0, 0, "aiv", 0, 1, "UB"),
        *(0, 32, 1),
        cases=("one",),
    )
    return CheckedCase("one", (replace(finding, **fields),), (), frozenset())


def test_what_a_process_tells_of_a_case_comes_out_as_it_was() -> None:
    told = told_case()
    again = read_record(CheckedCase, from_bytes(to_bytes(plain_record(told))))
    assert again == told
    assert retold_case(again, "one") == told


# Kernels run in the process that says what was found: its word stood as it came.
@pytest.mark.parametrize(
    "fields", [{"id": "ALL-WELL"}, {"id": "race-raw"}, {"id": "NOTE-ACCURACY"}, {"cases": ("two",)}]
)
def test_what_opkit_check_never_says_is_no_answer(fields: dict[str, Any]) -> None:
    assert retold_case(told_case(**fields), "one") is None
    assert retold_case(told_case(), "another") is None
