"""Triton's compiler interface: a name in its list of backends; kernels do not go through it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from triton.backends.compiler import BaseBackend

__all__ = ["OpkitBackend"]


class OpkitBackend(BaseBackend):  # type: ignore[misc]
    """Says what the target is; `kernel[grid](...)` compiles by `opkit.triton.launching`."""

    binary_ext = "so"

    @staticmethod
    def supports_target(target: Any) -> bool:
        """Whether a target is the emulated chip."""
        return bool(target.backend == "opkit")

    def hash(self) -> str:
        """Return what tells compilers apart."""
        from opkit import __version__

        return f"opkit-{__version__}-{self.target.arch}"

    def parse_options(self, options: dict[str, Any]) -> Any:
        """Return options as an object."""
        return SimpleNamespace(**options)

    def add_stages(self, stages: dict[str, Any], options: Any, language: Any) -> None:
        """Refuse: `triton.compile` wants files of stages that there are none of.

        Raises:
            TritonError: always.
        """
        from opkit.triton import TritonError

        raise TritonError(
            "triton.compile: opkit compiles a kernel when it is launched",
            help="kernel[grid](...), or kernel.warmup(..., grid=grid) to compile only",
        )

    def load_dialects(self, context: Any) -> None:
        """There are none beside Triton's."""

    def get_module_map(self) -> dict[str, Any]:
        """There are no modules of its own."""
        return {}
