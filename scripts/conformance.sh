#!/bin/bash
# Plays the conformance test of the adapters with trainers that the project's own environment cannot
# have, by hand or once a week. Run it from the root of a checkout after `make setup`.
#
# The trainers go into a folder that only this test sees. They are installed without their
# dependencies, because these contradict each other and the training of this project; the second
# list has what their modules import.
set -euo pipefail
FOLDER=${FOLDER:-build/conformance}
PYTHON=${PYTHON:-.venv/bin/python}
TRAINERS=(skyrl-gym==0.4.0 tinker==0.38.0 tinker-cookbook==0.6.1 verl==0.9.1 verifiers==0.4.0
    openrlhf==0.11.2)
IMPORTED=(anthropic antlr4-python3-runtime==4.9.3 blobfile chz cloudpickle codetiming dill distro
    func_timeout gepa httpx2 hydra-core latex2sympy2_extended loguru lxml math-verify mcp==2.0.0
    mcp-types msgpack omegaconf openai orjson pandas prime-runs prime-sandboxes prime-tunnel
    pybind11 pycryptodomex pylatexenc pyqwest pyrage pyvers pyzmq renderers sniffio
    tensordict==0.10.0 termcolor tiktoken tinker tml-renderers tomli-w torchdata zstandard)
"$PYTHON" -m pip install --quiet --upgrade --no-deps --target "$FOLDER" \
    "${TRAINERS[@]}" "${IMPORTED[@]}"
PYTHONPATH="$FOLDER" "$PYTHON" -m pytest -rs tests/envs/adapters/test_conformance.py \
    tests/exchange tests/test_adapter_examples.py
