#!/usr/bin/env bash
# Installs PyTorch for the Python $1, from the index TORCH_INDEX when it is set. Refuses a CUDA build:
# it is gigabytes of packages that no AMD or CPU machine can use. A PyTorch that is there is kept.
set -euo pipefail
cd "$(dirname "$0")/.."

python=$1
if "$python" -c 'import torch' >/dev/null 2>&1; then
  echo "Keeping PyTorch $("$python" -c 'import torch; print(torch.__version__)')."
  exit 0
fi

torch=$(grep '^torch==' constraints.txt)
install=("$python" -m pip --disable-pip-version-check install --quiet --constraint constraints.txt)
if [[ -n "${TORCH_INDEX:-}" ]]; then
  # Another build of PyTorch may be another version: take what that index has.
  install=("$python" -m pip --disable-pip-version-check install --quiet --index-url "$TORCH_INDEX")
  torch=torch
fi

echo "Installing $torch ..."
plan=$("${install[@]}" --dry-run --report - "$torch")
if grep -qiE '"name": "(nvidia|cuda)[-_]' <<<"$plan"; then
  echo "The index of this pip offers PyTorch with CUDA. Name another one, for instance:" >&2
  echo "  make ${MAKECMDGOALS:-setup} TORCH_INDEX=URL   (the CPU or ROCm index that pytorch.org prints)" >&2
  exit 1
fi
"${install[@]}" "$torch"
