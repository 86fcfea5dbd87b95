"""The reflective agent with and without the profile, over a model that follows a rule.

`pytest -m sweep -s tests/policies/test_profile_ablation.py` prints the speedups. The model is a
rule behind a local endpoint and no language model: the figures show what the profile is worth to a
policy that knows what to do about a kernel that is bound by latency, and nothing more.
"""

import hashlib
import re
import subprocess
import sys

import pytest

from kernel_gym.storage.run_store import RunStore
from tests.policies.chat_server import completion, serving

TASKS = ("softmax", "layer_norm", "cumsum", "logsumexp", "cross_entropy")
TURNS = 4
_FENCED = re.compile(r"(`{3,})\w*\n(.*?)\n\1", re.DOTALL)
_BLOCK = re.compile(r"\bBLOCK=(\d+)")


def rule(text):
    """The next kernel: another block size of the fastest one.

    With a profile that says "bound by latency" the block becomes four times larger: more loads are
    in flight. Without it the direction is that of a coin, which the source decides.
    """
    fastest = text.partition("Correct kernels so far")[2] or text
    sources = [source for _, source in _FENCED.findall(fastest) if _BLOCK.search(source)]
    if fastest == text:
        return sources[0]
    block = int(_BLOCK.search(sources[0])[1])
    sizes = {int(size) for source in sources for size in _BLOCK.findall(source)}
    coin = hashlib.sha256("".join(sources).encode()).digest()[0] % 2
    larger = "bound by latency" in fastest or coin
    steps = (4, 2) if larger else (1 / 4, 1 / 2)
    new = next((int(block * s) for s in steps if int(block * s) not in sizes), block)
    return _BLOCK.sub(f"BLOCK={max(16, new)}", sources[0])


@pytest.fixture
def play(tmp_path):
    """Plays the rule under a policy's name; returns the run and all prompts."""
    names = ", ".join(f'"triton2triton/{name}"' for name in TASKS)
    suite = tmp_path / "ablation.toml"
    suite.write_text(f'name = "ablation"\nsummary = "five tasks"\ntasks = [{names}]\n')

    def played(switch, folder):
        def answer(body):
            text = body["messages"][-1]["content"]
            if text.startswith("A kernel for"):
                return 200, completion("The block size decides.")
            return 200, completion(f"```python\n{rule(text)}\n```")

        with serving() as server:
            server.refuse = answer
            policy = f"reflective:{switch}openai:{server.url}#small"
            command = [
                sys.executable, "-m", "kernel_gym", "eval", "--policy", policy, "--suite",
                str(suite), "--device", "sim:gfx942", "--turns", str(TURNS), "--seed", "31",
                "--workers", "1", "--temperature", "0", "--out", str(folder), "--json",
            ]  # fmt: skip
            run = subprocess.run(command, capture_output=True, text=True)
            assert run.returncode == 0, run.stderr
            prompts = [body["messages"][-1]["content"] for _, body, _ in server.seen]
        return RunStore(folder), prompts

    return played


def best(store):
    """The largest speedup of each task."""
    return {
        name: max(
            record.evaluation.speedup or 0.0
            for record in store.records()
            if record.task.endswith(name)
        )
        for name in TASKS
    }


@pytest.mark.sweep
@pytest.mark.timeout(1800)
def test_the_profile_helps_a_policy_that_reads_it(play, tmp_path):
    reading, with_it = play("", tmp_path / "on")
    blind, without = play("no-profile:", tmp_path / "off")
    assert any("bound by latency" in prompt for prompt in with_it)
    assert not any("bound by" in prompt.partition("Correct kernels")[2] for prompt in without)
    assert len(reading.records()) == len(blind.records()) == TURNS * len(TASKS)
    for name, store in (("profile on", reading), ("profile off", blind)):
        print(name, best(store))
    assert sum(best(reading).values()) > sum(best(blind).values())
