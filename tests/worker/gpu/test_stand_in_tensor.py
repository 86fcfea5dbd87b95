"""Tensors whose bytes are elsewhere: what is a view, a request, or refused."""

import pytest
import torch

from kernel_gym.protocol.fields import TensorOnDevice
from kernel_gym.worker.gpu.stand_in_calls import GuardlessMode
from kernel_gym.worker.gpu.stand_in_tensor import DeviceMode, DeviceTensor, Memory, describe


class Requests:
    """Stands for the device at the end of the pipe: keeps what it is asked."""

    def __init__(self):
        self.log = []
        self._next = 0x1000

    def allocate(self, size):
        self.log.append(("allocate", size))
        self._next += 0x100000
        return self._next

    def __getattr__(self, name):
        return lambda *args: self.log.append((name, *args))

    def names(self):
        return [entry[0] for entry in self.log]


@pytest.fixture
def requests(monkeypatch):
    monkeypatch.setattr(torch.cuda, "_lazy_init", lambda: None)
    return Requests()


@pytest.fixture
def x(requests):
    memory = Memory(requests, 0x10000, 96, owned=False)
    tensor = DeviceTensor(torch.empty(4, 6, device="meta"), memory)
    with GuardlessMode(requests), DeviceMode(requests):
        yield tensor


def test_it_looks_like_a_gpu_tensor(x):
    assert x.is_cuda
    assert (x.device.type, x.shape, x.stride(), x.dtype) == ("cuda", (4, 6), (6, 1), torch.float32)
    assert x.data_ptr() == 0x10000


VIEWS = {
    "view": lambda x: x.view(-1),
    "slice": lambda x: x[1:, ::2],
    "row": lambda x: x[2],
    "transpose": lambda x: x.t(),
    "permute": lambda x: x.permute(1, 0),
    "expand": lambda x: x.unsqueeze(0).expand(3, 4, 6),
    "flatten": lambda x: x.flatten(),
    "bits": lambda x: x.view(torch.int32),
    "chunk": lambda x: x.chunk(2)[1],
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_views_agree_with_pytorch_and_ask_nothing(x, requests, view):
    host = view(torch.empty(4, 6))
    result = view(x)
    assert type(result) is DeviceTensor
    assert (result.shape, result.stride(), result.dtype) == (host.shape, host.stride(), host.dtype)
    assert result.data_ptr() == 0x10000 + host.storage_offset() * host.itemsize
    assert requests.log == []


ALLOCATIONS = {
    "empty": lambda x: torch.empty(4, 6, device="cuda"),
    "empty_like": lambda x: torch.empty_like(x),
    "new_empty": lambda x: x.new_empty((4, 6)),
    "empty on its device": lambda x: torch.empty((4, 6), device=x.device),
}


@pytest.mark.parametrize("allocate", ALLOCATIONS.values(), ids=ALLOCATIONS)
def test_allocations_are_one_request(x, requests, allocate):
    result = allocate(x)
    assert requests.log == [("allocate", 96)]
    assert (type(result), result.shape) == (DeviceTensor, (4, 6))


def test_zeros_and_full_are_filled_on_the_device(x, requests):
    torch.zeros(2, device="cuda")
    torch.full((2,), 1.5, device="cuda")
    x.fill_(3.0)
    x[0] = 7.0
    fills = [entry[2] for entry in requests.log if entry[0] == "fill"]
    assert fills == [0, 1.5, 3.0, 7.0]


def test_copies_are_requests(x, requests):
    copied = x.t().contiguous()
    assert copied.is_contiguous()
    assert requests.names() == ["allocate", "copy"]
    _, source, target = requests.log[1]
    assert (source.strides, target.strides) == ((1, 6), (4, 1))


def test_a_contiguous_tensor_is_not_copied(x, requests):
    assert x.contiguous() is x
    assert requests.log == []


def test_host_data_is_uploaded(x, requests):
    result = torch.tensor([1.0, 2.0], device="cuda")
    assert type(result) is DeviceTensor
    assert requests.log[1] == (
        "upload",
        result.data_ptr(),
        torch.tensor([1.0, 2.0]).numpy().tobytes(),
    )


REFUSED = {
    "operator": lambda x: x + 1,
    "softmax": lambda x: torch.softmax(x, -1),
    "conversion": lambda x: x.half(),
    "cpu": lambda x: x.cpu(),
    "item": lambda x: x[0, 0].item(),
    "float": lambda x: float(x[0, 0]),
    "numpy": lambda x: x.numpy(),
    "tolist": lambda x: x.tolist(),
    "gather": lambda x: x[torch.tensor([0, 1])],
    "cat": lambda x: torch.cat([x, x]),
    "out of nothing": lambda x: torch.arange(4, device="cuda"),
}


@pytest.mark.parametrize("work", REFUSED.values(), ids=REFUSED)
def test_work_and_host_reads_are_refused_and_told(x, requests, work):
    with pytest.raises(RuntimeError, match=r"refused|kernel"):
        work(x)
    assert "refuse" in requests.names()


def test_memory_is_freed_with_its_last_tensor(requests):
    memory = Memory(requests, 0x20000, 16, owned=True)
    tensor = DeviceTensor(torch.empty(4, device="meta"), memory)
    view = tensor.view(2, 2)
    del memory, tensor
    assert requests.log == []
    del view
    assert requests.log == [("free", 0x20000)]


def test_the_description_is_what_the_judge_needs(x):
    assert describe(x[1:]) == TensorOnDevice(0x10000 + 24, (3, 6), (6, 1), torch.float32)
