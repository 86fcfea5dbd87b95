"""Ray: the same records, placement by architecture, and lost actors."""

import pytest

from kernel_gym.executors import make_executor
from kernel_gym.executors.on_ray import MAX_ACTORS_PER_GPU, RayExecutor, gpu_share
from kernel_gym.records import Outcome
from kernel_gym.tasks import get_task
from tests.executors.test_executors import SLEEPS, TASK

pytestmark = pytest.mark.ray
SIM = {"device": "sim:gfx942"}


@pytest.mark.parametrize("gpus", range(1, 10))
@pytest.mark.parametrize("workers", [1, 2, 5, 6, 7, 20, 24, 100])
def test_as_many_actors_as_must_share_a_gpu_fit_one_and_no_more(workers, gpus):
    share = round(1e4 * gpu_share(workers, gpus))  # Ray counts in ten thousandths
    wanted = min(MAX_ACTORS_PER_GPU, -(-workers // gpus))
    assert wanted * share <= 10_000 < (wanted + 1) * share


def test_before_a_cluster_has_gpus_they_will_be_shared_by_as_many_as_can_be():
    assert gpu_share(4, 0) == 1 / MAX_ACTORS_PER_GPU


def test_the_records_are_those_of_the_inline_executor(cluster):
    sources = ["x(", "import ctypes", get_task(TASK).start_source]
    with make_executor("inline", seed=3, **SIM) as inline:
        expected = [inline.evaluate(TASK, source).canonical() for source in sources]
    with make_executor("ray", workers=2, seed=3, arch="gfx942", **SIM) as executor:
        futures = [executor.submit(TASK, source) for source in sources]
        assert [future.result().canonical() for future in futures] == expected
        assert executor.submit(TASK, sources[0]).result() is futures[0].result()


def test_an_architecture_that_no_node_has_is_waited_for_until_the_deadline(cluster):
    with make_executor("ray", workers=1, seed=0, arch="gfx1100", deadline=1.0, **SIM) as executor:
        assert executor.evaluate(TASK, "x(").outcome is Outcome.INFRA


def test_a_lost_actor_costs_nothing_and_a_second_one_its_submission(cluster, recording):
    import ray

    with make_executor("inline", seed=0, **SIM) as inline:
        expected = inline.evaluate(TASK, "x(")
    with recording(RayExecutor)(workers=1, seed=0, **SIM) as executor:
        lost = executor.submit(TASK, "x(")
        ray.kill(executor.made.get().actor)
        assert lost.result().canonical() == expected.canonical()
        assert executor.replaced == 1
        lost = executor.submit(TASK, SLEEPS)
        ray.kill(executor.made.get().actor)  # the one made for the retry above
        again = executor.made.get().actor
        ray.get(again.__ray_ready__.remote())  # one that never started would be no loss
        ray.kill(again)
        assert lost.result().outcome is Outcome.INFRA
        assert "worker was lost" in lost.result().message
        assert executor.evaluate(TASK, "y(").outcome is Outcome.COMPILE_ERROR


@pytest.mark.sweep  # the time limit of the new actor holds its start, which is slow under load
def test_an_actor_that_overruns_is_replaced(cluster, recording):
    with recording(RayExecutor)(workers=1, seed=0, deadline=10.0, **SIM) as executor:
        assert executor.evaluate(TASK, "x(").outcome is Outcome.COMPILE_ERROR
        late = executor.submit(TASK, SLEEPS)
        after = executor.submit(TASK, "y(")
        assert late.result().outcome is Outcome.INFRA
        assert after.result().outcome is Outcome.COMPILE_ERROR
        assert executor.made.qsize() == 2


@pytest.mark.sweep
def test_a_lost_node_costs_nothing(cluster, recording):
    """Its evaluation runs on a node that replaces it."""
    import ray

    kernel = get_task(TASK).kernel_source
    with make_executor("inline", seed=0, **SIM) as inline:
        expected = inline.evaluate(TASK, "x(")
    options = {"num_cpus": 1, "resources": {"spare": 1}, "object_store_memory": 128 * 2**20}
    doomed = cluster.add_node(**options)
    with recording(RayExecutor)(workers=1, seed=0, arch="spare", **SIM) as executor:
        late = executor.submit(TASK, "import time\ntime.sleep(8)\n" + kernel)
        ray.get(executor.made.get().actor.__ray_ready__.remote())
        after = executor.submit(TASK, "x(")
        cluster.remove_node(doomed, allow_graceful=False)
        cluster.add_node(**options)
        assert late.result().outcome is Outcome.PASSED, late.result().message
        assert after.result().canonical() == expected.canonical()
        assert executor.replaced >= 1  # more where a new actor is placed before the loss is known
