"""reference-kernels of GPU MODE: `eval.py` in its modes `test` and `leaderboard`."""

from __future__ import annotations

import shutil
from pathlib import Path

from kernel_gym.judges.adapters.scripted import ScriptedJudge
from kernel_gym.judges.adapters.texts import SHAPES, SHOWN, names_of
from kernel_gym.judges.corpus import Candidate

FOLDER = "problems/pmpp_v2"
SCRIPT = """
import json, multiprocessing, os, sys, types
from pathlib import Path

contexts = multiprocessing.get_context
multiprocessing.get_context = lambda method: contexts("fork")

def run(mode, cases):
    out = os.open(mode + ".log", os.O_RDWR | os.O_CREAT)
    os.environ["POPCORN_FD"] = str(out)
    sys.argv = ["eval.py", mode, cases]
    module = sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        exec(compile(Path("eval.py").read_text(), "eval.py", "exec"), vars(module))
    except SystemExit:
        pass
    except ZeroDivisionError:
        raise  # a modelled time of zero
    except Exception as error:
        return {"check": "fail", "error": f"{type(error).__name__}: {error}"}
    lines = Path(mode + ".log").read_text().splitlines()
    return dict(line.split(": ", 1) for line in lines if ": " in line)

if __name__ == "__main__":
    sys.path.insert(0, os.getcwd())
    tests = run("test", "tests.txt")
    failed = {key: value for key, value in tests.items() if key.endswith(("error", "message"))}
    verdict = {"accepted": tests["check"] == "pass", "why": str(failed)}
    if verdict["accepted"]:
        ranked = run("leaderboard", "benchmarks.txt")
        verdict["accepted"] = ranked["check"] == "pass"
        verdict["why"] = ranked.get("benchmark.0.error", ranked.get("error", ""))
    Path("verdict.json").write_text(json.dumps(verdict))
"""


def write(candidate: Candidate, checkout: Path, folder: Path) -> None:
    """Writes task, reference, submission and cases beside the judge's own files."""
    for name in ("eval.py", "utils.py"):
        shutil.copyfile(checkout / FOLDER / name, folder / name)
    names, number = names_of(candidate), len(candidate.problem.arguments)
    (folder / "task.py").write_text("import torch\ninput_t = output_t = torch.Tensor\n")
    (folder / "submission.py").write_text(
        f"{candidate.source}\n\ndef custom_kernel(data):\n    {names}, = data\n"
        f"    return run({names})\n"
    )
    (folder / "reference.py").write_text(
        f"""{candidate.problem.source}

from utils import make_match_reference


def ref_kernel(data):
    {names}, = data
    return reference({names})


def generate_input(rows, columns, seed):
    generator = torch.Generator(device="cuda").manual_seed(seed)
    shape = rows, columns
    return tuple(
        torch.randn(shape, device="cuda", generator=generator) for _ in range({number})
    )


check_implementation = make_match_reference(ref_kernel, rtol=1e-4, atol=1e-5)
"""
    )
    lines = [f"rows: {r}; columns: {c}; seed: {100 + r}" for r, c in SHAPES]
    (folder / "tests.txt").write_text("\n".join(lines))
    (folder / "benchmarks.txt").write_text(f"rows: {SHOWN[0]}; columns: {SHOWN[1]}; seed: 7")


ADAPTER = ScriptedJudge(
    name="reference-kernels",
    repository="gpu-mode/reference-kernels",
    settings=(
        f"The adapter runs `{FOLDER}/eval.py` and `utils.py` with mode `test` on four shapes, then "
        "`leaderboard` on one, as the site does. The task states the tolerance of the corpus, 1e-5 "
        "and 1e-4. The pool of `eval.py` is forked from a process that has loaded PyTorch. Inputs "
        "come from a seeded `torch.randn`. The site ranks a submission by its time, so the adapter "
        "states no speedup. A call that launches nothing has a modelled time of zero. `eval.py` "
        "divides by this time, so there is no verdict."
    ),
    needed=(f"{FOLDER}/eval.py", f"{FOLDER}/utils.py"),
    script=SCRIPT,
    write=write,
)
