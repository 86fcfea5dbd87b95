"""GRPO through TRL, with rewards from the gym.

With one turn per episode, TRL generates the replies and the reward function evaluates the whole
batch in parallel. With several turns, :mod:`kernel_gym.training.turns` plays the episodes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from kernel_gym.episodes.conversation import LaunchPrompt, Prompt
from kernel_gym.episodes.edits import submission, varied_starts
from kernel_gym.episodes.episode import Episode
from kernel_gym.tasks import Task, get_task
from kernel_gym.training.config import Grpo, TrainConfig
from kernel_gym.training.journal import Journal, gym_metrics
from kernel_gym.training.scoring import Scorer
from kernel_gym.training.sft import lora, machine, quiet
from kernel_gym.training.stopping import Stopping
from kernel_gym.training.turns import Episodes, step_draw

if TYPE_CHECKING:
    from transformers import (
        PreTrainedModel,
        PreTrainedTokenizerBase,
        TrainerCallback,
        TrainerControl,
        TrainerState,
        TrainingArguments,
    )
    from trl import GRPOConfig


Completion = str | Sequence[Mapping[str, str]]
"""A reply as TRL passes it: a text, or a chat of messages."""


class GymReward:
    """The reward function of a trainer: evaluates and scores a batch of completions.

    Evaluation never raises, and rewards are finite. If the machine or the gym fails, the reward is
    None, which TRL ignores. Each step draws new unseen workloads and data, the same for all samples
    of a task.

    Args:
        scorer: Evaluates and scores submissions.
    """

    __name__ = "gym"

    def __init__(self, scorer: Scorer) -> None:
        self.scorer = scorer

    def __call__(
        self,
        completions: Sequence[Completion],
        task: Sequence[str],
        start: Sequence[str] | None = None,
        log_metric: Callable[[str, float], None] | None = None,
        credit: Sequence[float | None] | None = None,
        trainer_state: TrainerState | None = None,
        **_: object,
    ) -> list[float | None]:
        """One reward for each completion; `credit` has those of episodes played by `Episodes`.

        Raises:
            ValueError: Neither `credit` nor the trainer's state is given, so the step is unknown.
        """
        if credit is not None:
            return list(credit)
        episodes = [
            Episode(get_task(name), start=source)
            for name, source in zip(task, start or [""] * len(task), strict=True)
        ]
        return self._score(completions, episodes, step_draw(trainer_state), log_metric)

    def _score(
        self,
        completions: Sequence[Completion],
        episodes: Sequence[Episode],
        draw: str,
        log_metric: Callable[[str, float], None] | None,
    ) -> list[float | None]:
        texts = [c if isinstance(c, str) else str(c[0]["content"]) for c in completions]
        batch = [
            (episode.task.id, submission(episode, text))
            for episode, text in zip(episodes, texts, strict=True)
        ]
        scored = self.scorer(batch, draw=draw)
        if log_metric is not None:
            for name, value in {**gym_metrics(scored), "gym/busy": self.scorer.busy}.items():
                log_metric(name, value)
        return [s.reward for s in scored]


def grpo(
    config: TrainConfig,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    scorer: Scorer,
    prompt: Prompt,
    folder: Path,
    journal: Journal,
    on_save: Callable[[PreTrainedModel, Path, int, bool], object],
) -> PreTrainedModel:
    """Trains on the gym's rewards; continues from the last checkpoint in the folder, if any.

    SIGINT or SIGTERM ends the training with a checkpoint after the current step.

    Args:
        config: The configuration of the run.
        model: A causal language model, or the path of its checkpoint.
        tokenizer: Its tokenizer, with a chat template.
        scorer: Evaluates and scores submissions.
        prompt: Writes the prompts.
        folder: The folder for checkpoints: weights, optimizer, random generators and trainer state.
        journal: Receives metrics.
        on_save: Called at each checkpoint with the model, the folder, the step, and whether it is
            the last one.

    Returns:
        The trained model.

    Raises:
        KeyboardInterrupt: A signal ended the training, and a checkpoint has been saved.
    """
    import os

    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
    from datasets import Dataset
    from transformers.trainer_utils import get_last_checkpoint
    from trl import GRPOTrainer

    options, stopping = config.grpo, Stopping(journal.console)
    rows = dataset_rows(config.tasks.train, prompt, options)
    episodes = Episodes(options, rows, scorer) if options.turns > 1 else None
    trainer = GRPOTrainer(
        model=model,
        processing_class=tokenizer,
        reward_funcs=GymReward(scorer),
        args=_arguments(config, folder),
        train_dataset=Dataset.from_list(rows),
        rollout_func=episodes,
        peft_config=lora(config),
        callbacks=[journal.callback("grpo"), stopping.callback(), _saving(on_save, folder)],
    )
    quiet(trainer)
    last = get_last_checkpoint(str(folder)) if folder.is_dir() else None
    journal.rewind(int(last.rpartition("-")[2]) if last else 0)
    with stopping.listening():
        trainer.train(resume_from_checkpoint=last)
    return cast("PreTrainedModel", trainer.model)


def dataset_rows(tasks: Sequence[str], prompt: Prompt, options: Grpo) -> list[dict[str, object]]:
    """The prompts, each with the same frequency, for a whole number of steps.

    Args:
        tasks: Task ids.
        prompt: Writes the prompts.
        options: The number of prompts in a step, and the sources that episodes start from.

    Returns:
        Rows of a trainer's dataset; edits apply to their `start`.

    Raises:
        ValueError: A task has no launch whose block size can be varied.
    """
    rows: list[dict[str, object]] = []
    for name in tasks:
        for start, text in _starts(get_task(name), prompt, options):
            content = [{"role": "user", "content": text}]
            rows.append({"prompt": content, "task": name, "start": start})
    return rows * (math.lcm(len(rows), options.prompts) // len(rows))


def _starts(task: Task, prompt: Prompt, options: Grpo) -> list[tuple[str, str]]:
    """The sources that episodes of a task start from, each with its prompt."""
    if options.starts == "given" or not isinstance(prompt, LaunchPrompt):
        return [(task.start_source or "", prompt(task))]
    starts = varied_starts(task.start_source or "", prompt.space)
    if not starts:
        raise ValueError(
            f"task {task.id!r} has no launch with BLOCK=NUMBER to vary: set grpo.starts = 'given'"
        )
    return [(start, prompt.of(task, start)) for start in starts]


def _arguments(config: TrainConfig, folder: Path) -> GRPOConfig:
    from trl import GRPOConfig

    options = config.grpo
    return GRPOConfig(
        output_dir=str(folder),
        max_steps=options.steps,
        per_device_train_batch_size=options.prompts * options.generations,
        num_generations=options.generations,
        max_completion_length=options.max_tokens,
        learning_rate=options.learning_rate,
        lr_scheduler_type="constant",
        temperature=options.temperature,
        beta=options.beta,
        scale_rewards=options.scale,
        logging_steps=1,
        save_steps=options.save_every,
        seed=config.seed,
        **_vllm(options),
        **machine(),
    )


def _vllm(options: Grpo) -> dict[str, Any]:
    """The arguments for vLLM, which is not a dependency of this package."""
    return {} if options.vllm == "off" else {"use_vllm": True, "vllm_mode": options.vllm}


def _saving(
    on_save: Callable[[PreTrainedModel, Path, int, bool], object], folder: Path
) -> TrainerCallback:
    """A callback that calls `on_save` at each checkpoint and keeps the trainer's random state."""
    import torch
    from transformers import TrainerCallback

    class Saving(TrainerCallback):
        def on_save(
            self,
            args: TrainingArguments,
            state: TrainerState,
            control: TrainerControl,
            model: PreTrainedModel | None = None,
            **_: object,
        ) -> None:
            step, last = state.global_step, control.should_training_stop
            assert model is not None, "a trainer passes its model"
            with torch.random.fork_rng():
                model.eval()
                on_save(model, folder / f"checkpoint-{step}", step, last)
                model.train()

    return Saving()
