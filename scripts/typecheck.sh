#!/usr/bin/env bash
# Runs mypy on the package. The five rooms are one import package only after installation, so mypy
# gets a folder of links in which they lie as they are imported.
set -euo pipefail
cd "$(dirname "$0")/.."

links=build/typecheck
rm -rf "$links"
mkdir -p "$links/kernel_gym"
for entry in kernel_gym/*; do
  ln -s "$PWD/$entry" "$links/$entry"
done
for room in tasks rewards envs training; do
  ln -s "$PWD/$room" "$links/kernel_gym/$room"
done

MYPYPATH="$links" exec "${PYTHON:-python3}" -m mypy -p kernel_gym
