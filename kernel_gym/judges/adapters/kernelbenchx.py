"""KernelBenchX: `compare_python_files` of `EVAL/1_exe_acc.py`."""

from __future__ import annotations

from pathlib import Path

from kernel_gym.judges.adapters.scripted import ScriptedJudge
from kernel_gym.judges.adapters.texts import SHAPES, module_with_function, names_of, with_test
from kernel_gym.judges.corpus import Candidate

SCRIPT = """
import json, runpy, sys
from pathlib import Path

judge = runpy.run_path(sys.argv[1] + "/EVAL/1_exe_acc.py", run_name="exe_acc")
here = Path.cwd()
accepted, _, _, why = judge["compare_python_files"](
    str(here / "generated/operation.py"), str(here / "gold/operation.py"), {}
)
Path(here / "verdict.json").write_text(json.dumps({"accepted": bool(accepted), "why": str(why)}))
"""


def write(candidate: Candidate, checkout: Path, folder: Path) -> None:
    """Writes implementation and test, as its files have them, for candidate and definition."""
    test = test_text(candidate)
    for place, source, function in (
        ("generated", candidate.source, "run"),
        ("gold", candidate.problem.source, "reference"),
    ):
        (folder / place).mkdir()
        text = module_with_function(source, function, candidate, "operation")
        (folder / place / "operation.py").write_text(with_test(text, test))


def test_text(candidate: Candidate) -> str:
    """Returns a test with a result for each shape."""
    number = len(candidate.problem.arguments)
    return f"""import torch


def test_operation():
    results = {{}}
    for shape in {SHAPES}:
        {names_of(candidate)}, = (torch.randn(shape, device="cuda") for _ in range({number}))
        results[f"test_case_{{shape}}"] = operation({names_of(candidate)})
    return results


test_results = test_operation()
"""


ADAPTER = ScriptedJudge(
    name="kernelbenchx",
    repository="BonnieW05/KernelBenchX",
    settings=(
        "The adapter runs only the execution step. Both files run with its seed 0, and "
        "`assert_close` compares their `test_results` with float32's default tolerance, 1e-5. The "
        "call step runs the same file and adds nothing. There are four shapes, with inputs from "
        "`torch.randn`. In a third step, KernelBenchX computes speedups against stored times of an "
        "NVIDIA GPU, so the adapter states none."
    ),
    needed=("EVAL/1_exe_acc.py", "utils/correction_utils.py"),
    script=SCRIPT,
    write=write,
)
