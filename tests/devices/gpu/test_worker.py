"""A confined process for programs on files of a suite, on a machine whose GPU it cannot use."""

import os

import pytest
import torch

from kernel_gym.devices.gpu.worker import start_upstream


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_program_without_its_gpu_says_so_and_does_not_run():
    output = os.memfd_create("output")
    child = start_upstream(output, {"CUDA_VISIBLE_DEVICES": "0"}, (), 1 << 30, 60.0)
    try:
        options = {"style": "halves", "file": "a.py", "line": 0, "functions": []}
        header = {"program": "record", "files": ["a.py"], "options": options}
        child.channel.send(header, b"print('it runs')")
        answer = child.channel.recv(60.0).header
    finally:
        child.close()
        printed = os.pread(output, 100, 0)
        os.close(output)
    assert "CUDA" in answer["error"] or "GPU" in answer["error"], answer
    assert "answer" not in answer
    assert b"it runs" not in printed
