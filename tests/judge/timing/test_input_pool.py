"""The ring of timed calls, over host memory: new data for each block, which the judge knows."""

import itertools
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from kernel_gym.devices.gpu import runtime as gpu_runtime
from kernel_gym.devices.gpu.arena import GpuArena
from kernel_gym.judge.protocol import POOL
from kernel_gym.judge.timing import input_pool
from kernel_gym.judge.timing.input_pool import InputPool
from kernel_gym.tasks import Scale, get_task, train_workloads

SIZE = 8 << 20
SOFTMAX, SGD, CHOLESKY, SCATTER, LAYER_NORM = (
    get_task(f"torch2triton/{name}")
    for name in (
        "softmax",
        "sgd_momentum_step",
        "batched_cholesky",
        "scatter_add_rows",
        "layer_norm",
    )
)


@pytest.fixture
def arena(monkeypatch):
    memory = torch.zeros(SIZE, dtype=torch.uint8)
    for name, call in {
        "allocate": lambda size: 1,
        "free": lambda address: None,
        "export": lambda address: b"",
        "as_tensor": lambda address, size: memory,
    }.items():
        monkeypatch.setattr(gpu_runtime, name, call)
    return GpuArena(SIZE)


@pytest.fixture
def session():
    changed = []
    return SimpleNamespace(
        mark_changed=changed.extend, poison_outputs=lambda sets: None, pieces=changed
    )


def _ring(task, arena, sets=3, distribution="normal", dims=None):
    workload = train_workloads(task.problem, Scale.SIM)[0]
    workload = replace(workload, distribution=distribution, dims=dims or workload.dims)
    return InputPool(task, workload, 5, arena, torch.device("cpu"), most=sets)


def _in_arena(arena, ring, name):
    """The input of each set, as a worker sees it."""
    result = []
    for placed in ring.sets:
        like = placed.inputs[name]
        result.append(arena.view(placed.pieces[name]).view(like.dtype).view(like.shape).clone())
    return result


def _verified(ring, calls):
    """Records the inputs that the judge uses for the calls that it verifies."""
    taken = []
    candidate = SimpleNamespace(read_outputs=lambda call, calls, placed: taken.append(call))
    kept = SimpleNamespace(add=lambda p, w, inputs, o: taken.append(inputs), full=False)
    for _ in range(20):
        assert ring.verify(candidate, calls, kept) is None
    return list(zip(taken[::2], taken[1::2], strict=True))


def test_each_block_of_the_candidate_finds_every_value_elsewhere(arena, session):
    ring = _ring(SOFTMAX, arena)
    before = _in_arena(arena, ring, "x")
    for _ in range(3):
        ring.prepare(session, 3, fresh=True)
        after = _in_arena(arena, ring, "x")
        for old, new in zip(before, after, strict=True):
            assert (old == new).double().mean() < 0.1
            assert torch.equal(old.view(-1).sort().values, new.view(-1).sort().values)
        before = after


def test_constant_rows_move_as_a_whole(arena, session):
    ring = _ring(SOFTMAX, arena, distribution="constant_rows")
    before = _in_arena(arena, ring, "x")
    ring.prepare(session, 3, fresh=True)
    for old, new in zip(before, _in_arena(arena, ring, "x"), strict=True):
        assert torch.equal(new, new[:, :1].expand_as(new))
        assert not torch.equal(old, new)
        assert torch.equal(old[:, 0].sort().values, new[:, 0].sort().values)


def test_what_is_not_constant_moves_by_elements_beside_constant_rows(arena, session):
    ring = _ring(LAYER_NORM, arena, distribution="constant_rows")
    result = _in_arena(arena, ring, "weight")
    assert len(result[0].unique()) > 1
    ring.prepare(session, 3, fresh=True)
    for old, new in zip(result, _in_arena(arena, ring, "weight"), strict=True):
        assert not torch.equal(old, new)


def test_what_is_verified_is_what_was_there(arena, session):
    ring = _ring(SOFTMAX, arena)
    ring.prepare(session, 2, fresh=True)
    there = _in_arena(arena, ring, "x")
    verified = _verified(ring, 2)
    assert {index for index, _ in verified} == {0, 1}
    assert all(torch.equal(inputs["x"], there[index]) for index, inputs in verified)


def test_a_kernel_that_writes_its_inputs_does_not_change_what_is_verified(arena, session):
    ring = _ring(SOFTMAX, arena)
    ring.prepare(session, 3, fresh=True)
    there = _in_arena(arena, ring, "x")
    for placed in ring.sets:
        arena.view(placed.pieces["x"]).zero_()
    assert all(torch.equal(inputs["x"], there[index]) for index, inputs in _verified(ring, 3))


def test_only_sets_that_the_block_uses_are_written(arena, session):
    ring = _ring(SOFTMAX, arena)
    before = _in_arena(arena, ring, "x")
    ring.prepare(session, 2, fresh=True)
    after = _in_arena(arena, ring, "x")
    assert [torch.equal(a, b) for a, b in zip(before, after, strict=True)] == [False, False, True]
    assert session.pieces == [placed.pieces["x"] for placed in ring.sets[:2]]


def test_the_baseline_finds_what_was_there_unless_calls_overwrite_it(arena, session):
    ring = _ring(SOFTMAX, arena)
    there = _in_arena(arena, ring, "x")
    arena.view(ring.sets[0].pieces["x"]).zero_()  # as the candidate may do while it warms up
    ring.prepare(session, 3, fresh=False)
    again = _in_arena(arena, ring, "x")
    assert all(torch.equal(a, b) for a, b in zip(again, there, strict=True))
    session.pieces.clear()
    ring.prepare(session, 3, fresh=False)
    assert session.pieces == []
    ring = _ring(SGD, arena)
    ring.prepare(session, 3, fresh=True)
    before = {name: _in_arena(arena, ring, name) for name in ring.sets[0].pieces}
    for placed in ring.sets:
        arena.view(placed.pieces["param"]).zero_()
    session.pieces.clear()
    ring.prepare(session, 3, fresh=False)
    for name, values in before.items():
        assert all(map(torch.equal, _in_arena(arena, ring, name), values))
    written = {piece.label for piece in session.pieces}
    assert written == {f"input {name!r}" for name in ("param", "grad", "velocity")}


@pytest.mark.parametrize(("task", "name"), [(CHOLESKY, "a"), (SCATTER, "ids")])
def test_inputs_that_cannot_be_rotated_are_drawn_again(arena, session, task, name):
    ring = _ring(task, arena)
    known = [value.view(-1).sort().values for value in _in_arena(arena, ring, name)]
    for _ in range(2):
        ring.prepare(session, 3, fresh=True)
        there = _in_arena(arena, ring, name)
        assert all(torch.equal(inputs[name], there[at]) for at, inputs in _verified(ring, 3))
        now = [value.view(-1).sort().values for value in there]
        assert not any(torch.equal(a, b) for a in known for b in now)
        known += now


def test_a_single_constant_row_is_drawn_again(arena, session):
    ring = _ring(SOFTMAX, arena, distribution="constant_rows", dims={"rows": 1, "cols": 64})
    before = _in_arena(arena, ring, "x")
    ring.prepare(session, 3, fresh=True)
    for old, new in zip(before, _in_arena(arena, ring, "x"), strict=True):
        assert not torch.equal(old, new)


def test_short_calls_have_copies_that_are_rotated_one_by_one(arena, session, monkeypatch):
    monkeypatch.setattr(input_pool, "POOL", replace(POOL, small_sets=3, most_sets=8))
    ring = _ring(SOFTMAX, arena, sets=0, dims={"rows": 4, "cols": 64})
    assert len(ring.sets) == 8
    for _ in range(2):
        ring.prepare(session, 8, fresh=True)
        there = _in_arena(arena, ring, "x")
        assert not any(torch.equal(a, b) for a, b in itertools.combinations(there, 2))
        assert torch.equal(*(there[i].view(-1).sort().values for i in (1, 7)))
        assert all(torch.equal(inputs["x"], there[at]) for at, inputs in _verified(ring, 8))


def test_what_calls_overwrite_is_restored_where_it_cannot_move(arena, session, monkeypatch):
    monkeypatch.setattr(type(SGD.problem), "exchangeable", False)
    ring = _ring(SGD, arena)
    ring.prepare(session, 3, fresh=True)
    before = _in_arena(arena, ring, "param")
    for placed in ring.sets:
        arena.view(placed.pieces["param"]).zero_()
    ring.prepare(session, 3, fresh=False)
    assert all(map(torch.equal, _in_arena(arena, ring, "param"), before))
