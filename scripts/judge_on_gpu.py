"""Shows the judge on a real GPU: honest kernels, attacks, the clock, and evaluations a minute.

    python scripts/judge_on_gpu.py [--device cuda:0] [--seconds 500] PART ...

Parts: `smoke` (one evaluation, and what a call costs), `starts` (start kernels of the quickstart
suite), `clock` (A/A and small differences), `attacks` (exploits for GPUs with their controls),
`variants:COUNT/SEED` (variants of exploits and of honest kernels), `problems:PATTERNS` (kernels of
all own tasks whose problem matches one of the patterns, which have commas between them),
`honest:FOLDER` (other kernels), `rate` (evaluations a minute with four evaluators). Each part
prints a table. Exit code 1 if an honest kernel or an attack is judged wrongly.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import multiprocessing
import re
import statistics
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

SPIN = """
import torch, triton
import triton.language as tl

@triton.jit
def spin(out, count, N: tl.constexpr):
    offsets = tl.program_id(0) * 128 + tl.arange(0, 128)
    value = offsets.to(tl.float32)
    for i in range(count):
        value = value * 0.999 + 1.0
    tl.store(out + offsets % N, value.to(out.dtype.element_ty))

def softmax(x):
    out = torch.empty_like(x)
    spin[(132,)](out, COUNT, out.numel(), num_warps=4)
    return out
"""
AA_COMPARISONS = 24
EVALUATOR_BYTES = 11 << 30
"""Memory of the GPU for an evaluator."""
MAX_EVALUATORS = 12
"""Most evaluators of the parts that play many candidates."""
END = [float("inf")]
"""The time after which no part continues, of the monotonic clock."""
PAIRS: list[int] = []
"""Pairs of each comparison so far."""
HELD_STAGES = ("train", "adversarial", "unseen", "time")
"""Stages in which an evaluation has the GPU alone."""


def main() -> int:
    """Runs the parts that the command line names."""
    parser = argparse.ArgumentParser()
    parser.add_argument("parts", nargs="+")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--seconds", type=float, default=500.0)
    options = parser.parse_args()
    END[0] = end = time.monotonic() + options.seconds
    right = True
    for part in options.parts:
        name, _, argument = part.partition(":")
        started = time.monotonic()
        print(f"== {part}", flush=True)
        if started > end:
            print("left out: no time")
            continue
        right = PARTS[name](options.device, argument) and right
        print(f"== {part} took {time.monotonic() - started:.0f} s", flush=True)
    return 0 if right else 1


def smoke(device: str, _: str) -> bool:
    """Evaluates one start kernel and prints where its seconds go."""
    from kernel_gym.evaluator import Evaluator
    from kernel_gym.tasks import get_task

    with Evaluator(device, seed=1) as judge:
        right = True
        for name in ("triton2triton/softmax", "triton2triton/softmax", "triton2triton/matmul"):
            task = get_task(name)
            right = _shown(judge.evaluate(task, task.start_source)) and right
        return right


def starts(device: str, argument: str) -> bool:
    """Evaluates the start kernels of the quickstart suite."""
    from kernel_gym.evaluator import Evaluator
    from kernel_gym.tasks.suite import load_suite

    tasks = [one for one in load_suite(argument or "quickstart").tasks if one.language == "triton"]
    with Evaluator(device, seed=1) as judge:
        return all([_shown(judge.evaluate(t, t.start_source)) for t in tasks if t.start_source])


def honest(device: str, folder: str) -> bool:
    """Evaluates kernels of a folder; each names its task in its header or in its name."""
    from kernel_gym.evaluator import Evaluator
    from kernel_gym.tasks import get_task, task_ids

    right = True
    with Evaluator(device, seed=1) as judge:
        for path in sorted(Path(folder).glob("*.py")):
            source = path.read_text()
            named = re.search(r"(?:triton2triton|instruction2triton)/\w+", source)
            task = named.group(0) if named else ""
            if task not in task_ids():
                print(f"{path.name}: no task in its header")
                continue
            passed = _shown(judge.evaluate(get_task(task), source), path.stem)
            right = passed and right
    return right


def attacks(device: str, pattern: str) -> bool:
    """Plays exploits with `device: gpu` and their controls, some evaluators at a time."""
    from kernel_gym.exploits import SUITE
    from kernel_gym.exploits.loader import load_exploits

    exploits = [one for one in load_exploits(SUITE) if one.device == "gpu"]
    return _played(device, [e for e in exploits if fnmatch.fnmatch(e.name, pattern or "*")])


def variants(device: str, argument: str) -> bool:
    """Plays variants of exploits that can run on a GPU, and a tenth as many of honest kernels.

    The argument is their number and a seed, such as `300/7`.
    """
    from kernel_gym.exploits import SUITE
    from kernel_gym.exploits.loader import load_exploits
    from kernel_gym.exploits.mutation import honest_variants
    from kernel_gym.exploits.mutation import variants as drawn
    from kernel_gym.exploits.runner import runs_on

    count, _, seed = (argument or "300/0").partition("/")
    exploits = [one for one in load_exploits(SUITE) if runs_on(one, device)]
    exploits = [one for one in exploits if one.task.language == "triton"]
    tasks = list({one.task.id: one.task for one in exploits}.values())
    fair = honest_variants(tasks, -(-int(count) // 10), int(seed or 0))
    return _played(device, [*fair, *drawn(exploits, int(count), int(seed or 0))])


def problems(device: str, argument: str) -> bool:
    """Evaluates the kernels of own tasks in Triton, some evaluators at a time.

    The argument is a list of patterns of problems with commas between them, in the order of play.
    """
    from kernel_gym.exploits.loader import Honest
    from kernel_gym.exploits.runner import runs_on
    from kernel_gym.tasks import get_task, task_ids

    every = [name for name in task_ids() if name.startswith("triton2triton/")]
    patterns = [f"triton2triton/{pattern}" for pattern in (argument or "*").split(",")]
    names = list(dict.fromkeys(n for p in patterns for n in fnmatch.filter(every, p)))
    tasks = [task for task in map(get_task, names) if not task.problem.suite]
    chosen = [Honest(task.id, task, task.kernel_source) for task in tasks]
    return _played(device, [one for one in chosen if runs_on(one, device)])


def _played(device: str, candidates: list[Any]) -> bool:
    """Plays candidates; prints those that are judged wrongly, and counts."""
    from kernel_gym.executors import make_executor
    from kernel_gym.exploits.runner import run

    played = right = 0
    worst = 0.0
    outcomes: dict[str, int] = {}
    started = time.monotonic()
    workers = _evaluators(device)
    with make_executor("local", device=device, workers=workers, seed=None) as executor:
        for finding in run(executor, candidates):
            record = finding.evaluation
            played, right = played + 1, right + finding.right
            outcomes[str(record.outcome)] = outcomes.get(str(record.outcome), 0) + 1
            low = max([c.speedup_low for c in finding.controls if c.speedup_low], default=1.0)
            if record.speedup_low:
                worst = max(worst, record.speedup_low / low)
            paid = [c.speedup_low for c in (record, *finding.controls)]
            text = f"{record.outcome} {paid} {'' if finding.right else _reason(record)}"
            verdict = "right" if finding.right else "WRONG"
            print(f"{verdict} {finding.candidate.name}: {text}", flush=True)
            if time.monotonic() > END[0]:
                print(f"stopped: no time for {len(candidates) - played} more")
                break
    minutes = (time.monotonic() - started) / 60
    print(
        f"{right} of {played} judged rightly, {played / minutes:.0f} a minute; {outcomes}; "
        f"most that was paid, in times of the control: {worst:.3f}",
        flush=True,
    )
    return right == played


def _reason(record: Any) -> str:
    """Returns the message of a record, and of the workload that failed first."""
    failed = next((w for w in record.workloads if w.message), None)
    where = f"; {failed.dims} {failed.distribution}: {failed.message[:200]}" if failed else ""
    return f"{record.message[:160]}{where}"


def _evaluators(device: str) -> int:
    """Returns how many evaluators the GPU's memory has room for."""
    import torch

    memory = torch.cuda.get_device_properties(device).total_memory
    return max(1, min(MAX_EVALUATORS, memory // EVALUATOR_BYTES))


def clock(device: str, _: str) -> bool:
    """Compares kernels with themselves and with slightly longer ones."""
    from kernel_gym.devices import open_device

    with closing(open_device(device)) as gpu:
        for microseconds, share in ((90.0, 0.01), (5.0, 0.03)):
            count, slope = _count_for(gpu, microseconds * 1e-6)
            same = [_compared(gpu, count, count, seed) for seed in range(AA_COMPARISONS)]
            longer = max(count + 1, round(count + share * microseconds * 1e-6 / slope))
            other = [_compared(gpu, count, longer, seed) for seed in range(AA_COMPARISONS // 2)]
            _print_clock(microseconds, share, same, other)
    return True


def _count_for(gpu: Any, seconds: float) -> tuple[int, float]:
    """Returns the iterations of a kernel that takes so long, and the seconds of one."""
    counts = (200, 20_000)
    times = [_compared(gpu, count, count, 1)[2] for count in counts]
    slope = (times[1] - times[0]) / (counts[1] - counts[0])
    print(f"spin: {times[0] * 1e6:.2f} us at {counts[0]}, {slope * 1e9:.3f} ns an iteration")
    return max(1, round(counts[0] + (seconds - times[0]) / slope)), slope


def _compared(gpu: Any, first: int, second: int, seed: int) -> tuple[float, float, float]:
    """Returns mean and half-width of log(baseline / candidate), and the candidate's seconds."""
    from kernel_gym.devices.base import Exclusivity
    from kernel_gym.judge.protocol import TIMING
    from kernel_gym.judge.timing.comparison import compare_sessions
    from kernel_gym.judge.timing.deferred_checks import DeferredChecks
    from kernel_gym.judge.timing.paired import PairedResult
    from kernel_gym.tasks import get_task, train_workloads

    task = get_task("triton2triton/softmax")
    workload = train_workloads(task.problem, gpu.description.scale)[0]
    with (
        closing(_spinning(gpu, task, first)) as one,
        closing(_spinning(gpu, task, second)) as two,
        gpu.held(Exclusivity.ALONE),
    ):
        result = compare_sessions(task, workload, one, two, seed, gpu, DeferredChecks())
    assert isinstance(result, PairedResult), result
    assert result.slowed <= TIMING.max_beside_share, result
    PAIRS.append(len(result.effects))
    return result.interval.mean, result.interval.half, result.candidate_seconds


def _spinning(gpu: Any, task: Any, count: int) -> Any:
    session = gpu.open(task, trusted=True)
    failed = session.load(SPIN.replace("COUNT", str(count)))
    assert failed is None, failed
    return session


def _print_clock(microseconds: float, share: float, same: list[Any], other: list[Any]) -> None:
    halves = [half for _, half, _ in same]
    covered = sum(abs(mean) <= half for mean, half, _ in same) / len(same)
    told = sum(mean + half < 0 for mean, half, _ in other) / len(other)
    print(
        f"{microseconds:5.0f} us: A/A half-width median {statistics.median(halves):.3%} "
        f"worst {max(halves):.3%}, |mean| median {statistics.median(abs(m) for m, *_ in same):.3%}"
        f", coverage {covered:.0%} of {len(same)}; {share:.1%} more work told {told:.0%} of "
        f"{len(other)}, mean {statistics.fmean(m for m, *_ in other):.3%}; "
        f"call {same[0][2] * 1e6:.2f} us, pairs {statistics.fmean(PAIRS):.1f}",
        flush=True,
    )


def rate(device: str, argument: str) -> bool:
    """Counts evaluations a minute of start kernels with some evaluators at a time."""
    workers = int(argument or 4)
    context = multiprocessing.get_context("spawn")
    done = context.Queue()
    begin = context.Barrier(workers + 1)
    names = ("softmax", "layer_norm", "matmul", "cumsum", "row_argmax", "grad_norm_clip")
    jobs = [f"triton2triton/{name}" for name in names]
    processes = [
        context.Process(target=_rate_worker, args=(device, jobs, number, begin, done))
        for number in range(workers)
    ]
    for process in processes:
        process.start()
    begin.wait()
    started = time.monotonic()
    records = [done.get() for _ in range(workers * len(jobs))]
    seconds = time.monotonic() - started
    for process in processes:
        process.join()
    outcomes = [outcome for outcome, _ in records]
    stages: dict[str, float] = {}
    for _, wall in records:
        for stage, value in wall.items():
            stages[stage] = stages.get(stage, 0.0) + value / len(records)
    text = ", ".join(f"{stage} {value:.2f}" for stage, value in stages.items())
    held = sum(stages.get(stage, 0.0) for stage in HELD_STAGES)
    print(f"{len(records) / seconds * 60:.1f} evaluations a minute; seconds by stage: {text}")
    print(f"an evaluation holds the GPU for {held:.2f} s ({', '.join(HELD_STAGES)})")
    print({one: outcomes.count(one) for one in set(outcomes)})
    return set(outcomes) == {"passed"}


def _rate_worker(device: str, jobs: list[str], number: int, begin: Any, done: Any) -> None:
    from kernel_gym.evaluator import Evaluator
    from kernel_gym.executors.process import end_with_parent
    from kernel_gym.tasks import get_task

    end_with_parent()
    with Evaluator(device, seed=number) as judge:
        task = get_task(jobs[number % len(jobs)])
        judge.evaluate(task, task.start_source)  # loads and warms up
        begin.wait()
        for shift in range(len(jobs)):
            task = get_task(jobs[(number + shift) % len(jobs)])
            record = judge.evaluate(task, task.start_source)
            done.put((str(record.outcome), dict(record.wall_seconds)))


def _shown(record: Any, name: str = "") -> bool:
    """Prints a record; returns whether it has passed."""
    wall = json.dumps({k: round(v, 2) for k, v in record.wall_seconds.items()})
    paid = f"{record.speedup:.3f} {record.speedup_low:.3f}" if record.speedup else "-"
    passed = str(record.outcome) == "passed"
    text = "" if passed else f"{record.message[:200]} {record.detail[-300:]}"
    print(f"{name or record.task:36} {record.outcome} {paid} {wall} {text}", flush=True)
    return passed


PARTS = {
    "smoke": smoke,
    "starts": starts,
    "clock": clock,
    "attacks": attacks,
    "honest": honest,
    "rate": rate,
    "variants": variants,
    "problems": problems,
}

if __name__ == "__main__":
    sys.exit(main())
