"""The sequences of docs/suites-exchange.md run on small made-up checkouts."""

import csv
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from kernel_gym.exchange.arena import read_arena_run
from kernel_gym.exchange.geak_eval import read_passes
from kernel_gym.exchange.kernelbenchx import read_results
from tests.imports.readers import suites

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^## (\w+)\n(?:(?!## ).*\n)*?```bash\n((?:.*\n)*?)```$", re.MULTILINE)
SEQUENCES = dict(BLOCK.findall((ROOT / "docs" / "suites-exchange.md").read_text()))
DRAWN = 'import torch\ndrawn = lambda n: torch.randn(n, 8, device="cuda")\n'
GELU = suites.TANH.replace("def gated(", "def gelu(")
GELU_TESTS = suites.TANH_TESTS.replace("gated", "gelu")
GELU_KERNEL = """
import torch
import triton
import triton.language as tl


@triton.jit
def gelu_kernel(x_ptr, out_ptr, n, scale, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    e = tl.exp(-2 * tl.abs(x))
    t = (1 - e) / (1 + e)
    tl.store(out_ptr + at, tl.where(x < 0, -t, t) * scale, mask=at < n)


def gelu(x, scale=1.0):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    gelu_kernel[(triton.cdiv(n, 256),)](x, out, n, scale, BLOCK=256)
    return out
"""
COUNTS = """
class performance_metrics:
    def get_gbps(self, input_tensor, runtime):
        total = input_tensor.numel() * input_tensor.element_size() * 2
        return total / (runtime / 1000) / 1e9

    def get_tflops(self, input_tensor, runtime):
        return input_tensor.numel() * 8 / (runtime / 1000) / 1e12
"""


def test_the_page_has_a_sequence_for_each_system():
    assert list(SEQUENCES) == ["TritonBench", "GEAK", "KernelBenchX", "AgentKernelArena"]


@pytest.fixture
def played(tmp_path, request):
    """The folder in which the sequence of a system has run."""
    system, make = request.param
    make(tmp_path)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    own = {"PATH": path, "KERNEL_GYM_IMPORTS": str(tmp_path / "imports")}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", SEQUENCES[system]],
        cwd=tmp_path,
        env={**os.environ, **own},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return tmp_path


def tritonbench(folder):
    g = "TritonBench/data/TritonBench_G_v1"
    listed = [
        {"file": "softmax_triton1.py", "output": suites.ADD, "difficulty": "2"},
        {"file": "other.py", "output": suites.RELU, "difficulty": "1"},
    ]
    prompts = [{"instruction": f"Write {one['file']}.", "output": one["output"]} for one in listed]
    slower = suites.ADD.replace("return out", "torch.empty_like(out)\n    return out")
    rows = [
        {"instruction": "x", "predict": f"```python\n{slower}```<|EOT|>", "label": suites.ADD[:200]}
    ]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    suites.write(
        folder,
        {
            f"{g}/softmax_triton1.py": suites.halves(suites.ADD, suites.ADD_TESTS),
            f"{g}.json": json.dumps(listed),
            "TritonBench/data/TritonBench_G_comp_alpac_v1.json": json.dumps(prompts),
            "TritonBench/EVAL/eval_G/readme": "",
            "TritonBench/LLM_generated/Bench_G_general_purpose/output_gpt-4o_comp.jsonl": lines,
        },
    )


def geak(folder):
    task = "GEAK-eval/geak_eval/data/ROCm/data/ROCm_v1/test_add_kernel.py"
    suites.write(folder, {task: suites.halves("import os\n" + suites.ADD, suites.PYTEST_TESTS)})


def kernelbenchx(folder):
    row = {"file": "Activation/gelu.py", "predict": GELU_KERNEL}
    pair = {
        "task_id": "Activation/gelu.py",
        "kind": "call_fail_to_pass",
        "before": {"call_ok": False, "exe_ok": False, "error": "NameError: y"},
        "after": {"call_ok": True, "exe_ok": True},
        "before_code": "def gelu(x, scale=1.0):\n    return y\n",
        "after_code": GELU_KERNEL,
    }
    collapsed = {**pair, "before_code": "import torch @triton.jit"}
    suites.write(
        folder,
        {
            "KernelBenchX/data/kernelbenchx/Activation/gelu.py": suites.halves(GELU, GELU_TESTS),
            "KernelBenchX/data/kernelbenchx_v1.json": json.dumps(
                [{"name": "gelu", "file": "Activation/gelu.py", "description": "A gate."}]
            ),
            "KernelBenchX/utils/data_utils.py": DRAWN,
            "KernelBenchX/metrics/golden_metrics/gelu_perf.py": COUNTS,
            "KernelBenchX/examples/sources/predictions.gelu.jsonl": json.dumps(row) + "\n",
            "KernelBenchX/data/kbx_corpus/all_records.jsonl": "".join(
                json.dumps(one) + "\n" for one in (pair, collapsed)
            ),
        },
    )


def arena(folder):
    checkout = suites.arena(folder / "AgentKernelArena")
    tasks = checkout / "tasks" / "triton2triton" / "vllm"
    (tasks / "one").rename(tasks / "triton_rms_norm")


def sequence(name, make):
    return pytest.mark.parametrize("played", [(name, make)], ids=[name], indirect=True)


@sequence("TritonBench", tritonbench)
def test_published_predictions_are_judged_and_exported(played):
    rows = [json.loads(line) for line in (played / "runs/gpt-4o.jsonl").read_text().splitlines()]
    assert [list(row) for row in rows] == [["instruction", "predict", "label", "file"]] * 2
    assert [bool(row["predict"]) for row in rows] == [True, False]
    assert [row["label"] for row in rows] == [suites.ADD, suites.RELU]
    (line,) = (played / "runs/gpt-4o/results.jsonl").read_text().splitlines()
    assert json.loads(line)["evaluation"]["outcome"] in ("passed", "hack")
    assert "```" not in rows[0]["predict"]


@pytest.mark.sweep
@sequence("GEAK", geak)
def test_passes_are_written_read_and_played_again(played):
    passes = played / "runs/geak-passes"
    results = read_passes(passes)
    assert [(one.name, one.sample) for one in results] == [
        ("test_add_kernel.py", 1),
        ("test_add_kernel.py", 2),
    ]
    assert all(one.called and one.right and one.speedup == pytest.approx(1) for one in results)
    assert read_passes(passes / "kernel_gym_all_passes.json") == results
    performance = json.loads((passes / "pass_1/kernel_gym_perf_1.json").read_text())
    assert performance["test_add_kernel.json"]["ms"] == pytest.approx(1)
    lines = (passes / "kernel_gympassk.txt").read_text().splitlines()
    kinds = [f"{kind} Accuracy for k={k}: 100.0" for k in (1, 2) for kind in ("Call", "Exec")]
    assert lines == kinds
    (again,) = (played / "runs/again/results.jsonl").read_text().splitlines()
    assert json.loads(again)["evaluation"]["outcome"] == "passed"


@pytest.mark.sweep
@sequence("KernelBenchX", kernelbenchx)
def test_results_have_rates_and_the_corpus_becomes_chats(played):
    folder = played / "runs/gelu-results"
    (own,) = json.loads((folder / "metrics.json").read_text()).values()
    assert (own["file"], own["call_ok"], own["exe_ok"]) == ("Activation/gelu.py", True, True)
    rows = own["performance"]
    assert own["runtime_ms"] == pytest.approx(sum(row["ms"] for row in rows), abs=1e-4)
    for row in rows:  # the made-up counts: 8 bytes and 8 operations for each element
        assert row["GB/s"] == pytest.approx(1e3 * row["TFLOPS"])
    summary = json.loads((folder / "summary.json").read_text())
    assert (summary["method"], summary["total"], summary["exe_pass"]) == ("gelu-results", 1, 1)
    assert summary["avg_speedup"] == pytest.approx(own["speedup"], abs=1e-3)
    (read,) = read_results(folder / "metrics.json")
    assert (read.right, read.speedup) == (True, own["speedup"])
    (chat,) = [json.loads(line) for line in (played / "runs/pairs.jsonl").read_text().splitlines()]
    roles = [message["role"] for message in chat["messages"]]
    assert roles == ["user", "assistant", "user", "assistant"]
    assert "NameError: y" in chat["messages"][2]["content"]
    assert "gelu_kernel" in chat["messages"][3]["content"]


@sequence("AgentKernelArena", arena)
def test_a_run_is_a_folder_of_workspaces_with_reports(played):
    (place,) = (
        path
        for path in played.glob("AgentKernelArena/workspace_MI300_baseline/run_*")
        if not path.name.endswith("_heldout")
    )
    (result,) = read_arena_run(place)
    assert (result.name, result.right) == ("triton2triton/vllm/triton_rms_norm", True)
    (workspace,) = place.glob("triton2triton_vllm_triton_rms_norm_*")
    stated = yaml.safe_load((workspace / "task_result.yaml").read_text())
    assert stated["score"] == pytest.approx(220, abs=6)
    assert (workspace / "source/add.py").read_text() == suites.ADD
    assert (workspace / "config.yaml").is_file()
    with (place / "reports/overall_summary.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert row["Task Type"] == "triton2triton"
    assert float(row["Score"]) == pytest.approx(stated["score"], abs=1e-4)
    breakdown = json.loads((place / "reports/task_type_breakdown.json").read_text())
    assert breakdown["overall"]["total_score"] == pytest.approx(stated["score"])
    report = (place / "reports/overall_report.txt").read_text()
    assert re.search(r"^PASS +triton2triton/vllm/triton_rms_norm +Score: ", report, re.MULTILINE)
    summary = yaml.safe_load(
        (place.with_name(f"{place.name}_heldout") / "heldout_summary.yaml").read_text()
    )
    assert summary["quadrant_counts"]["both_pass"] == 1
    assert summary["generalization_gap"]["correctness_retention_pct"] == 100.0
