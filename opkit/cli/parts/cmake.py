"""What CMake is given so that it compiles with this opkit."""

from __future__ import annotations

__all__ = ["cmake_arguments"]


def cmake_arguments() -> list[str]:
    """Return the arguments of CMake with which this opkit is the compiler of Ascend C."""
    from opkit.toolchain import CMAKE_DIR, OPKIT_COMMAND

    arguments = [f"-DCMAKE_MODULE_PATH={CMAKE_DIR}", f"-DCMAKE_PREFIX_PATH={CMAKE_DIR}"]
    # The very opkit that answers here: CMake takes a compiler with its first arguments as a list.
    return [*arguments, f"-DCMAKE_ASC_COMPILER={';'.join((*OPKIT_COMMAND, 'cc'))}"]
