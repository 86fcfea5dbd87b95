"""Models the pairs of variant_pairs.py for gfx942 on the simulator and compares with measured ones.

The measured side comes from another chip, so that agreement of ranks is what can be asked for.

    python examples/compare_pairs.py measured.json [--modelled modelled.json]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from scipy.stats import spearmanr

PROGRAM = Path(__file__).with_name("variant_pairs.py")
SHOWN = 10


def model(only: list[str]) -> dict[str, Any]:
    """The pairs as the simulator models them."""
    from kernel_gym.programs.confined import run_program
    from kernel_gym.simulated_rocm.settings import SimSettings

    header = {
        "name": PROGRAM.name,
        "language": "triton",
        "source": PROGRAM.read_text(encoding="utf-8"),
        "arguments": ["--once", *(["--only", *only] if only else [])],
    }
    result = run_program(header, SimSettings(), timeout=6000)
    if result["error"]:
        raise SystemExit(f"error: {result['error']}\n{result['detail']}")
    return json.loads(result["output"].splitlines()[-1])


def compare(measured: dict[str, Any], modelled: dict[str, Any]) -> dict[str, Any]:
    """Rank correlation of the log speedups over all common pairs, and within each problem.

    Returns:
        ``spearman``, ``p_value``, ``pairs``, ``by_problem``, and ``disagreements``: the pairs whose
        ranks differ most.
    """
    keys = {(p["problem"], p["base"], p["variant"]): p["log_speedup"] for p in measured["pairs"]}
    common = [
        (key, keys[key], pair["log_speedup"])
        for pair in modelled["pairs"]
        if (key := (pair["problem"], pair["base"], pair["variant"])) in keys
    ]
    if len(common) < 3:
        raise SystemExit(f"error: found {len(common)} common pairs, expected at least 3")
    correlation = spearmanr([m for _, m, _ in common], [s for _, _, s in common])
    by_problem = {}
    for name in sorted({key[0] for key, _, _ in common}):
        some = [(m, s) for key, m, s in common if key[0] == name]
        if len(some) > 2:
            by_problem[name] = float(spearmanr(*zip(*some, strict=True)).statistic)
    worst = sorted(common, key=lambda item: -abs(item[1] - item[2]))[:SHOWN]
    return {
        "measured_on": measured["device"],
        "modelled_for": modelled["device"],
        "pairs": len(common),
        "spearman": float(correlation.statistic),
        "p_value": float(correlation.pvalue),
        "by_problem": by_problem,
        "disagreements": [
            {"problem": k[0], "variant": k[2], "measured": m, "modelled": s} for k, m, s in worst
        ],
    }


def main() -> None:
    """Prints the comparison as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("measured", type=Path)
    parser.add_argument("--modelled", type=Path, help="Read if it is there, else written.")
    options = parser.parse_args()
    measured = json.loads(options.measured.read_text(encoding="utf-8"))
    if options.modelled and options.modelled.exists():
        modelled = json.loads(options.modelled.read_text(encoding="utf-8"))
    else:
        modelled = model(sorted({pair["problem"] for pair in measured["pairs"]}))
        if options.modelled:
            options.modelled.write_text(json.dumps(modelled, indent=1), encoding="utf-8")
    print(json.dumps(compare(measured, modelled), indent=2))


if __name__ == "__main__":
    main()
