"""What C++ extensions for the device are compiled against and linked with."""

from __future__ import annotations

from pathlib import Path

from opkit import emulator

__all__ = ["extension_include_dirs", "extension_link_flags"]


def extension_include_dirs() -> list[str]:
    """Return the folders of `torch_npu/npu_functions.h`, `op_plugin/*.h`, `acl/acl.h`."""
    # Where programs look for it that ask the module where it lies, as with the vendor's.
    ours = Path(__file__).parent / "stand_in" / "torch_npu" / "include"
    return [str(ours), str(emulator.include_dir())]


def extension_link_flags() -> list[str]:
    """Return what the linker needs.

    Raises:
        SetupError: this installation lacks the emulator's library.
    """
    library = emulator.library_path()
    return [str(library), f"-Wl,-rpath,{library.parent}"]
