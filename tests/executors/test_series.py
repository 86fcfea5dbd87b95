"""A thousand evaluations in a row, good, bad and hostile, two at a time: none lost, nothing left.

Takes a quarter of an hour; pytest -m sweep tests/executors/test_series.py -s prints the counts.
"""

import getpass
import itertools
import json
import os
import tempfile
from collections import Counter
from pathlib import Path

import pytest

from kernel_gym.commands.exploits import EXAMPLES, SUITE
from kernel_gym.executors import Request, make_executor
from kernel_gym.exploits import load_exploits, runs_on
from kernel_gym.records import Outcome
from kernel_gym.sandbox.spawn import shared_template
from kernel_gym.tasks import get_task

DEVICE, COUNT, EVERY = "sim:gfx942", 1000, 100
SLOW = ("hang", "loop", "never_reads", "bomb", "without_end")
"""Exploits that wait for a time limit: each is played once."""


def requests():
    """Every exploit and example, then again and again those that need no time limit to end."""
    exploits = [e for e in load_exploits(SUITE) if runs_on(e, DEVICE)]
    hostile = [(e.task, e.source) for e in exploits]
    quick = [(e.task, e.source) for e in exploits if not any(word in e.name for word in SLOW)]
    examples = [
        (get_task("/".join(path.parts[-3:-1])), path.read_text(encoding="utf-8"))
        for path in sorted(EXAMPLES.glob("*/*/[123]_*.*"))
    ]
    both = list(itertools.chain.from_iterable(zip(quick, itertools.cycle(examples))))
    stream = itertools.chain(examples, hostile, itertools.cycle(both))
    for number, (task, source) in enumerate(itertools.islice(stream, COUNT)):
        comment = "#" if task.language == "triton" else "//"
        yield Request(task.id, f"{source}\n{comment} {number}\n", number)


def family():
    """Live processes below this one, the template's included."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if state != "Z":
            parents[int(stat.parent.name)] = int(parent)
    found = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {os.getpid()}


def state():
    """Descriptors and resident megabytes of the judge and of the template."""
    template = shared_template()._process.pid
    return {
        name: (len(os.listdir(f"/proc/{pid}/fd")), _resident(pid))
        for name, pid in (("judge", "self"), ("template", template))
    }


def _resident(pid):
    (line,) = [s for s in Path(f"/proc/{pid}/status").read_text().split("\n") if "VmRSS" in s]
    return int(line.split()[1]) // 1024


@pytest.mark.sweep
@pytest.mark.timeout(7200)
def test_a_thousand_mixed_evaluations_are_all_answered_and_leave_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    template = shared_template()._process.pid
    before, counts, states = family(), Counter(), []
    executor = make_executor("local", device=DEVICE, workers=2)
    with executor:
        answered = set()
        for position, evaluation in executor.results(requests()):
            answered.add(position)
            counts[str(evaluation.outcome)] += 1
            if len(answered) % EVERY == 0:
                states.append(state())
                print(len(answered), json.dumps(states[-1]), dict(counts), flush=True)
    print(json.dumps({"answered": len(answered), "outcomes": counts, "states": states}))
    assert answered == set(range(COUNT))
    assert counts[Outcome.INFRA] == 0
    assert executor.replaced == 0
    assert family() == before == {template}
    caches = tmp_path / f"torchinductor_{getpass.getuser()}"  # PyTorch makes it once, and empty
    assert [path for path in tmp_path.rglob("*") if path != caches] == []
    settled, last = states[2], states[-1]
    for name in ("judge", "template"):
        assert last[name][0] <= settled[name][0] + 8  # pipes of evaluations under way
        assert last[name][1] < settled[name][1] * 1.3 + 50
