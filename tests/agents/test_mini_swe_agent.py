"""mini-swe-agent in a confined workspace, with a model that answers by script."""

import os
import shutil
from pathlib import Path

import pytest

from kernel_gym.agents.desk import Recorder
from kernel_gym.agents.play import AgentPlay, Manner
from kernel_gym.agents.presets import get_preset
from kernel_gym.agents.process import Limits
from kernel_gym.rewards import get_reward
from kernel_gym.storage.run_records import RunConfig
from kernel_gym.storage.run_store import TRANSCRIPTS, RunStore
from kernel_gym.tasks import get_task
from tests.agents.conftest import DEVICE, TASK
from tests.agents.scripted_model import scripted_model

MINI = os.environ.get("KERNEL_GYM_TEST_MINI") or shutil.which("mini")
"""The program; its environment is the folder above the one that it lies in."""


@pytest.mark.sweep
@pytest.mark.skipif(MINI is None, reason="needs mini-swe-agent: pip install mini-swe-agent")
def test_mini_swe_agent_plays_a_task(tmp_path, pool, monkeypatch):
    commands = ["cat TASK.md | head -5", "sed -i s/BLOCK=512/BLOCK=1024/ kernel.py", "./check"]
    config = RunConfig(
        policy="agent:mini-swe-agent",
        suite=TASK,
        tasks=(TASK,),
        device=DEVICE,
        reward="kernel-opt",
        turns=4,
    )
    store = RunStore.start(tmp_path / "run", config, secret=pool.secret)
    preset = get_preset("mini-swe-agent")
    with scripted_model(commands) as (url, server):
        for name, value in {
            "MSWEA_MODEL_NAME": "openai/scripted",
            "OPENAI_API_BASE": url,
            "OPENAI_API_KEY": "none",
            "MSWEA_COST_TRACKING": "ignore_errors",
            "MSWEA_CONFIGURED": "true",
        }.items():
            monkeypatch.setenv(name, value)
        folder = str(Path(MINI).parent.parent)
        preset = preset.model_copy(update={"read": (*preset.read, folder)})
        AgentPlay(Recorder(store, get_reward()), pool, Manner(preset, Limits(300))).play(
            [get_task(TASK)]
        )
    (transcript,) = (tmp_path / "run" / TRANSCRIPTS).rglob("*.txt")
    text = transcript.read_text(errors="replace")
    if "cannot be confined here" in text:
        pytest.skip(text)
    assert server.requests == 4, text
    records = RunStore(tmp_path / "run").records()
    assert [str(record.evaluation.outcome) for record in records] == ["passed", "passed"], text
    assert records[0].evaluation.speedup > 1.1
