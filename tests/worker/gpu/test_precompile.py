"""Triton candidates compiled for a GPU that is not here."""

from types import SimpleNamespace

import pytest
import torch
import triton

from kernel_gym.devices.gpu.vendors import CUDA, ROCM, reported
from kernel_gym.protocol.worker import ArenaTensor
from kernel_gym.tasks import get_task
from kernel_gym.worker.gpu.precompile import precompile

H200 = SimpleNamespace(
    name="NVIDIA H200",
    major=9,
    minor=0,
    multi_processor_count=132,
    total_memory=140 << 30,
    L2_cache_size=60 << 20,
    shared_memory_per_block=48 << 10,
    shared_memory_per_block_optin=227 << 10,
    uuid=object(),
)
PROPERTIES = reported(CUDA, H200)
SOFTMAX = get_task("triton2triton/softmax")
KERNEL = SOFTMAX.baseline_source
CALLS = [
    [ArenaTensor(512, rows * 600, 0, (rows, 300), (300, 1), torch.float16)] for rows in (4, 64)
]


@pytest.fixture(autouse=True)
def folders(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path


def _precompile(source, properties=PROPERTIES):
    return precompile(source, "softmax", CALLS, properties)


def test_kernels_are_compiled_for_the_true_target(folders):
    assert _precompile(KERNEL) is None
    assert list((folders / "cache").rglob("*.cubin"))


def test_the_same_goes_for_an_amd_gpu(folders):
    device = SimpleNamespace(**vars(H200) | {"gcnArchName": "gfx942:sramecc+:xnack-"})
    assert _precompile(KERNEL, reported(ROCM, device)) is None
    assert list((folders / "cache").rglob("*.hsaco"))


@pytest.mark.parametrize(
    ("source", "reported_text"),
    [
        (KERNEL.replace("tl.store(", "tl.no_such("), "no_such"),
        ("import no_such_module", "no_such_module"),
        ("softmax = 3", "softmax"),
    ],
)
def test_a_failure_to_compile_is_reported(source, reported_text):
    failure = _precompile(source)
    assert failure["kind"] == "compile"
    assert reported_text in failure["message"] + failure["detail"]


def test_other_failures_are_left_for_the_real_run():
    assert _precompile("def softmax(x): raise RuntimeError('only here')") is None
    assert _precompile("import os\ndef softmax(x): raise SystemExit") is None


def test_exhausted_host_memory_is_reported_at_once():
    failure = _precompile("def softmax(x): bytearray(1 << 60)")
    assert (failure["kind"], failure["type"]) == ("runtime", "MemoryError")


def test_candidates_see_the_properties_of_the_gpu():
    source = """
import torch
reported = torch.cuda.get_device_properties(0)
assert (reported.multi_processor_count, torch.cuda.get_device_capability()) == (132, (9, 0))
assert torch.version.hip is None
def softmax(x):
    assert x.is_cuda and x.data_ptr() % 16 == 0
    undefined_name_that_shows_that_all_this_held
"""
    assert _precompile(source.replace("undefined", "import undefined #")) is not None


def test_the_stand_in_leaves_no_trace():
    before = dict(vars(torch.cuda)), dict(vars(torch.version)), dict(vars(triton.testing))
    active = triton.runtime.driver._active
    _precompile(KERNEL)
    assert before == (vars(torch.cuda), vars(torch.version), vars(triton.testing))
    assert triton.runtime.driver._active is active


HOARDER = """
import torch

HELD = []


def softmax(x):
    size = 1 << 30
    while size > 1 << 16:
        try:
            HELD.append(torch.empty(size, dtype=torch.uint8, device="cuda"))
        except torch.OutOfMemoryError:
            size //= 2
    total = torch.cuda.get_device_properties(0).total_memory
    assert sum(len(held) for held in HELD) + (1 << 17) > total
    del HELD[1:]
    for _ in range(200):
        torch.empty(1 << 30, dtype=torch.uint8, device="cuda")  # freed at once
    raise SyntaxError("it ended")
"""


def test_memory_ends_where_the_gpus_does_and_comes_back():
    failure = _precompile(HOARDER)
    assert "it ended" in failure["message"]
