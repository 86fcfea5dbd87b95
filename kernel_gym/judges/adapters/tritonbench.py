"""TritonBench: its script `EVAL/eval_G/1_exe_acc.py`, after a call as its step 0 makes it."""

from __future__ import annotations

from pathlib import Path

from kernel_gym.judges.adapters.kernelbenchx import test_text
from kernel_gym.judges.adapters.scripted import ScriptedJudge
from kernel_gym.judges.adapters.texts import RUN_FORKED, module_with_function, with_test
from kernel_gym.judges.corpus import Candidate

SCRIPT = """
import json
from pathlib import Path

call = run_forked([sys.executable, "operation.py"])
verdict = {"accepted": call.returncode == 0, "why": call.stderr[-200:]}
if verdict["accepted"]:
    judge = runpy.run_path(sys.argv[1] + "/EVAL/eval_G/1_exe_acc.py", run_name="exe_acc")
    compare = judge["compare_python_files"]
    compare.__globals__["subprocess"] = forked
    verdict["accepted"], _ = compare("operation.py", "gold/operation.py")
    verdict["why"] = "" if verdict["accepted"] else "the printed texts differ"
Path("verdict.json").write_text(json.dumps(verdict))
"""


def write(candidate: Candidate, checkout: Path, folder: Path) -> None:
    """Writes both files with the same test, whose results are in `result_gold`."""
    test = test_text(candidate).replace("test_results =", "result_gold =")
    (folder / "gold").mkdir()
    for place, source, function in (
        (folder, candidate.source, "run"),
        (folder / "gold", candidate.problem.source, "reference"),
    ):
        text = module_with_function(source, function, candidate, "operation")
        (place / "operation.py").write_text(with_test(text, test))


ADAPTER = ScriptedJudge(
    name="tritonbench",
    repository="thunlp/TritonBench",
    settings=(
        "The adapter runs `compare_python_files` of `eval_G/1_exe_acc.py` on a file that ran "
        "without error. The candidate's file and the reference's file run as children of a process "
        "that has loaded PyTorch. The adapter itself runs the candidate's file first, because "
        "TritonBench's script for this step, `0_call_acc.py`, needs Python 3.12. Like "
        "nearly all files of `data/TritonBench_G_v1`, our test file stores its results in "
        "`result_gold` and prints nothing. There are four shapes, with inputs from `torch.randn` "
        "without a seed. TritonBench compares times with stored times of an NVIDIA GPU, so the "
        "adapter states no speedup."
    ),
    needed=("EVAL/eval_G/1_exe_acc.py",),
    script=RUN_FORKED + SCRIPT,
    write=write,
)
