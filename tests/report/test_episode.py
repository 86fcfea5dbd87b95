"""The page of an episode."""

import pytest

from kernel_gym.episodes.episode import Episode
from kernel_gym.policies import Reply
from kernel_gym.policies.recording import record_turn
from kernel_gym.records import KernelFacts, Outcome, Stage
from kernel_gym.report.episode import write_episodes
from kernel_gym.rewards import get_reward
from kernel_gym.storage.json_lines import append_line
from kernel_gym.storage.run_records import AgentStart, SubmissionTime
from kernel_gym.storage.run_store import CLOCK, STARTS, TRANSCRIPTS, RunStore
from kernel_gym.tasks import get_task
from tests.records import failure, passing
from tests.storage.test_run_store import CONFIG

TASK = "triton2triton/softmax"


HOT = {"share": 0.3, "text": "s_waitcnt", "source": "candidate.py:19"}
FACTS = KernelFacts(name="k", vgprs=1, sgprs=1, bound_by="hbm", profile={"hot": [HOT]})
SOURCES = {"examples": ("x(", "def f():\n    a = 1\n", "def f():\n    a = 2\n"), "baseline": ("y",)}


@pytest.fixture
def runs(tmp_path):
    """A run of three submissions, and one of the baseline."""
    for policy, sources in SOURCES.items():
        config = CONFIG.model_copy(
            update={"policy": policy, "suite": TASK, "tasks": (TASK,), "turns": len(sources)}
        )
        store = RunStore.start(tmp_path / policy, config)
        episode = Episode(get_task(TASK))
        with store.session(f"kernel-gym eval --policy {policy} <b>"):
            for number, source in enumerate(sources):
                evaluation = failure(Outcome.COMPILE_ERROR, Stage.BUILD)
                if source != "x(":
                    speed = 1.0 + number
                    evaluation = passing(speed, speed).model_copy(update={"kernels": (FACTS,)})
                reply = Reply("", source)
                _, episode = record_turn(store, get_reward(), episode, reply, evaluation)
    return tmp_path


def test_a_page_shows_submissions_changes_profile_and_conversation(runs):
    store = RunStore(runs / "examples")
    transcript = store.folder / TRANSCRIPTS / TASK / "sample_1.1.txt"
    transcript.parent.mkdir(parents=True)
    transcript.write_bytes(b"<script>alert(1)</script> \x1b[2J thinking \xff")
    start = AgentStart(task=TASK, sample=1, number=1, status=None, reason="<i>", seconds=61.0)
    append_line(store.folder / STARTS, start)
    for turn in (1, 2, 3):
        line = SubmissionTime(task=TASK, sample=1, turn=turn, seconds=90.0 * turn)
        append_line(store.folder / CLOCK, line)
    (path,) = write_episodes(store)
    page = (store.folder / path).read_text()
    assert path == "episodes/triton2triton-softmax-1.html"
    assert page.count("<svg") == 2
    for text in ("3: passed", "after 4.5 min", "candidate.py:", "thinking", "61 s, 0 tokens"):
        assert text in page
    assert "<script>" not in page
    assert "\x1b" not in page
    assert "&lt;script&gt;" in page
    assert page.count("<summary>changes") == 1  # the others keep no line of the one before


def test_without_times_there_is_one_plot(runs):
    store = RunStore(runs / "baseline")
    (path,) = write_episodes(store)
    assert (store.folder / path).read_text().count("<svg") == 1
