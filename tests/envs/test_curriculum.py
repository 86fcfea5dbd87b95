"""The sampler by head-room and success."""

import numpy as np
import pytest

from kernel_gym.envs.curriculum import RECENT, Curriculum

EASY, HARD, HALF = "triton2triton/softmax", "triton2triton/gelu", "triton2triton/layer_norm"


def test_what_can_be_learned_is_drawn_more_often():
    curriculum = Curriculum([EASY, HARD, HALF], room={EASY: 2.0, HARD: 2.0, HALF: 2.0})
    assert len(set(curriculum.probabilities.values())) == 1
    for number in range(RECENT):
        curriculum.record(EASY, True)
        curriculum.record(HARD, False)
        curriculum.record(HALF, number % 2 == 0)
    shares = curriculum.probabilities
    assert shares[EASY] == pytest.approx(shares[HARD])
    assert shares[HALF] > 5 * shares[EASY] > 0.0


def test_old_episodes_are_forgotten():
    curriculum = Curriculum([EASY, HARD], room={EASY: 1.0, HARD: 1.0})
    for _ in range(RECENT):
        curriculum.record(EASY, False)
    before = curriculum.probabilities[EASY]
    for _ in range(RECENT // 2):
        curriculum.record(EASY, True)
    assert curriculum.probabilities[EASY] > before


def test_head_room_counts():
    shares = Curriculum([EASY, HARD], room={EASY: 8.0, HARD: 1.0}).probabilities
    assert shares[EASY] > 2 * shares[HARD]
    drawn = {Curriculum([EASY, HARD]).draw(np.random.default_rng(n)) for n in range(20)}
    assert drawn == {EASY, HARD}


def test_no_task_is_told():
    with pytest.raises(ValueError, match="expected at least one"):
        Curriculum([])
    with pytest.raises(KeyError, match="did you mean"):
        Curriculum([f"{EASY}x"])
