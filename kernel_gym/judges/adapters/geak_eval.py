"""GEAK-eval: its script `geak_eval/evaluators/TB_correctness.py`."""

from __future__ import annotations

from pathlib import Path

from kernel_gym.judges.adapters.kernelbenchx import test_text
from kernel_gym.judges.adapters.scripted import ScriptedJudge
from kernel_gym.judges.adapters.texts import module_with_function, with_test
from kernel_gym.judges.corpus import Candidate

SCRIPT = """
import contextlib, io, json, runpy, sys, types
from pathlib import Path

stub = types.ModuleType("parse_llm_code")  # a package that reads answers of models
stub.extract_code_blocks = None
sys.modules.setdefault("parse_llm_code", stub)

checkout = sys.argv[1]
sys.path.insert(0, checkout)
sys.argv = ["TB_correctness.py", "--gen_file", "generated.py", "--ref_file", "gold.py"]
with contextlib.redirect_stdout(io.StringIO()) as printed:
    runpy.run_path(checkout + "/geak_eval/evaluators/TB_correctness.py", run_name="__main__")
called, equal, _, why = printed.getvalue().strip().splitlines()[-1].split("*#*#")
verdict = {"accepted": called == "True" and equal == "True", "why": why}
Path("verdict.json").write_text(json.dumps(verdict))
"""


def write(candidate: Candidate, checkout: Path, folder: Path) -> None:
    """Writes both files with the same test, whose results are in `result_gold`."""
    test = test_text(candidate).replace("test_results =", "result_gold =")
    for name, source, function in (
        ("generated", candidate.source, "run"),
        ("gold", candidate.problem.source, "reference"),
    ):
        text = module_with_function(source, function, candidate, "operation")
        (folder / f"{name}.py").write_text(with_test(text, test))


ADAPTER = ScriptedJudge(
    name="geak-eval",
    repository="AMD-AGI/GEAK-eval",
    settings=(
        "The adapter runs `evaluators/TB_correctness.py` with its defaults (atol 1e-3, rtol 1e-1 "
        "and seed 42). Like the script, it uses one process for both files. The evaluator `tbg` of "
        "this commit does not call the script. It checks only that a timing script finishes. There "
        "are four shapes, with inputs from `torch.randn`. GEAK-eval states no speedup here."
    ),
    needed=("geak_eval/evaluators/TB_correctness.py",),
    script=SCRIPT,
    write=write,
)
