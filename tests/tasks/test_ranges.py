"""Ranges: what the prompt calls legal is drawn, nothing else is, and honest answers exist there."""

from __future__ import annotations

import pytest
import torch

from kernel_gym.judge.expected import answer, compare
from kernel_gym.tasks import (
    Check,
    Problem,
    Scale,
    Split,
    TensorArg,
    Workload,
    adversarial_workloads,
    get_problem,
    get_task,
    make_inputs,
    problem_names,
    train_workloads,
)
from kernel_gym.tasks.prompting import prompt
from kernel_gym.tasks.ranges import (
    FILE,
    RangesError,
    range_texts,
    ranges_of,
    special_distributions,
)
from kernel_gym.tasks.special_values import EXTREMES, SHIFTED, is_special

each_problem = pytest.mark.parametrize("name", problem_names())
SLACK = 1e-4
"""Rounding of a stated limit to three digits, and of a drawn value to its type."""
SEEDS_OF_CHOICES = 20
"""One in twelve calls of a problem was wrong before its sums were exact."""
MIN_SHARE = 0.2
"""The least share of a stated limit that is drawn on the simulator. Limits of normal values leave
room for the more of them that a GPU's sizes have."""


def _special(problem: Problem, language: str) -> list[Workload]:
    made = adversarial_workloads(problem, Scale.SIM, language)
    return [workload for workload in made if is_special(workload.distribution)]


def _drawn(problem: Problem) -> dict[str, torch.Tensor]:
    """Returns the lowest and the highest value of each argument, over all kinds of workloads."""
    unlike = {
        workload.key: workload
        for language in ("triton", "hip")
        for workload in adversarial_workloads(problem, Scale.SIM, language)
    }
    ends: dict[str, torch.Tensor] = {}
    for seed, workload in enumerate([*train_workloads(problem, Scale.SIM), *unlike.values()]):
        for name, value in make_inputs(problem, workload, seed).items():
            values = torch.as_tensor(value, device="cpu").double()
            values = values[values > -torch.inf]
            if values.numel():
                both = torch.stack(values.aminmax())
                low, high = torch.stack([both, ends.get(name, both)]).unbind(1)
                ends[name] = torch.stack([low.min(), high.max()])
    return ends


@each_problem
def test_text_and_draws_agree(name):
    problem = get_problem(name)
    ranges = ranges_of(problem)
    drawn = _drawn(problem)
    for arg in problem.args:
        limits = (ranges.ranges | ranges.drawn).get(arg.name)
        if limits is None:
            if isinstance(arg, TensorArg) and arg.dtype.is_floating_point:
                limits = torch.finfo(arg.dtype).min, torch.finfo(arg.dtype).max
            else:
                continue
        low, high = drawn[arg.name].tolist()
        slack = SLACK * max(abs(limits[0]), abs(limits[1]))
        assert limits[0] - slack <= low <= high <= limits[1] + slack, (arg.name, low, high)
        if isinstance(arg, TensorArg):
            assert max(-low, high) >= MIN_SHARE * max(-limits[0], limits[1]), (arg.name, high)
        if arg.name in ranges.drawn and isinstance(limits[0], int):
            assert (low, high) == limits, arg.name


@each_problem
def test_each_problem_takes_special_values_and_states_its_ranges(name):
    problem = get_problem(name)
    assert (problem.folder / FILE).is_file()
    kinds = [distribution.split()[0] for distribution in special_distributions(problem)]
    assert kinds in ([EXTREMES], [EXTREMES, SHIFTED])
    floating = any(isinstance(a, TensorArg) and a.dtype.is_floating_point for a in problem.args)
    stated = " ".join(range_texts(problem))
    assert not floating or "Legal values: " in stated
    assert ("standard deviation" in stated) == (SHIFTED in kinds)
    for language in ("triton", "hip"):
        workloads = _special(problem, language)
        assert {w.distribution for w in workloads} == set(special_distributions(problem))


@each_problem
def test_honest_answers_exist_on_special_values(name):
    """No output overflows, and PyTorch's own answer passes the judge's check."""
    problem = get_problem(name)
    for workload in {w.key: w for la in ("triton", "hip") for w in _special(problem, la)}.values():
        expected = answer(problem, make_inputs(problem, workload, 11))
        for output, exact in zip(expected.outputs, expected.oracle, strict=True):
            if output.dtype.is_floating_point and output.check is Check.CLOSE:
                info = torch.finfo(output.dtype)  # up to half a step beyond is rounded down
                assert exact.double().abs().max() < info.max * (1 + info.eps / 4), workload
        rounded = tuple(
            value.to(output.dtype)
            for output, value in zip(expected.outputs, expected.reference, strict=True)
        )
        check = compare(problem, expected, rounded)
        assert check.passed, (str(workload), check.message)


CHOICES = [
    n for n in problem_names() if any(o.check is Check.EXACT for o in get_problem(n).outputs)
]


@pytest.mark.parametrize("name", CHOICES)
def test_float32_ranks_small_values_as_the_oracle_does(name):
    """Where an output is an exact choice, no drawn value may be one whose sums round."""
    problem = get_problem(name)
    for seed in range(SEEDS_OF_CHOICES):
        for workload in adversarial_workloads(problem, Scale.SIM, "triton", seed):
            if workload.distribution == "tiny":
                both = [
                    _exact_outputs(problem, compute, workload, seed)
                    for compute in (problem.oracle, problem.reference)
                ]
                assert all(map(torch.equal, *both)), (seed, workload.dims)


def _exact_outputs(problem, compute, workload, seed):
    values = compute(**make_inputs(problem, workload, seed))
    values = values if isinstance(values, tuple) else (values,)
    pairs = zip(problem.outputs, values, strict=True)
    return [value.double() for output, value in pairs if output.check is Check.EXACT]


def test_the_prompt_shows_the_ranges():
    text = prompt(get_task("triton2triton/layer_norm"), "facts")
    assert "`x` any finite float16, `weight` from -1.5 to 8" in text
    assert "The mean of data may be 1000 times their standard deviation." in text
    assert "`codes` any int32" in prompt(get_task("triton2triton/histogram"), "facts")


class _Plain(Problem):
    """A problem without a file of ranges."""

    name = "plain"
    args = (
        TensorArg("x", torch.float16),
        TensorArg("y", torch.float32),
        TensorArg("i", torch.int8),
    )
    outputs = ()
    inputs = oracle = reference = flops = None
    place = None

    @property
    def folder(self):
        return self.place


def test_without_a_file_all_finite_values_of_the_narrowest_type_are_drawn():
    assert special_distributions(_Plain()) == ("extremes 65504.0", "shifted 1000.0 65504.0")
    assert list(range_texts(_Plain())) == [
        "Legal values: `x` any finite float16, `y` any finite float32.",
        "The mean of data may be 1000 times their standard deviation.",
    ]


def test_a_problem_that_a_program_made_takes_none():
    kind = type("_Made", (_Plain,), {"special_values": False})
    assert special_distributions(kind()) == ()
    assert list(range_texts(kind())) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("reach = -1", "reach"),
        ("colour = 1", "colour"),
        ("reach = ", "ranges.toml"),
        ("[ranges]\nz = [0, 1]", r"found \['z'\], expected arguments of plain"),
        ("[drawn]\nx = [0]", "x"),
        ("[excluded]\nzeros = ['z']", r"found \['z'\], expected arguments of plain"),
        ("[excluded]\nnothing = ['x']", "excluded"),
        ("unwritten = ['z']", r"found \['z'\], expected arguments of plain"),
        ("[[contrasts]]\nsmall = ['z']", r"found \['z'\], expected arguments of plain"),
        ("[[contrasts]]\nlarge = ['x']", "contrasts"),
    ],
)
def test_a_malformed_file_is_reported(tmp_path, text, message):
    (tmp_path / FILE).write_text(text)
    kind = type("_Placed", (_Plain,), {"place": tmp_path})
    with pytest.raises(RangesError, match=message):
        ranges_of(kind())


def test_the_split_of_special_workloads_is_adversarial_and_untimed():
    for workload in _special(get_problem("softmax"), "hip"):
        assert workload.split is Split.ADVERSARIAL
        assert not workload.timed


def test_of_tensors_that_overflow_together_one_has_ends():
    problem = get_problem("llama_decoder_layer")
    ranges = ranges_of(problem)
    tiny = [
        workload
        for workload in adversarial_workloads(problem, Scale.SIM, "triton", 3)
        if workload.distribution == "tiny" and workload.dims not in problem.adversarial
    ]
    assert tiny
    chosen = set()
    for seed in range(12):
        values = make_inputs(problem, tiny[0], seed)
        at_end = {name for name in ranges.apart if _has_end(values[name], ranges.limits(name))}
        assert len(at_end) == 1
        chosen |= at_end
    assert len(chosen) > 3


def _has_end(value, limits):
    return bool((value == limits[0]).any() or (value == limits[1]).any())
