"""Keys of GRPO: configurations of the runs, what is noted, and figures from made samples."""

from __future__ import annotations

import json

import pytest

from benchmarks import writer_keys
from benchmarks.figures import RESULTS, load_benchmarks
from benchmarks.renewal import entry_maker
from benchmarks.writer_keys import VARIANTS, Sample
from kernel_gym.errors import InputError
from kernel_gym.executors import make_executor
from kernel_gym.rewards import get_reward
from kernel_gym.storage.secret import RunSecret
from kernel_gym.tasks import get_task

TASK = "triton2triton/generated:seed=193,depth=2"


def test_runs_differ_in_their_keys_alone(tmp_path):
    configs = {name: writer_keys.config_of(name, tmp_path) for name in VARIANTS}
    assert len(set(map(str, configs.values()))) == len(VARIANTS)
    grpo = configs["default"].grpo
    assert grpo.steps * grpo.prompts <= len(configs["default"].tasks.train), "each graph once"
    assert configs["scale-none"].grpo.scale == "none"
    assert configs["kevin"].gym.reward == "kevin"
    assert configs["kevin"].grpo == grpo


def test_a_batch_is_noted_with_both_rewards(tmp_path):
    source = get_task(TASK).start_source
    with make_executor(
        "local", device="sim:gfx942", seed=0, workers=1, secret=RunSecret(bytes(32))
    ) as executor:
        scorer = writer_keys.NotingScorer(executor, get_reward("autotriton"), tmp_path)
        scorer([(TASK, source), (TASK, "no kernel")], draw="step 3")
    samples = writer_keys.read_samples(tmp_path)
    right, wrong = samples["step-3"]
    assert (right.right, right.paid) == (True, 1.0)
    assert right.reward == get_reward("kernel-opt")(_evaluation(tmp_path)).value
    assert (wrong.right, wrong.paid) == (False, 0.0)


def _evaluation(folder):
    from kernel_gym.records import Evaluation

    lines = (folder / "evaluations.jsonl").read_text(encoding="utf-8").splitlines()
    records = [Evaluation.model_validate(json.loads(line)) for line in lines]
    return next(record for record in records if record.speedup)


def test_figures_are_of_late_steps_and_paired_by_graph():
    def steps(rewards):
        return {
            f"step-{n}": [Sample(f"t{n}", r > 0, r, r) for r in own]
            for n, own in enumerate(rewards)
        }

    runs = dict.fromkeys(VARIANTS, steps([[9.0], [9.0], [1.0, 0.0], [1.0, 1.0]]))
    runs["kevin"] = steps([[0.0], [0.0], [1.0, 1.0], [2.0, 1.0], [5.0]])
    subject = writer_keys.figures(runs, entry_maker(writer_keys.SUBJECT))
    figure = {entry.id.removeprefix("keys-"): float(entry.value) for entry in subject.entries}
    assert figure["default-right"] == 0.75, "step 4 is in one run alone, steps 0 and 1 are early"
    assert figure["kevin-reward-gain"] == pytest.approx(0.5)
    assert figure["default-alike"] == 0.75, "one of four steps has two rewards"


def test_runs_without_common_steps_are_refused():
    runs = {name: {"step-0": [Sample("t", True, 1.0, 1.0)]} for name in VARIANTS}
    with pytest.raises(InputError, match="1 steps in common"):
        writer_keys.figures(runs, entry_maker(writer_keys.SUBJECT))


def test_the_page_shows_the_stored_figures():
    subject = load_benchmarks(RESULTS).subjects[writer_keys.SUBJECT]
    page = writer_keys.PAGE.read_text(encoding="utf-8")
    assert writer_keys.keys_page(page, subject) == page
