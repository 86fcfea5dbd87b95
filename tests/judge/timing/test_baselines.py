"""The cache of baseline times: bounded, and the least used time goes first."""

from kernel_gym.judge.timing.baselines import BaselineTimes


def key(number):
    return ("sim:gfx942", "triton2triton/softmax", f"rows={number}")


def test_the_cache_of_times_is_bounded():
    times = BaselineTimes(capacity=2)
    times.put(key(0), 0.5)
    times.put(key(1), 1.5)
    assert times.get(key(0)) == 0.5
    times.put(key(2), 2.5)
    assert [times.get(key(number)) for number in range(3)] == [0.5, None, 2.5]
