"""Pairs of KernelBenchX's corpus: which of them can be used, and what is said if none can."""

import pytest

from kernel_gym.exchange.kbx_corpus import corpus_rows
from kernel_gym.storage.json_lines import StoreError


def pair(task, kind="exe_fail_to_pass", after="y = 1\n"):
    return {
        "task_id": f"Activation/{task}.py",
        "kind": kind,
        "before": {},
        "after": {},
        "before_code": "x = 1\n",
        "after_code": after,
    }


def test_without_an_imported_task_those_that_have_a_pair_are_named(tmp_path, monkeypatch):
    monkeypatch.setenv("KERNEL_GYM_IMPORTS", str(tmp_path))
    rows = [
        pair("relu"),
        pair("gelu", after="import torch @triton.jit"),
        pair("tanh", "regression"),
    ]
    with pytest.raises(StoreError, match=r"such as relu$"):
        corpus_rows(rows, "sim:gfx942")
    with pytest.raises(StoreError, match="none of this file"):
        corpus_rows(rows[1:], "sim:gfx942")
