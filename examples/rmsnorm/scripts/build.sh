#!/usr/bin/env bash
# Builds everything for the emulator and runs the C++ unit test of the kernels.
# Options go to `opkit build`, for example -v to see every command.
set -euo pipefail
cd "$(dirname "$0")/.."

opkit build . "$@"
cmake -S . -B build/cmake -DOPKIT_BACKEND=emulator -DOPKIT_KERNEL_TEST=ON
cmake --build build/cmake --target test_kernel
build/cmake/test_kernel build/opkit
