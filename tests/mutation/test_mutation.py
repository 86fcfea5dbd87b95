"""Variants of exploits: equal by seed, the same in meaning, and a hole is found through them."""

import ast
import random
from pathlib import Path

import pytest

from kernel_gym.evaluator import Evaluator
from kernel_gym.executors import make_executor
from kernel_gym.exploits import Exploit, load_exploits, run, runs_on
from kernel_gym.mutation import honest_variants, variants
from kernel_gym.mutation.combine import combine
from kernel_gym.mutation.generate import PAID, apply, operators
from kernel_gym.mutation.hip import HIP
from kernel_gym.mutation.python import PYTHON
from kernel_gym.records import Outcome
from kernel_gym.tasks import get_task

DEVICE = "sim:gfx942"
SUITE = [e for e in load_exploits(Path(__file__).parents[1] / "exploits") if runs_on(e, DEVICE)]
SOFTMAX, HIP_SOFTMAX = get_task("triton2triton/softmax"), get_task("hip2hip/softmax")

HONEST = '''"""Every operator has something to do here."""
import torch
import triton
import triton.language as tl

WIDTH = 1024
LIMIT = 65536


def block_of(cols):
    return max(WIDTH, triton.next_power_of_2(cols))


def warps_of(block):
    return 16 if block > 8192 else 8


@triton.jit
def rows_kernel(x, out, x_stride, out_stride, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    value = tl.load(x + row * x_stride + at, mask=at < cols, other=-float("inf")).to(tl.float32)
    value = tl.exp(value - tl.max(value, axis=0))
    tl.store(out + row * out_stride + at, value / tl.sum(value, axis=0), mask=at < cols)


def softmax(x):
    rows, cols = x.shape
    if cols > LIMIT:
        raise ValueError("a row is too" + " long")
    out = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    block = block_of(cols)
    warps = warps_of(block)
    rows_kernel[(rows,)](x, out, x.stride(0), out.stride(0), cols, BLOCK=block, num_warps=warps)
    return out
'''


@pytest.fixture(scope="module")
def evaluator():
    with Evaluator(DEVICE) as opened:
        yield opened


def test_equal_seeds_give_equal_variants_and_others_give_others():
    first, again, other = (variants(SUITE[:20], 30, seed) for seed in (1, 1, 2))
    assert [(v.name, v.source) for v in first] == [(v.name, v.source) for v in again]
    assert len({v.source for v in first} & {v.source for v in other}) < 3
    assert len(first) == 30
    assert len({v.name for v in first}) == 30


def test_more_variants_begin_with_the_fewer():
    assert [v.source for v in variants(SUITE[:20], 10, 3)] == [
        v.source for v in variants(SUITE[:20], 20, 3)
    ][:10]


def test_every_variant_is_another_text_that_parses():
    own = {e.source for e in SUITE}
    for variant in variants(SUITE, 60, 0):
        assert variant.source not in own
        if variant.task.language == "triton":
            ast.parse(variant.source)


@pytest.mark.parametrize("name", PYTHON)
def test_an_operator_keeps_what_an_honest_kernel_does(evaluator, name):
    source = PYTHON[name](HONEST, "softmax", random.Random(5))
    assert source is not None
    assert ast.dump(ast.parse(source)) != ast.dump(ast.parse(HONEST))
    found = evaluator.evaluate(SOFTMAX, source, seed=0)
    assert found.outcome is Outcome.PASSED, (found.message, found.detail, source)
    assert found.speedup == evaluator.evaluate(SOFTMAX, HONEST, seed=0).speedup


@pytest.mark.parametrize("name", HIP)
def test_an_operator_on_hip_keeps_what_an_honest_kernel_does(evaluator, name):
    if "hip" not in evaluator.device.languages:
        pytest.skip("no HIP toolchain: see kernel-gym doctor")
    kernel = HIP_SOFTMAX.kernel_source
    helper = "__device__ int first_helper(int n) { return n + 16; }\n\n"
    other = "__device__ int second_helper(int n) { return n * 32; }\n\n"
    at = kernel.index("__global__")
    source = kernel[:at] + "\n\n" + helper + other + kernel[at:]
    changed = HIP[name](source, HIP_SOFTMAX.entry, random.Random(5))
    assert changed not in (None, source)
    found = evaluator.evaluate(HIP_SOFTMAX, changed, seed=0)
    assert found.outcome is Outcome.PASSED, (found.message, found.detail, changed)


def test_names_that_matter_elsewhere_keep_their_texts():
    source = (
        "import torch as t\nNAME = 1\nkept = 2\n"
        "class Box:\n    inside = 3\n"
        "def entry(x, *, option=0):\n    local = NAME\n    return vars()['kept'], option, local\n"
    )
    renamed = PYTHON["rename"](source, "entry", random.Random(0))
    assert all(
        word in renamed for word in ("entry", "kept", "inside", "option", "import torch as t")
    )


def test_two_exploits_in_one_run_both(tmp_path):
    first = "KEY = 1\ndef f(x):\n    if x < KEY:\n        raise ValueError\n    return 'first'\n"
    second = "KEY = 5\ndef f(x):\n    return KEY\n"
    answers = set()
    for number in range(20):
        space: dict = {}
        exec(combine(first, second, "f", random.Random(number)), space)
        answers |= {space["f"](2), space["f"](2)}
    assert answers == {"first", 5}
    assert combine("def f(x): return x", "f = len", "f", random.Random(0)) is None


def test_operators_leave_alone_what_does_not_parse():
    draw = random.Random(0)
    for source in ("def f(:", "x = " + "(" * 5000 + ")" * 5000, "\0"):
        assert [o(source, "f", draw) for o in PYTHON.values()] == [None] * len(PYTHON)
        assert combine(source, source, "f", draw) is None


def test_a_variant_of_what_is_paid_too_much_is_found():
    """A hole is planted: a seed known to everybody, as without a secret."""
    from kernel_gym.secret import PUBLIC

    (parent,) = (e for e in SUITE if e.name == "e09_answers_of_a_known_seed.py")
    children = variants([parent], 2, 0)
    with make_executor("local", device=DEVICE, workers=2, seed=0, secret=PUBLIC) as pool:
        findings = list(run(pool, children))
    assert [f.right for f in findings] == [False, False], [f.evaluation.message for f in findings]
    assert all(f.evaluation.speedup > PAID for f in findings)


def test_a_variant_may_fail_in_any_way_but_ours_and_pass_unpaid():
    (child,) = variants([e for e in SUITE if e.name == "c09_skip_the_tail.py"], 1, 0)
    assert isinstance(child, Exploit)
    from kernel_gym.records import Stage
    from tests.records import failure, passing

    assert child.blocked(passing(1.0, 1.04))
    assert not child.blocked(passing(1.0, 1.2))
    assert child.blocked(failure(Outcome.TIMEOUT, Stage.TRAIN))
    assert not child.blocked(failure(Outcome.INFRA, Stage.BUILD))


def test_variants_of_honest_kernels_have_their_operators_in_their_names():
    found = honest_variants([SOFTMAX, HIP_SOFTMAX], 4, 0)
    assert [v.task.id for v in found] == [SOFTMAX.id, HIP_SOFTMAX.id] * 2
    source, names = apply(SOFTMAX, SOFTMAX.kernel_source, random.Random("0/honest/0"))
    assert (found[0].source, found[0].name.rpartition(" ")[2]) == (source, "+".join(names))
    assert set(names) <= set(operators(SOFTMAX))
