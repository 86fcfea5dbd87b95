#!/usr/bin/env bash
# Makes the virtual environment $1 with the first Python that is new enough and whole: with venv,
# with pip, and with the headers that the extension modules need. PYTHON names one to use instead.
set -euo pipefail

venv=$1
probe='
import os, sys, sysconfig
import ensurepip, venv
header = os.path.join(sysconfig.get_path("include"), "Python.h")
sys.exit(sys.version_info < (3, 11) or not os.path.exists(header))
'
for python in ${PYTHON:-python3.11 python3.12 python3.13 python3 /usr/bin/python3}; do
  if "$python" -c "$probe" >/dev/null 2>&1; then
    echo "Making $venv with $("$python" -c 'import sys; print(sys.executable, sys.version.split()[0])') ..."
    exec "$python" -m venv "$venv"
  fi
done
echo "No Python 3.11 or newer with venv, pip and headers. On Debian and Ubuntu:" >&2
echo "  apt-get install python3-venv python3-dev" >&2
exit 1
