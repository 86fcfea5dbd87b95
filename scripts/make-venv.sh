#!/usr/bin/env bash
# Makes the virtual environment $1.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! python=$(scripts/find-python.sh); then
  echo "No Python 3.11 or newer with venv, pip and headers. On Debian and Ubuntu:" >&2
  echo "  sudo apt-get install python3-venv python3-dev" >&2
  exit 1
fi
echo "Making $1 with $python ..."
"$python" -m venv --clear "$1"
