"""Metrics of a training run: a line on the console, a line of JSON, and TensorBoard."""

from __future__ import annotations

import json
import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, SupportsFloat

from kernel_gym.records import Outcome
from kernel_gym.storage.json_lines import drop_cut_off, write_whole
from kernel_gym.training.scoring import Scored

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter
    from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

METRICS, BOARD = "metrics.jsonl", "tensorboard"
_CONSOLE = (
    "loss",
    "gym/reward",
    "gym/passed",
    "gym/speedup",
    "gym/cache_hits",
    "gym/busy",
    "gym/seconds",
)


class Journal:
    """Writes the metrics of a run to the console, to `metrics.jsonl` and to TensorBoard.

    Args:
        folder: The run folder.
        console: Called with each line for the console.
    """

    def __init__(self, folder: Path, console: Callable[[str], None] = lambda line: None) -> None:
        self.path, self.console = folder / METRICS, console
        drop_cut_off(self.path)
        self._board: SummaryWriter | None = None
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            return
        self._board = SummaryWriter(str(folder / BOARD))

    def log(self, phase: str, step: int, values: Mapping[str, object], progress: str = "") -> None:
        """Writes the metrics of one step.

        Args:
            phase: `corpus`, `sft`, `grpo` or `assess`.
            step: The step of that phase.
            values: Metrics by name; values that are not finite numbers are left out.
            progress: Text on the progress of the phase, for the console. A step without any of the
                metrics shown there has no line on it.
        """
        numbers = {key: _number(value) for key, value in values.items()}
        finite = {key: value for key, value in numbers.items() if value is not None}
        line = {"phase": phase, "step": step, "time": round(time.time(), 3), **finite}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        if self._board is not None:
            for key, value in finite.items():
                self._board.add_scalar(f"{phase}/{key}", value, step)
            self._board.flush()
        shown = [f"{k.removeprefix('gym/')} {finite[k]:.3g}" for k in _CONSOLE if k in finite]
        if shown:
            self.console(f"{phase} {step}{progress}: {', '.join(shown)}")

    def rewind(self, step: int) -> None:
        """Deletes the metrics of GRPO after a step, which a resumed run takes again."""
        if self.path.exists():
            lines = self.path.read_text(encoding="utf-8").splitlines(keepends=True)
            write_whole(self.path, "".join(line for line in lines if _before(line, step)))

    def callback(self, phase: str) -> TrainerCallback:
        """A callback for a trainer of transformers that writes its logs to this journal."""
        from transformers import TrainerCallback

        journal = self

        class Written(TrainerCallback):
            def on_train_begin(
                self,
                args: TrainingArguments,
                state: TrainerState,
                control: TrainerControl,
                **_: object,
            ) -> None:
                self.first, self.start = state.global_step, time.monotonic()

            def on_log(
                self,
                args: TrainingArguments,
                state: TrainerState,
                control: TrainerControl,
                logs: Mapping[str, object] | None = None,
                **_: object,
            ) -> None:
                seconds = time.monotonic() - self.start
                done = progress(self.first, state.global_step, state.max_steps, seconds)
                journal.log(phase, state.global_step, logs or {}, done)

        return Written()

    def close(self) -> None:
        """Closes the TensorBoard file."""
        if self._board is not None:
            self._board.close()


def progress(first: int, step: int, steps: int, seconds: float) -> str:
    """The progress of a phase, with an estimate of the time left.

    Args:
        first: The step at which the phase began or was resumed.
        step: The last finished step.
        steps: The total number of steps.
        seconds: Seconds since the phase began or was resumed.

    Example:
        >>> progress(0, 15, 60, 100.0)
        ' of 60, 5 min left'
    """
    if step <= first or step >= steps:
        return f" of {steps}"
    left = seconds / (step - first) * (steps - step)
    return f" of {steps}, {f'{left / 60:.0f} min' if left >= 90 else f'{left:.0f} s'} left"


def gym_metrics(scored: Sequence[Scored]) -> dict[str, float]:
    """The metrics of a batch of submissions.

    Args:
        scored: The batch.

    Returns:
        `gym/reward`: the mean reward of submissions that are not masked.
        `gym/outcome/NAME`, `gym/passed`, `gym/hacks`, `gym/masked`, `gym/cache_hits`: shares of all
        submissions.
        `gym/speedup`, `gym/unseen_speedup`: geometric means over submissions that passed.
        `gym/transfer`: the ratio of unseen speedup to speedup.
        `gym/seconds`: the mean time from submission to result of those not in the cache.
        `gym/evaluation_seconds`: the same without time in the queue.
        `gym/errors`: the number of exceptions in the gym itself.
    """
    total = max(len(scored), 1)
    rewards = [s.reward for s in scored if s.reward is not None]
    records = [s.evaluation for s in scored if s.evaluation is not None]
    outcomes = Counter(record.outcome for record in records)
    passed = [record for record in records if record.outcome is Outcome.PASSED]
    waited = [s.seconds for s in scored if not s.cached]
    taken = [
        sum(s.evaluation.wall_seconds.values()) for s in scored if s.evaluation and not s.cached
    ]
    metrics = {
        "gym/reward": _mean(rewards),
        "gym/passed": len(passed) / total,
        "gym/hacks": outcomes[Outcome.HACK] / total,
        "gym/masked": (total - len(rewards)) / total if scored else 0.0,
        "gym/cache_hits": sum(s.cached for s in scored) / total,
        "gym/errors": float(sum(bool(s.error) for s in scored)),
        "gym/seconds": _mean(waited),
        "gym/evaluation_seconds": _mean(taken),
        **{f"gym/outcome/{name}": count / total for name, count in outcomes.items()},
    }
    train = [record.speedup for record in passed if record.speedup]
    unseen = [record.unseen_speedup for record in passed if record.unseen_speedup]
    if train and unseen:
        metrics["gym/speedup"] = math.exp(_mean([math.log(s) for s in train]))
        metrics["gym/unseen_speedup"] = math.exp(_mean([math.log(s) for s in unseen]))
        metrics["gym/transfer"] = metrics["gym/unseen_speedup"] / metrics["gym/speedup"]
    return metrics


def _before(line: str, step: int) -> bool:
    """Whether a line does not belong to GRPO after a step."""
    metrics = json.loads(line)
    return metrics["phase"] not in ("grpo", "assess") or metrics["step"] <= step


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _number(value: object) -> float | None:
    """The value as a finite number, or None; some trainers log numbers as text."""
    if not isinstance(value, str | SupportsFloat):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None
