"""Episodes of several turns in GRPO: all replies of a turn are generated, then all are evaluated.

With credit by turn, each turn is one sample and its reward is its discounted return. The group is
all turns of all episodes of a prompt (Kevin-32B, Baronio et al., 2025). With credit by episode, the
whole transcript is one sample and its reward is the return of the first turn. The loss then ignores
the tokens of feedback.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kernel_gym.episodes.edits import submission
from kernel_gym.episodes.episode import Episode
from kernel_gym.policies import ChatMessage, Conversation
from kernel_gym.policies.huggingface import HuggingFace
from kernel_gym.policies.sampling_params import SamplingParams
from kernel_gym.rewards import RewardResult, returns
from kernel_gym.tasks import get_task
from kernel_gym.training.config import Grpo
from kernel_gym.training.journal import gym_metrics
from kernel_gym.training.scoring import Scored, Scorer

if TYPE_CHECKING:
    from transformers import TrainerState
    from trl import GRPOTrainer

_HERE = "\x00reply\x00"
"""Stands for a reply in a rendered chat; no text of a policy contains it."""


class Transcript:
    """The token ids of one episode: those read before each reply, and those written in it."""

    def __init__(self) -> None:
        self.read: list[list[int]] = []
        self.written: list[list[int]] = []

    def prompt_ids(self, turn: int) -> list[int]:
        """The token ids before the reply of a turn, which counts from 0."""
        before = zip(self.read[: turn + 1], [*self.written[:turn], []], strict=True)
        return [token for read, written in before for token in (*read, *written)]

    def completion(self) -> tuple[list[int], list[int]]:
        """The token ids after the first prompt, and a mask with 1 where the policy wrote them."""
        tokens, mask = list(self.written[0]), [1] * len(self.written[0])
        for read, written in zip(self.read[1:], self.written[1:], strict=True):
            tokens += [*read, *written]
            mask += [0] * len(read) + [1] * len(written)
        return tokens, mask


class TrainingEpisode:
    """An episode with its tokens and scores.

    Args:
        task: A task id.
        prompt: The text of the first message.
        start: The source that edits apply to first; "" stands for the task's start kernel.

    Attributes:
        episode: The task and the turns so far.
        transcript: The tokens so far.
        scored: The result of each turn.
        message: The text of the user's message that the next reply answers.
    """

    def __init__(self, task: str, prompt: str, start: str = "") -> None:
        self.episode = Episode(get_task(task), start=start)
        self.transcript = Transcript()
        self.scored: list[Scored] = []
        self.message = prompt

    def add(self, text: str, scored: Scored, feedback_chars: int) -> None:
        """Adds a turn.

        Args:
            text: The reply.
            scored: The result of its submission. Without an evaluation there is no feedback.
            feedback_chars: Most characters of the feedback that the policy reads.
        """
        self.scored.append(scored)
        self.message = ""
        if scored.evaluation is not None:
            reward = RewardResult(scored.reward)
            self.episode = self.episode.after(scored.source, scored.evaluation, reward, text=text)
            self.message = self.episode.turns[-1].feedback[:feedback_chars]

    def returns(self, gamma: float) -> list[float | None]:
        """The discounted return of each turn; None for a masked one."""
        return returns([scored.reward for scored in self.scored], gamma)


class Episodes:
    """A `rollout_func` for TRL's GRPO trainer that plays whole episodes.

    Each step draws new unseen workloads and data, the same for all turns and samples of a task.

    Args:
        options: Turns, discount, credit and lengths.
        rows: The trainer's dataset, which has the task and the start of each prompt.
        scorer: Evaluates and scores submissions.
    """

    def __init__(self, options: Grpo, rows: Sequence[dict[str, Any]], scorer: Scorer) -> None:
        self.options, self.scorer = options, scorer
        self.rows = {row["prompt"][0]["content"]: row for row in rows}

    def __call__(self, prompts: Sequence[Any], trainer: GRPOTrainer) -> dict[str, object]:
        """Plays the episodes of a batch.

        Args:
            prompts: One chat for each sample; those of a group are adjacent.
            trainer: The trainer.

        Returns:
            Token ids of prompts and completions, the mask of the tokens that the policy wrote, and
            the credit of each sample.
        """
        by_turn = self.options.credit == "turn"
        step = self.options.turns if by_turn else 1
        played = [self._begin(prompt[0]["content"]) for prompt in prompts[::step]]
        model = trainer.accelerator.unwrap_model(trainer.model)
        options = self.options
        params = SamplingParams(max_tokens=options.max_tokens, temperature=options.temperature)
        policy = HuggingFace.of(model, trainer.processing_class, params, len(played))
        busy = []
        for _ in range(options.turns):
            self.play(policy, played, step_draw(trainer.state))
            busy.append(self.scorer.busy)
        scored = [result for episode in played for result in episode.scored]
        metrics = {**gym_metrics(scored), "gym/busy": statistics.fmean(busy)}
        for name, value in metrics.items():
            # TRL offers rollout functions no public way to log; the `train` extra pins its version.
            trainer._metrics["train" if model.training else "eval"][name].append(value)
        return self._by_turn(played) if by_turn else self._by_episode(played)

    def _begin(self, text: str) -> TrainingEpisode:
        """The episode of a prompt."""
        row = self.rows[text]
        return TrainingEpisode(row["task"], text, row["start"])

    def play(self, policy: HuggingFace, played: Sequence[TrainingEpisode], draw: str) -> None:
        """Plays one turn of every episode.

        Args:
            policy: The policy in training.
            played: The episodes; all have the same number of turns.
            draw: The name of the draw, as for :class:`~kernel_gym.training.scoring.Scorer`.
        """
        tokenizer, transcripts = policy.tokenizer, [episode.transcript for episode in played]
        for episode in played:
            episode.transcript.read.append(_reading(policy, episode))
        turn = len(transcripts[0].written)
        replies = policy.generate([transcript.prompt_ids(turn) for transcript in transcripts])
        for transcript, written in zip(transcripts, replies, strict=True):
            transcript.written.append(written or [tokenizer.eos_token_id])
        texts = [tokenizer.decode(t.written[-1], skip_special_tokens=True) for t in transcripts]
        batch = [
            (episode.episode.task.id, submission(episode.episode, text))
            for episode, text in zip(played, texts, strict=True)
        ]
        scored = self.scorer(batch, [episode.episode.context for episode in played], draw=draw)
        for episode, text, result in zip(played, texts, scored, strict=True):
            episode.add(text, result, self.options.feedback_chars)

    def _by_turn(self, played: Sequence[TrainingEpisode]) -> dict[str, object]:
        turns = range(self.options.turns)
        transcripts = [episode.transcript for episode in played]
        return {
            "prompt_ids": [t.prompt_ids(turn) for t in transcripts for turn in turns],
            "completion_ids": [t.written[turn] for t in transcripts for turn in turns],
            "logprobs": None,
            "credit": [
                value for episode in played for value in episode.returns(self.options.gamma)
            ],
        }

    def _by_episode(self, played: Sequence[TrainingEpisode]) -> dict[str, object]:
        completions = [episode.transcript.completion() for episode in played]
        return {
            "prompt_ids": [episode.transcript.prompt_ids(0) for episode in played],
            "completion_ids": [tokens for tokens, _ in completions],
            "env_mask": [mask for _, mask in completions],
            "logprobs": None,
            "credit": [episode.returns(self.options.gamma)[0] for episode in played],
        }


def step_draw(state: TrainerState | None) -> str:
    """The name of the draw of a step. A resumed run draws the same again.

    Args:
        state: The trainer's state.

    Raises:
        ValueError: There is no state, so the step is unknown.
    """
    if state is None:
        raise ValueError("the trainer's state is needed: each step draws anew")
    return f"step {state.global_step}"


def _reading(policy: HuggingFace, episode: TrainingEpisode) -> list[int]:
    """The token ids between the last reply, or the beginning, and the next reply."""
    tokenizer, written = policy.tokenizer, episode.transcript.written
    message = ChatMessage(role="user", content=episode.message)
    if not written:
        return policy.prompt_ids(Conversation(episode.episode, (message,)))
    around = [
        ChatMessage(role="user", content=""),
        ChatMessage(role="assistant", content=_HERE),
        message,
    ]
    text = tokenizer.apply_chat_template(around, tokenize=False, add_generation_prompt=True)
    after = text.partition(_HERE)[2]
    if written[-1][-1] == tokenizer.eos_token_id:
        after = after.removeprefix(tokenizer.eos_token)
    return list(tokenizer(after, add_special_tokens=False)["input_ids"])
