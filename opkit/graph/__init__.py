"""Models of PyTorch on the chip as whole graphs.

`torch.compile(model, backend="opkit")` needs no import of this package. `explain` says what became
of a model, `build` makes a `Model` of it that is one file, `Engine` runs such a file without torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opkit.lazy import lazy_names

if TYPE_CHECKING:
    from opkit.graph.building import build
    from opkit.graph.calibration import Quantisation
    from opkit.graph.case_plan import CasePlan, TensorOfCase, plan_of_case
    from opkit.graph.decisions import Decision, Option, Schedule
    from opkit.graph.engine import Context, Engine, Model, ModelInput
    from opkit.graph.explanation import Explanation, explain
    from opkit.graph.plan import Place, Plan, PlanTensor
    from opkit.graph.scheduling import schedule

__all__ = [
    "CasePlan",
    "Context",
    "Decision",
    "Engine",
    "Explanation",
    "Model",
    "ModelInput",
    "Option",
    "Place",
    "Plan",
    "PlanTensor",
    "Quantisation",
    "Schedule",
    "TensorOfCase",
    "build",
    "explain",
    "plan_of_case",
    "schedule",
]

__getattr__ = lazy_names(
    __name__,
    {
        "building": ("build",),
        "calibration": ("Quantisation",),
        "case_plan": ("CasePlan", "TensorOfCase", "plan_of_case"),
        "decisions": ("Decision", "Option", "Schedule"),
        "engine": ("Context", "Engine", "Model", "ModelInput"),
        "explanation": ("Explanation", "explain"),
        "plan": ("Place", "Plan", "PlanTensor"),
        "scheduling": ("schedule",),
    },
)
