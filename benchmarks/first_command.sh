#!/usr/bin/env bash
# Times the README's first command in a clone of the last commit: from a new virtual environment to
# the demo's last line.
#     benchmarks/first_command.sh [PYTHON]
# Packages come from wherever pip is set up to get them, and how long that takes is part of the figure.
set -euo pipefail
python="${1:-python3}"
root="$(cd "$(dirname "$0")/.." && pwd)"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT

git clone --quiet "$root" "$folder/opkit"
cd "$folder/opkit"
"$python" -m venv "$folder/venv"
export XDG_CACHE_HOME="$folder/cache" PATH="$folder/venv/bin:$PATH"
start="$(date +%s)"
{ pip install --quiet . && opkit demo; } >&2
end="$(date +%s)"
echo "| what | measured | to reach |"
echo "|---|---|---|"
echo "| pip install . && opkit demo, new environment | $((end - start)) s | <= 180 s |"
