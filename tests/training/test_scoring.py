"""Scoring for training: order, the ledger, and what happens when the gym itself fails."""

import math
from concurrent.futures import Future, ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from kernel_gym.episodes.conversation import LaunchPrompt
from kernel_gym.executors.base import Executor
from kernel_gym.executors.cache import Key
from kernel_gym.judge.protocol import PROTOCOL_VERSION
from kernel_gym.records import Evaluation, Outcome, Stage
from kernel_gym.rewards import RewardResult, get_reward
from kernel_gym.storage.json_lines import StoreError, read_lines
from kernel_gym.storage.secret import PUBLIC, RunSecret
from kernel_gym.tasks import get_task
from kernel_gym.training import scoring
from kernel_gym.training.config import Grpo
from kernel_gym.training.grpo import GymReward, dataset_rows
from kernel_gym.training.journal import gym_metrics
from kernel_gym.training.scoring import LEDGER, Scorer
from tests.records import failure, passing

TASK, EDITED = "triton2triton/softmax", "triton2triton/row_argmax"


class Answers(Executor):
    """Answers from a table of records, as an executor would; counts what it evaluates."""

    def __init__(self, **records):
        super().__init__("sim:gfx942", seed=0, secret=RunSecret(bytes(32)))
        self.records, self.asked, self.seeds = records, [], []

    def _start(self, request):
        self.asked.append(request.source)
        self.seeds.append(request.seed)
        future = Future()
        record = self.records[request.source]
        if isinstance(record, Exception):
            future.set_exception(record)
        else:
            update = {
                "source_sha256": sha(request.source),
                "seed": request.seed,
                "secret_sha256": self.secret.sha256,
                "task": TASK,
                "problem_sha256": request.content,
            }
            future.set_result(record.model_copy(update=update))
        return future

    def close(self):
        pass


def sha(source):
    return Key.of(TASK, source, "sim:gfx942", 0).source_sha256


GOOD = passing(3.0, 3.0).model_copy(update={"protocol_version": PROTOCOL_VERSION})
BAD = failure(Outcome.COMPILE_ERROR, Stage.BUILD).model_copy(
    update={"protocol_version": PROTOCOL_VERSION}
)
STATE = SimpleNamespace(global_step=7)
INFRA = failure(Outcome.INFRA, Stage.BUILD)


def score(folder, sources, executor=None, reward=None, draw="step 0"):
    executor = executor or Answers(good=GOOD, bad=BAD, infra=INFRA, crash=RuntimeError("gone"))
    scorer = Scorer(executor, reward or get_reward(), folder)
    return executor, scorer([(TASK, source) for source in sources], draw=draw)


def test_a_batch_is_scored_in_order_and_faults_of_ours_are_masked(tmp_path):
    executor, scored = score(tmp_path, ["bad", "good", "infra", "crash", "good"])
    assert [s.reward is None for s in scored] == [False, False, True, True, False]
    assert scored[1].reward > scored[0].reward
    assert [s.cached for s in scored] == [False, False, False, False, True]
    assert executor.asked.count("good") == 1


def test_a_result_is_in_the_ledger_before_an_earlier_submission_has_one(tmp_path):
    class Late(Answers):
        slow = Future()

        def _start(self, request):
            return self.slow if request.source == "slow" else super()._start(request)

    executor = Late(good=GOOD)
    scorer = Scorer(executor, get_reward(), tmp_path)
    with ThreadPoolExecutor(1) as thread:
        scored = thread.submit(scorer, [(TASK, "slow"), (TASK, "good")], draw="step 0")
        while "good" not in executor.asked:
            pass
        executor.slow.set_exception(KeyboardInterrupt())
        with pytest.raises(KeyboardInterrupt):
            scored.result()
    assert len(read_lines(tmp_path / LEDGER, Evaluation)) == 1


def test_an_error_of_ours_is_masked_logged_with_its_traceback_and_counted(tmp_path, caplog):
    def reward(evaluation, context):
        if evaluation.outcome is Outcome.PASSED:
            raise ZeroDivisionError("no baseline")
        return RewardResult(0.5)

    _, scored = score(tmp_path, ["good", "bad", "crash"], reward=reward)
    assert [s.reward for s in scored] == [None, 0.5, None]
    assert scored[0].evaluation is not None
    assert [s.error for s in scored] == ["ZeroDivisionError: no baseline", "", "RuntimeError: gone"]
    assert gym_metrics(scored)["gym/errors"] == 2
    assert [record.levelname for record in caplog.records] == ["ERROR", "ERROR"]
    assert [record.exc_info[0] for record in caplog.records] == [ZeroDivisionError, RuntimeError]
    assert TASK in caplog.text


def test_an_evaluation_whose_reward_failed_is_not_lost(tmp_path):
    def reward(evaluation, context):
        raise ZeroDivisionError

    score(tmp_path, ["good"], reward=reward)
    executor, scored = score(tmp_path, ["good"])
    assert executor.asked == []
    assert scored[0].reward > 0


def test_a_task_that_is_unknown_is_masked_and_nothing_raises(tmp_path):
    scorer = Scorer(Answers(), get_reward(), tmp_path)
    (scored,) = scorer([("no/task", "x")], draw="step 0")
    assert scored.reward is None
    assert "no/task" in scored.error


def test_the_busy_share_is_of_the_time_of_all_workers(tmp_path, monkeypatch):
    clock = iter([10.0, 10.0, 10.5, 15.0])  # made, submitted, ended, accounted
    monkeypatch.setattr(scoring.time, "perf_counter", lambda: next(clock))
    took = GOOD.model_copy(update={"wall_seconds": {"build": 1.0, "train": 3.0}})
    executor = Answers(good=took)
    executor.workers = 2
    scorer = Scorer(executor, get_reward(), tmp_path)
    scored = scorer([(TASK, "good")], draw="step 0")
    assert gym_metrics(scored)["gym/evaluation_seconds"] == 4.0
    assert scored[0].seconds == 0.5
    assert scorer.busy == pytest.approx(4.0 / (2 * 5.0))


@pytest.mark.parametrize(("value", "expected"), [(math.inf, 1e6), (math.nan, None)])
def test_a_reward_is_finite_or_masked(tmp_path, value, expected):
    def reward(evaluation, context):
        return RewardResult(value)

    assert score(tmp_path, ["good"], reward=reward)[1][0].reward == expected


def test_a_resumed_run_evaluates_nothing_twice(tmp_path):
    _, scored = score(tmp_path, ["good", "infra"])
    with (tmp_path / LEDGER).open("a") as ledger:
        ledger.write('{"cut off')
    second, again = score(tmp_path, ["good", "infra", "bad"])
    assert second.asked == ["infra", "bad"]
    assert again[0].cached
    assert again[0].reward == scored[0].reward
    assert score(tmp_path, ["good", "bad"])[0].asked == []


def test_each_draw_evaluates_anew_and_equal_sources_of_a_draw_are_one(tmp_path):
    executor = Answers(good=GOOD, bad=BAD)
    scorer = Scorer(executor, get_reward(), tmp_path)
    for step in (0, 1):
        first, second, _ = scorer([(TASK, s) for s in ("good", "good", "bad")], draw=f"step {step}")
        assert (first.cached, second.cached) == (False, True)
        assert first.evaluation.seed == second.evaluation.seed
    assert executor.asked == ["good", "bad"] * 2
    seeds = executor.seeds
    assert seeds[0] == seeds[1] != seeds[2] == seeds[3]


def test_a_resumed_run_draws_a_step_as_before(tmp_path):
    straight, stopped = tmp_path / "straight", tmp_path / "stopped"
    straight.mkdir()
    stopped.mkdir()
    executor, _ = score(straight, ["good"], draw="step 5")
    score(stopped, ["good"], draw="step 4")
    again, _ = score(stopped, ["good"], draw="step 5")
    assert executor.seeds == again.seeds


def test_the_ledger_of_another_secret_is_not_taken_for_this_run(tmp_path):
    score(tmp_path, ["good"])
    other = Answers(good=GOOD)
    other.secret = RunSecret(bytes(range(32)))
    assert score(tmp_path, ["good"], executor=other)[0].asked == ["good"]


def test_no_training_without_a_secret(tmp_path):
    executor = Answers()
    executor.secret = PUBLIC
    with pytest.raises(ValueError, match="no secret"):
        Scorer(executor, get_reward(), tmp_path)


def test_a_reward_without_the_step_is_refused(tmp_path):
    reward = GymReward(Scorer(Answers(good=GOOD), get_reward(), tmp_path))
    with pytest.raises(ValueError, match="trainer's state"):
        reward(completions=["good"], task=[TASK])


def test_a_ledger_with_a_broken_line_is_refused_by_name(tmp_path):
    (tmp_path / LEDGER).write_text('{"cut off\n')
    with pytest.raises(StoreError, match=r"evaluations\.jsonl, line 1: line: found"):
        score(tmp_path, [])


def test_metrics_count_outcomes_and_average_what_is_there(tmp_path):
    metrics = gym_metrics(score(tmp_path, ["good", "good", "bad", "infra"])[1])
    assert metrics["gym/outcome/passed"] == metrics["gym/passed"] == 0.5
    assert metrics["gym/masked"] == metrics["gym/cache_hits"] == 0.25
    assert metrics["gym/speedup"] == pytest.approx(3.0)
    assert metrics["gym/transfer"] == pytest.approx(1.0)


def test_the_reward_function_takes_what_trl_gives(tmp_path):
    logged = {}
    executor = Answers(good=GOOD, bad=BAD)
    reward = GymReward(Scorer(executor, get_reward(), tmp_path))
    chats = [[{"role": "assistant", "content": text}] for text in ("good", "bad")]
    rewards = reward(
        completions=chats,
        task=[TASK, TASK],
        prompts=[],
        log_metric=logged.__setitem__,
        trainer_state=STATE,
    )
    assert rewards[0] > rewards[1]
    assert logged["gym/passed"] == 0.5


def test_an_edit_is_rewarded_as_one_of_the_start_that_its_prompt_shows(tmp_path):
    prompt, options = LaunchPrompt("sim:gfx942"), Grpo(prompts=3, starts="varied")
    given = get_task(EDITED).start_source
    rows = dataset_rows([EDITED], prompt, options)
    assert len(rows) == 24
    assert len({row["start"] for row in rows}) == 8
    assert all(row["prompt"][0]["content"] == prompt.of(None, row["start"]) for row in rows)
    (row,) = dataset_rows([EDITED], prompt, Grpo(prompts=1))
    assert row["start"] == given
    with pytest.raises(ValueError, match=r"triton2triton/gelu' has no launch with BLOCK"):
        dataset_rows(["triton2triton/gelu"], prompt, options)
    executor = Answers(**{given.replace("=256", "=2048"): GOOD})
    reward = GymReward(Scorer(executor, get_reward(), tmp_path))
    reply = "<<<<<<< SEARCH\nBLOCK=64\n=======\nBLOCK=2048\n>>>>>>> REPLACE\n"
    starts = [given.replace("=256", "=64"), given]
    assert reward([reply, reply], [EDITED] * 2, starts, trainer_state=STATE)[0] > 0.15
    assert executor.asked[1].startswith("# edit 1: 'BLOCK=64' occurs 0 times")


def test_a_resumed_run_evaluates_again_what_was_judged_by_other_texts(tmp_path, monkeypatch):
    score(tmp_path, ["good"])
    same, _ = score(tmp_path, ["good"])
    monkeypatch.setitem(vars(get_task(TASK).problem), "_digest_of_content", "0" * 64)
    edited, _ = score(tmp_path, ["good"])
    assert (same.asked, edited.asked) == ([], ["good"])
