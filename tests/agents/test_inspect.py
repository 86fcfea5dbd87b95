"""The task for inspect_ai, played by a model that answers by script."""

import pytest

pytest.importorskip("inspect_ai", reason="needs the extra inspect")

import inspect_ai
from inspect_ai.model import ModelOutput, ModelUsage, get_model

from kernel_gym.agents.inspect_ai import kernel_gym
from kernel_gym.tasks import get_task
from tests.agents.conftest import DEVICE, TASK

GOOD = get_task(TASK).start_source


def output(text):
    """An output with its usage: otherwise inspect_ai downloads a tokenizer to count it."""
    made = ModelOutput.from_content("mockllm/model", text)
    made.usage = ModelUsage(input_tokens=10, output_tokens=5, total_tokens=15)
    return made


@pytest.mark.slow
@pytest.mark.parametrize(
    ("replies", "score", "outcome"),
    [
        (["x(", f"```python\n{GOOD}\n```"], 0.15, "passed"),
        ([f"```python\n{GOOD}\n```", "x("], 0.15, "passed"),
        (["x(", "y("], 0.0, "compile_error"),
    ],
)
def test_a_scripted_model_earns_its_reward(tmp_path, replies, score, outcome):
    model = get_model(
        "mockllm/model",
        custom_outputs=[output(text) for text in replies],
    )
    (log,) = inspect_ai.eval(
        kernel_gym(suite=TASK, device=DEVICE, turns=2),
        model=model,
        log_dir=str(tmp_path),
        display="none",
    )
    assert log.status == "success", log.error
    (sample,) = log.samples
    (result,) = sample.scores.values()
    assert result.value == pytest.approx(score, abs=0.01)
    assert result.metadata["outcome"] == outcome
    assert "Operation" in sample.messages[0].text
    assert any("Does not compile" in message.text for message in sample.messages) == (
        replies[0] == "x("
    )
