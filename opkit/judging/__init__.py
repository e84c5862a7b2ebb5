"""`opkit judge`: a candidate, whoever wrote it, against a task; a verdict that it cannot forge."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opkit.lazy import lazy_names

if TYPE_CHECKING:
    from opkit.judging.batch import judge_all
    from opkit.judging.benchmark import BenchmarkTask, is_benchmark, read_benchmark
    from opkit.judging.findings import KINDS, JudgeFinding
    from opkit.judging.judgement import (
        JudgedCase,
        Judgement,
        judgement_object,
        judgement_text,
    )
    from opkit.judging.lockdown import Limits
    from opkit.judging.run import judge, judge_candidate
    from opkit.judging.sandbox import Sandbox, require_sandbox, sandbox_fault
    from opkit.judging.score import FORMULA, case_part, speed_share, total_score
    from opkit.judging.task import Question, Task, open_task
    from opkit.judging.task_project import TaskProject, compile_task

__all__ = [
    "FORMULA",
    "KINDS",
    "BenchmarkTask",
    "JudgeFinding",
    "JudgedCase",
    "Judgement",
    "Limits",
    "Question",
    "Sandbox",
    "Task",
    "TaskProject",
    "case_part",
    "compile_task",
    "is_benchmark",
    "judge",
    "judge_all",
    "judge_candidate",
    "judgement_object",
    "judgement_text",
    "open_task",
    "read_benchmark",
    "require_sandbox",
    "sandbox_fault",
    "speed_share",
    "total_score",
]

__getattr__ = lazy_names(
    __name__,
    {
        "batch": ("judge_all",),
        "benchmark": ("BenchmarkTask", "is_benchmark", "read_benchmark"),
        "findings": ("KINDS", "JudgeFinding"),
        "judgement": ("JudgedCase", "Judgement", "judgement_object", "judgement_text"),
        "run": ("judge", "judge_candidate"),
        "lockdown": ("Limits",),
        "sandbox": ("Sandbox", "require_sandbox", "sandbox_fault"),
        "score": ("FORMULA", "case_part", "speed_share", "total_score"),
        "task": ("Question", "Task", "open_task"),
        "task_project": ("TaskProject", "compile_task"),
    },
)
