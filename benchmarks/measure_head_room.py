"""Measures head-room on this machine's GPU and writes it beside that of other GPUs.

Times of start kernels come from a file of findings, times of PyTorch are measured here:

    kernel-gym exploits --device cuda:0 --only 'triton2triton/* baseline' --out findings.jsonl
    python -m benchmarks.measure_head_room findings.jsonl --device cuda:0 --out head_room.json

The file benchmarks/measured_head_room.json has the form of the output.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from pathlib import Path

from kernel_gym.admission.head_room import HeadRoom, ReferenceFailed
from kernel_gym.devices import open_device
from kernel_gym.devices.base import Device, InfraError
from kernel_gym.exploits.ledger import Line
from kernel_gym.records import Evaluation, Outcome
from kernel_gym.storage.json_lines import read_lines
from kernel_gym.tasks import get_task
from kernel_gym.tasks.task import Task, modes_of

Table = dict[str, dict[str, float]]
"""Head-room by problem and mode."""


def measure(device: Device, evaluations: list[Evaluation]) -> Table:
    """Returns the head-room of the start kernels' tasks and of the PyTorch modes beside them."""
    table: defaultdict[str, dict[str, float]] = defaultdict(dict)
    head_room = HeadRoom(device)
    for evaluation in evaluations:
        task = get_task(evaluation.task)
        others = (Task(task.problem, mode) for mode in modes_of(task.problem))
        for other in (o for o in others if o.language == task.language):
            try:
                ratio = head_room.of(other, evaluation)
            except (ReferenceFailed, InfraError) as error:
                print(f"{other}: {error}", file=sys.stderr)
                continue
            if ratio is not None:
                table[task.problem.name][other.mode] = ratio
        print(json.dumps({task.problem.name: table[task.problem.name]}), flush=True)
    head_room.close()
    return dict(sorted(table.items()))


def main() -> None:
    """Measures and writes the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("findings", type=Path, help="what `kernel-gym exploits --out` wrote")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    evaluations = [line.evaluation for line in read_lines(arguments.findings, Line)]
    passed = [e for e in evaluations if e.outcome is Outcome.PASSED]
    device = open_device(arguments.device)
    try:
        name, table = device.description.name, measure(device, passed)
    finally:
        device.close()
    rows = ",\n".join(f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in table.items())
    arguments.out.write_text(f'{{\n "{name}": {{\n{rows}\n }}\n}}\n')


if __name__ == "__main__":
    main()
