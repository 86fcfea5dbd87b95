"""Supervised fine-tuning on pairs of graphs: an interrupted run ends like one without a break."""

import os
import signal

import pytest

from kernel_gym.episodes.conversation import graph_prompt
from kernel_gym.training.config import make_config
from kernel_gym.training.graph_corpus import draw_pairs
from kernel_gym.training.journal import Journal

pytest.importorskip("trl")
pytestmark = pytest.mark.train


class Interrupted(Journal):
    """A journal that interrupts this process after the second step, in the third."""

    def log(self, phase, step, values, progress=""):
        super().log(phase, step, values, progress)
        if step == 2:
            os.kill(os.getpid(), signal.SIGTERM)


@pytest.fixture(scope="module")
def rows():
    return draw_pairs(24, 2, 0, graph_prompt("sim:gfx942"))


def train(folder, rows, journal):
    from kernel_gym.training.sft import sft
    from kernel_gym.training.tiny import make_model, make_tokenizer

    config = make_config(
        {
            "out": str(folder),
            "tasks": {"train": ["triton2triton/generated:seed=69,depth=2"], "held_out": []},
            "gym": {"prompt": "graph"},
            "corpus": {"pairs": 24},
            "model": {"hidden": 16, "layers": 1, "heads": 1, "tokens": "clauses"},
            "sft": {"steps": 4, "batch": 4, "save_every": 100},
        }
    )
    folder.mkdir(exist_ok=True)
    texts = [text for row in rows for text in (row.prompt, row.source)]
    tokenizer = make_tokenizer(texts, 512, "clauses")
    model = make_model(tokenizer, config.model, 0)
    prompt = graph_prompt("sim:gfx942")
    return sft(config, model, tokenizer, rows, prompt, folder / "sft", journal(folder))


def test_labels_are_those_of_trl(rows):
    from datasets import Dataset
    from trl import SFTConfig, SFTTrainer

    from kernel_gym.training.config import PolicyModel
    from kernel_gym.training.sft import encoded
    from kernel_gym.training.tiny import make_model, make_tokenizer

    texts = [(row.prompt, row.source) for row in rows]
    tokenizer = make_tokenizer([text for pair in texts for text in pair], 512, "clauses")
    sides = ("prompt", "user"), ("completion", "assistant")
    chats = [
        {
            side: [{"role": role, "content": text}]
            for (side, role), text in zip(sides, pair, strict=True)
        }
        for pair in texts
    ]
    for context in (768, 100):
        trainer = SFTTrainer(
            model=make_model(tokenizer, PolicyModel(hidden=16, layers=1, heads=1), 0),
            args=SFTConfig(max_length=context, use_cpu=True, bf16=False, report_to="none"),
            train_dataset=Dataset.from_list(chats),
            processing_class=tokenizer,
        )
        made = encoded(tokenizer, texts, context)
        for name, values in made.items():
            assert trainer.train_dataset[name][:] == values


def test_an_interrupted_run_ends_with_the_same_weights(tmp_path, rows):
    import torch

    straight = train(tmp_path / "a", rows, Journal).state_dict()
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "b", rows, Interrupted)
    assert (tmp_path / "b" / "sft" / "checkpoint-3").is_dir()
    resumed = train(tmp_path / "b", rows, Journal).state_dict()
    assert all(torch.equal(resumed[name], value) for name, value in straight.items())
