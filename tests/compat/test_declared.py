"""Which names the headers declare is read off what the compiler says."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from opkit.compat.declared import read_declared
from opkit.toolchain import find_compiler


def test_a_compiler_may_name_sources_by_relative_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As compiler caches have it compile.
    wrapper = tmp_path / "relative-c++"
    wrapper.write_text(
        "#!/bin/bash\n"
        'arguments=("${@:1:$#-1}")\n'
        'last="${@: -1}"\n'
        '[ -f "$last" ] && last=$(realpath --relative-to=. "$last")\n'
        f'exec {shutil.which(find_compiler().argv[0])} "${{arguments[@]}}" "$last"\n'
    )
    wrapper.chmod(0o755)
    headers = tmp_path / "include"
    headers.mkdir()
    (headers / "kernel_operator.h").write_text(
        "#pragma once\nnamespace AscendC { void Known(); }\n"
    )
    monkeypatch.setenv("CXX", os.fspath(wrapper))
    declared = read_declared(("Known", "Unknown"), include_dir=headers)
    assert declared.names & {"Known", "Unknown"} == {"Known"}
