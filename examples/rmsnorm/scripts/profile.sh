#!/usr/bin/env bash
# Times the operator on the modelled chip. Options go to `opkit profile`; `opkit profile --help` lists them.
set -euo pipefail
cd "$(dirname "$0")/.."

opkit profile . "$@"
