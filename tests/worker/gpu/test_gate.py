"""Which operators pass through the gate. Fake tensors stand for those of a GPU."""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from kernel_gym.devices.operators import Operators
from kernel_gym.worker.gpu.gate import GateMode

aten = torch.ops.aten
HALF = {"dtype": torch.float16}


PERMITTED = frozenset({"aten::_softmax", "aten::_to_copy"})


def _refused(operators, function, *args, **kwargs):
    gate = GateMode(operators, PERMITTED)
    with FakeTensorMode():
        x = torch.zeros(64, 64, device="cuda")
        try:
            gate.__torch_dispatch__(function, (), (x, *args), kwargs)
        except RuntimeError:
            return True
    return bool(gate.refused)


@pytest.mark.parametrize(
    ("function", "args", "kwargs", "none", "usual"),
    [
        (aten.empty_like.default, (), {}, True, True),
        (aten.view.default, ([-1],), {}, True, True),
        (aten._softmax.default, (-1, False), {}, False, True),
        (aten.sum.default, (), {}, False, False),
        (aten._to_copy.default, (), HALF, False, True),
        (aten._to_copy.default, (), {"device": torch.device("cpu")}, False, False),
        (aten.linalg_inv_ex.default, (), {}, False, False),
    ],
)
def test_what_passes_by_the_kind_of_session(function, args, kwargs, none, usual):
    assert _refused(Operators.NONE, function, *args, **kwargs) is not none
    assert _refused(Operators.USUAL, function, *args, **kwargs) is not usual
    assert not _refused(Operators.ALL, function, *args, **kwargs)


def test_the_operators_of_a_suites_own_code_are_noted():
    gate = GateMode(Operators.ALL)
    with FakeTensorMode():
        x = torch.zeros(64, 64, device="cuda")
        for function in (aten.sum.default, aten.clone.default, aten.linalg_inv_ex.default):
            gate.__torch_dispatch__(function, (), (x,), {})
    assert gate.computed == {"aten::sum"}
