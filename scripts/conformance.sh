#!/bin/bash
# Plays the conformance test of the adapters and their examples with real trainers, by hand or once
# a week. Run it from the root of a checkout after `make setup`.
#
# The project's own environment has TRL and OpenEnv. The others go into folders that only this test
# sees. They are installed without their dependencies, because these contradict each other and the
# training of this project; the second list of each has what their modules import. NeMo Gym names
# Python 3.12 as its first one, but its servers run on 3.11, which is what the simulator is built for.
set -euo pipefail
FOLDER=${FOLDER:-build/conformance}
NEMO_GYM=${NEMO_GYM:-build/nemo_gym}
PYTHON=${PYTHON:-.venv/bin/python}
TRAINERS=(skyrl-gym==0.4.0 tinker==0.38.0 tinker-cookbook==0.6.1 verl==0.9.1 verifiers==0.4.0
    openrlhf==0.11.2)
IMPORTED=(anthropic antlr4-python3-runtime==4.9.3 blobfile chz cloudpickle codetiming dill distro
    func_timeout gepa httpx2 hydra-core latex2sympy2_extended loguru lxml math-verify mcp==2.0.0
    mcp-types msgpack omegaconf openai orjson pandas prime-runs prime-sandboxes prime-tunnel
    pybind11 pycryptodomex pylatexenc pyqwest pyrage pyvers pyzmq renderers sniffio
    tensordict==0.10.0 termcolor tiktoken tinker tml-renderers tomli-w torchdata zstandard)
NEMO_GYM_IMPORTED=('anthropic<=0.109.2' antlr4-python3-runtime==4.9.3 asttokens databricks-sdk
    devtools distro executing gitdb GitPython gprof2dot hydra-core itsdangerous mlflow
    mlflow-skinny 'omegaconf<2.4' 'openai<=2.7.2' opentelemetry-proto opentelemetry-sdk
    opentelemetry-semantic-conventions orjson pydot smmap sqlparse wandb yappi)

install() {
    local folder=$1
    shift
    "$PYTHON" -m pip install --quiet --upgrade --no-deps --ignore-requires-python \
        --target "$folder" "$@"
}

play() {
    PYTHONPATH=$1 "$PYTHON" -m pytest -rs "${@:2}"
}

install "$FOLDER" "${TRAINERS[@]}" "${IMPORTED[@]}"
install "$NEMO_GYM" nemo-gym==0.4.0 "${NEMO_GYM_IMPORTED[@]}"
play "$FOLDER" tests/envs/adapters/test_conformance.py tests/exchange tests/test_adapter_examples.py
play "$NEMO_GYM" -k nemo_gym tests/envs/adapters/test_conformance.py tests/test_adapter_examples.py
play "" -k 'openenv or trl' tests/envs/adapters tests/test_adapter_examples.py
