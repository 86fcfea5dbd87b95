"""Retrying against learning, from two made runs."""

import pytest

from benchmarks import writer_retries
from benchmarks.renewal import entry_maker
from kernel_gym.analysis.metrics import attempts, by_task
from kernel_gym.storage.run_store import RunStore
from tests.report.test_leaderboard import played


@pytest.fixture
def right_and_wrong(tmp_path):
    runs = [played(tmp_path / name, name, speed) for name, speed in (("right", 2.0), ("wrong", 0))]
    return [by_task(attempts(RunStore(run))) for run in runs]


def test_more_samples_are_compared_with_one_of_the_trained_policy(right_and_wrong):
    right, wrong = right_and_wrong
    first, *_ = right
    half = {task: [*own, *right[task]] if task == first else own * 2 for task, own in wrong.items()}
    subject = writer_retries.figures(
        {"after SFT": half, "after GRPO": right}, entry_maker(writer_retries.SUBJECT)
    )
    figure = {entry.id.removeprefix("retries-"): float(entry.value) for entry in subject.entries}
    share = 1 / len(right)
    assert figure["sft-pass-1"] == pytest.approx(share / 2, abs=1e-3)
    assert figure["sft-pass-2"] == pytest.approx(share, abs=1e-3)
    assert figure["grpo-pass-1"] == 1.0
    assert figure["learning"] == pytest.approx(1 - share, abs=1e-3)
