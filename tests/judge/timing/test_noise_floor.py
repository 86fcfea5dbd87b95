"""The noise floor is measured again before a GPU is given up, and by the evaluator after that."""

from types import SimpleNamespace

import pytest

from kernel_gym.devices.base import InfraError
from kernel_gym.judge.timing import noise_floor as noise


@pytest.fixture
def device(tmp_path):
    return SimpleNamespace(
        description=SimpleNamespace(name="cuda:0"), noise_file=tmp_path / "state.json"
    )


@pytest.fixture
def measured(monkeypatch):
    """The results of the next measurements, in order."""
    values = []
    monkeypatch.setattr(noise, "measure_noise", lambda device, compare: values.pop(0))
    return values


def test_one_disturbed_measurement_does_not_condemn_a_gpu(device, measured):
    measured += [0.33, 0.004]
    assert noise.noise_floor(device, None) == 0.004
    assert noise.noise_floor(device, None) == 0.004  # for the others as well, unmeasured


def test_a_gpu_that_stays_noisy_is_not_scored_until_it_is_quiet(device, measured):
    measured += [0.33] * noise.NOISE.measurements + [0.005]
    with pytest.raises(InfraError, match="too noisy"):
        noise.noise_floor(device, None)
    assert noise.noise_floor(device, None) == 0.005
