#!/bin/sh
# Evaluates the kernel that the agent left and writes the reward. It runs in an environment that the
# agent never was in. Without a reward file the machine failed, and the trial is to be repeated.
set -u
kernel="${KERNEL_GYM_KERNEL:-/app/@KERNEL@}"
out="${KERNEL_GYM_OUT:-/logs/verifier}"
mkdir -p "$out"
rm -f "$out/reward.json" "$out/reward.txt" "$out/evaluation.json"
if [ -L "$kernel" ] || [ ! -f "$kernel" ]; then
    echo '{"reward": 0.0, "passed": 0, "changed": 0, "speedup": 0.0}' > "$out/reward.json"
    echo "no kernel file: $kernel"
    exit 0
fi
kernel-gym check '@TASK@' "$kernel" --device '@DEVICE@' --json > "$out/evaluation.json"
python3 - "$out" <<'END'
import json
import pathlib
import sys

out = pathlib.Path(sys.argv[1])
judged = json.loads((out / "evaluation.json").read_text())
evaluation = judged["evaluation"]
passed = evaluation["outcome"] == "passed"
if judged["reward"] is None:
    sys.exit("the machine failed: " + evaluation["message"])
reward = {
    "reward": judged["reward"] if passed else 0.0,
    "passed": int(passed),
    "changed": int(not evaluation["copied"]),
    "speedup": (evaluation["speedup_low"] or 0.0) if passed else 0.0,
}
(out / "reward.json").write_text(json.dumps(reward))
print(evaluation["outcome"], json.dumps(reward))
END
