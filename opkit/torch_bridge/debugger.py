"""A network that uses opkit's operators against the same network without them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from opkit.errors import UsageError
from opkit.testing import Standard
from opkit.torch_bridge.network import NetworkReport, compare_recordings
from opkit.torch_bridge.recording import Recording, load_recording, record

__all__ = ["PrecisionDebugger"]


class PrecisionDebugger:
    """Finds the first layer of a network that deviates from a reference, forward or backward.

        debugger = PrecisionDebugger(model, reference)
        report = debugger.compare(x)
        print(report)                 # every layer, then the first that deviates
        debugger.dump(Path("run.npz"))  # to be compared with a run on another machine

    The reference is a module with layers of the same names, such as the same class with torch's own
    operators. It is copied, and runs in float64 with the parameters of the network under test.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        reference: torch.nn.Module,
        *,
        standard: Standard | str = "ecosystem",
    ) -> None:
        """Take the network to judge and its reference.

        Raises:
            UsageError: a parameter of the one is missing in the other.
        """
        self.model = model
        self.reference = copy.deepcopy(reference).cpu().double()
        self.standard = standard
        self.recording: Recording | None = None
        """The last run of the network."""
        self.reference_recording: Recording | None = None
        try:
            self.reference.load_state_dict(model.state_dict())
        except RuntimeError as error:
            raise UsageError(
                f"the reference has other parameters than the network: {error}",
                help="give both the same modules and names",
            ) from error

    def compare(
        self,
        *inputs: Any,
        loss: Callable[[Any], torch.Tensor] | None = None,
        backward: bool = True,
        layers: Sequence[str] | None = None,
        **named: Any,
    ) -> NetworkReport:
        """Run both on the same inputs and return how far apart their layers are.

        Args:
            inputs, named: the network's own arguments; the reference gets them in float64.
            loss, backward: as `record`.
            layers: compare only these.
        Raises:
            UsageError: as `compare_recordings`.
        """
        self.reference.load_state_dict(self.model.state_dict())
        self.reference.train(self.model.training)
        # Widened before the run: an operator that writes to its input must not change the question.
        wide = tuple(_wide(value) for value in inputs)
        wide_named = {name: _wide(value) for name, value in named.items()}
        self.recording = record(self.model, inputs, named, loss=loss, backward=backward)
        self.reference_recording = record(
            self.reference, wide, wide_named, loss=loss, backward=backward
        )
        return compare_recordings(
            self.recording, self.reference_recording, standard=self.standard, layers=layers
        )

    def dump(self, path: Path) -> None:
        """Write the network's last run to a file; `PrecisionDebugger.compare_dumps` reads it.

        Raises:
            UsageError: nothing has run yet, or the file cannot be written.
        """
        if self.recording is None:
            raise UsageError("nothing has run yet", help="call compare(...) first")
        self.recording.save(path)

    def dump_reference(self, path: Path) -> None:
        """Write the reference's last run to a file.

        Raises:
            UsageError: nothing has run yet, or the file cannot be written.
        """
        if self.reference_recording is None:
            raise UsageError("nothing has run yet", help="call compare(...) first")
        self.reference_recording.save(path)

    @staticmethod
    def compare_dumps(
        actual: Path, reference: Path, *, standard: Standard | str = "ecosystem"
    ) -> NetworkReport:
        """Return how far apart the layers of two dumped runs are.

        Raises:
            UsageError: a file is missing or is no dump; as `compare_recordings`.
        """
        return compare_recordings(
            load_recording(actual), load_recording(reference), standard=standard
        )


def _wide(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        if not value.is_floating_point():
            return value.detach().clone()
        return value.detach().cpu().double().requires_grad_(value.requires_grad)
    if isinstance(value, Mapping):
        return {key: _wide(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return type(value)(_wide(item) for item in value)
    return value
