"""`verifiers` 0.4: a taskset of kernels and the environment that plays it.

    from kernel_gym.envs.adapters.verifiers import KernelTaskset, KernelTasksetConfig
    taskset = KernelTaskset(KernelTasksetConfig(tasks=("quickstart",)))

`verifiers` and `prime-rl` find both by the id of this module, `kernel_gym.envs.adapters.verifiers`.
Without tasks the taskset is infinite: every task is a generated graph.

The environment plays the user: each reply of the model is a submission, and its feedback is the
next message. The reward of a rollout is that of the episode. If the machine failed and not a
submission, the rollout ends with an error and has no reward.
"""

from __future__ import annotations

from collections.abc import Iterator

import verifiers.v1 as vf

from kernel_gym.admission.generated import generated_tasks
from kernel_gym.envs.adapters.scoring import process_sessions
from kernel_gym.envs.choice import TaskSampler
from kernel_gym.episodes.reply import extract_source


class KernelTasksetConfig(vf.TasksetConfig):
    """The choice of tasks."""

    tasks: tuple[str, ...] = ()
    """Task ids and suites; without any, generated tasks without end."""
    depth: int = 3
    """Operators of a generated task."""
    seed: int | None = None
    """Seed of the episodes; by default the system's randomness."""


class KernelData(vf.TaskData):
    """The data of a task."""

    kernel_task: str
    seed: int | None = None


class KernelTask(vf.Task[KernelData]):
    """A task; :class:`VerifiersKernelEnv` scores it."""


class KernelTaskset(vf.Taskset[KernelTask, KernelTasksetConfig]):
    """One row for each task of the choice, or generated tasks without end."""

    def __init__(self, config: KernelTasksetConfig) -> None:
        super().__init__(config)
        self.INFINITE = not config.tasks

    def load(self) -> Iterator[KernelTask]:
        """Yields the tasks.

        Raises:
            UnknownName: A task is unknown; the message has near matches.
        """
        config = self.config
        names = (
            TaskSampler(config.tasks).probabilities
            if config.tasks
            else generated_tasks("train", depth=config.depth)
        )
        for name in names:
            data = KernelData(name=name, kernel_task=name, seed=config.seed)
            yield KernelTask(data, config.task)


class KernelEnvConfig(vf.EnvConfig):
    """The agent that writes kernels, and the number of its submissions."""

    player: vf.AgentConfig = vf.AgentConfig()
    max_turns: int = 3


class VerifiersKernelEnv(vf.Env[KernelEnvConfig]):
    """Plays episodes."""

    async def run(self, task: KernelTask, agents: vf.Agents) -> None:
        """Plays one episode.

        Raises:
            MaskedEvaluation: The machine failed and not a submission.
        """
        turns = self.config.max_turns
        data = task.data
        session = process_sessions().begin(data.kernel_task, data.seed, max_turns=turns)
        total = 0.0
        async with agents.player.interaction(task) as interaction:
            segment = await interaction.turn(session.prompt)
            while not segment.terminated:
                source = extract_source(segment.last_reply, session.task)
                step = await session.submit_async(source)
                total += step.number()
                if step.done:
                    break
                segment = await interaction.turn(step.feedback)
        interaction.trace.record_reward("kernel_reward", total)


__all__ = ["KernelTaskset", "VerifiersKernelEnv"]
