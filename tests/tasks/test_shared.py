"""Code that problems share is part of the content of each."""

from kernel_gym.tasks import get_problem


def test_shared_modules_and_base_classes_decide_a_problem():
    texts = "\n".join(get_problem("dropout").content())
    assert "class Dropout" in texts
    assert "def philox_words" in texts
    assert texts.count("def philox_words") == 1
    heir = "\n".join(get_problem("fp8_block_matmul_ocp").content())
    assert "class Fp8BlockMatmulOcp" in heir
    assert "class Fp8BlockMatmul(Problem)" in heir
    assert "class Problem(" not in heir
