"""How many cores kernels would be launched on, without compiling or running them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from opkit.errors import UsageError

from ..passes import Group
from ..stages import Stages
from .compiled import Compiled

__all__ = ["launched_cores"]


class _Recorder:
    """In place of a kernel: takes its launches down."""

    def __init__(self, cores: list[int]) -> None:
        self._cores = cores

    def launch(self, arguments: object, cores: int) -> None:
        self._cores.append(cores)


class _Rehearsal(Compiled):
    def __init__(self, stages: Stages) -> None:
        super().__init__(stages)
        self.cores: list[int] = []

    def native(self, name: str, source: Callable[[], str], **_: object) -> Any:
        return _Recorder(self.cores)


def launched_cores(stages: Stages, group: Group, sizes: Mapping[str, int]) -> int:
    """Return the most cores of a launch of a group that is neither a loop nor a product; 0 where
    these sizes launch nothing. Tensors have no contents."""
    rehearsal = _Rehearsal(stages)
    memory: dict[str, Any] = {}
    for node in group.nodes:
        for name in node.inputs:
            rehearsal.room(name, memory, sizes)
    try:
        rehearsal.run_group(group, memory, sizes, dict.fromkeys(stages.fused.uniform, 0.0))
    except UsageError:
        # The sizes do not fit: the launch itself says why.
        return 0
    return max(rehearsal.cores, default=0)
