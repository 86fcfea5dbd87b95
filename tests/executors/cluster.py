"""One small Ray cluster for all tests that need one: a head, and a node tagged `gfx942`."""

import os

import pytest

os.environ.setdefault("RAY_AUTH_MODE", "disabled")
os.environ.setdefault("RAY_DEDUP_LOGS", "0")


@pytest.fixture(scope="session")
def cluster():
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    store = 128 * 2**20
    head = {"num_cpus": 0, "resources": {"gfx90a": 2}, "object_store_memory": store}
    nodes = Cluster(initialize_head=True, head_node_args={**head, "include_dashboard": False})
    nodes.add_node(num_cpus=3, resources={"gfx942": 3}, object_store_memory=store)
    ray.init(address=nodes.address, log_to_driver=False)
    yield nodes
    ray.shutdown()
    nodes.shutdown()
