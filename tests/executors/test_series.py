"""A thousand evaluations in a row, good, bad and hostile, side by side: none lost, nothing left.

Takes a quarter of an hour on the simulator and five minutes on a GPU;
pytest -m sweep tests/executors/test_series.py -s prints the counts.
"""

import getpass
import itertools
import json
import os
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from kernel_gym.commands.exploits import EXAMPLES, SUITE
from kernel_gym.executors import EvaluationRequest, make_executor
from kernel_gym.exploits.loader import load_exploits
from kernel_gym.exploits.runner import runs_on
from kernel_gym.records import Evaluation, Outcome
from kernel_gym.sandbox.spawn import shared_template
from kernel_gym.tasks import get_task, load_suite
from kernel_gym.tasks.task import Task

COUNT, EVERY = 1000, 100
SLOW = ("hang", "loop", "never_reads", "bomb", "without_end")
"""Exploits that run until a time limit. Each is played once."""
CACHES, LOCKS = f"torchinductor_{getpass.getuser()}", f"kernel-gym-locks-{os.getuid()}"
"""An empty folder that PyTorch makes once, and a folder that judges of a GPU share."""
GPU = pytest.param(
    *("cuda:0", 6, 6),
    marks=[pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")],
)
"""Six evaluators, and more sources that do not compile, so that the test takes minutes."""


@dataclass(frozen=True)
class Submission:
    """A source and a check of its evaluation."""

    name: str
    task: Task
    source: str
    right: Callable[[Evaluation], bool]


def outcomes(*names):
    return lambda evaluation: evaluation.outcome in names


def examples():
    expected = {
        "1_wrong": outcomes(*(set(Outcome) - {Outcome.PASSED, Outcome.INFRA})),
        "2_shape_bound": outcomes(
            *(set(Outcome) - {Outcome.INFRA})
        ),  # some pass and differ only by speed
        "3_good": outcomes(Outcome.PASSED),
    }
    for path in sorted(EXAMPLES.glob("*/*/[123]_*.*")):
        task = get_task("/".join(path.parts[-3:-1]))
        yield Submission(str(path), task, path.read_text(encoding="utf-8"), expected[path.stem])


def broken():
    """Returns kernels that do not compile."""
    for task in load_suite("quickstart").tasks:
        if task.language == "triton":
            source = task.kernel_source.replace("tl.store(", "tl.no_such_function(")
            yield Submission("broken", task, source, outcomes(Outcome.COMPILE_ERROR))


def submissions(device, more_broken):
    """Yields every exploit and example, then repeats those that end without a time limit."""
    exploits = [e for e in load_exploits(SUITE) if runs_on(e, device)]
    hostile = {e.name: Submission(e.name, e.task, e.source, e.blocked) for e in exploits}
    quick = [s for name, s in hostile.items() if not any(word in name for word in SLOW)]
    kinds = [itertools.cycle(quick), itertools.cycle(examples())]
    kinds += [itertools.cycle(broken())] * more_broken
    stream = itertools.chain(examples(), hostile.values(), round_robin(kinds))
    return list(itertools.islice(stream, COUNT))


def round_robin(kinds):
    while True:
        yield from map(next, kinds)


def request(number, submission):
    comment = "#" if submission.task.language == "triton" else "//"
    return EvaluationRequest(
        submission.task.id, f"{submission.source}\n{comment} {number}\n", number
    )


def family():
    """Returns the live descendants of this process, with their parents."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if state != "Z":
            parents[int(stat.parent.name)] = int(parent)
    processes = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in processes} - processes:
        processes |= more
    return {pid: parents[pid] for pid in processes - {os.getpid()}}


def state():
    """Descriptors and resident megabytes of this process and of each of its children.

    On the simulator the one child is the template, on a GPU they are the judges.
    """
    own = os.getpid()
    children = [pid for pid, parent in family().items() if parent == own]
    return {pid: (len(os.listdir(f"/proc/{pid}/fd")), _resident(pid)) for pid in (own, *children)}


def _resident(pid):
    (line,) = [s for s in Path(f"/proc/{pid}/status").read_text().split("\n") if "VmRSS" in s]
    return int(line.split()[1]) // 1024


def gpu_megabytes(device):
    if device.startswith("sim:"):
        return 0
    free, total = torch.cuda.mem_get_info()
    return (total - free) >> 20


@pytest.fixture
def folder():
    """A folder that is not from pytest, since an exploit searches the environment for its name."""
    with tempfile.TemporaryDirectory(prefix="series-") as path:
        yield Path(path)


@pytest.mark.sweep
@pytest.mark.timeout(7200)
@pytest.mark.parametrize(("device", "workers", "more_broken"), [("sim:gfx942", 2, 0), GPU])
def test_a_thousand_mixed_evaluations_are_all_answered_and_leave_nothing(
    device, workers, more_broken, folder, monkeypatch
):
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    shared_template()
    before, memory = set(family()), gpu_megabytes(device)
    asked, counts, states, wrong = submissions(device, more_broken), Counter(), [], []
    executor = make_executor("local", device=device, workers=workers)
    with executor:
        answered, late = set(), 0
        for position, evaluation in executor.results(itertools.starmap(request, enumerate(asked))):
            answered.add(position)
            counts[str(evaluation.outcome)] += 1
            late += any(label.startswith("late") for label in evaluation.labels)
            if not asked[position].right(evaluation):
                wrong.append((position, asked[position].name, evaluation.message))
            if len(answered) % EVERY == 0:
                states.append(state())
                sums = [sum(parts) for parts in zip(*states[-1].values(), strict=True)]
                print(len(answered), sums, gpu_megabytes(device), dict(counts), flush=True)
    left = gpu_megabytes(device) - memory
    print(json.dumps({"outcomes": counts, "late": late, "wrong": wrong, "gpu left": left}))
    assert answered == set(range(COUNT))
    assert counts[Outcome.INFRA] == 0
    assert wrong == []
    assert executor.replaced == 0
    assert set(family()) | _resource_tracker() == before | _resource_tracker()
    assert left < 64
    assert {path for path in folder.rglob("*") if LOCKS not in path.parts} <= {folder / CACHES}
    settled, last = states[2], states[-1]
    assert set(last) == set(settled)
    for process, (descriptors, megabytes) in last.items():
        assert descriptors <= settled[process][0] + 8  # pipes of evaluations in progress
        assert megabytes < settled[process][1] * 1.3 + 50


def _resource_tracker():
    """Whether it is Python's helper of spawned processes, which lives as long as this process."""
    from multiprocessing.resource_tracker import _resource_tracker

    return {_resource_tracker._pid}
