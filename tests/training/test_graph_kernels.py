"""Templates for generated graphs: every structure is right, and differs from the others."""

import random

import pytest

from kernel_gym.executors import make_executor
from kernel_gym.records import Outcome
from kernel_gym.storage.secret import PUBLIC
from kernel_gym.tasks.generated.graphs import count, graph
from kernel_gym.training.graph_corpus import graph_of
from kernel_gym.training.graph_kernels import (
    KernelPlan,
    bound_plan,
    default_plan,
    draw_plan,
    kernel_source,
    writable,
)

NORM = "triton2triton/generated:seed=1778,depth=3"
"""layer_norm, mul_x, layer_norm."""
PLANS = (
    KernelPlan("whole", 0, 512),
    KernelPlan("persistent", 32, 1024, cuts=(2,)),
    KernelPlan("chunks", 256, 2, rows=2),
    KernelPlan("chunks", 1024, 4, cuts=(1, 2)),
)


@pytest.fixture(scope="module")
def executor():
    with make_executor("inline", device="sim:gfx942", seed=0, secret=PUBLIC) as executor:
        yield executor


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.structure)
def test_each_structure_is_right_on_all_shapes(executor, plan):
    result = executor.evaluate(NORM, kernel_source(graph_of(NORM), plan), 0)
    assert result.outcome is Outcome.PASSED, result.message


def test_a_bound_kernel_is_right_on_the_sizes_of_the_prompt_alone(executor):
    plan = bound_plan(graph_of(NORM), random.Random(0), 2000)
    assert plan.size == 2048
    result = executor.evaluate(NORM, kernel_source(graph_of(NORM), plan), 0)
    assert result.outcome is not Outcome.PASSED
    assert all(w.passed for w in result.workloads if w.dims["cols"] <= 2048)
    assert not any(w.passed for w in result.workloads if w.dims["cols"] > 2048)


def test_a_kernel_with_another_step_is_wrong(executor):
    """The judge tells a template from its neighbour."""
    source = kernel_source(graph_of(NORM), default_plan(graph_of(NORM)))
    broken = source.replace("h2 = h1 * h0", "h2 = h1 + h0")
    assert broken != source
    assert executor.evaluate(NORM, broken, 0).outcome is Outcome.WRONG_VALUES


@pytest.mark.sweep
def test_drawn_plans_of_drawn_graphs_are_right_but_for_wide_rows(executor):
    """Whole rows of more than 16,384 columns may need more LDS than there is."""
    rng, wrong = random.Random(0), []
    for _ in range(200):
        drawn = None
        while drawn is None or not writable(drawn):
            depth = rng.randint(2, 5)
            seed = rng.randrange(count(depth))
            drawn = graph(seed, depth)
        plan = draw_plan(drawn, rng)
        task = f"triton2triton/generated:seed={seed},depth={depth}"
        result = executor.evaluate(task, kernel_source(drawn, plan), 0)
        failed = [w for w in result.workloads if not w.passed]
        narrow = plan.structure == "chunks" or any(w.dims["cols"] <= 16384 for w in failed)
        wrong += [(task, plan, result.message)] * (bool(failed) and narrow)
    assert not wrong


def test_each_kernel_reads_what_its_steps_need_alone():
    source = kernel_source(graph_of(NORM), KernelPlan("whole", 0, 512, cuts=(2,)))
    second = source.split("def kernel3(")[1].split("def fused(")[0]
    assert "w3_ptr" in second
    assert "w1" not in second
    assert "x_ptr" not in second


def test_a_layout_step_reads_the_input_once():
    delay = next(
        g for n in range(count(2)) if (g := graph(n, 2)).steps[0].op.name == "delay" and writable(g)
    )
    assert "h0" not in kernel_source(delay, KernelPlan("whole", 0, 512))


def test_a_graph_with_a_product_has_no_template():
    product = next(g for n in range(count(2)) if not writable(g := graph(n, 2)))
    with pytest.raises(ValueError, match="no template for"):
        kernel_source(product, default_plan(product))
