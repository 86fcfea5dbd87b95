"""Episodes of several turns inside GRPO: all replies of a turn are generated, then evaluated.

With credit by turn each turn is a sample of its own, rewarded with its discounted return, and the
group is all turns of all episodes of a prompt (Kevin-32B, Baronio et al., 2025). With credit by
episode the whole transcript is one sample, rewarded with the return of its first turn; the tokens
of prompts and feedback in it are masked out of the loss.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from kernel_gym.episodes.edits import submission
from kernel_gym.episodes.episode import Episode, Turn
from kernel_gym.feedback import feedback
from kernel_gym.policies import Conversation, Message
from kernel_gym.policies.huggingface import HuggingFace, Manner
from kernel_gym.rewards import Context, RewardResult, returns
from kernel_gym.tasks import get_task
from kernel_gym.training.config import Grpo
from kernel_gym.training.journal import gym_metrics
from kernel_gym.training.scoring import Scored, Scorer

_HERE = "\x00reply\x00"


class Transcript:
    """One episode as tokens: what was read and written in each turn."""

    def __init__(self, task: str, message: Message, start: str = "") -> None:
        self.episode, self.messages = Episode(get_task(task), start=start), [message]
        self.read: list[list[int]] = []
        self.written: list[list[int]] = []
        self.scored: list[Scored] = []
        self.context = Context()

    def hear(self, text: str, found: Scored, feedback_chars: int) -> None:
        """Takes what came of the last reply. After a fault of ours there is nothing to say."""
        told = ""
        self.scored.append(found)
        if found.evaluation is not None:
            told = feedback(self.episode.task, found.evaluation)[:feedback_chars]
            result = RewardResult(found.reward)
            turn = Turn(found.source, found.evaluation, result, told, text)
            self.episode = self.episode.after(turn)
            self.context = self.context.after(found.evaluation)
        self.messages += [
            Message(role="assistant", content=text),
            Message(role="user", content=told),
        ]

    def prompt_ids(self, turn: int) -> list[int]:
        """Everything before the reply of a turn."""
        before = zip(self.read[: turn + 1], [*self.written[:turn], []], strict=True)
        return [token for read, written in before for token in (*read, *written)]

    def completion(self) -> tuple[list[int], list[int]]:
        """Everything after the first prompt, and a mask with 1 where the policy wrote it."""
        tokens, mask = list(self.written[0]), [1] * len(self.written[0])
        for read, written in zip(self.read[1:], self.written[1:], strict=True):
            tokens += [*read, *written]
            mask += [0] * len(read) + [1] * len(written)
        return tokens, mask

    def returns(self, gamma: float) -> list[float | None]:
        """The discounted return of each turn."""
        return returns([scored.reward for scored in self.scored], gamma)


class Episodes:
    """A `rollout_func` of TRL's GRPO trainer that plays whole episodes.

    Each step draws unseen workloads and data anew, the same for all turns and samples of a task.

    Args:
        options: Turns, discount, credit and lengths.
        rows: The trainer's dataset: which task and start a prompt belongs to.
        scorer: What evaluates.
    """

    def __init__(self, options: Grpo, rows: Sequence[dict[str, Any]], scorer: Scorer) -> None:
        self.options, self.scorer = options, scorer
        self.rows = {row["prompt"][0]["content"]: row for row in rows}

    def __call__(self, prompts: Sequence[Any], trainer: Any) -> dict[str, Any]:
        """Plays the episodes of a batch.

        Args:
            prompts: As many as there are samples, those of a group side by side.
            trainer: TRL's.

        Returns:
            Token ids of prompts and completions, the mask of the policy's own tokens, and the
            credit of each sample.
        """
        by_turn = self.options.credit == "turn"
        step = self.options.turns if by_turn else 1
        played = [self._begin(prompt[0]["content"]) for prompt in prompts[::step]]
        model = trainer.accelerator.unwrap_model(trainer.model)
        options = self.options
        manner = Manner(max_tokens=options.max_tokens, temperature=options.temperature)
        policy = HuggingFace.of(model, trainer.processing_class, manner, len(played))
        busy = []
        for _ in range(options.turns):
            self.play(policy, played, step_draw(trainer.state))
            busy.append(self.scorer.busy)
        scored = [found for transcript in played for found in transcript.scored]
        found = {**gym_metrics(scored), "gym/busy": statistics.fmean(busy)}
        for name, value in found.items():
            trainer._metrics["train" if trainer.model.training else "eval"][name].append(value)
        return self._by_turn(played) if by_turn else self._by_episode(played)

    def _begin(self, text: str) -> Transcript:
        """The episode that a prompt opens."""
        row = self.rows[text]
        return Transcript(row["task"], Message(role="user", content=text), row["start"])

    def play(self, policy: HuggingFace, played: Sequence[Transcript], draw: str) -> None:
        """Plays one turn of every episode; `draw` is as for the scorer."""
        for transcript in played:
            transcript.read.append(_reading(policy, transcript))
        turn = len(played[0].written)
        for transcript, written in zip(
            played, policy.generate([t.prompt_ids(turn) for t in played]), strict=True
        ):
            transcript.written.append(written or [policy.tokenizer.eos_token_id])
        texts = [policy.tokenizer.decode(t.written[-1], skip_special_tokens=True) for t in played]
        batch = [
            (t.episode.task.id, submission(t.episode, text))
            for t, text in zip(played, texts, strict=True)
        ]
        scored = self.scorer(batch, [t.context for t in played], draw=draw)
        for transcript, text, found in zip(played, texts, scored, strict=True):
            transcript.hear(text, found, self.options.feedback_chars)

    def _by_turn(self, played: Sequence[Transcript]) -> dict[str, Any]:
        turns = range(self.options.turns)
        return {
            "prompt_ids": [t.prompt_ids(turn) for t in played for turn in turns],
            "completion_ids": [t.written[turn] for t in played for turn in turns],
            "logprobs": None,
            "credit": [value for t in played for value in t.returns(self.options.gamma)],
        }

    def _by_episode(self, played: Sequence[Transcript]) -> dict[str, Any]:
        completions = [transcript.completion() for transcript in played]
        return {
            "prompt_ids": [t.prompt_ids(0) for t in played],
            "completion_ids": [tokens for tokens, _ in completions],
            "env_mask": [mask for _, mask in completions],
            "logprobs": None,
            "credit": [t.returns(self.options.gamma)[0] for t in played],
        }


def step_draw(state: Any) -> str:
    """The name of a step's draw, by the trainer's state: a resumed run draws the same again.

    Raises:
        ValueError: There is no state, so that two steps could not be told apart.
    """
    if state is None:
        raise ValueError("the trainer's state is needed: each step draws anew")
    return f"step {state.global_step}"


def _reading(policy: HuggingFace, transcript: Transcript) -> list[int]:
    """The tokens between the last reply, or the beginning, and the next one."""
    tokenizer = policy.tokenizer
    if not transcript.written:
        return policy.prompt_ids(Conversation(transcript.episode, tuple(transcript.messages)))
    around = [
        Message(role="user", content=""),
        Message(role="assistant", content=_HERE),
        transcript.messages[-1],
    ]
    text = tokenizer.apply_chat_template(around, tokenize=False, add_generation_prompt=True)
    after = text.partition(_HERE)[2]
    if transcript.written[-1][-1] == tokenizer.eos_token_id:
        after = after.removeprefix(tokenizer.eos_token)
    return list(tokenizer(after, add_special_tokens=False)["input_ids"])
