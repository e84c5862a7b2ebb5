"""What runs Triton files: a process that reads calls and writes results.

Triton decides when it is imported whether it interprets kernels or compiles them; so it is imported
here, and not where torch may have done so before.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import pickle
import sys
import tempfile
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["load_module", "main"]


def main() -> None:
    """Answer calls until the input ends: each a source, a function's name, arrays with their data
    types, and numbers."""
    # What is printed must not come between results.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    import torch

    if not torch.cuda.is_available():
        os.environ["TRITON_INTERPRET"] = "1"
    with tempfile.TemporaryDirectory(prefix="opkit-triton-") as folder:
        while True:
            try:
                call = pickle.load(sys.stdin.buffer)
            except EOFError:
                return
            _answer(answers, _result(Path(folder), *call))


def _answer(answers: BinaryIO, result: tuple[bool, Any]) -> None:
    pickle.dump(result, answers)
    answers.flush()


def _result(
    folder: Path,
    source: str,
    name: str,
    arrays: list[tuple[Any, str]],
    numbers: list[float],
) -> tuple[bool, Any]:
    """Return whether a function returned, and its arrays or what went wrong."""
    import torch

    try:
        module = load_module(folder, source)
        tensors = [_tensor(array, dtype).to(module.DEVICE) for array, dtype in arrays]
        results = getattr(module, name)(*tensors, *numbers)
        if isinstance(results, torch.Tensor):
            results = (results,)
        return True, [_array(result) for result in results]
    except Exception as err:
        text = "".join(traceback.format_exception_only(err)).strip()
        place = traceback.extract_tb(err.__traceback__)
        lines = [
            f"line {each.lineno}: {each.line}" for each in place if "opkit-triton" in each.filename
        ]
        return False, "\n".join([text, *lines[-1:]])


def load_module(folder: Path, source: str) -> ModuleType:
    """Return a file's module, written into a folder and loaded once in this process."""
    name = f"program_{hashlib.sha256(source.encode()).hexdigest()[:16]}"
    if name not in sys.modules:
        path = folder / f"{name}.py"
        path.write_text(source, encoding="utf-8")
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        sys.modules[name] = module
    return sys.modules[name]


def _tensor(array: Any, dtype: str) -> Any:
    import torch

    array = np.array(array)
    if dtype == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def _array(tensor: Any) -> Any:
    import torch

    tensor = tensor.detach().cpu().contiguous()
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(np.uint16)
    return tensor.numpy()


if __name__ == "__main__":
    main()
