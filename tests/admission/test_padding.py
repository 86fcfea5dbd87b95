"""A kernel that includes padding in a maximum is refused, in any order of distributions."""

from __future__ import annotations

import pytest

from kernel_gym.admission import check_values
from kernel_gym.evaluator import Evaluator
from kernel_gym.judge.expected import compare, expect
from kernel_gym.records import Outcome, Stage
from kernel_gym.tasks import Scale, adversarial_workloads, get_problem, get_task
from kernel_gym.tasks.controls.padding import padded_answers
from kernel_gym.tasks.problems import TASKS_PATH
from kernel_gym.tasks.registry import add_tasks_path
from kernel_gym.tasks.verdicts import FAILS

PROBLEM = '''
"""Row maxima of hardswish."""
import torch
from kernel_gym.tasks.distributions import draw
from kernel_gym.tasks.problem import Axis, Output, Problem, TensorArg, points

class HardswishRowmax(Problem):
    """`out[i] = max over j of x[i, j] * min(max(x[i, j] + 3, 0), 6) / 6`."""

    name = "NAME"
    summary = "the largest hardswish of each row of a matrix"
    category = "Reduce-and-scan"
    level = 1
    tags = ("memory-bound",)
    source = "a test"
    args = (TensorArg("x", torch.float32, shape="rows, cols"),)
    outputs = (Output("out", torch.float32, shape="rows"),)
    axes = (Axis("rows", 1, 1 << 20), Axis("cols", 1, 1 << 16))
    train = points("rows cols", full=[(4096, 1000), (999, 4096)], sim=[(64, 1000), (33, 2048)])
    production = points("rows cols", full=[(8192, 1280)], sim=[(48, 1280)])
    adversarial = ({"rows": 7, "cols": 1},)
    distributions = DISTRIBUTIONS

    def inputs(self, workload, generator):
        shape = (workload.dims["rows"], workload.dims["cols"])
        return {"x": draw(shape, torch.float32, workload.distribution, generator)}

    def oracle(self, x):
        return (torch.nn.functional.hardswish(x.double()).amax(1),)

    def reference(self, x):
        return (torch.nn.functional.hardswish(x).amax(1),)

    def flops(self, dims):
        return 5 * self.elements(dims)

PROBLEM = HardswishRowmax()
'''
KERNEL = """
import torch
import triton
import triton.language as tl

@triton.jit
def rowmax_kernel(x_ptr, out_ptr, x_stride, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    top = tl.full([BLOCK], float("-inf"), tl.float32)
    for start in range(0, cols, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * x_stride + at, mask=at < cols, other=0.0)
        y = x * tl.minimum(tl.maximum(x + 3.0, 0.0), 6.0) / 6.0
        top = tl.maximum(top, SELECTED)
    tl.store(out_ptr + row, tl.max(top, axis=0))

def NAME(x):
    rows, cols = x.shape
    out = torch.empty((rows,), dtype=x.dtype, device=x.device)
    rowmax_kernel[(rows,)](x, out, x.stride(0), cols, BLOCK=256)
    return out
"""
RIGHT, WRONG = 'tl.where(at < cols, y, float("-inf"))', "y"
ORDERS = {
    "rowmax_structured_last": ("normal", "heavy_tail", "large", "structured"),
    "rowmax_large_last": ("normal", "heavy_tail", "structured", "large"),
}
SEEDS = 20


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory):
    """The problem twice, with its distributions in another order."""
    root = tmp_path_factory.mktemp("padding")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(TASKS_PATH, "")
        for name, distributions in ORDERS.items():
            (root / name).mkdir()
            text = PROBLEM.replace("NAME", name).replace("DISTRIBUTIONS", repr(distributions))
            (root / name / "problem.py").write_text(text)
            kernel = KERNEL.replace("NAME", name).replace("SELECTED", RIGHT)
            (root / name / "baseline.py").write_text(kernel)
            # Six times x overflows.
            ranges = 'reach = 1e30\n[excluded]\nlargest = ["x"]\n'
            (root / name / "ranges.toml").write_text(ranges)
        add_tasks_path(root)
        yield root


@pytest.mark.parametrize("name", ORDERS)
def test_values_of_the_problem_are_sound_and_the_control_fails(name):
    report = check_values(get_problem(name), Scale.SIM, seed=0)
    assert report.refused == ()
    assert report.controls["padding takes part"] == FAILS


@pytest.mark.parametrize("name", ORDERS)
def test_padding_in_the_maximum_is_caught_whatever_the_seed(name):
    problem = get_problem(name)
    workloads = adversarial_workloads(problem, Scale.SIM, "hip")
    for seed in range(SEEDS):
        cases = [(w, expect(problem, w, 100 * seed + i)) for i, w in enumerate(workloads)]
        wrong = [
            (expected, padded_answers(problem, w.dims, expected.inputs).get("cols"))
            for w, expected in cases
        ]
        assert any(
            answers is not None and not compare(problem, expected, answers).passed
            for expected, answers in wrong
        ), seed


@pytest.mark.parametrize("seed", [0, 2])
@pytest.mark.parametrize("name", ORDERS)
def test_the_wrong_kernel_is_refused_in_both_orders(name, seed):
    task = get_task(f"triton2triton/{name}")
    wrong = KERNEL.replace("NAME", name).replace("SELECTED", WRONG)
    with Evaluator(device="sim:gfx942", seed=seed) as evaluator:
        evaluated = evaluator.evaluate(task, wrong)
        assert (evaluated.outcome, evaluated.stage) == (Outcome.WRONG_VALUES, Stage.ADVERSARIAL)
        if seed == 0:
            right = evaluator.evaluate(task, task.baseline_source)
            assert right.outcome is Outcome.PASSED, right.message


def test_the_control_does_not_apply_where_zeros_are_never_the_largest():
    problem = get_problem("rowmax_large_last")

    class Magnitudes(type(problem)):
        def oracle(self, x):
            return (x.double().abs().amax(1),)

        def reference(self, x):
            return (x.abs().amax(1),)

    controls = check_values(Magnitudes(), Scale.SIM, seed=0).controls
    assert controls["padding takes part"].startswith("does not apply")
