"""KernelGuard: `analyze_code` of its package, static rules that run nothing."""

from __future__ import annotations

from pathlib import Path

from kernel_gym.judges.adapters.scripted import ScriptedJudge
from kernel_gym.judges.adapters.texts import names_of
from kernel_gym.judges.corpus import Candidate

SCRIPT = """
import json, sys
from pathlib import Path

sys.path.insert(0, sys.argv[1])
import kernelguard

result = kernelguard.analyze_code(
    Path("submission.py").read_text(), compute_structural_hash=False
)
patterns = [pattern["pattern"] for pattern in result["matched_patterns"] if "pattern" in pattern]
verdict = {"accepted": not result["should_filter"]}
verdict["why"] = f"{result['classification']}: {result['filter_reason'] or patterns}"
Path("verdict.json").write_text(json.dumps(verdict))
"""


def write(candidate: Candidate, checkout: Path, folder: Path) -> None:
    """Writes a submission in the form of GPU MODE, for which the rules are made."""
    names = names_of(candidate)
    entry = f"\n\ndef custom_kernel(data):\n    {names}, = data\n    return run({names})\n"
    (folder / "submission.py").write_text(candidate.source + entry)


ADAPTER = ScriptedJudge(
    name="kernelguard",
    repository="the package kernelguard of PyPI",
    settings=(
        "The adapter runs `analyze_code` in its default profile on a submission with "
        "`custom_kernel(data)`. It refuses the candidate if the result says `should_filter`. The "
        "rules look only for cheats, so they cannot find wrong kernels. The digest of its files is "
        "`files-d56ff200a84b346d`."
    ),
    needed=("kernelguard.py",),
    script=SCRIPT,
    write=write,
    static=True,
    install="pip install --no-deps --target kernelguard kernelguard==0.3.2",
)
