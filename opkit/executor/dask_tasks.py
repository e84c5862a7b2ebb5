"""What Dask's workers call: each runs its cases in a process of its own, as `local` does.

So a case that crashes or hangs ends that process and not Dask's worker.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import pickle
import shutil
import tarfile
import tempfile
import threading
from pathlib import Path

import opkit
from opkit.executor.local import LocalCrew
from opkit.executor.work import Work
from opkit.folders import cache_folder

__all__ = ["as_it_is", "close_crews", "run_chunk", "version"]

_crews: dict[tuple[str, int], LocalCrew] = {}
_closed: set[str] = set()
_lock = threading.Lock()


def version() -> str:
    """Return the version of the opkit that a worker has."""
    return opkit.__version__


def as_it_is(data: bytes) -> bytes:
    """Return the data: a task, so that the scheduler can make it again where it was lost."""
    return data


def run_chunk(key: str, work: bytes, chunk: bytes, *folders: tuple[str, bytes]) -> bytes:
    """Return the pickled (number, result) pairs of a pickled list of (number, case) pairs.

    Args:
        key: of the crew: a hash of the work and of who asked.
        work: the pickled work.
        chunk: the cases.
        folders: digest and packed content of each folder, in the work's order.
    """
    crew = _crew(key, work, folders)
    numbered = pickle.loads(chunk)
    cases = [case for _, case in numbered]
    return pickle.dumps([(numbered[at][0], result) for at, result in crew.stream(cases)])


async def close_crews(key: str) -> None:
    """End the processes of a crew on this worker, in the middle of a case too."""
    with _lock:
        _closed.add(key)
        found = [_crews.pop(name) for name in list(_crews) if name[0] == key]
    for crew in found:
        # Aside: what a process ends with may take it seconds, and the worker answers meanwhile.
        await asyncio.to_thread(crew.close, at_once=True)


def _crew(key: str, data: bytes, folders: tuple[tuple[str, bytes], ...]) -> LocalCrew:
    # Dask's worker has a thread for each case that it runs at a time.
    name = (key, threading.get_ident())
    with _lock:
        if key in _closed:
            raise RuntimeError("the work was given up")
        if name in _crews:
            return _crews[name]
    work: Work = pickle.loads(data)
    places = {
        folder: _unpacked(digest, content)
        for folder, (digest, content) in zip(work.folders, folders, strict=True)
    }
    crew = LocalCrew(work, 1, folders=places)
    with _lock:
        _crews[name] = crew
    return crew


def _unpacked(digest: str, content: bytes) -> Path:
    """Return the folder with this content, unpacked once on a machine."""
    cache = cache_folder() / "work"
    folder = cache / digest
    if not folder.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(dir=cache, prefix=".new-"))
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            # Ours, and by its hash: links and modes as they were packed. Early releases of Python
            # 3.10 and 3.11 have no filters, and take no argument for one.
            archive.extraction_filter = getattr(tarfile, "tar_filter", None)
            archive.extractall(aside)
        with contextlib.suppress(OSError):
            aside.rename(folder)
        shutil.rmtree(aside, ignore_errors=True)
    return folder
