"""Unseen and adversarial workloads, and the tensors of their calls."""

from __future__ import annotations

import pytest
import torch

from kernel_gym.tasks import (
    UNSEEN_KINDS,
    Axis,
    Kind,
    Layout,
    Problem,
    ScalarArg,
    Scale,
    Split,
    Workload,
    adversarial_workloads,
    get_problem,
    make_inputs,
    points,
    problem_names,
    train_workloads,
    unseen_workloads,
)
from kernel_gym.tasks.bounded import bounded_kernels
from kernel_gym.tasks.far_ends import (
    SET_BYTES,
    STRETCH,
    TOP,
    budget,
    far_end,
    far_ends,
    fits_memory,
    near_ends,
    set_bytes,
)
from kernel_gym.tasks.ranges import special_distributions
from kernel_gym.tasks.sampling import MIN_TIMED_SHARE, PRODUCTION_POINTS, production_points
from kernel_gym.tasks.special_values import is_special

QUICK, ALL = range(30), range(1000)


@pytest.mark.parametrize("scale", list(Scale))
@pytest.mark.parametrize("name", problem_names())
@pytest.mark.parametrize(
    "seeds",
    [QUICK, pytest.param(ALL, marks=pytest.mark.sweep)],
    ids=lambda seeds: f"{len(seeds)} seeds",
)
def test_unseen_workloads_are_legal_new_and_of_every_kind(name, scale, seeds):
    problem = get_problem(name)
    train = [dict(dims) for dims in problem.train[scale]]
    limit = budget(problem, scale)
    production = [dict(dims) for dims in production_points(problem, scale)]
    least = MIN_TIMED_SHARE * min(map(problem.elements, train))
    for seed in seeds:
        drawn = unseen_workloads(problem, scale, "triton", seed)
        assert tuple(w.kind for w in drawn) == UNSEEN_KINDS
        points = [dict(w.dims) for w in drawn]
        assert len({tuple(p.items()) for p in points}) == len(points)
        for workload, dims in zip(drawn, points, strict=True):
            assert workload.split is Split.UNSEEN
            assert workload.layout is Layout.CONTIGUOUS
            assert workload.distribution in problem.distributions
            assert problem.legal(dims)
            assert set_bytes(problem, dims) <= SET_BYTES.get(scale, 1 << 31)
            assert dims not in train
            assert workload.timed == (workload.kind not in (Kind.EDGE, Kind.REACH))
            assert {a.name for a in problem.declared} == set(workload.scalars)
            if workload.kind is Kind.PRODUCTION:
                assert dims in production
                continue
            stretch = STRETCH if workload.kind is Kind.REACH else 1
            assert problem.elements(dims) <= stretch * limit
            assert not workload.timed or problem.elements(dims) >= least
        assert len({w.distribution for w in drawn}) == min(2, len(problem.distributions))


@pytest.mark.parametrize("name", problem_names())
def test_unseen_workloads_follow_the_seed(name):
    problem = get_problem(name)
    first = unseen_workloads(problem, Scale.SIM, "triton", 11)
    assert first == unseen_workloads(problem, Scale.SIM, "triton", 11)
    others = [unseen_workloads(problem, Scale.SIM, "triton", seed) for seed in range(20)]
    assert len({tuple(map(str, o)) for o in others}) > 15


def test_unseen_kinds_are_what_they_say():
    problem = get_problem("softmax")
    for seed in ALL:
        drawn = {w.kind: w.dims for w in unseen_workloads(problem, Scale.SIM, "triton", seed)}
        assert min(drawn[Kind.EDGE].values()) == 1
        smallest = min(map(problem.elements, problem.train[Scale.SIM]))
        largest = max(map(problem.elements, problem.train[Scale.SIM]))
        assert problem.elements(drawn[Kind.SCALE_UP]) > smallest
        assert problem.elements(drawn[Kind.SCALE_DOWN]) < largest


@pytest.mark.parametrize("scale", list(Scale))
def test_a_reach_workload_is_in_the_last_tenth_of_an_axis(scale):
    problem = get_problem("rms_norm")
    for seed in range(50):
        (dims,) = (
            w.dims for w in unseen_workloads(problem, scale, "hip", seed) if w.kind is Kind.REACH
        )
        ends = [(axis.name, far_end(problem, scale, axis)) for axis in problem.axes]
        assert any(end and dims[name] >= 0.99 * end[name] ** TOP for name, end in ends)


@pytest.mark.parametrize("name", problem_names())
def test_every_evaluation_checks_beyond_twice_the_train_sizes(name):
    for row in bounded_kernels(get_problem(name), Scale.SIM, draws=2):
        assert row.caught >= 0.9, row


@pytest.mark.parametrize("name", problem_names())
def test_two_calls_of_all_sizes_on_a_gpu_fit_the_judges_memory(name):
    problem, scale = get_problem(name), Scale.FULL
    sizes = [*problem.train[scale], *production_points(problem, scale), *far_ends(problem, scale)]
    assert max(set_bytes(problem, dims) for dims in sizes) <= SET_BYTES[scale]


def test_experts_that_do_not_fit_the_judges_memory_are_not_drawn():
    problem = get_problem("fused_moe")
    dims = {"tokens": 1024, "top_k": 2, "experts": 150, "hidden": 4096, "inner": 7168}
    assert problem.legal(dims)
    assert problem.elements(dims) <= budget(problem, Scale.FULL)
    assert not fits_memory(problem, Scale.FULL, dims)  # 26 GB of weights


@pytest.mark.parametrize("scale", list(Scale))
@pytest.mark.parametrize("name", problem_names())
def test_there_are_enough_legal_production_points(name, scale):
    problem = get_problem(name)
    points = production_points(problem, scale)
    assert len(points) >= PRODUCTION_POINTS
    assert len({tuple(dims.items()) for dims in points}) == len(points)
    assert all(problem.legal(dims) for dims in points)


@pytest.mark.parametrize("name", problem_names())
def test_every_declared_scalar_takes_several_values_on_train_workloads(name):
    problem = get_problem(name)
    for arg in problem.declared:
        values = [problem.scalars(w)[arg.name] for w in train_workloads(problem, Scale.SIM)]
        assert len(set(values)) >= min(3, len(_legal(arg))), arg.name


def _legal(arg):
    """Returns the legal values: all between the declared ones."""
    return range(min(arg.values), max(arg.values) + 1) if arg.type is int else range(3)


@pytest.mark.parametrize("name", problem_names())
def test_every_scalar_argument_varies(name):
    problem = get_problem(name)
    scalars = [arg.name for arg in problem.args if isinstance(arg, ScalarArg)]
    made = [make_inputs(problem, w, i) for i, w in enumerate(train_workloads(problem, Scale.SIM))]
    for scalar in scalars:
        assert len({inputs[scalar] for inputs in made}) > 1, scalar


@pytest.mark.parametrize("scale", list(Scale))
@pytest.mark.parametrize("name", problem_names())
def test_adversarial_layouts_are_for_triton_only(name, scale):
    problem = get_problem(name)
    triton, hip = (_without_contrasts(problem, scale, k) for k in ("triton", "hip"))
    assert {w.layout for w in triton} == (set(Layout) if problem.strided else {Layout.CONTIGUOUS})
    assert {w.layout for w in hip} == {Layout.CONTIGUOUS}
    assert all(w.split is Split.ADVERSARIAL and problem.legal(w.dims) for w in triton + hip)
    smallest = dict(min(problem.train[scale], key=problem.elements))
    near = [dict(dims) for dims in near_ends(problem, scale)]
    assert [dict(w.dims) for w in hip[len(hip) - len(near) :]] == near
    hip, triton = (made[: len(made) - len(near)] for made in (hip, triton))
    odd = [dict(w.dims) for w in hip if dict(w.dims) != smallest]
    assert all(is_special(w.distribution) for w in hip if dict(w.dims) == smallest)
    assert all(dims not in map(dict, problem.train[scale]) for dims in odd)
    assert not any(w.timed for w in triton + hip)
    ends = [dict(dims) for dims in far_ends(problem, scale)]
    assert all(dims in [*map(dict, problem.adversarial), *ends] for dims in odd[:-1])
    tiny = {(str(w.dims), w.distribution) for w in hip if w.dims in problem.adversarial}
    also_tiny = problem.declared and problem.tiny_inputs and "tiny" not in problem.distributions
    assert len(tiny) == len(problem.adversarial) * len(problem.distributions) + bool(also_tiny)
    assert (triton[-1].dims, triton[-1].layout) == (hip[-1].dims, Layout.CONTIGUOUS)


@pytest.mark.parametrize("scale", list(Scale))
@pytest.mark.parametrize("name", problem_names())
def test_one_adversarial_workload_ends_off_any_tile_on_every_axis(name, scale):
    problem = get_problem(name)
    made = _without_contrasts(problem, scale, "hip")
    dims = made[-1 - len(near_ends(problem, scale))].dims
    base = min(problem.train[scale], key=problem.elements)
    assert problem.elements(dims) <= budget(problem, scale)
    for axis in problem.axes:
        beside = (dims[axis.name] + sign * axis.multiple for sign in (-1, 1))
        if not any(problem.legal({**dims, axis.name: size}) for size in beside):
            continue  # such as powers of two, of which tiles divide all
        steps = dims[axis.name] // axis.multiple
        assert steps % 2  # no tile divides it, except the axis's own multiple
        assert abs(steps - base[axis.name] // axis.multiple) <= 1


@pytest.mark.parametrize("language", ["triton", "hip"])
@pytest.mark.parametrize("name", ["softmax", "instance_norm", "histogram", "adam8bit_step"])
def test_special_values_take_the_place_of_usual_ones(name, language):
    """They cost a workload only where there are too few of the larger ones."""
    problem = get_problem(name)
    workloads = adversarial_workloads(problem, Scale.SIM, language)
    drawn = [w for w in workloads if is_special(w.distribution)]
    assert {w.distribution for w in drawn} == set(special_distributions(problem))
    if language == "triton" and problem.strided:
        assert [w.layout for w in drawn] == [Layout.STRIDED, Layout.OFFSET][: len(drawn)]
    else:
        ends = [dict(dims) for dims in far_ends(problem, Scale.SIM)]
        places = [dict(w.dims) for w in drawn]
        assert places[0] == ends[0]
        assert len(drawn) < 2 or places[1] == ends[-1] or len(ends) == 1


@pytest.mark.parametrize("language", ["triton", "hip"])
def test_the_off_tile_workload_has_tiny_values_unless_the_problem_forbids_them(language):
    for name, tiny in (("cumsum", True), ("kl_div", False)):
        workloads = _without_near_ends(get_problem(name), language)
        assert "tiny" not in {w.distribution for w in workloads[:-1]}
        assert sum(is_special(w.distribution) for w in workloads) == 2
        assert (workloads[-1].distribution == "tiny") is tiny
    problem = get_problem("cumsum")
    last = _without_near_ends(problem, language)[-1]
    assert 0 < float(make_inputs(problem, last, 0)["x"].abs().max()) < 0.01


def _without_contrasts(problem: Problem, scale: Scale, language: str) -> list[Workload]:
    drawn = adversarial_workloads(problem, scale, language)
    kept = [workload for workload in drawn if not workload.magnitudes]
    assert drawn[: len(kept)] == kept
    return kept


def _without_near_ends(problem: Problem, language: str) -> list[Workload]:
    workloads = _without_contrasts(problem, Scale.SIM, language)
    return workloads[: len(workloads) - len(near_ends(problem, Scale.SIM))]


class _OneAxis(Problem):
    """A problem with given train sizes, at most 64."""

    name = "one_axis"
    args = outputs = ()
    axes = (Axis("n", 1, 64),)
    adversarial = ({"n": 3},)
    distributions = ("normal",)
    strided = False

    def __init__(self, *sizes):
        self.train = points("n", full=[(n,) for n in sizes], sim=[(n,) for n in sizes])

    inputs = oracle = reference = flops = None


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [((16, 32), 17), ((64, 64), 63), ((15, 32), None), ((16, 17), None)],
    ids=["one more", "at its high end", "odd already", "a train workload"],
)
def test_sizes_off_any_tile_are_legal_and_checked_once(sizes, expected):
    kind = type("_Sized", (_OneAxis,), {})  # instances of one class are the same problem
    workloads = adversarial_workloads(kind(*sizes), Scale.SIM, "hip")
    end = [] if max(sizes) == 64 else [min(64, max(2 * max(sizes) + 1, max(sizes) * 3 // 2))]
    assert [w.dims["n"] for w in workloads] == [3, *end, *([expected] if expected else []), 1]


def _unseen_sizes(problem):
    return {w.kind: w.dims for w in unseen_workloads(problem, Scale.SIM, "hip", 0)}


def test_an_edge_is_the_smallest_legal_size_or_a_larger_one_if_that_is_a_train_point():
    class AtLeastSix(_OneAxis):
        name = "at_least_six"
        production = points("n", full=[(20,)], sim=[(20,), (24,)])

        def legal(self, dims):
            return 6 <= dims["n"] <= 64

    class FromTheSmallest(AtLeastSix):
        pass

    assert _unseen_sizes(AtLeastSix(32, 40))[Kind.EDGE] == {"n": 6}
    assert _unseen_sizes(FromTheSmallest(6, 40))[Kind.EDGE]["n"] > 6


def _same(left, right):
    for name, value in left.items():
        if isinstance(value, torch.Tensor):
            assert torch.equal(value, right[name]), name
        else:
            assert value == right[name], name


@pytest.mark.parametrize("name", problem_names())
def test_inputs_follow_the_seed_and_not_the_layout(name):
    problem = get_problem(name)
    dims = dict(min(problem.train[Scale.SIM], key=problem.elements))
    made = {
        layout: make_inputs(problem, Workload(dims, Split.TRAIN, Kind.TRAIN, layout=layout), seed=9)
        for layout in Layout
    }
    plain = made[Layout.CONTIGUOUS]
    again = Workload(dims, Split.TRAIN, Kind.TRAIN)
    _same(plain, make_inputs(problem, again, seed=9))
    _same(plain, made[Layout.STRIDED])
    _same(plain, made[Layout.OFFSET])
    other = make_inputs(problem, again, seed=10)
    tensors = [name for name, value in plain.items() if isinstance(value, torch.Tensor)]
    assert any(not torch.equal(plain[name], other[name]) for name in tensors)


@pytest.mark.parametrize("name", problem_names())
def test_layouts_are_in_the_memory(name):
    problem = get_problem(name)
    dims = dict(problem.train[Scale.SIM][0])

    def tensors(layout):
        workload = Workload(dims, Split.ADVERSARIAL, Kind.ADVERSARIAL, layout=layout)
        made = make_inputs(problem, workload, seed=0)
        return [value for value in made.values() if isinstance(value, torch.Tensor)]

    for tensor in tensors(Layout.CONTIGUOUS):
        assert tensor.is_contiguous()
    for tensor in tensors(Layout.STRIDED):
        assert tensor.stride(-1) == 1
        if tensor.dim() > 1:
            assert tensor.stride(-2) > tensor.shape[-1]
            assert tensor.shape[:-1].numel() == 1 or not tensor.is_contiguous()
    for tensor in tensors(Layout.OFFSET):
        assert tensor.data_ptr() % 16 == tensor.element_size() % 16
        assert tensor.is_contiguous()


def test_strides_follow_the_seed_and_differ_by_tensor():
    problem = get_problem("add_rms_norm")
    dims = dict(problem.train[Scale.SIM][0])
    workload = Workload(dims, Split.ADVERSARIAL, Kind.ADVERSARIAL, layout=Layout.STRIDED)

    def paddings(seed):
        made = make_inputs(problem, workload, seed).values()
        rows = [v for v in made if isinstance(v, torch.Tensor) and v.dim() > 1]
        return [row.stride(-2) - row.shape[-1] for row in rows]

    drawn = [paddings(seed) for seed in range(20)]
    assert drawn[3] == paddings(3)
    assert len({padding for one in drawn for padding in one}) > 20
    assert any(len(set(one)) > 1 for one in drawn)


@pytest.mark.parametrize("name", problem_names())
def test_inputs_are_finite_under_every_distribution(name):
    problem = get_problem(name)
    dims = dict(problem.adversarial[0])
    for distribution in problem.distributions:
        workload = Workload(dims, Split.TRAIN, Kind.TRAIN, distribution=distribution)
        for value in make_inputs(problem, workload, seed=4).values():
            if isinstance(value, torch.Tensor):
                assert torch.isfinite(value.double()).all()


@pytest.mark.parametrize("language", ["triton", "hip"])
def test_adversarial_workloads_do_not_depend_on_the_order_of_distributions(language):
    problem = get_problem("softmax")

    class Reversed(type(problem)):
        distributions = problem.distributions[::-1]

    workloads = adversarial_workloads(problem, Scale.SIM, language)
    assert adversarial_workloads(Reversed(), Scale.SIM, language) == workloads
