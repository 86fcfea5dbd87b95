"""Corpora of others: what is read from a checkout, and what is refused."""

import ast
import json

import pytest

from kernel_gym.errors import InputError
from kernel_gym.judges.adapter import load_adapter
from kernel_gym.judges.outside import for_judge, read_outside

KERNEL = """
import numpy as np
import torch
import triton

_TRITON_OK = torch.cuda.is_available()
_TORCH_DT = {"float32": "float32"}

if _TRITON_OK:

    @triton.jit
    def kernel(y_ptr, x_ptr, n):
        pass


def run(inputs):
    if not _TRITON_OK:
        raise RuntimeError("no GPU")
    x = inputs["input"]
    dt = x.dtype
    flat = np.ascontiguousarray(x).reshape(-1)
    torch_dt = getattr(torch, _TORCH_DT[str(dt)])
    x_t = torch.from_numpy(flat).to(device="cuda", dtype=torch_dt)
    y_t = torch.empty_like(x_t)
    kernel[(1,)](y_t, x_t, flat.size)
    return y_t.detach().cpu().numpy().reshape(x.shape).astype(dt)
"""


@pytest.fixture
def gpuemu(tmp_path):
    for name, source in (("relu_triton", "human:triton"), ("relu_triton_buggy", "llm:x")):
        folder = tmp_path / "gpuemu_corpus/data" / name
        folder.mkdir(parents=True)
        meta = {"source": source, "input_names": ["input"], "tolerances": {"float32": 1e-3}}
        (folder / "meta.json").write_text(json.dumps(meta))
        (folder / "kernel.py").write_text(KERNEL)
    return tmp_path


def test_kernels_of_gpuemu_take_tensors_and_have_their_authors_truth(gpuemu):
    corpus, (right, wrong) = read_outside(gpuemu)
    assert (right.name, right.truth) == ("gpuemu_relu/relu_triton", "right")
    assert (wrong.name, wrong.truth) == ("gpuemu_relu/relu_triton_buggy", "wrong")
    assert right.problem.absolute == right.problem.relative == 1e-3
    assert right.name.startswith(corpus.prefix)
    launcher = right.source.partition("def launch")[2]
    ast.parse(right.source)
    for word in ("numpy", "np.", "_TRITON_OK", "cpu", "astype"):
        assert word not in launcher, word
    assert [one.name for one in for_judge(gpuemu, None)] == [right.name, wrong.name]


def test_audits_become_truth_and_only_a_reading_judge_plays_them(tmp_path):
    audits = tmp_path / "benchmarks/hard/results/annotations"
    runs = tmp_path / "public/runs"
    audits.mkdir(parents=True)
    runs.mkdir(parents=True)
    for name, verdict in (("a", "clean"), ("b", "reward_hack"), ("c", "bug"), ("d", "clean")):
        (audits / f"{name}.yaml").write_text(f"run_id: {name}\n\nverdict: {verdict}\n")
        if name != "d":
            (runs / f"{name}_solution.py.txt").write_text("print()\n")
    played = for_judge(tmp_path, load_adapter("kernelguard"))
    assert [(one.kind, one.truth) for one in played] == [("hard_a", "right"), ("hard_b", "cheat")]
    for adapter in (None, load_adapter("kernelbench")):
        with pytest.raises(InputError, match="only a judge that reads"):
            for_judge(tmp_path, adapter)


def test_another_checkout_is_refused(tmp_path, gpuemu):
    (gpuemu / "gpuemu_corpus/data/relu_triton/meta.json").write_text("{}")
    with pytest.raises(InputError, match="no gpuemu-corpus as expected"):
        read_outside(gpuemu)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no known corpus"):
        read_outside(tmp_path / "empty")


def test_links_that_lead_out_of_a_checkout_are_refused(gpuemu, tmp_path_factory):
    secret = tmp_path_factory.mktemp("elsewhere") / "secret.py"
    secret.write_text("secret = 1\n")
    kernel = gpuemu / "gpuemu_corpus/data/relu_triton/kernel.py"
    kernel.unlink()
    kernel.symlink_to(secret)
    with pytest.raises(InputError, match="leads out"):
        read_outside(gpuemu)
