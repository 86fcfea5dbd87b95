"""The microbenchmarks run on the simulator and meet their measurements."""

import pytest

from kernel_gym.sim.bench import microbenchmarks


@pytest.fixture(scope="module")
def micro():
    try:
        return microbenchmarks.Micro()
    except FileNotFoundError as error:
        pytest.skip(str(error))


def test_latency_of_a_pointer_chase_is_the_measured_one(micro):
    points = list(microbenchmarks.latency(micro))
    assert [p.name for p in points] == ["8 KiB", "512 KiB", "2048 KiB", "16384 KiB"]
    assert all(abs(p.error) < 0.15 for p in points), points


def test_a_summary_has_median_and_worst_error():
    points = [
        microbenchmarks.ComparedFigure("c", str(i), "us", 10.0, 10.0 + i, True) for i in range(3)
    ]
    assert microbenchmarks.summary(points) == {
        "c": {"points": 3, "median": pytest.approx(0.1), "worst": pytest.approx(0.2)}
    }
