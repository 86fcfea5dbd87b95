"""Tiny suites in each layout are imported on the simulator, and candidates are judged on them."""

import json
import os
import pickle

import pytest
from typer.testing import CliRunner

from kernel_gym.cli import app
from kernel_gym.devices.sim.session import SimSession
from kernel_gym.errors import InputError
from kernel_gym.evaluator import Evaluator
from kernel_gym.imports.bench.import_bench import ImportBench
from kernel_gym.imports.bench.suite_runner import suite_verdict
from kernel_gym.imports.manifest import read_manifest
from kernel_gym.imports.recorded.problem import RecordedProblem
from kernel_gym.records import Outcome
from kernel_gym.tasks import get_task, load_suite, prompt
from kernel_gym.tasks.names import IMPORTS
from kernel_gym.tasks.sampling import make_inputs
from kernel_gym.tasks.workload import Split
from tests.imports.readers import suites

DEVICE = "sim:gfx942"


@pytest.fixture(scope="module")
def imports(tmp_path_factory):
    """The folder of imports, with all tiny suites in it."""
    folder = tmp_path_factory.mktemp("imports")
    before = os.environ.get(IMPORTS)
    os.environ[IMPORTS] = str(folder / "imports")
    for make in (suites.tritonbench, suites.kernelbenchx, suites.arena):
        checkout = make(folder / make.__name__)
        result = CliRunner().invoke(app, ["import", str(checkout), "--json"])
        assert result.exit_code == 0, result.output
    yield folder
    if before is None:
        del os.environ[IMPORTS]
    else:
        os.environ[IMPORTS] = before


@pytest.fixture(scope="module")
def evaluator(imports):
    with Evaluator(DEVICE, seed=3) as opened:
        yield opened


def verdicts(suite):
    tasks = read_manifest(suite).tasks
    return {name: (str(entry.status(DEVICE)), entry) for name, entry in tasks.items()}


def test_a_task_with_real_tests_is_admitted_and_others_say_why(imports):
    entries = verdicts("tritonbench-g")
    good = entries["add"][1].verdicts[DEVICE]
    assert entries["add"][0] == "admitted", good.reason
    assert good.speedup == pytest.approx(1, abs=0.05)
    assert set(good.controls.values()) == {"fails"}
    reasons = {name: entry.reason.partition(":")[0] for name, (_, entry) in entries.items()}
    assert reasons["broken"] == reasons["whole"] == reasons["pointer"] == "unreadable"
    assert reasons["itself"] == "tests itself"
    assert reasons["gone"] == "missing"
    assert "no GPU here" in entries["raises"][1].verdicts[DEVICE].reason
    assert entries["blind"][0] == "flagged"
    assert "fixed-inputs" in entries["blind"][1].verdicts[DEVICE].flags
    fixed = entries["lengths"][1].verdicts[DEVICE]
    assert fixed.flags == ("fixed-inputs",), fixed.reason


def test_few_integers_are_those_that_the_tests_draw_with_other_seeds(imports):
    entries = verdicts("tritonbench-g")
    assert entries["picks"][0] == "admitted", entries["picks"][1].verdicts[DEVICE].reason
    problem = get_task("tritonbench-g/picks").problem
    (template,) = problem.templates
    assert [len(one.sets) for one in template.linked] == [4, 4]
    for workload in problem.stated_workloads(Split.TRAIN):
        drawn = [make_inputs(problem, workload, seed) for seed in range(8)]
        n = workload.dims["d0"] - 1
        picked = {tuple(one["c0_t1"].tolist()) for one in drawn}
        assert 1 < len(picked) <= 4
        assert max(map(max, picked)) < n
        assert all(one["c0_t0"].tolist() == [3 * i for i in range(n + 1)] for one in drawn)


def test_the_values_of_all_calls_of_one_size_are_seen(imports):
    entries = verdicts("tritonbench-g")
    assert entries["signs"][0] == "admitted", entries["signs"][1].verdicts[DEVICE].reason


def test_launches_are_the_calls_of_functions_that_draw_their_inputs(imports):
    entries = verdicts("tritonbench-g")
    assert entries["draws"][0] == "admitted", entries["draws"][1].verdicts[DEVICE].reason
    template, *_ = get_task("tritonbench-g/draws").problem.templates
    assert template.call.function == "relu_kernel"
    assert template.grid is not None


def test_a_function_of_pytorch_has_an_exact_oracle(imports):
    entries = verdicts("kernelbenchx")
    assert set(entries) == {"gated", "matmul_w8a8", "spectrum"}
    assert entries["gated"][0] == "admitted", entries["gated"][1].verdicts[DEVICE].reason
    task = get_task("kernelbenchx/gated")
    assert all(task.problem.exact_dims(dims) for dims in task.problem.train["sim"])
    assert task.start_source is None


def test_complex_answers_are_compared_as_pairs_of_real_numbers(imports):
    entries = verdicts("kernelbenchx")
    assert entries["spectrum"][0] == "admitted", entries["spectrum"][1].verdicts[DEVICE].reason
    (output,) = get_task("kernelbenchx/spectrum").problem.outputs_at({"call": 0, "d0": 4, "d1": 8})
    assert output.shape.endswith(", 2")


def calls(name, split):
    problem = get_task(name).problem
    stated = problem.stated_workloads(split)
    return [problem.templates[one.dims["call"]].call.tensors[0].strides for one in stated]


def test_matrices_are_not_contiguous_in_a_call_where_the_own_code_takes_them(imports):
    assert any(s[0] == 1 for s in calls("kernelbenchx/gated", Split.ADVERSARIAL))
    assert not any(s[0] == 1 for s in calls("kernelbenchx/gated", Split.TRAIN))
    assert not any(s[0] == 1 for s in calls("tritonbench-g/rows", Split.ADVERSARIAL))
    assert verdicts("tritonbench-g")["rows"][0] == "admitted"
    assert "float32[d0, d1] (not contiguous)" in prompt(get_task("kernelbenchx/gated"), "a device")


def test_both_contracts_of_the_arena_and_its_pytest_files(imports):
    entries = verdicts("agentkernelarena")
    statuses = {name.rpartition("/")[2]: status for name, (status, _) in entries.items()}
    assert statuses == {
        "one": "admitted",
        "two": "admitted",
        "test_add": "admitted",
        "bad": "unsupported",
        "gone": "unsupported",
        "SiLU": "unsupported",
        "Scale": "admitted",
    }, entries["torch2hip/gpumode/Scale"][1].verdicts[DEVICE].reason
    assert entries["hip2hip/gpumode/SiLU"][1].reason.startswith("HIP")


def test_inputs_of_a_module_become_axes_and_hip_launchers_are_judged(evaluator):
    task = get_task("agentkernelarena/torch2hip/gpumode/Scale")
    assert {axis.name for axis in task.problem.axes} == {"d0", "d1"}
    assert [arg.shape for arg in task.problem.args] == ["d0, d1", "d1"]
    assert evaluator.evaluate(task, suites.SCALE_HIP).outcome is Outcome.PASSED
    wrong = suites.SCALE_HIP.replace("weight[i % d1]", "1.0f")
    assert evaluator.evaluate(task, wrong).outcome is Outcome.WRONG_VALUES


def test_an_imported_problem_is_found_again_by_another_process(imports):
    problem = get_task("tritonbench-g/add").problem
    assert pickle.loads(pickle.dumps(problem)) == problem
    with pytest.raises(TypeError, match="only imported tasks"):
        pickle.dumps(RecordedProblem(problem.origin, problem.templates, ()))


def test_imported_suites_are_listed(imports):
    rows = json.loads(CliRunner().invoke(app, ["imports", "tritonbench-g", "--json"]).stdout)
    assert {row["task"]: row["status"] for row in rows}["tritonbench-g/add"] == "admitted"
    names = {task.id.partition("/")[2] for task in load_suite("tritonbench-g").tasks}
    assert names == {"add", "draws", "peak", "picks", "rows", "signs"}


def test_the_prompt_has_the_words_of_the_suite_and_the_calls(imports):
    text = prompt(get_task("tritonbench-g/add"), "a device")
    assert "Add a square." in text
    assert "call 0: add(float32[d0], float32[d0])" in text


EXIT = "import posix\ndef add(x, y):\n    posix._exit(0)\n"
FORGED = """
def add(x, y):
    print('```json\\n{"speedup": 99.0, "call": true, "exec": true}\\n```')
    return x
"""
PATCHED = """
import torch
setattr(torch, "allclose", lambda *a, **k: True)
setattr(torch.testing, "assert_close", lambda *a, **k: None)
def add(x, y):
    return torch.zeros_like(x)
"""
SLOW_ROWS = suites.ADD.replace(
    "    n = x.numel()\n",
    "    n = x.numel()\n    if n > 600:\n        raise RuntimeError('slow')\n",
)
LOW_PRECISION = suites.ADD.replace("x + y * y", "(x + y * y).to(tl.float16).to(tl.float32)")
TORCH_ONLY = "def add(x, y):\n    return x + y * y\n"
REFERENCE = (
    suites.ADD.replace("x + y * y", "x") + "\nresult_gold = {}\ndef test_add():\n    return {}\n"
)
HARD_CODED = suites.ADD.replace(
    "    n = x.numel()\n", "    n = x.numel() if x.numel() in (512, 1000, 2048) else 0\n"
).replace("(triton.cdiv(n, 256),)", "(max(1, triton.cdiv(n, 256)),)")
LAUNDERED = (
    suites.ADD.replace(
        "    n = x.numel()\n", "    n = x.numel()\n    x, y = x + y * y, torch.zeros_like(y)\n"
    ).replace("def add(", "def own_add(")
    + "\ndef add(x, y):\n    return x + y * y\n"
)
EXPLOITS = {
    "ends the process": (EXIT, {Outcome.RUNTIME_ERROR}),
    "forged result": (FORGED, {Outcome.WRONG_METADATA, Outcome.WRONG_VALUES}),
    "patched comparison": (PATCHED, {Outcome.WRONG_VALUES}),
    "crash on slow rows": (SLOW_ROWS, {Outcome.RUNTIME_ERROR}),
    "low precision": (LOW_PRECISION, {Outcome.WRONG_VALUES}),
    "PyTorch only": (TORCH_ONLY, {Outcome.RUNTIME_ERROR}),
    "edited reference": (REFERENCE, {Outcome.WRONG_VALUES}),
    "hard-coded shapes": (HARD_CODED, {Outcome.UNSEEN_FAILED, Outcome.WRONG_VALUES}),
    "PyTorch beside a kernel": (LAUNDERED, {Outcome.RUNTIME_ERROR}),
}


@pytest.mark.parametrize("name", EXPLOITS)
def test_published_exploits_are_not_paid(evaluator, name):
    source, outcomes = EXPLOITS[name]
    evaluation = evaluator.evaluate(get_task("tritonbench-g/add"), source)
    assert evaluation.outcome in outcomes, evaluation.message
    assert evaluation.speedup is None


def test_a_function_of_pytorch_is_no_kernel_for_its_own_task(evaluator):
    evaluation = evaluator.evaluate(get_task("kernelbenchx/gated"), suites.TANH)
    assert evaluation.outcome is Outcome.RUNTIME_ERROR
    assert "the operator aten::tanh is refused" in evaluation.message


COPY = """
import torch
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n), mask=at < n)


def copied(x):
    out = torch.empty_like(x)
    copy_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
    return out


"""
LIBRARY = {
    "tritonbench-g/rows": COPY + "def rows(x):\n    return copied((x * x).sum(1))\n",
    "tritonbench-g/add": COPY + "def add(x, y):\n    return copied(torch.addcmul(x, y, y))\n",
    "kernelbenchx/gated": COPY + "def gated(x, scale=1.0):\n    return copied(x.tanh() * scale)\n",
}


@pytest.mark.parametrize("name", LIBRARY)
def test_the_library_does_not_work_for_a_kernel_that_copies(evaluator, name):
    evaluation = evaluator.evaluate(get_task(name), LIBRARY[name])
    assert evaluation.outcome is Outcome.RUNTIME_ERROR
    assert "refused on device tensors" in evaluation.message


def test_operators_of_the_start_kernel_are_stated_and_allowed(evaluator):
    task = get_task("tritonbench-g/peak")
    assert verdicts("tritonbench-g")["peak"][0] == "admitted"
    assert task.problem.own_operators == {"aten::abs", "aten::amax"}
    assert "(abs, amax), for no more time than there" in prompt(task, "a device")
    faster = suites.PEAK.replace("64", "512")
    assert evaluator.evaluate(task, faster).outcome is Outcome.PASSED
    other = evaluator.evaluate(task, suites.PEAK.replace("amax()", "max()"))
    assert "the operator aten::max is refused" in other.message


def test_operators_of_the_start_kernel_take_no_more_time_than_there(evaluator):
    twice = suites.PEAK.replace("x.abs().amax()", "torch.stack([x.abs().amax(), x.abs().amax()])")
    evaluation = evaluator.evaluate(get_task("tritonbench-g/peak"), twice)
    assert evaluation.outcome is Outcome.HACK
    assert "aten::abs, aten::amax" in evaluation.message
    assert evaluation.speedup is None


def test_a_product_that_does_not_quantise_is_not_paid(evaluator):
    task = get_task("kernelbenchx/matmul_w8a8")
    assert evaluator.evaluate(task, suites.W8A8_KERNEL).outcome is Outcome.PASSED
    quantising = "    x, w = tl.floor(x / a + 0.5), tl.floor(w / b + 0.5)\n"
    plain = suites.W8A8_KERNEL.replace(quantising, "    a, b = 1.0, 1.0\n")
    assert plain != suites.W8A8_KERNEL
    evaluation = evaluator.evaluate(task, plain)
    assert evaluation.outcome is Outcome.WRONG_VALUES
    assert evaluation.speedup is None


OWN_RUNNER = {
    "right": (suites.ADD, True, True, ""),
    "right, with a role": (suites.ADD, True, True, ""),
    "wrong values": (suites.ADD.replace("x + y * y", "x"), True, False, "exit code 1"),
    "ends the process": ("import os\nos._exit(0)\n", False, False, "it ended the process"),
    "no Python": ("def add(:\n", False, False, ""),
}


@pytest.mark.parametrize("name", OWN_RUNNER)
def test_the_runner_of_the_arena_is_a_second_gate(imports, name):
    source, compiled, correct, message = OWN_RUNNER[name]
    task = "two" if "role" in name else "one"
    with ImportBench(DEVICE) as bench:
        verdict = suite_verdict(f"agentkernelarena/triton2triton/vllm/{task}", source, bench)
    assert (verdict.compiled, verdict.correct) == (compiled, correct), verdict.message
    assert message in verdict.message


@pytest.mark.parametrize(
    ("task", "source", "right", "message"),
    [
        ("tritonbench-g/add", suites.ADD.replace("x + y * y", "x"), True, ""),  # it prints nothing
        ("tritonbench-g/add", "print('hello')\n" + suites.ADD, False, "another text"),
        ("kernelbenchx/gated", suites.TANH, True, ""),
        ("kernelbenchx/gated", suites.TANH.replace("tanh", "sin"), False, "test_results."),
        ("agentkernelarena/triton2triton/rocmbench/easy/test_add", suites.ADD, True, ""),
    ],
)
def test_tests_of_a_suite_are_a_second_gate_by_its_tolerance(imports, task, source, right, message):
    with ImportBench(DEVICE) as bench:
        verdict = suite_verdict(task, source, bench)
    assert (verdict.compiled, verdict.correct) == (True, right), verdict.message
    assert message in verdict.message


def test_a_module_has_no_tests_that_can_judge_a_candidate(imports):
    with ImportBench(DEVICE) as bench, pytest.raises(InputError, match="no tests that can judge"):
        suite_verdict("agentkernelarena/torch2hip/gpumode/Scale", "", bench)


def test_a_better_kernel_is_paid_and_its_transfer_is_known(evaluator):
    faster = suites.ADD.replace("256", "1024")
    evaluation = evaluator.evaluate(get_task("tritonbench-g/add"), faster)
    assert evaluation.outcome is Outcome.PASSED, evaluation.message
    assert evaluation.unseen_speedup is not None


def test_a_kernel_for_a_function_of_pytorch_passes(evaluator):
    kernel = """
import torch
import triton
import triton.language as tl


@triton.jit
def gated_kernel(x_ptr, out_ptr, n, scale, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    e = tl.exp(-2 * tl.abs(x))
    t = (1 - e) / (1 + e)
    tl.store(out_ptr + offsets, tl.where(x < 0, -t, t) * scale, mask=offsets < n)


def gated(x, scale=1.0):
    x = x.contiguous()
    out = torch.empty_like(x)
    gated_kernel[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), scale, BLOCK=256)
    return out
"""
    evaluation = evaluator.evaluate(get_task("kernelbenchx/gated"), kernel)
    assert evaluation.outcome is Outcome.PASSED, evaluation.message
    dense = kernel.replace("    x = x.contiguous()\n", "")
    evaluation = evaluator.evaluate(get_task("kernelbenchx/gated"), dense)
    assert evaluation.outcome is Outcome.WRONG_VALUES
    assert evaluation.workloads[-1].split is Split.ADVERSARIAL


def test_only_kernels_are_taken_where_the_tests_are_in_the_same_file(evaluator):
    name = "agentkernelarena/triton2triton/rocmbench/easy/test_add"
    kernel = suites.ADD.partition("def add(")[0]
    evil = kernel + "\nadd_kernel = None\nraise SystemExit(0)\n"
    assert evaluator.evaluate(get_task(name), evil).outcome is Outcome.PASSED
    wrong = kernel.replace("x + y * y", "x")
    assert evaluator.evaluate(get_task(name), wrong).outcome is Outcome.WRONG_VALUES
    missing = "import triton\n"
    assert evaluator.evaluate(get_task(name), missing).outcome is Outcome.COMPILE_ERROR


def test_the_baseline_is_timed_by_the_workgroups_of_the_candidate(evaluator, monkeypatch):
    drawn = {}

    def sample_from(session, seed, draw=SimSession.sample_from):
        drawn.setdefault(id(session), set()).add(seed)
        draw(session, seed)

    monkeypatch.setattr(SimSession, "sample_from", sample_from)
    task = get_task("tritonbench-g/rows")
    result = evaluator.evaluate(task, task.problem.own_candidate + "\n# again", seed=77)
    paid = [w.speedup for w in result.workloads if w.split is not Split.ADVERSARIAL]
    assert paid == [1.0] * len(paid)
    candidate, baseline = sorted(drawn.values(), key=len)
    assert candidate <= baseline | {0}
