"""A GPU worker in the process of a test, over host memory."""

import ctypes
import json
import time
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from types import SimpleNamespace

import torch
from torch.overrides import TorchFunctionMode

from kernel_gym.devices.gpu import runtime as gpu_runtime
from kernel_gym.devices.gpu.arena import GpuArena
from kernel_gym.judge.protocol import POOL, TIMING
from kernel_gym.judge.timing import input_pool, paired
from kernel_gym.worker.gpu.launches import Launches
from kernel_gym.worker.gpu.main import GpuWorker

SIZE = 32 << 20
"""Bytes of the arena."""


class OnTheHost(TorchFunctionMode):
    """Tensors for a GPU are made on the host."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func == torch.Tensor.is_cuda.__get__:
            return True
        if str(kwargs.get("device", "")).startswith("cuda"):
            kwargs["device"] = "cpu"
        return func(*args, **kwargs)


class Event:
    def __init__(self, enable_timing):
        self.at = 0.0

    def record(self):
        self.at = time.perf_counter()

    def elapsed_time(self, end):
        return max((end.at - self.at) * 1e3, 1e-3)


class Recorder:
    """Keeps work itself in the place of a graph."""

    def record(self, work):
        first = work()

        def replay():
            for old, new in zip(first or (), work() or (), strict=True):
                for output, again in zip(old or (), new or (), strict=True):
                    output.copy_(again)

        return SimpleNamespace(replay=replay), first

    def beside(self):
        return nullcontext()

    def release(self):
        pass


class Worker:
    """A worker in this process. Its messages are converted to JSON, as on a pipe."""

    cache, opened, trusted, family = "", False, False, None

    def __init__(self, arena, operators="none"):
        options = {"handle": arena.handle.hex(), "size": arena.size, "flush": 1 << 16}
        options |= {"trusted": True, "operators": operators}
        self.inside = GpuWorker(options, arena.file)
        self.child = SimpleNamespace(
            channel=self, close=self.close, pause=self, stop_all=lambda: False
        )
        self.running = True
        self.closed = False

    def ready(self):
        return {"active": [], "missing": {}}

    def request(self, header, timeout, spin):
        assert self.running
        with OnTheHost():
            answer = self.inside.answer(json.loads(json.dumps(header)))
        return SimpleNamespace(header=json.loads(json.dumps(answer)))

    def close(self):
        self.closed = True

    def stop_known(self):
        self.running = False

    def resume(self):
        self.running = True


def host_memory(address, size):
    return torch.frombuffer((ctypes.c_uint8 * size).from_address(address), dtype=torch.uint8)


@contextmanager
def arena_on_host(by_handle, monkeypatch, folder):
    """The arena and, in the worker's place, its own memory or a copy of it."""
    memory = {1: torch.empty(SIZE, dtype=torch.uint8)}
    for name, call in {
        "allocate": lambda size: 1,
        "free": lambda address: None,
        "export": lambda address: address.to_bytes(64, "little"),
        "open_handle": lambda handle: int.from_bytes(handle, "little"),
        "close_handle": lambda address: None,
        "allocation_of": lambda address: (address, 1 << 40),
        "as_tensor": lambda address, size: (
            memory[address] if address in memory else host_memory(address, size)
        ),
    }.items():
        monkeypatch.setattr(gpu_runtime, name, call)
    for name, call in {
        "init": lambda: None,
        "synchronize": lambda: None,
        "memory_snapshot": lambda: [],  # memory of the host is not kept
        "current_stream": lambda: SimpleNamespace(cuda_stream=0),
        "Event": Event,
    }.items():
        monkeypatch.setattr(torch.cuda, name, call)
    for name in ("TMPDIR", "TRITON_CACHE_DIR"):
        monkeypatch.setenv(name, str(folder))
    monkeypatch.setattr(paired, "TIMING", replace(TIMING, max_seconds=4))
    monkeypatch.setattr(input_pool, "POOL", replace(POOL, sets=4, small_sets=4, most_sets=4))
    monkeypatch.setattr(Launches, "watch_triton", lambda self: None)
    monkeypatch.setattr("kernel_gym.worker.gpu.recorder.GraphRecorder", Recorder)
    result = GpuArena(SIZE, by_handle=by_handle)
    yield result
    result.close()
