"""What ends a call of an operator that goes on without an end."""

from __future__ import annotations

import subprocess
import sys

import pytest

CALL = """
import sys
import numpy as np
from opkit import runtime
library = runtime.open(sys.argv[1])
with runtime.time_limit(0.2, counts_host=True):
    library.run("ScaleAdd", [np.ones(4, np.float32)])
"""


@pytest.mark.slow
def test_host_code_that_never_comes_back_ends_its_process(build_artifact, host_text) -> None:
    # It went on to the limit of the whole case, 220 s with --timeout 10, three times.
    place = "  context->SetBlockDim("
    assert place in host_text
    hangs = host_text.replace(place, f"  for (volatile int i = 0; i == 0;) {{}}\n{place}")
    folder = build_artifact(host=hangs)
    done = subprocess.run(
        [sys.executable, "-c", CALL, str(folder)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 124
    assert "the operator's host code has run for 0.2 s: the process ends" in done.stderr
