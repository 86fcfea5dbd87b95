"""References as operators: the same values, at all shapes, in fp64, and as text."""

import pytest
import torch

from kernel_gym.hardware import SIMULATED
from kernel_gym.judge.timing.torch_model import reference_seconds
from kernel_gym.referee.reference import ConfinedReference
from kernel_gym.referee.statement import ClaimError, InputPart

TENSORS = [
    InputPart(name="x", dtype="float16", shape="rows, cols"),
    InputPart(name="index", dtype="int64", shape="rows"),
]
PARTS = [*TENSORS, InputPart(name="scale", value=0.5)]
CODE = """
import math
import torch
import torch.nn.functional as F


def entry(x, index, scale):
    rows, cols = x.shape
    at = torch.arange(cols, device=x.device)[None, :] <= index[:, None]
    y = F.rms_norm(x.to(x.device).float(), (cols,)) * scale
    left, _ = torch.stack([y, y * math.sqrt(cols)]).unbind(0)
    left.clamp_(max=3.0)
    index += 1
    return torch.where(at, left, torch.tensor(-1.0)).to(x.dtype), left.new_full((rows,), 2.0)
"""


def inputs(rows, cols):
    generator = torch.Generator().manual_seed(rows)
    x = torch.randn(rows, cols, generator=generator).half()
    return {"x": x, "index": torch.randint(0, cols, (rows,), generator=generator), "scale": 0.5}


def called(values, code=CODE):
    scope = {}
    exec(code, scope)
    return scope["entry"](**{k: v.clone() if k != "scale" else v for k, v in values.items()})


@pytest.fixture(scope="module")
def reference():
    return ConfinedReference(CODE, "entry", PARTS, 2)


@pytest.mark.parametrize("shape", [(3, 5), (4, 1), (1, 64)])
def test_operators_give_the_values_of_the_function(reference, shape):
    values = inputs(*shape)
    kept = values["index"].clone()
    for found, expected in zip(reference.run(values), called(values), strict=True):
        torch.testing.assert_close(found, expected, rtol=0, atol=0)
    assert torch.equal(values["index"], kept)


def test_strided_inputs_give_the_same_values(reference):
    values = inputs(6, 8)
    strided = {**values, "x": values["x"].t().contiguous().t()}
    assert torch.equal(reference.run(values)[0], reference.run(strided)[0])


def test_the_oracle_is_computed_in_double(reference):
    values = inputs(3, 5)
    exact = reference.run(values, exact=True)[0]
    assert exact.dtype is torch.float64
    assert not torch.equal(exact, exact.float().double())
    torch.testing.assert_close(exact.half(), reference.run(values)[0], rtol=1e-2, atol=1e-2)


def test_the_text_for_all_sizes_gives_the_same_values(reference):
    text = reference.text_for(
        [{"rows": r, "cols": c} for r, c in ((8, 16), (8, 17), (8, 20), (9, 16), (12, 16))]
    )
    assert "import os" not in text
    values = inputs(7, 33)
    for found, expected in zip(called(values, text), reference.run(values), strict=True):
        torch.testing.assert_close(found, expected, rtol=0, atol=0)


def test_a_text_for_sizes_at_which_it_does_other_work_is_refused():
    code = "def entry(x, index, scale):\n    return x + 1 if x.shape[0] > 8 else x\n"
    reference = ConfinedReference(code, "entry", PARTS, 1)
    with pytest.raises(ClaimError, match="other operators at other sizes"):
        reference.text_for([{"rows": rows, "cols": 4} for rows in (8, 9)])


def test_attention_costs_one_kernel_as_in_eager_pytorch():
    """The timing model knows fused functions by their names, which a list of operators keeps."""
    code = (
        "import torch.nn.functional as F\n\n\n"
        "def entry(q):\n    return F.scaled_dot_product_attention(q, q, q)\n"
    )
    part = InputPart(name="q", dtype="float16", shape="b, h, n, d")
    reference = ConfinedReference(code, "entry", [part], 1)

    class Plain:
        def reference(self, q):
            return torch.nn.functional.scaled_dot_product_attention(q, q, q)

    class Traced:
        def reference(self, q):
            return reference.run({"q": q})

    values, spec = {"q": torch.zeros(2, 4, 64, 32).half()}, SIMULATED["gfx942"]
    assert reference_seconds(Traced(), values, spec) == reference_seconds(Plain(), values, spec)
