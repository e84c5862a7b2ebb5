"""Mutants: what is changed in a kernel's source, and what the score counts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from opkit.executor import HereExecutor, Work
from opkit.sanitizer import Caught, Judgement, Mutant, MutantKind, mutants_of, run_mutants

KERNEL = """
extern "C" __global__ __aicore__ void kernel(GM_ADDR x, GM_ADDR y) {
  // SetFlag<HardEvent::MTE2_V>(0);
  input.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(x), 64);
  auto tile = AscendC::LocalTensor<half>();
  AscendC::DataCopy(tile, input[at * 2], 64);
  AscendC::SetFlag<AscendC::HardEvent::MTE2_V>(id);
  if (last) PipeBarrier<PIPE_ALL>();
  queues[at].EnQue(tile);
  auto taken = queue.DeQue<half>();
  DataCopyExtParams rows{1, static_cast<uint32_t>(bytes), 0, 0, 0};
  DataCopyPad(output[at], taken, rows);
}
"""


def changes(kind: MutantKind, text: str = KERNEL) -> list[tuple[str, str]]:
    return [(mutant.old, mutant.new) for mutant in mutants_of(text) if mutant.kind is kind]


def test_synchronisation_statements_are_deleted_whole_and_comments_are_not_touched() -> None:
    assert [old for old, _ in changes(MutantKind.DELETE_SYNC)] == [
        "AscendC::SetFlag<AscendC::HardEvent::MTE2_V>(id)",
        "PipeBarrier<PIPE_ALL>()",
        "queues[at].EnQue(tile)",
    ]
    assert {new for _, new in changes(MutantKind.DELETE_SYNC)} == {""}


def test_a_barrier_of_all_pipes_is_weakened() -> None:
    assert changes(MutantKind.WEAKEN_SYNC) == [("PipeBarrier<PIPE_ALL>()", "PipeBarrier<PIPE_V>()")]


def test_copies_are_shortened_by_their_count_or_their_parameters() -> None:
    shortened = changes(MutantKind.SHRINK_COPY)
    assert [old for old, _ in shortened] == ["64", "static_cast<uint32_t>(bytes)"]
    assert shortened[0][1] == "(64) > 32 ? (64) - 32 : (64) / 2"
    assert shortened[1][1].startswith("static_cast<uint32_t>(")


def test_offsets_of_tensors_and_arguments_are_shifted() -> None:
    assert changes(MutantKind.SHIFT_OFFSET) == [
        ("reinterpret_cast<__gm__ half*>(x)", "(reinterpret_cast<__gm__ half*>(x)) + 32"),
        ("at * 2", "(at * 2) + 32"),
        ("at", "(at) + 32"),
    ]


def test_a_mutant_changes_its_text_only_and_no_line_number() -> None:
    for mutant in mutants_of(KERNEL):
        mutated = mutant.apply(KERNEL)
        assert mutated != KERNEL
        assert mutated.count("\n") == KERNEL.count("\n")
        assert mutated.splitlines()[: mutant.line - 1] == KERNEL.splitlines()[: mutant.line - 1]


@pytest.mark.parametrize(
    ("judgement", "caught"),
    [
        (Judgement(False, (), ""), Caught.INVALID),
        (Judgement(True, ("RACE-RAW",), "pass"), Caught.CHECK),
        (Judgement(True, ("RACE-RAW",), "fail"), Caught.CHECK),
        (Judgement(True, (), "fail"), Caught.TEST),
        (Judgement(True, (), "pass"), Caught.NEITHER),
    ],
)
def test_who_notices_a_mutant(judgement: Judgement, caught: Caught) -> None:
    assert judgement.caught is caught


def test_a_report_counts_what_compiles_and_keeps_the_order() -> None:
    mutants = [(Path("a.cpp"), mutant) for mutant in mutants_of(KERNEL)]

    def begin(setup: object, folders: object) -> Callable[[tuple[Path, Mutant]], Judgement]:
        def judge(case: tuple[Path, Mutant]) -> Judgement:
            index = mutants.index(case)
            return Judgement(index != 0, ("RACE-RAW",) if index == 1 else (), "pass")

        return judge

    report = run_mutants("kernel", mutants, Work(begin, None), executor=HereExecutor())
    assert [result.mutant for result in report.results] == [mutant for _, mutant in mutants]
    assert (report.killed, report.total) == (1, len(mutants) - 1)
    assert len(report.survivors) == len(mutants) - 2
