"""Which workloads GRPO pays for: kernels that fit the sizes of the prompt alone, and the draws."""

import pytest

from kernel_gym.executors import make_executor
from kernel_gym.records import Outcome, Stage
from kernel_gym.rewards import get_reward
from kernel_gym.storage.secret import RunSecret
from kernel_gym.tasks.workload import Split
from kernel_gym.training.graph_corpus import graph_of
from kernel_gym.training.graph_kernels import KernelPlan, default_plan, kernel_source
from kernel_gym.training.paid_workloads import ShownWorkloads, paying
from kernel_gym.training.scoring import Scorer
from tests.records import failure, passing

TASK = "triton2triton/generated:seed=69,depth=2"
GRAPH = graph_of(TASK)
BOUND = kernel_source(GRAPH, KernelPlan("bound", 2048, 8))
WHOLE = kernel_source(GRAPH, KernelPlan("whole", 0, 256))


@pytest.fixture(scope="module")
def scorer(tmp_path_factory):
    secret = RunSecret(bytes(32))
    with make_executor("inline", device="sim:gfx942", seed=0, secret=secret) as executor:
        yield Scorer(executor, get_reward(), tmp_path_factory.mktemp("run"))


def test_a_kernel_of_the_shown_sizes_is_paid_where_unseen_workloads_are_not(scorer):
    batch = [(TASK, BOUND), (TASK, WHOLE), (TASK, "def fused(")]
    normal = scorer(batch, draw="step 1")
    assert normal[0].evaluation.outcome is not Outcome.PASSED
    assert normal[0].evaluation.stage in (Stage.ADVERSARIAL, Stage.UNSEEN)
    assert normal[0].reward < 0.11 < normal[1].reward
    shown = paying(scorer, "unpaid", [TASK])(batch, draw="step 1")
    assert shown[0].reward > 0.11
    assert shown[2].reward == normal[2].reward == 0.02
    assert [s.evaluation for s in shown] == [s.evaluation for s in normal]
    assert [s.reward for s in scorer(batch, draw="step 1")] == [s.reward for s in normal]


def test_the_speed_on_shown_workloads_is_the_one_that_is_measured(scorer):
    (scored,) = scorer([(TASK, WHOLE)], draw="step 1")
    shown = paying(scorer, "unpaid", [TASK]).reward.shown(scored.evaluation)
    assert shown.speedup == pytest.approx(scored.evaluation.speedup)
    assert shown.unseen_speedup_low == shown.speedup
    assert {w.split for w in shown.workloads} == {"train"}


@pytest.mark.parametrize(
    "record",
    [
        failure(Outcome.WRONG_VALUES, Stage.TRAIN),
        failure(Outcome.HACK, Stage.UNSEEN),
        failure(Outcome.INVALID_TIMING, Stage.TIME),
        failure(Outcome.INFRA, Stage.UNSEEN),
    ],
    ids=lambda record: str(record.outcome),
)
def test_other_records_stay_as_they_are(record):
    reward = ShownWorkloads(get_reward(), {record.task: (1.0,)})
    assert reward.shown(record) is record


def test_speed_on_unseen_workloads_does_not_count():
    fast, slow = (passing(3.0, unseen) for unseen in (3.0, 0.5))
    times = tuple(w.baseline_seconds for w in fast.by_split(Split.TRAIN))
    reward = ShownWorkloads(get_reward(), {fast.task: times})
    assert reward(fast).value == reward(slow).value == get_reward()(fast).value


@pytest.mark.parametrize(("unseen", "draws"), [("each_step", 2), ("once", 1)])
def test_unseen_workloads_are_drawn_each_step_or_once(scorer, unseen, draws):
    paid = paying(scorer, unseen, [TASK])
    batch = [(TASK, kernel_source(GRAPH, default_plan(GRAPH)))]
    seeds = {paid(batch, draw=f"step {step}")[0].evaluation.seed for step in (1, 2)}
    assert len(seeds) == draws


def test_a_task_without_a_baseline_is_refused(scorer):
    with pytest.raises(ValueError, match="no baseline of"):
        paying(scorer, "unpaid", ["instruction2triton/softmax"])
