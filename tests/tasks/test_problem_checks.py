"""The checks of values and the data of problems with more than one right answer."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from kernel_gym.tasks import (
    Kind,
    Scale,
    Split,
    Workload,
    adversarial_workloads,
    get_problem,
    make_inputs,
)


def _inputs(name, dims, seed=3, **scalars):
    problem = get_problem(name)
    workload = Workload(
        dims, Split.TRAIN, Kind.TRAIN, distribution=problem.distributions[0], scalars=scalars
    )
    return problem, make_inputs(problem, workload, seed)


def test_min_p_takes_a_neighbour_only_where_rounding_leads_to_it():
    problem = get_problem("min_p_sampling")
    logits = torch.tensor([[0.0, 0.0, -9.0, 0.0]]).expand(3, -1)
    inputs = {
        "logits": logits,
        "uniform": torch.tensor([0.1, 1 / 3, 0.9]),
        "temperature": 1.0,
        "min_p": 0.05,
    }
    (expected,) = problem.oracle(**inputs)

    def wrong(*token: int) -> list[bool]:
        return problem.mismatches("token", torch.tensor(token), inputs, expected).tolist()

    assert wrong(0, 1, 3) == [False, False, False]
    assert wrong(0, 0, 3) == [False, False, False]  # a third is on the border of two tokens
    assert wrong(1, 3, 2) == [True, True, True]
    assert wrong(-1, 4, 0) == [True, True, True]


def test_forbidden_tokens_are_never_drawn():
    for name in ("min_p_sampling", "gumbel_sample"):
        problem, inputs = _inputs(name, {"rows": 200, "vocab": 11})
        forbidden = torch.isinf(inputs["logits"])
        assert forbidden.any()
        for answer in (problem.oracle(**inputs)[0], problem.reference(**inputs)[0]):
            assert not forbidden.gather(1, answer.long()[:, None]).any()


def test_a_gumbel_token_has_the_largest_score():
    problem, inputs = _inputs("gumbel_sample", {"rows": 50, "vocab": 30})
    (expected,) = problem.oracle(**inputs)
    assert not problem.mismatches("token", expected.int(), inputs, expected).any()
    for other in ((expected + 1) % 30, torch.full_like(expected, -1), expected + 30):
        assert problem.mismatches("token", other.int(), inputs, expected).all()


def test_drafts_are_accepted_in_part_and_whole():
    problem, inputs = _inputs("speculative_verify", {"rows": 300, "steps": 3, "vocab": 20})
    count = problem.oracle(**inputs)[1]
    assert torch.bincount(count, minlength=4).min() > 10


def test_slots_of_padding_are_not_written():
    problem, inputs = _inputs(
        "kv_cache_write", {"tokens": 90, "heads": 1, "head_dim": 16, "pages": 4}
    )
    assert (inputs["slot"] == -1).any()
    untouched = torch.ones(64, dtype=torch.bool)
    untouched[inputs["slot"][inputs["slot"] >= 0]] = False
    assert untouched.any()
    (new, _) = problem.oracle(**inputs)
    old = inputs["k_cache"].double().flatten(0, 1)
    assert torch.equal(new.flatten(0, 1)[untouched], old[untouched])


def test_gradients_of_filters_are_those_of_autograd():
    problem, inputs = _inputs(
        "conv2d_weight_backward",
        {"batch": 2, "channels": 3, "filters": 4, "height": 5, "width": 6},
    )
    weight = torch.zeros(4, 3, 3, 3, dtype=torch.float64, requires_grad=True)
    out = F.conv2d(inputs["x"].double(), weight, padding=1)
    (expected,) = torch.autograd.grad(out, weight, inputs["grad"].double())
    torch.testing.assert_close(problem.oracle(**inputs)[0], expected)


def test_the_furthest_point_of_equal_points_is_the_first():
    problem = get_problem("furthest_point_sampling")
    points = torch.zeros(1, 6, 3)
    points[0, 2:4] = 1.0
    for answer in (problem.oracle(points, 4)[0], problem.reference(points, 4)[0]):
        assert answer.tolist() == [[0, 2, 0, 0]]


def test_strips_and_experts_without_work_occur():
    dims = {"rows": 3, "strips_in": 3, "strips": 9, "blocks": 5, "block": 16}
    problem, inputs = _inputs("block_sparse_matmul", dims)
    empty = inputs["start"].diff() == 0
    assert empty.any()
    (out,) = problem.oracle(**inputs)
    assert not out.unflatten(1, (9, 16))[:, empty].any()


def test_an_inverse_may_have_the_errors_of_gauss_jordan_elimination():
    problem = get_problem("batched_inverse")
    a = torch.tensor([[[1.0804, 1.0920], [-1.0245, 0.0295]]])
    (exact,) = problem.oracle(a)

    def wrong(error: float) -> bool:
        answer = exact.clone()
        answer[0, 0, 0] += error  # a small element: the difference of two that are near 0.9
        return bool(problem.mismatches("out", answer.float(), {"a": a}, exact).any())

    unit = 2.0**-24
    assert not wrong(4 * unit * 0.9)  # a fast division of a GPU errs by four units
    assert wrong(100 * unit * 0.9)


def test_log_softmax_may_round_at_the_size_of_its_input():
    problem = get_problem("log_softmax")
    x = torch.tensor([[9000.0, 9000.0, 9000.0]]).half()
    (expected,) = problem.oracle(x)
    shifted = x.float() - (9000.0 + torch.log(torch.tensor(3.0)))  # 9001.0986 has an error of 4e-4
    assert not problem.mismatches("out", shifted, {"x": x}, expected).any()
    assert problem.mismatches("out", shifted + 0.01, {"x": x}, expected).all()
    small = x / 9000
    (expected,) = problem.oracle(small)
    assert problem.mismatches("out", expected.float() + 1e-5, {"x": small}, expected).all()


@pytest.mark.parametrize("time", [64, 2048])
def test_a_long_path_of_large_equal_scores_may_lose_what_float32_loses(time):
    problem = get_problem("viterbi")
    generator = torch.Generator().manual_seed(0)
    emission = (1000 + torch.randn(8, time, 6, generator=generator)) * 1e27
    inputs = {"emission": emission, "transition": torch.randn(6, 6, generator=generator)}
    right, _ = problem.oracle(**inputs)
    path, _ = problem.reference(**inputs)
    assert not problem.mismatches("path", path, inputs, right).any()
    without_looking = torch.zeros_like(path)
    assert problem.mismatches("path", without_looking, inputs, right).any(dim=1).all()


def test_a_long_path_of_large_transitions_may_lose_what_float32_loses():
    problem = get_problem("viterbi")
    inputs = {
        "emission": 5e-3 * torch.rand(257, 2049, 9, generator=torch.Generator().manual_seed(3)),
        "transition": torch.randn(9, 9, generator=torch.Generator().manual_seed(7)),
    }
    inputs["transition"][2, 5] = inputs["transition"][5, 2] = 10.0
    right, _ = problem.oracle(**inputs)
    path, _ = problem.reference(**inputs)
    assert not torch.equal(path, right)
    assert not problem.mismatches("path", path, inputs, right).any()
    late = right.clone()
    late[:, 1024] = (late[:, 1024] + 1) % 9
    assert problem.mismatches("path", late, inputs, right).any(dim=1).all()


QUANTISED = {
    "quantize_fp8_group": {"rows": 64, "cols": 256},
    "quantize_fp8_group_ocp": {"rows": 64, "cols": 256},
    "quantize_per_token_int8": {"rows": 64, "cols": 256},
    "kv_cache_store_quant": {"tokens": 32, "heads": 4, "head_dim": 64},
}


@pytest.mark.parametrize("name", QUANTISED)
def test_quotients_become_the_codes(name):
    problem, inputs = _inputs(name, QUANTISED[name])
    for output, expected in zip(problem.outputs, problem.oracle(**inputs), strict=True):
        if "scale" not in output.name:
            quotients = problem.quotients(output.name, inputs)
            codes = quotients if output.dtype.is_floating_point else quotients.round()
            assert torch.equal(codes.to(output.dtype).double(), expected.double())


def test_codes_of_quotients_on_borders_may_be_either():
    """A group whose largest value is 1.75 has a scale of 2 ** -8: a kernel may divide by less."""
    problem = get_problem("quantize_fp8_group_ocp")
    x = torch.arange(1, 257).remainder(225).view(2, 128).bfloat16() / 128
    x[:, 0] = 1.75
    codes, scale = problem.oracle(x)
    other = (x.double() / (scale * (1 + 1e-7)).repeat(1, 128)).to(torch.float8_e4m3fn)
    assert (other.double() != codes).double().mean() > 0.01
    assert not problem.mismatches("q", other, {"x": x}, codes).any()
    off = (x.double() / (scale * 1.01).repeat(1, 128)).to(torch.float8_e4m3fn)
    assert problem.mismatches("q", off, {"x": x}, codes).any()


@pytest.mark.parametrize("name", ["gated_delta_rule", "kda_recurrence"])
def test_rows_of_keys_are_no_longer_than_one(name):
    """Longer ones make the state of a long sequence infinite."""
    problem = get_problem(name)
    for workload in adversarial_workloads(problem, Scale.SIM, "triton", 3):
        length = make_inputs(problem, workload, 1)["k"].double().norm(dim=-1)
        assert float(length.max()) < 1.001, workload
