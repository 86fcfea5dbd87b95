"""Prompts for small policies: the launch of a kernel, and what its profile adds."""

import re

import pytest

from kernel_gym.episodes.edits import SIMULATED, varied_starts
from kernel_gym.episodes.launch_prompts import LaunchPrompt, ProfiledPrompt, profile_lines
from kernel_gym.tasks import get_task

TASK = get_task("triton2triton/row_sum")
KERNEL = {
    "seconds": 2.0,
    "bound_by": "latency",
    "stalls": {"issue": 0.3, "memory wait": 0.6},
    "occupancy_limiter": "wave slots",
    "waves_per_simd": 8.0,
}


def test_the_lines_are_those_of_the_slowest_kernel():
    fast = {**KERNEL, "seconds": 1.0, "bound_by": "hbm"}
    roofline = [{"share": 0.02}, {"share": 0.06}, {"share": None}]
    assert profile_lines({"kernels": [fast, KERNEL], "roofline": roofline}).splitlines() == [
        "bound by latency",
        "most time in memory wait",
        "occupancy limited by wave slots",
        "waves 8",
        "percent of roofline 4",
    ]


def test_a_kernel_without_facts_has_a_profile_too():
    bare = dict.fromkeys(KERNEL) | {"stalls": {}}
    assert "bound by unknown\n" in profile_lines({"kernels": [bare], "roofline": []})


def test_the_profile_follows_the_launch_and_not_the_names():
    prompt, plain = ProfiledPrompt("sim:gfx942"), LaunchPrompt("sim:gfx942")
    short, *_, long = varied_starts(TASK.start_source, SIMULATED)
    renamed = re.sub(r"\w+\[\(", "other_name[(", short)
    texts = [prompt.of(TASK, source) for source in (short, renamed, long)]
    profiles = [text.partition("# Profile\n")[2] for text in texts]
    assert texts[1].startswith(plain.of(TASK, renamed))
    assert "other_name" in texts[1]
    assert profiles[0] == profiles[1] != profiles[2]
    assert profiles[0].count("\n") == 5


def test_a_measured_profile_is_refused():
    with pytest.raises(ValueError, match="found device 'cuda:0', expected a simulated one"):
        ProfiledPrompt("cuda:0")
