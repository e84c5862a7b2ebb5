"""Tensors that are declared outside of programs, for the blocks that name them."""

from __future__ import annotations

from collections.abc import Sequence

from opkit.compiler import GraphBuilder, GraphError

from .annotations import TensorType
from .enumerations import dtype_name
from .location import here
from .traced import Traced

__all__ = ["Declared"]


class Declared(Traced):
    """A tensor that is declared outside of programs, with its shape and data type."""

    def __init__(self, shape: Sequence[int], dtype: object, name: str, **form: object) -> None:
        self._block_builder: GraphBuilder | None = None
        self.type = TensorType(list(shape), dtype, **form)
        super().__init__(
            self._block_builder,  # type: ignore[arg-type]
            None,
            shape=tuple(shape),
            dtype=dtype_name(dtype or "float32"),
        )
        self.name = name

    @property
    def builder(self) -> GraphBuilder:
        """The builder of the block that it is used in.

        Raises:
            GraphError: it is used in none that names it.
        """
        if self._block_builder is None:
            raise GraphError(
                f'"{self.name or "a tensor"}" is used outside of the blocks that name it',
                location=here(),
                help='with pypto.function("MAIN", x, y): names the tensors that the block is over',
            )
        return self._block_builder

    @builder.setter
    def builder(self, builder: GraphBuilder | None) -> None:
        self._block_builder = builder

    def enter(self, builder: GraphBuilder, name: str) -> None:
        """Become an argument of a block."""
        kept = self.name
        super().__init__(builder, builder.input(name, self.shape, self.dtype))
        self.name = kept
