#!/usr/bin/env bash
# Builds rmsnorm: an operator package with CANN where it is installed, with opkit's emulator elsewhere.
set -euo pipefail
cd "$(dirname "$0")"

cann="${ASCEND_CANN_PACKAGE_PATH:-${ASCEND_HOME_PATH:-}}"
if [ -n "$cann" ] && [ -d "$cann" ]; then
  cmake -S . --preset default -DASCEND_CANN_PACKAGE_PATH="$cann" "$@"
  cmake --build build_out --target binary package -j "$(nproc)"
else
  opkit build . "$@"
fi
