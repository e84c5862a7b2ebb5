"""Which module and which line of Python each launch of the device comes from.

The device's library calls back before a launch and after a call that the CPU served. A forward pass
is asked for its frames. A backward pass has none of the model: PyTorch's anomaly mode keeps the
frames of each node of the graph, and the node's sequence number says which module made it.
"""

from __future__ import annotations

import bisect
import ctypes
import re
import sys
import threading
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Any

from opkit.profiling import CpuCall, Place
from opkit.torch_npu.frames import belongs_to_program, calling_line

__all__ = ["Watch", "attach"]

_LAUNCH = 0
_LISTENER = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_double)
_FRAME = re.compile(r'  File "(.+)", line (\d+), in ')
_NO_SEQUENCE = 1 << 63  # nodes that gather gradients of parameters have one above this
_current: Watch | None = None


class Watch:
    """Notes where launches come from inside a `with` block, however late the device is loaded.

    Backward passes are told apart for modules that run on the main thread.
    """

    def __init__(self) -> None:
        self.places: dict[int, Place] = {}
        """By how many launches had been timed before."""
        self.cpu_calls: list[CpuCall] = []
        self._library: Any = None
        self._listener: Any = None
        self._undo: list[Callable[[], object]] = []
        self._running = threading.local()
        # What ran from which sequence number of autograd on: of the main thread.
        self._numbers: list[int] = []
        self._modules: list[tuple[str, ...]] = []
        self._owners: dict[int, tuple[str, ...]] = {}
        self._names: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()

    def __enter__(self) -> Watch:
        global _current
        _current = self
        native = sys.modules.get("opkit.torch_npu.native")
        if native is not None and native._loaded is not None:
            self.begin(native._loaded)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        global _current
        _current = None
        if self._library is not None:
            self._library.opkit_npu_listen(_LISTENER())
            self._library = None
        while self._undo:
            self._undo.pop()()

    def begin(self, library: Any) -> None:
        """Listen to the device's library, and to modules."""
        import torch
        from torch.nn.modules import module

        if self._library is not None:
            return
        self._torch = torch
        entered = module.register_module_forward_pre_hook(self._enter)
        left = module.register_module_forward_hook(self._leave, always_call=True)
        was_on, checked = torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()
        torch.autograd.set_detect_anomaly(True, check_nan=checked if was_on else False)
        self._undo = [
            lambda: torch.autograd.set_detect_anomaly(was_on, check_nan=checked),
            entered.remove,
            left.remove,
        ]
        self._listener = _LISTENER(self._hear)
        library.opkit_npu_listen(self._listener)
        self._library = library

    def _stack(self) -> list[tuple[Any, str]]:
        if not hasattr(self._running, "stack"):
            self._running.stack = []
        stack: list[tuple[Any, str]] = self._running.stack
        return stack

    def _enter(self, module: Any, inputs: object) -> None:
        stack = self._stack()
        name = self._names.get(module)
        if name is None:
            name = self._names[module] = _path_in(stack, module)
        stack.append((module, name))
        for parameter in module.parameters(recurse=False):
            self._owners[id(parameter)] = tuple(path for _, path in stack)
        self._note(stack)

    def _leave(self, module: Any, inputs: object, outputs: object) -> None:
        stack = self._stack()
        # A module inside whose forward raised may have left no word.
        while stack and stack.pop()[0] is not module:
            pass
        self._note(stack)

    def _note(self, stack: list[tuple[Any, str]]) -> None:
        if threading.current_thread() is threading.main_thread():
            autograd: Any = self._torch.autograd
            self._numbers.append(autograd._get_sequence_nr())
            self._modules.append(tuple(path for _, path in stack))

    def _hear(self, kind: int, operator: bytes, took_us: float) -> None:
        place = self._place()
        if kind == _LAUNCH:
            from opkit.emulator import _emulator

            self.places[_emulator.count_timings()] = place
        else:
            self.cpu_calls.append(CpuCall(operator.decode(), place, took_us))

    def _place(self) -> Place:
        # Behind the engine is who asked for the gradients.
        file, line = calling_line(sys._getframe(), until="_engine_run_backward")
        node = self._torch._C._current_autograd_node()
        modules = tuple(path for _, path in self._stack())
        if node is None:
            return Place(modules, file, line)
        if not file:
            file, line = self._line_of(node)
        return Place(modules or self._modules_of(node), file, line, is_backward=True)

    def _line_of(self, node: Any) -> tuple[str, int]:
        """Return the line that made a node of the graph."""
        for text in reversed(node.metadata.get("traceback_", ())):
            found = _FRAME.match(text)
            if found is not None and belongs_to_program(found[1]):
                return found[1], int(found[2])
        return "", 0

    def _modules_of(self, node: Any) -> tuple[str, ...]:
        """Return the modules that were running when a node of the graph was made."""
        number = node._sequence_nr()
        if number >= _NO_SEQUENCE:
            return self._owners.get(id(getattr(node, "variable", None)), ())
        at = bisect.bisect_right(self._numbers, number) - 1
        return self._modules[at] if at >= 0 else ()


def attach(library: Any) -> None:
    """Have a watch that is waiting for the device listen to its library."""
    if _current is not None:
        _current.begin(library)


def _path_in(stack: list[tuple[Any, str]], module: Any) -> str:
    """Return a module's path from the outermost that runs; its class's name for that itself."""
    for parent, path in reversed(stack):
        for name, part in parent.named_modules():
            if part is module and name:
                return f"{path}.{name}"
    return type(module).__name__
