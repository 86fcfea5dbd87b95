"""Judge and worker of a GPU, over host memory: timed calls are checked."""

import math
import os
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from kernel_gym.commands.bench import gpu as bench_gpu
from kernel_gym.devices.base import DeviceLostError, Failed, InfraError, MemoryUsedUpError
from kernel_gym.devices.gpu import alternation
from kernel_gym.devices.gpu import runtime as gpu_runtime
from kernel_gym.devices.gpu import session as gpu_session
from kernel_gym.devices.gpu.device import GpuDevice
from kernel_gym.devices.gpu.host import Host
from kernel_gym.devices.gpu.session import GpuSession
from kernel_gym.devices.gpu.vendors import CUDA, data_sheet
from kernel_gym.judge.attempt import Attempt, Verdict
from kernel_gym.judge.expected import answer, compare
from kernel_gym.judge.protocol import CLOCK, TIMING
from kernel_gym.judge.timing import gpu as measured
from kernel_gym.judge.timing import paired
from kernel_gym.judge.timing import warmup as first_use
from kernel_gym.judge.timing.deferred_checks import DeferredChecks
from kernel_gym.judge.timing.gpu import PairedMethod, compare_sessions, seconds_alone
from kernel_gym.judge.timing.paired import PairedResult
from kernel_gym.records import Outcome
from kernel_gym.storage.secret import PUBLIC
from kernel_gym.tasks import Scale, get_task, make_inputs, train_workloads
from tests.judge.timing.on_host import Event, Worker

SOFTMAX, ADAMW = get_task("torch2triton/softmax"), get_task("torch2triton/adamw_step")
DEVICE = SimpleNamespace(
    description=SimpleNamespace(
        name="cuda:0", torch_device=torch.device("cpu"), spec=data_sheet("NVIDIA H200")
    ),
    synchronize=lambda: None,
    free_unused_memory=lambda: None,
)
REMEMBERS = """
import torch
answers = {}
def softmax(x):
    if x.data_ptr() not in answers:
        answers[x.data_ptr()] = torch.softmax(x.float(), 1).to(x.dtype)
    return answers[x.data_ptr()].clone()
"""


COMPARES = """
import torch
seen = {}
def softmax(x):
    old = seen.get(x.data_ptr())
    if old is not None and old.shape == x.shape and torch.equal(old, x):
        repeated.append(x.data_ptr())
    seen[x.data_ptr()] = x.clone()
    return torch.softmax(x.float(), 1).to(x.dtype)
repeated = []
"""


def _host(arena):
    return Host(arena, CUDA, "sm_90a", {})


def _session(arena, task, source=None):
    released = []
    session = GpuSession(task, Worker(arena), _host(arena), released.append)
    assert session.load(source or task.reference_source, "torch") is None
    return session, released


def _workload(task):
    return train_workloads(task.problem, Scale.SIM)[0]


def _compare(arena, task, source=None):
    sessions = [_session(arena, task)[0], _session(arena, task, source)[0]]
    kept = DeferredChecks()
    return compare_sessions(task, _workload(task), *sessions, 3, DEVICE, kept), kept


def test_a_call_gives_its_values_and_leaves_the_inputs(arena):
    workload = _workload(SOFTMAX)
    inputs = make_inputs(SOFTMAX.problem, workload, 0)
    session, released = _session(arena, SOFTMAX)
    call = session.call(inputs, workload.dims)
    outputs = tuple(output.tensor for output in call.outputs)
    assert compare(SOFTMAX.problem, answer(SOFTMAX.problem, inputs), outputs).passed
    assert call.modified_inputs == ()
    session.close()
    assert len(released) == 1


def test_changed_inputs_are_seen(arena):
    workload = _workload(SOFTMAX)
    source = "def softmax(x):\n    x[0, 0] = 7\n    return x.softmax(1)"
    session, _ = _session(arena, SOFTMAX, source)
    call = session.call(make_inputs(SOFTMAX.problem, workload, 0), workload.dims)
    assert call.modified_inputs == ("x",)


@pytest.mark.parametrize("task", [SOFTMAX, ADAMW], ids=str)
def test_timed_calls_are_right_on_every_input_set(arena, task):
    result, kept = _compare(arena, task)
    assert isinstance(result, PairedResult)
    assert kept.check() == ""


def test_answers_remembered_by_address_are_wrong_in_a_timed_call(arena):
    result, kept = _compare(arena, SOFTMAX, REMEMBERS)
    assert isinstance(result, PairedResult)
    assert "wrong values in a timed call" in kept.check()
    assert kept.check() == ""


def test_the_workload_of_a_wrong_timed_call_fails(arena):
    _, kept = _compare(arena, SOFTMAX, REMEMBERS)
    attempt = Attempt(SOFTMAX, "", DEVICE, 0, PUBLIC, None, None)
    attempt.deferred = kept
    other = replace(_workload(SOFTMAX), distribution="uniform")
    for workload in (other, _workload(SOFTMAX)):
        attempt.note(workload, passed=True)
    text = attempt.check_deferred()
    assert [(r.passed, r.message) for r in attempt.results] == [(True, ""), (False, text)]


@pytest.mark.parametrize("graph_below", [0.0, 100.0], ids=["calls", "replays"])
def test_no_timed_call_of_a_candidate_sees_data_that_an_earlier_one_saw(
    arena, monkeypatch, graph_below
):
    long = {"block_seconds": 100.0, "long_call_seconds": 100.0}  # all input sets in a block
    timing = replace(paired.TIMING, graph_below_seconds=graph_below, max_pairs=8, **long)
    monkeypatch.setattr(paired, "TIMING", timing)
    baseline, candidate = (_session(arena, SOFTMAX, source)[0] for source in (None, COMPARES))
    seen = candidate._worker.inside.candidate.__globals__
    capture = candidate.capture_graph

    def capture_graph():
        failed = capture()
        seen["repeated"].clear()  # on the host a capture runs its calls, on a GPU it does not
        return failed

    monkeypatch.setattr(candidate, "capture_graph", capture_graph)
    sessions = baseline, candidate
    result = compare_sessions(SOFTMAX, _workload(SOFTMAX), *sessions, 3, DEVICE, DeferredChecks())
    assert isinstance(result, PairedResult)
    assert result.graph == (graph_below > 0)
    assert len(seen["seen"]) == 4
    assert seen["repeated"] == []


def test_when_much_is_kept_it_is_checked_at_once(arena, monkeypatch):
    monkeypatch.setattr("kernel_gym.judge.timing.deferred_checks.MOST_BYTES", 0)
    result, _ = _compare(arena, SOFTMAX, REMEMBERS)
    assert isinstance(result, Verdict)
    assert "wrong values" in result.message


@pytest.mark.parametrize(("free", "error"), [(1 << 30, InfraError), (90 << 30, DeviceLostError)])
def test_memory_that_others_hold_is_not_blamed_on_a_candidate(arena, monkeypatch, free, error):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (free, 100 << 30))
    session, _ = _session(arena, SOFTMAX, "def softmax(x): raise RuntimeError('out of memory')")
    workload = _workload(SOFTMAX)
    with pytest.raises(InfraError) as result:
        session.call(make_inputs(SOFTMAX.problem, workload, 0), workload.dims)
    assert type(result.value) is error


@pytest.mark.parametrize(
    ("says", "error"), [("out of memory", MemoryUsedUpError), ("CUDA error", Failed)]
)
def test_memory_that_a_baseline_did_not_get_is_not_blamed_on_it(arena, says, error):
    """The outcome does not depend on who holds the memory."""
    session, _ = _session(arena, SOFTMAX, f"def softmax(x): raise RuntimeError('{says}')")
    session._worker.trusted = True
    workload = _workload(SOFTMAX)
    try:
        result = session.call(make_inputs(SOFTMAX.problem, workload, 0), workload.dims)
    except InfraError as raised:
        result = raised
    assert type(result) is error
    assert session._worker.closed


def test_what_comes_free_with_a_candidate_is_what_it_held(arena, monkeypatch):
    session, released = _session(arena, SOFTMAX)
    worker = session._worker
    left = {False: 1 << 30, True: 41 << 30}
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (left[worker.closed], 100 << 30))
    assert session.evict() == 40 << 30
    workload = _workload(SOFTMAX)
    result = session.call(make_inputs(SOFTMAX.problem, workload, 0), workload.dims)
    assert isinstance(result, Failed)
    session.close()
    assert released == []


@pytest.mark.parametrize(
    ("free", "kept", "broken", "usable"),
    [(2, 6, "", False), (2, 16, "", True), (14, 0, "", True), (90, 0, "No GPUs", False)],
    ids=["full", "kept without use", "free", "no context"],
)
def test_a_gpu_is_usable_when_a_source_of_ours_could_use_it(
    arena, monkeypatch, free, kept, broken, usable
):
    def init():
        if broken:
            raise RuntimeError(broken)

    monkeypatch.setattr(torch.cuda, "init", init)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (free << 30, 100 << 30))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda: (kept + 3) << 30)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda: 3 << 30)
    workers = []

    def start(trusted):
        assert trusted
        workers.append(Worker(arena))
        return workers[-1]

    device = SimpleNamespace(_start=start, _host=_host(arena))
    assert GpuDevice.usable(device, SOFTMAX) is usable
    assert all(worker.closed for worker in workers)


def test_one_worker_takes_one_source_after_another(arena):
    released, workload = [], _workload(ADAMW)
    worker = Worker(arena)
    for task in (SOFTMAX, ADAMW):
        session = GpuSession(task, worker, _host(arena), released.append)
        assert session.load(task.reference_source, "torch") is None
    inputs = make_inputs(ADAMW.problem, workload, 0)
    call = session.call(inputs, workload.dims)
    outputs = tuple(output.tensor for output in call.outputs)
    assert compare(ADAMW.problem, answer(ADAMW.problem, inputs), outputs).passed


def test_a_failed_worker_is_not_used_again(arena):
    session, released = _session(arena, SOFTMAX, "def softmax(x): raise RuntimeError('CUDA error')")
    workload = _workload(SOFTMAX)
    session.call(make_inputs(SOFTMAX.problem, workload, 0), workload.dims)
    session.close()
    assert released == []


@pytest.mark.parametrize("task", [SOFTMAX, ADAMW], ids=str)
def test_a_reference_is_timed_by_itself(arena, task):
    session, _ = _session(arena, task)
    seconds = seconds_alone(task, _workload(task), session, 0, DEVICE)
    start = time.perf_counter()
    task.problem.reference(**make_inputs(task.problem, _workload(task), 0))
    assert 0 < seconds < 1000 * (time.perf_counter() - start)


def test_a_reference_that_fails_says_why(arena):
    session, _ = _session(arena, SOFTMAX, "def softmax(x): raise ValueError('no such kernel')")
    result = seconds_alone(SOFTMAX, _workload(SOFTMAX), session, 0, DEVICE)
    assert isinstance(result, Failed)
    assert "no such kernel" in result.message


class Counted:
    """A baseline that notes what is called."""

    def __init__(self, session):
        self.calls, self._session = [], session

    def call(self, task, inputs, dims):
        self.calls.append(dict(dims))
        return self._session.call(inputs, dims)


@pytest.mark.parametrize("source", [None, "def softmax(x): raise ValueError('later')"])
def test_what_judges_a_task_is_called_once_before_the_gpu_is_needed(arena, monkeypatch, source):
    monkeypatch.setattr(first_use, "_warm", set())
    attempt = SimpleNamespace(
        task=SOFTMAX, device=DEVICE, baseline=Counted(_session(arena, SOFTMAX, source)[0])
    )
    for _ in range(2):
        first_use.warm_up(attempt)
    assert attempt.baseline.calls == [dict(_workload(SOFTMAX).dims)]


def test_an_operator_that_refuses_a_small_workload_is_logged_and_costs_nothing(
    arena, monkeypatch, caplog
):
    def refuse(*_):
        raise RuntimeError("not implemented for so few")

    monkeypatch.setattr(first_use, "_warm", set())
    monkeypatch.setattr(first_use, "answer", refuse)
    session = _session(arena, SOFTMAX)[0]
    attempt = SimpleNamespace(task=SOFTMAX, device=DEVICE, baseline=Counted(session))
    first_use.warm_up(attempt)
    assert "torch2triton/softmax was not warmed up: not implemented" in caplog.text


@pytest.mark.parametrize(("free", "crowded"), [(24 << 30, True), (26 << 30, False)])
def test_a_gpu_is_crowded_when_less_than_a_quarter_is_free(monkeypatch, free, crowded):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (free, 100 << 30))
    assert gpu_runtime.crowded() is crowded


class Clock:
    """The judge's clock. Only timed blocks take time on it, a millisecond for each call."""

    now = 0.0

    def perf_counter(self):
        return self.now


class Late(Worker):
    """A worker whose timed blocks take half a minute more, until it has moved often enough."""

    def __init__(self, arena, clock, moves=0):
        super().__init__(arena)
        self.clock, self.moves, self.moved, self.sets = clock, moves, 0, []

    def request(self, header, timeout, spin):
        self.moved += header["do"] == "change_cpu"
        if header["do"] == "use_inputs":
            self.sets.append(len(header["sets"]))
        if header["do"] in ("block", "replay"):
            late = 30.0 if self.moved < self.moves else 0.0
            calls = header["count"] if header["do"] == "block" else self.sets[-1]
            self.clock.now += calls * 1e-3 + 3e-4 + late
        return super().request(header, timeout, spin)


@pytest.mark.parametrize("limit", [(1e-3, 0.5), (1e9, 0.0)], ids=["a workload", "all"])
@pytest.mark.parametrize(("moves", "judged"), [(1, False), (2, False), (9, True)])
def test_a_candidate_that_is_late_is_timed_again_in_longer_blocks_on_another_processor(
    arena, monkeypatch, limit, moves, judged
):
    monkeypatch.setattr(measured, "noise_floor", lambda *_: 0.0)
    monkeypatch.setattr("kernel_gym.judge.timing.host_load.LIMIT", 0)
    monkeypatch.setattr(paired, "TIMING", replace(TIMING, max_seconds=0))
    seconds, share = limit
    check = replace(CLOCK, block_seconds=seconds, block_share=share, charge_limit=math.inf)
    monkeypatch.setattr(paired, "CLOCK", check)
    monkeypatch.setattr(Event, "elapsed_time", lambda start, end: 1.0)
    clock = Clock()
    late, punctual = Late(arena, clock, moves), Late(arena, clock)
    monkeypatch.setattr(gpu_session, "time", clock)
    monkeypatch.setattr(alternation, "time", clock)
    session = GpuSession(SOFTMAX, late, _host(arena), lambda worker: None)
    assert session.load(SOFTMAX.reference_source, "torch") is None
    ours = GpuSession(SOFTMAX, punctual, _host(arena), lambda worker: None)
    assert ours.load(SOFTMAX.reference_source, "torch") is None
    baseline = SimpleNamespace(session=lambda task: ours)
    attempt = Attempt(SOFTMAX, "", DEVICE, 0, PUBLIC, baseline, None, session=session)
    attempt.note(_workload(SOFTMAX), passed=True)
    verdict = PairedMethod().time(attempt)
    if judged:
        assert verdict.outcome is Outcome.INVALID_TIMING
        assert late.moved == 2
    else:
        assert verdict is None
        assert late.moved == moves
        assert attempt.results[0].speedup
    assert late.sets == [4] + [4 * CLOCK.retry_block_factor] * late.moved
    assert attempt.labels == ["late: timed again"]


def test_a_worker_moves_to_another_processor_and_may_use_all_again(arena, monkeypatch):
    session, _ = _session(arena, SOFTMAX)
    allowed, asked = os.sched_getaffinity(0), []
    take = os.sched_setaffinity
    monkeypatch.setattr(os, "sched_setaffinity", lambda *to: (asked.append(to), take(*to)))
    session.move_to_other_cpu()
    assert os.sched_getaffinity(0) == allowed
    if len(allowed) > 1:
        (_, first), (_, last) = asked
        assert len(first) == len(allowed) - 1
        assert last == allowed


@pytest.mark.parametrize("noise", [0.0, 1e9])
def test_the_bench_judges_the_interval_of_a_comparison_and_that_of_a_record(arena, noise):
    sessions = [_session(arena, SOFTMAX)[0] for _ in range(2)]
    dims = _workload(SOFTMAX).dims
    result = bench_gpu._summarise(DEVICE, SOFTMAX, dims, 0.0, noise, *sessions, 3)
    if noise:
        assert (result["covered_in_record"], result["told_apart_in_record"]) == (1.0, 0.0)
    else:
        assert result["covered_in_record"] == result["covered"]
        assert result["told_apart_in_record"] == result["told_apart"]


class Forger(Worker):
    """A worker whose answers to timed blocks are not what they should be."""

    def __init__(self, arena, change):
        super().__init__(arena)
        self.change = change

    def request(self, header, timeout, spin):
        timed = header["do"] in ("block", "replay")
        result = super().request(header, timeout, spin)
        return SimpleNamespace(header=result.header | self.change) if timed else result


@pytest.mark.parametrize(
    "change",
    [
        {"ms": []},
        {"ms": [math.inf] * 3},
        {"ms": [5e-324] * 3},
        {"ms": [0.01] * 40 + [3.0]},
        {"host": math.nan},
    ],
    ids=str,
)
def test_false_stamps_are_the_candidates_failure(arena, change):
    candidate = GpuSession(SOFTMAX, Forger(arena, change), _host(arena), lambda worker: None)
    assert candidate.load(SOFTMAX.reference_source, "torch") is None
    sessions = _session(arena, SOFTMAX)[0], candidate
    result = compare_sessions(SOFTMAX, _workload(SOFTMAX), *sessions, 3, DEVICE, DeferredChecks())
    assert isinstance(result, Failed)
    assert "broke the protocol" in result.message


DELIVERS_LATER = """
import torch
late = [False]
def softmax(x):
    return torch.softmax(x.float(), 1).to(x.dtype) if late[0] else torch.zeros_like(x)
"""


class WorksAtDelivery(Worker):
    """Computes the outputs of a timed call once the judge wants to see them."""

    def request(self, header, timeout, spin):
        inside = self.inside
        if header["do"] == "copy_outputs":
            inside.candidate.__globals__["late"][0] = True
            inside.returned[-1 - header["calls"][0]] = inside._run(inside.input_sets[0])
        return super().request(header, timeout, spin)


def test_outputs_are_read_as_they_were_when_the_block_ended(arena):
    if arena.file is not None:
        pytest.skip("the worker has to be asked for its outputs here")
    candidate = GpuSession(SOFTMAX, WorksAtDelivery(arena), _host(arena), lambda worker: None)
    assert candidate.load(DELIVERS_LATER, "torch") is None
    kept = DeferredChecks()
    sessions = _session(arena, SOFTMAX)[0], candidate
    compare_sessions(SOFTMAX, _workload(SOFTMAX), *sessions, 3, DEVICE, kept)
    assert "wrong values in a timed call" in kept.check()


class Overwrites(Worker):
    """Changes all inputs after each of its blocks."""

    def request(self, header, timeout, spin):
        result = super().request(header, timeout, spin)
        if header["do"] in ("block", "replay", "use_inputs"):
            for values in self.inside.input_sets:
                values[0].fill_(1)
        return result


class Watches(Worker):
    """Notes which inputs its blocks are given."""

    def __init__(self, arena):
        super().__init__(arena)
        self.spoiled = []

    def request(self, header, timeout, spin):
        if header["do"] in ("block", "replay"):
            used = self.inside.input_sets[: header["count"] if header["do"] == "block" else None]
            self.spoiled += [bool((values[0] == 1).all()) for values in used]
        return super().request(header, timeout, spin)


def test_the_baseline_never_sees_inputs_that_the_candidate_has_changed(arena):
    watches, overwrites = Watches(arena), Overwrites(arena)
    sessions = [
        GpuSession(SOFTMAX, worker, _host(arena), lambda worker: None)
        for worker in (watches, overwrites)
    ]
    for session in sessions:
        assert session.load(SOFTMAX.reference_source, "torch") is None
    compare_sessions(SOFTMAX, _workload(SOFTMAX), *sessions, 3, DEVICE, DeferredChecks())
    assert watches.spoiled
    assert not any(watches.spoiled)


def test_a_worker_runs_only_in_its_turn_and_is_free_afterwards(arena):
    workers = [Worker(arena), Worker(arena)]
    seen = []

    def watch(worker, other):
        request = worker.request
        worker.request = lambda *args, **kwargs: (
            seen.append(other.running),
            request(*args, **kwargs),
        )[1]

    sessions = [GpuSession(SOFTMAX, w, _host(arena), lambda worker: None) for w in workers]
    for session in sessions:
        assert session.load(SOFTMAX.reference_source, "torch") is None
    watch(*workers)
    watch(*reversed(workers))
    compare_sessions(SOFTMAX, _workload(SOFTMAX), *sessions, 3, DEVICE, DeferredChecks())
    assert seen
    assert not any(seen)
    assert all(worker.running for worker in workers)
