"""The public names of the Ascend C API, from `api_names.tsv`."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

from opkit.errors import OpkitError

__all__ = ["ApiName", "api_names"]

_FILE = Path(__file__).with_name("api_names.tsv")
_NAMESPACES = ("Std", "Reg", "Simt")
_INTRINSIC = "intrin:"


@dataclass(frozen=True)
class ApiName:
    """One public name."""

    text: str
    """As the list spells it: `Add`, `.SetValue`, `Std::min`, `intrin:vadd`, `PIPE_*`."""
    kind: str
    """The class of the list, such as `vector arith`."""
    tier: str
    """`T1`, `T2` or `T3`: how much public code needs it."""
    kernels: int
    """How many public kernels use it."""

    @property
    def is_method(self) -> bool:
        """Whether it is a member function of one of the API's classes."""
        return self.text.startswith(".")

    @property
    def is_pattern(self) -> bool:
        """Whether it stands for all names that begin so."""
        return self.text.endswith("*")

    @property
    def namespace(self) -> str | None:
        """The namespace inside AscendC, None where there is none."""
        head, separator, _ = self.text.partition("::")
        return head if separator else None

    @property
    def identifier(self) -> str:
        """The last part, as it stands in code; without the star of a pattern."""
        text = self.text.removeprefix(".").removeprefix(_INTRINSIC).removesuffix("*")
        return text.rpartition("::")[2]


@functools.cache
def api_names() -> tuple[ApiName, ...]:
    """Return every name of the list, in its order: by tier, class, use."""
    names = []
    lines = _FILE.read_text(encoding="utf-8").splitlines()
    header, *rows = [line for line in lines if not line.startswith("#")]
    if header != "name\tclass\ttier\tkernels":
        raise OpkitError(f"{_FILE}: has other columns than expected: {header}")
    for row in rows:
        text, kind, tier, kernels = row.split("\t")
        names.append(ApiName(text, kind, tier, int(kernels)))
        namespace = names[-1].namespace
        if namespace is not None and namespace not in _NAMESPACES:
            raise OpkitError(f"{_FILE}: {text}: no namespace {namespace} is known")
    return tuple(names)
