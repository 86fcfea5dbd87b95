#!/usr/bin/env bash
# Prints the first Python that is new enough and whole: 3.11 or newer, with venv, with pip, and with
# the headers that the extension modules need. PYTHON names the only one to consider.
set -euo pipefail

probe='
import os, sys, sysconfig
import ensurepip, venv
header = os.path.join(sysconfig.get_path("include"), "Python.h")
sys.exit(sys.version_info < (3, 11) or not os.path.exists(header))
'
for python in ${PYTHON:-python3.11 python3.12 python3.13 python3.14 python3 /usr/bin/python3}; do
  if "$python" -c "$probe" >/dev/null 2>&1; then
    command -v "$python"
    exit 0
  fi
done
exit 1
