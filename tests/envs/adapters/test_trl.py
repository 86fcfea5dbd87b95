"""The environment under TRL's own trainer, with a policy whose replies are written here."""

import json
from functools import partial

import pytest

from kernel_gym.envs.adapters.trl import KernelTools
from kernel_gym.tasks import get_task

pytest.importorskip("trl")
pytestmark = pytest.mark.train

TASK = "triton2triton/softmax"
GOOD = get_task(TASK).start_source
WRONG = "def softmax(x):\n    return x\n"
FACTORY = partial(KernelTools, task=TASK, device="sim:gfx942", deterministic=True, max_turns=2)


def call(source):
    arguments = {"name": "submit_kernel", "arguments": {"source": source}}
    return f"<tool_call>\n{json.dumps(arguments)}\n</tool_call>"


REPLIES = [
    [call(GOOD), call(WRONG), "I give up.", "<tool_call>\n{broken"],
    ["Done.", call(GOOD)],
    [call(GOOD)],
    ["It says that it is over."],
]
"""One list a turn, of the rollouts that are still going."""


@pytest.fixture(scope="module")
def tokenizer():
    from trl.chat_template_utils import qwen2_5_chat_template

    from kernel_gym.training.tiny import make_tokenizer

    made = make_tokenizer([GOOD, WRONG, call(GOOD), call(WRONG)], vocabulary=1024)
    made.chat_template = qwen2_5_chat_template
    return made


@pytest.fixture
def model(tokenizer):
    """A tiny Llama that trains normally, but generates fixed replies."""
    import torch
    from transformers import LlamaForCausalLM

    from kernel_gym.training.config import PolicyModel
    from kernel_gym.training.tiny import make_model

    turns = iter(REPLIES)

    class Scripted(LlamaForCausalLM):
        def generate(self, input_ids, **_):
            texts = next(turns)
            assert len(input_ids) == len(texts)
            rows = [[*tokenizer(text)["input_ids"], tokenizer.eos_token_id] for text in texts]
            width = max(map(len, rows))
            padded = [row + [tokenizer.pad_token_id] * (width - len(row)) for row in rows]
            return torch.cat([input_ids, torch.tensor(padded)], dim=1)

    made = make_model(tokenizer, PolicyModel(hidden=16, layers=1, heads=1, context=16384), seed=0)
    made.__class__ = Scripted
    return made


def test_a_step_of_grpo_with_the_tool(model, tokenizer, tmp_path, monkeypatch):
    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    row = {"prompt": [{"role": "user", "content": ""}], "task": TASK}
    trainer = GRPOTrainer(
        model=model,
        processing_class=tokenizer,
        args=GRPOConfig(
            output_dir=str(tmp_path),
            max_steps=1,
            per_device_train_batch_size=4,
            num_generations=4,
            max_completion_length=6000,
            logging_steps=1,
            save_strategy="no",
            report_to="none",
            use_cpu=True,
            bf16=False,
            gradient_checkpointing=False,
            disable_tqdm=True,
        ),
        train_dataset=Dataset.from_list([row]),
        environment_factory=FACTORY,
    )
    trainer.train()
    rewards = [environment.get_reward() for environment in trainer.environments]
    turns = [len(environment._session.steps) for environment in trainer.environments]
    assert turns == [1, 2, 1, 1]
    assert rewards[0] == rewards[1] > 0.12
    assert rewards[2] == rewards[3] <= 0.05
    logged = next(entry for entry in trainer.state.log_history if "reward" in entry)
    assert logged["rewards/KernelTools/mean"] == pytest.approx(sum(rewards) / 4)
    assert logged["tools/call_frequency"] == 1.0
    assert logged["tools/failure_frequency"] == pytest.approx(1 / 4)
    assert logged["grad_norm"] > 0


def test_the_prompt_is_the_task_and_the_feedback_is_bounded():
    environment = partial(FACTORY, feedback_chars=100)()
    assert "softmax" in environment.reset(prompt="ignored", other=1)
    assert len(environment.submit_kernel(GOOD)) == 100


def test_a_group_plays_one_task():
    environment = KernelTools(task="quickstart", device="sim:gfx942")
    with pytest.raises(ValueError, match="column 'task'"):
        environment.reset()
    assert "softmax" in environment.reset(task=TASK)
    with pytest.raises(KeyError, match="triton2triton/softmax"):
        environment.reset(task="triton2triton/softmaxx")


def test_no_submissions_are_left_after_the_last():
    environment = FACTORY()
    with pytest.raises(ValueError, match="over"):
        environment.submit_kernel(GOOD)
    environment.reset()
    environment.submit_kernel("x(")
    environment.submit_kernel("x(")
    with pytest.raises(ValueError, match="over"):
        environment.submit_kernel("x(")
