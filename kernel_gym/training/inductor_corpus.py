"""A corpus of what PyTorch's compiler writes: pairs of a training graph and a judged kernel.

Each graph that was tried is a line of a journal, so a run that was interrupted continues.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from queue import SimpleQueue

from kernel_gym.episodes.episode import Prompt
from kernel_gym.executors import Executor
from kernel_gym.policies.base import PolicyError, Stop
from kernel_gym.policies.inductor import InductorProcess
from kernel_gym.policies.inductor_module import NoCandidateError
from kernel_gym.records import Outcome, Record
from kernel_gym.storage.json_lines import append_line, drop_cut_off, read_lines
from kernel_gym.tasks import get_task
from kernel_gym.training.corpus import CorpusError, CorpusRow
from kernel_gym.training.short_modules import shortened

JOURNAL = "inductor.jsonl"
"""The journal's name in the folder of a corpus."""
ENDED = "compiler ended"
"""The reason where the compiler's process ended, which may be the fault of the machine."""
STRUCTURE = "inductor"
"""The structure of the pairs, beside those of the templates."""


class GraphTrial(Record):
    """A graph for which PyTorch's compiler was asked."""

    made_by: str
    """Versions, the device and the seed, on which the row depends."""
    row: CorpusRow
    """The pair; without a source where the compiler wrote nothing."""
    refused: str = ""
    """Why it is no pair, in a few words that others share."""
    message: str = ""
    """The message of the compiler or of the judge."""


def try_graphs(
    tasks: Sequence[str],
    prompt: Prompt,
    executor: Executor,
    journal: Path,
    seen: Callable[[], None] = lambda: None,
) -> list[GraphTrial]:
    """Asks PyTorch's compiler for each graph, and judges what it writes.

    As many compilers work in parallel as the executor has workers.

    Args:
        tasks: Ids of tasks of generated graphs.
        prompt: Writes the prompts.
        executor: Judges kernels. It has a seed.
        journal: The file of graphs tried. Tasks in it are not tried again. It leaves out failures
            of the machine.
        seen: Called after each task, from any thread.

    Returns:
        The trial of each task, in their order.

    Raises:
        CorpusError: The journal was made with other versions, or on another device.
        StoreError: A line of the journal is malformed.
    """
    made_by = _made_by(executor)
    known = {trial.row.task: trial for trial in read_lines(journal, GraphTrial)}
    if others := {trial.made_by for trial in known.values()} - {made_by}:
        raise CorpusError(
            f"{journal}: made by {others.pop()}, now {made_by}; delete it or give another folder"
        )
    drop_cut_off(journal)
    compilers: SimpleQueue[InductorProcess] = SimpleQueue()
    appending = threading.Lock()

    def trial_of(task: str) -> GraphTrial:
        trial = known.get(task)
        if trial is None:
            with _taken(compilers) as compiler:
                trial = _new_trial(task, prompt, executor, compiler, made_by)
            if trial.refused != ENDED and trial.row.outcome is not Outcome.INFRA:
                with appending:
                    append_line(journal, trial)
        seen()
        return trial

    with ExitStack() as stack:
        for _ in range(executor.workers):
            compilers.put(stack.enter_context(InductorProcess()))
        pool = ThreadPoolExecutor(executor.workers)
        stack.callback(pool.shutdown, cancel_futures=True)
        return list(pool.map(trial_of, tasks))


@contextmanager
def _taken(compilers: SimpleQueue[InductorProcess]) -> Iterator[InductorProcess]:
    compiler = compilers.get()
    try:
        yield compiler
    finally:
        compilers.put(compiler)


def _made_by(executor: Executor) -> str:
    """Returns what decides on kernels and verdicts."""
    import torch
    import triton

    versions = f"PyTorch {torch.__version__}, Triton {triton.__version__}"
    return f"{versions}, judged on {executor.device} with seed {executor.seed}"


def _new_trial(
    name: str, prompt: Prompt, executor: Executor, compiler: InductorProcess, made_by: str
) -> GraphTrial:
    task = get_task(name)
    row = CorpusRow(task=name, source="", prompt=prompt(task), structure=STRUCTURE)
    trial = GraphTrial(made_by=made_by, row=row)
    try:
        answer = compiler.answer(task)
        if isinstance(answer, Stop):
            raise NoCandidateError(answer.reason)
        source = shortened(answer.source, task.problem)
    except NoCandidateError as error:
        return trial.model_copy(update={"refused": "not compiled", "message": str(error)})
    except PolicyError as error:
        return trial.model_copy(update={"refused": ENDED, "message": str(error)})
    judged = executor.submit(name, source).result()
    known = {key: getattr(judged, key) for key in ("outcome", "stage", "clock", "speedup")}
    row = row.model_copy(
        update={**known, "source": source, "unseen_speedup": judged.unseen_speedup}
    )
    if judged.outcome is Outcome.PASSED:
        return trial.model_copy(update={"row": row})
    refused = f"judged {judged.outcome}"
    return trial.model_copy(update={"row": row, "refused": refused, "message": judged.message})


def refusals(trials: Sequence[GraphTrial]) -> str:
    """Returns how many graphs have no pair for each reason, as text."""
    counts = Counter(each.refused for each in trials if each.refused)
    return ", ".join(f"{count} {reason}" for reason, count in counts.most_common()) or "none"
