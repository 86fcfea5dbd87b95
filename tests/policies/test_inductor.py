"""The policy that submits the kernels of PyTorch's compiler."""

import ast

import pytest

from kernel_gym.episodes.chat import Conversation
from kernel_gym.episodes.episode import Episode
from kernel_gym.evaluator import evaluate
from kernel_gym.policies import inductor, make_policy
from kernel_gym.policies.base import PolicyError, Reply, Stop
from kernel_gym.policies.inductor import InductorProcess, inductor_answer
from kernel_gym.policies.inductor_module import (
    MAX_AUTOTUNE,
    Compiled,
    HostCode,
    NoCandidateError,
    with_scalars,
)
from kernel_gym.tasks import get_problem, get_task

CUMSUM = "triton2triton/cumsum"
INPUTS = ["x.size()[0]", "x", "weight", "bias", "eps"]


def host_code(*lines):
    """The entry that is made of these lines of a compiled layer norm."""
    head = ("n, arg1, arg2, arg3, arg4 = args", "args.clear()")
    body = ast.parse("\n".join([*head, *lines, "return (buf0,)"])).body
    return HostCode(get_problem("layer_norm"), Compiled(body, INPUTS, {"kernel_0": None})).text()


@pytest.mark.slow
def test_a_compiled_reference_passes_for_all_sizes_layouts_and_scalars():
    task = get_task("torch2triton/layer_norm")
    answer = inductor_answer(task)
    assert isinstance(answer, Reply), answer
    judged = evaluate(task, answer.source, device="sim:gfx942", seed=0)
    assert judged.outcome == "passed", judged.message


@pytest.mark.slow
def test_one_process_writes_for_many_tasks_what_it_writes_for_each():
    """Slow: the compiler starts, which its process does once."""
    first, second = get_task("generated:seed=71,depth=2"), get_task("torch2triton/relu_squared")
    with InductorProcess() as compiler:
        answers = [compiler.answer(task) for task in (first, second, first)]
        assert all(isinstance(answer, Reply) for answer in answers), answers
        assert answers[0] == answers[2] != answers[1]
        compiler.process.kill()
        with pytest.raises(PolicyError, match="the process of the compiler ended"):
            compiler.answer(first)
        assert compiler.process is None  # the next task starts another one
    assert isinstance(compiler.answer(get_task("torch2hip/rope")), Stop)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "faster"),
    [("torch2triton/relu_squared", 0.98), pytest.param(CUMSUM, 1.2, marks=pytest.mark.sweep)],
)
def test_max_autotune_writes_a_right_kernel_with_other_block_sizes(task, faster):
    """Its clock has the GPU of a program, and that of the judge may differ by a few percent."""
    sources, seconds = {}, {}
    for mode in ("", MAX_AUTOTUNE):
        answer = inductor_answer(get_task(task), mode)
        assert isinstance(answer, Reply), answer
        sources[mode] = answer.source
        judged = evaluate(get_task(task), answer.source, device="sim:gfx942", seed=0)
        assert judged.outcome == "passed", judged.message
        seconds[mode] = judged.workloads[0].candidate_seconds  # what was tuned on
    assert sources[""] != sources[MAX_AUTOTUNE]
    assert seconds[""] / seconds[MAX_AUTOTUNE] > faster


@pytest.mark.parametrize(("policy", "processes"), [("inductor", 1), ("inductor:max-autotune", 2)])
def test_kernels_that_are_not_timed_come_from_one_process(monkeypatch, policy, processes):
    started = []

    class Compiler(InductorProcess):
        def __init__(self, mode):
            super().__init__(mode)
            started.append(mode)

        def answer(self, task):
            return Stop(task.id)

    monkeypatch.setattr(inductor, "InductorProcess", Compiler)
    names = ("torch2triton/layer_norm", CUMSUM)
    chats = [Conversation(Episode(get_task(name))) for name in names]
    answers = make_policy(policy).reply(chats)
    assert [answer.reason for answer in answers] == [*names]
    assert len(started) == processes


def test_a_mode_is_max_autotune_or_no_policy():
    assert make_policy(f"inductor:{MAX_AUTOTUNE}").mode == MAX_AUTOTUNE
    assert make_policy("inductor").mode == ""
    with pytest.raises(PolicyError, match="found 'fast', expected 'max-autotune'"):
        make_policy("inductor:fast")


def test_host_code_becomes_allocations_and_launches():
    text = host_code(
        "assert_size_stride(arg1, (n, 4), (4, 1))",
        "with torch.cuda._DeviceGuard(0):\n    torch.cuda.set_device(0)\n"
        "    buf1 = empty_strided_cuda((n, 1), (1, n), torch.float16)\n"
        "    buf0 = reinterpret_tensor(buf1, (n,), (1,), 0); del buf1\n"
        "    stream0 = get_raw_stream(0)\n"
        "    kernel_0.run(copy_if_misaligned(arg1), arg4.item(), buf0, n, stream=stream0)",
    )
    lines = [line.strip() for line in text.splitlines()]
    assert lines[:4] == [
        "def layer_norm(x, weight, bias, eps):",
        *(f"{name} = {name}.contiguous()" for name in ("x", "weight", "bias")),
    ]
    assert lines[5:] == [
        "buf1 = torch.empty_strided((n, 1), (1, n), dtype=torch.float16, device='cuda')",
        "buf0 = _view(buf1, (n,), (1,), 0)",
        "run_kernel_0(arg1, arg4, buf0, n)",
        "return buf0",
    ]


@pytest.mark.parametrize(
    "call",
    [
        "extern_kernels.mm(arg1, arg2, out=buf0)",
        "buf0 = torch.ops.aten.sort.default(arg1)",
        "buf0 = aten.cumsum(arg1, 0)",
        "n = arg1.item()",
    ],
)
def test_a_graph_that_calls_what_no_plan_holds_is_no_candidate(call):
    with pytest.raises(NoCandidateError, match="the graph calls"):
        host_code("buf0 = empty_strided_cuda((n,), (1,), torch.float16)", call)


def test_tasks_in_other_languages_get_no_submission():
    assert isinstance(inductor_answer(get_task("torch2hip/rope")), Stop)


def test_numbers_that_change_with_a_scalar_become_the_scalar():
    values = [{"eps": 0.5, "scale": 3.0}, {"eps": 0.25, "scale": 7.0}]
    texts = [f"a(1.5, {v['eps']!r}, {2.0 * v['scale']!r}, -{v['scale']!r}, 2)" for v in values]
    assert (
        with_scalars(texts, values) == "a(1.5, scalar_eps, (scalar_scale * 2.0), -scalar_scale, 2)"
    )
    texts = [f"{v['scale'] ** 0.5!r} {8.0 / v['eps']!r}" for v in values]
    assert with_scalars(texts, values) == "root_scale (inverse_eps * 8.0)"
    assert with_scalars([f"{1 - v['eps']!r}" for v in values], values) == "complement_eps"
    with pytest.raises(NoCandidateError, match="by a factor"):
        with_scalars([f"{2.0 + v['eps']!r}" for v in values], values)
    with pytest.raises(NoCandidateError, match="by value"):
        with_scalars(["a(0.5)", "b(0.25)"], values)
