"""The interval of a mean log ratio, and the noise floor."""

import pytest

from kernel_gym.judge.timing.log_ratios import LogRatioInterval, interval, quantile_of_noise


def test_one_hiccup_does_not_decide():
    calm = interval([0.01, 0.011, 0.009, 0.01, 0.012, 0.008])
    shaken = interval([0.01, 0.011, 0.009, 0.01, 0.012, 1.1])
    assert abs(shaken.mean - calm.mean) < 0.002
    assert shaken.half < 0.02


def test_the_noise_floor_is_a_high_quantile_of_both_signs():
    assert quantile_of_noise({"a": [0.001] * 50, "b": [-0.02] * 50}) == pytest.approx(0.02)


@pytest.mark.parametrize(
    ("mean", "half", "settled"),
    [
        (0.0, 0.009, True),
        (0.0, 0.011, False),
        (1.4, 0.027, True),
        (1.4, 0.029, False),
        (2.4, 0.05, True),  # above ten times the baseline, of which nothing is paid
        (2.4, 0.15, False),
    ],
)
def test_an_interval_is_settled_when_it_is_narrow_or_beyond_pay(mean, half, settled):
    assert LogRatioInterval(mean, half).settled is settled
    assert LogRatioInterval(-mean, half).settled is settled
