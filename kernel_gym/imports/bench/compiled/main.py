"""The process that measures: it reads a request in JSON from each line, and writes its answer.

It runs only text that we wrote. It is not confined, since Inductor starts compilers and writes
files.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

MEMORY = "memory"
"""The key of an answer that says that memory is missing."""


def answer(steps: dict[str, Any], request: dict[str, Any]) -> dict[str, object]:
    """Returns the answer to one request.

    Args:
        steps: The measurement under the key "now", which the request `open` replaces.
        request: The name of a step under "do", and its arguments. The request `open` may name an
            architecture to simulate under "simulate".
    """
    step = request.pop("do")
    arch = request.pop("simulate", "")
    if arch:
        from kernel_gym.programs.enabling import enable_simulation

        enable_simulation(arch, threads=1)  # before PyTorch is imported
    from kernel_gym.imports.bench.compiled.steps import Measurement, StepFailed, StepOutOfMemory

    try:
        if step == "open":
            steps["now"] = Measurement(**request)
            return {"workloads": [str(workload) for workload in steps["now"].workloads]}
        return {"result": getattr(steps["now"], step)(**request)}
    except StepOutOfMemory as error:
        return {"failed": str(error), MEMORY: True}
    except StepFailed as error:
        return {"failed": str(error)}


def main() -> None:
    """Serves requests until standard input ends. What libraries print goes to standard error."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    steps: dict[str, object] = {}
    for line in sys.stdin:
        answers.write(json.dumps(answer(steps, json.loads(line))) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
