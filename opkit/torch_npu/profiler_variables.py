"""`ASCEND_PROFILER_ENABLE=1`: a program writes its tables when it ends, without a change to it.

`ASCEND_PROFILER_OUTPUT_PATH` is the folder, `profiler_data` in the working directory by default.
"""

from __future__ import annotations

import atexit
import os
import sys
from pathlib import Path

__all__ = ["start_from_environment"]

ENABLE = "ASCEND_PROFILER_ENABLE"
OUTPUT = "ASCEND_PROFILER_OUTPUT_PATH"


def _wants_profile() -> bool:
    """Whether the environment asks for a profile of this process."""
    return os.environ.get(ENABLE, "0") == "1"


def start_from_environment() -> None:
    """Time every launch of this process from now on, where the environment asks for it.

    Under `opkit profile`, which times the launches itself, nothing happens.
    """
    if not _wants_profile():
        return
    from opkit import runtime
    from opkit.profiling import Profile

    if runtime.configuration().profile:
        return
    folder = Path(os.environ.get(OUTPUT) or "profiler_data").absolute()
    session = Profile(event_limit=0)
    session.__enter__()
    atexit.register(_write, session, folder, os.getpid())


def _write(session: object, folder: Path, owner: int) -> None:
    from opkit.profiling import Profile, write_operator_files
    from opkit.torch_npu.counts import operator_counts

    # A forked child has its parent's launches too.
    if not isinstance(session, Profile) or os.getpid() != owner:
        return
    session.__exit__(None, None, None)
    try:
        paths = write_operator_files(folder, session.timelines, operator_counts())
    except OSError as err:
        sys.stderr.write(f"opkit: {OUTPUT}: {folder} cannot be written: {err.strerror}\n")
        return
    sys.stderr.write(f"opkit: wrote {', '.join(map(str, paths))}\n")
