"""Generated problems: each seed gives another graph, and each is a problem like any other."""

from __future__ import annotations

import hashlib
import inspect
import itertools
import pickle
from collections import Counter

import pytest
import torch

from kernel_gym.admission import check_values
from kernel_gym.admission.generated import refusals
from kernel_gym.evaluator import Evaluator
from kernel_gym.records import Outcome
from kernel_gym.storage.secret import PUBLIC
from kernel_gym.tasks import (
    Scale,
    UnknownName,
    get_problem,
    get_task,
    make_inputs,
    prompt,
    train_workloads,
    unseen_workloads,
)
from kernel_gym.tasks.formula import widened
from kernel_gym.tasks.generated import graphs
from kernel_gym.tasks.generated import kernels as graph_kernels
from kernel_gym.tasks.generated import problem as generated
from kernel_gym.tasks.generated.graphs import DEPTHS, FOLLOWERS, OPS, ChainRole, count, graph
from kernel_gym.tasks.generated.problem import generated_id, seeds

MANY = 10_000


def name_of(seed: int) -> str:
    """Returns the name of the problem of a seed, of one depth after the other."""
    return generated_id(seed, 3 + seed % 4)


@pytest.mark.parametrize("depth", DEPTHS)
def test_no_two_numbers_give_the_same_graph(depth):
    number = min(count(depth), MANY)
    texts = {graph(seed, depth).text for seed in range(number)}
    assert len(texts) == number >= 200
    assert all(len(text.split()) == depth + 1 for text in texts)


def test_deeper_graphs_are_many():
    assert count(4) >= MANY
    assert count(6) >= 100 * MANY


def test_graphs_mix_all_operators():
    steps = [step for seed in range(2000) for step in graph(seed, 4).steps]
    assert {step.op.name for step in steps} == {op.name for op in OPS}
    for before, after in itertools.pairwise(graph(5, 6).steps):
        assert before.width == after.width_in
        assert before.op.name != after.op.name


def test_operators_follow_each_other_as_in_models():
    graphs_of = [graph(seed, 6).steps for seed in range(2000)]
    for steps in graphs_of:
        roles = [step.op.role for step in steps]
        assert roles.count(ChainRole.PRODUCT) <= 2
        assert all(after in FOLLOWERS[before] for before, after in itertools.pairwise(roles))
        assert not any(before is after for before, after in itertools.pairwise(roles))
    chains = [" ".join(step.op.role for step in steps) for steps in graphs_of]
    for part in ("scale softmax product", "product bias activation", "residual norm"):
        assert any(part in chain for chain in chains), part


def test_a_norm_does_not_divide_out_a_factor_of_its_rows():
    for seed in range(3000):
        pending = False
        for step in graph(seed, 6).steps:
            assert not (pending and step.op.role is ChainRole.NORM)
            if step.op.role is ChainRole.ROW_FACTOR or (
                step.op.role is ChainRole.GATE and step.width_in == "1"
            ):
                pending = True
            elif step.op.role not in (ChainRole.PRODUCT, ChainRole.GATE, ChainRole.LAYOUT):
                pending = False


def test_splits_are_by_seed():
    train = set(itertools.islice(seeds("train"), 400))
    test = set(itertools.islice(seeds("test"), 100))
    assert train | test == set(range(500))
    assert not train & test
    with pytest.raises(ValueError, match="found 'dev', expected 'train' or 'test'"):
        next(seeds("dev"))


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("generated:sed=1,depth=3", r"expected generated:seed=<number>,depth=<2\.\.6>"),
        ("generated:seed=1,depth=7", "depth: found 7, expected 2 to 6"),
        ("generated:seed=99999999,depth=2", "seed: found 99999999, expected 0 to "),
        ("hip2hip/generated:seed=1,depth=3", "triton2triton/generated:seed=1,depth=3"),
        ("tritn2triton/generated:seed=1,depth=3", "unknown task"),
    ],
)
def test_a_name_that_is_none_says_what_one_is(name, hint):
    with pytest.raises(UnknownName, match=hint):
        get_task(name)


def test_ids_modes_and_pickles():
    task = get_task("generated:seed=7,depth=3")
    assert task.id == "triton2triton/generated:seed=7,depth=3"
    assert get_task(task.id) == task
    assert get_task("torch2triton/generated:seed=7,depth=3").baseline == "torch"
    copy = pickle.loads(pickle.dumps(task))
    assert copy == task
    assert copy.problem.summary == task.problem.summary
    assert task.problem != get_problem("generated:seed=8,depth=3")


@pytest.mark.parametrize("seed", range(40))
def test_a_generated_problem_is_a_problem_like_any_other(seed):
    problem = get_problem(name_of(seed))
    dims = problem.adversarial[0]
    for scale in Scale:
        points = [*problem.train[scale], *problem.production[scale]]
        assert all(problem.legal(point) for point in points)
        workloads = train_workloads(problem, scale)
        assert len({w.key for w in workloads}) == len(workloads) >= 4
        for drawn in range(20):
            unseen = unseen_workloads(problem, scale, "triton", drawn)
            assert all(problem.legal(w.dims) for w in unseen)
    small = min(problem.train[Scale.SIM], key=problem.elements)
    assert 10_000 <= problem.bytes(small) <= 8_000_000
    assert problem.flops(small) <= 150_000_000
    workload = train_workloads(problem, Scale.SIM)[0]
    workload = type(workload)(dims, workload.split, workload.kind)
    inputs = make_inputs(problem, workload, seed)
    assert list(inputs) == [arg.name for arg in problem.args]
    (exact,), (found,) = problem.oracle(**widened(inputs)), problem.reference(**inputs)
    assert tuple(found.shape) == problem.output_shapes(dims)["out"]
    assert (found.dtype, exact.dtype) == (problem.outputs[0].dtype, torch.float64)
    scope: dict = {}
    exec(problem.reference_source(), scope)
    assert torch.equal(scope["fused"](**inputs)[0], found)
    moved = sum(t.nbytes for t in (*inputs.values(), found))
    assert problem.bytes(dims) == moved


def test_the_prompt_shows_the_graph():
    task = get_task("generated:seed=5,depth=3")
    text = prompt(task, "some device")
    assert task.problem.summary in text
    assert "def fused(x: torch.Tensor" in text
    words = prompt(get_task("instruction2triton/generated:seed=1451,depth=6"), "some device")
    assert "- h2 = F.conv1d(F.pad(h1.T, (3, 0)), k2.T[:, None], groups=k2.shape[1]).T\n" in words
    assert "- h3 = F.silu(h2)\n- h4 = (h3.to(torch.bfloat16) @ f4.T)\n" in words
    assert "float()" not in words
    assert "@triton.jit" in text


REASONS = ("changes no output", "passes: ", "roundings off", "NaN", "ill-conditioned")


def judged(numbers) -> list[tuple[str, ...]]:
    """Returns the reasons why each seed is refused; none if it passes."""
    problems = (get_problem(name_of(seed)) for seed in numbers)
    return [check_values(problem, Scale.SIM, 0).refused for problem in problems]


def assert_known(refusals) -> None:
    assert all(any(word in reason for word in REASONS) for why in refusals for reason in why)


def test_samples_stand_or_are_refused_with_the_reason():
    reasons = judged(range(12))
    assert_known(reasons)
    assert sum(not why for why in reasons) >= 10


@pytest.mark.sweep
@pytest.mark.parametrize("hundred", range(10))
def test_a_thousand_stand_or_are_refused_with_the_reason(hundred):
    refusals = judged(range(100 * hundred, 100 * hundred + 100))
    assert_known(refusals)
    reasons = Counter(word for why in refusals for word in REASONS if word in " ".join(why))
    print(f"{sum(not why for why in refusals)} of 100 pass; the others by reason: {dict(reasons)}")
    assert sum(not why for why in refusals) >= 80


def representative() -> list[int]:
    """Returns the first seeds with graphs of depth 4 that together use all kinds of kernels."""
    wanted = {"linear", "softmax", "layer_norm", "take_rows", "row_max", "mul_x", "causal_conv"}
    chosen = []
    for seed in range(2000):
        names = {step.op.name for step in graph(seed, 4).steps}
        if len(names & wanted) >= 2 and not refusals(generated_id(seed, 4)):
            chosen.append(seed)
            wanted -= names
        if not wanted or len(chosen) == 3:
            return chosen
    return chosen


@pytest.fixture(scope="module")
def evaluator():
    with Evaluator(device="sim:gfx942", seed=0, secret=PUBLIC) as one:
        yield one


def test_start_kernels_pass_from_end_to_end(evaluator):
    chosen = representative()
    assert len(chosen) > 1
    for seed in chosen:
        task = get_task(generated_id(seed, 4))
        evaluation = evaluator.evaluate(task, task.kernel_source)
        assert evaluation.outcome is Outcome.PASSED, (task.problem.summary, evaluation.message)
        assert evaluation.speedup == pytest.approx(1, rel=0.02)  # gathers read other rows each time


def assert_right(evaluator, numbers) -> None:
    """Checks that start kernels pass, unless admission refuses the problem."""
    for seed in numbers:
        if not refusals(name_of(seed)):
            task = get_task(name_of(seed))
            evaluation = evaluator.evaluate(task, task.kernel_source)
            assert evaluation.outcome is Outcome.PASSED, (task.id, evaluation.message)


@pytest.mark.sweep
def test_start_kernels_of_a_sample_that_moves_with_the_generator_pass(evaluator):
    text = "".join(inspect.getsource(module) for module in (generated, graph_kernels, graphs))
    turn = int(hashlib.sha256(text.encode()).hexdigest(), 16) % 200
    assert_right(evaluator, range(turn, 1000, 200))


@pytest.mark.sweep
@pytest.mark.parametrize("hundred", range(10))
def test_the_start_kernels_of_a_thousand_pass(evaluator, hundred):
    assert_right(evaluator, range(100 * hundred, 100 * hundred + 100))
