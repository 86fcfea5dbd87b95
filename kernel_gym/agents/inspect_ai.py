"""The tasks for inspect_ai: a task with a solver and a scorer.

    inspect eval kernel_gym/kernel_gym -T suite=quickstart -T device=sim:gfx942 --model openai/...

The solver plays an episode: replies are submitted, and the model reads the feedback. The scorer
evaluates the best right kernel, or else the last one, once more with other draws. Its score is the
reward if that passes, and nothing otherwise. The module needs the package inspect-ai.
"""

from __future__ import annotations

import asyncio

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessageUser
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver

from kernel_gym.devices import resolve
from kernel_gym.episodes.conversation import full_prompt
from kernel_gym.episodes.episode import Episode
from kernel_gym.episodes.reply import extract_source
from kernel_gym.executors.shared import shared_executor
from kernel_gym.profiles import profile_of
from kernel_gym.records import Evaluation, Outcome
from kernel_gym.rewards import Context, get_reward
from kernel_gym.tasks import get_task, load_suite

SUBMITTED = "kernel_gym_source"
"""The key in the store of a sample for the source that is scored."""


@task
def kernel_gym(
    suite: str = "quickstart",
    device: str = "auto",
    turns: int = 3,
    reward: str = "kernel-opt",
) -> Task:
    """Write GPU kernels; a judge evaluates them, on a simulator if there is no GPU.

    Args:
        suite: A suite, a `.toml` file or a task id.
        device: A device name.
        turns: Submissions of a sample.
        reward: Scores the final kernel.
    """
    device = resolve(device)
    write = full_prompt(device)
    samples = [
        Sample(input=write(listed), target="passed", id=listed.id, metadata={"task": listed.id})
        for listed in load_suite(suite).tasks
    ]
    return Task(
        dataset=MemoryDataset(samples, name=f"kernel-gym {suite}"),
        solver=kernel_solver(device, turns, reward),
        scorer=kernel_scorer(device, reward),
    )


@solver
def kernel_solver(device: str = "auto", turns: int = 3, reward: str = "kernel-opt") -> Solver:
    """Asks the model, submits its reply and shows it the feedback, for some turns."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        task = get_task(state.metadata["task"])
        episode, score = Episode(task), get_reward(reward)
        for turn in range(turns):
            state = await generate(state)
            source = extract_source(state.output.completion, task)
            evaluation = await evaluated(device, task.id, source)
            episode = episode.after(source, evaluation, score(evaluation, episode.context))
            best = episode.best or episode.turns[-1]
            state.store.set(SUBMITTED, best.source)
            if turn + 1 < turns:
                state.messages.append(ChatMessageUser(content=episode.turns[-1].feedback))
        return state

    return solve


@scorer(metrics=[mean(), stderr()])
def kernel_scorer(device: str = "auto", reward: str = "kernel-opt") -> Scorer:
    """Evaluates the kernel of a sample once more: its reward if it is right, else 0."""

    async def score(state: TaskState, target: Target) -> Score:
        task = get_task(state.metadata["task"])
        source = state.store.get(SUBMITTED)
        if source is None:  # another solver: its last reply is the submission
            source = extract_source(state.output.completion, task)
        evaluation = await evaluated(device, task.id, source)
        if evaluation.outcome is Outcome.INFRA:
            raise RuntimeError(f"the machine failed: {evaluation.message}")
        passed = evaluation.outcome is Outcome.PASSED
        result = get_reward(reward)(evaluation, Context().of(source))
        return Score(
            value=(result.value or 0.0) if passed else 0.0,
            answer=source,
            explanation=str(evaluation.outcome),
            metadata=_metadata(evaluation),
        )

    return score


async def evaluated(device: str, task_id: str, source: str) -> Evaluation:
    """Evaluates a source in the executor that this process shares, with draws of its own."""
    future = await asyncio.to_thread(shared_executor(resolve(device)).submit, task_id, source)
    return await asyncio.wrap_future(future)


def _metadata(evaluation: Evaluation) -> dict[str, object]:
    return {
        "outcome": str(evaluation.outcome),
        "speedup": evaluation.speedup,
        "speedup_low": evaluation.speedup_low,
        "unseen_speedup": evaluation.unseen_speedup,
        "clock": str(evaluation.clock),
        "profile": profile_of(evaluation),
    }


__all__ = ["kernel_gym", "kernel_scorer", "kernel_solver"]
