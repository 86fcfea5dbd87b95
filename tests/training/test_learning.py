"""The whole loop for real, in small: corpus, tokenizer, SFT, GRPO on the simulator, resumption."""

import json
import os
import shutil
import signal
from dataclasses import asdict, replace

import pytest

from kernel_gym.executors import make_executor
from kernel_gym.training.assess import Assessment
from kernel_gym.training.config import make_config
from kernel_gym.training.stopping import Stopping

pytest.importorskip("trl")
pytestmark = pytest.mark.train

TASKS = {"train": ["triton2triton/row_sum"], "held_out": ["triton2triton/row_argmax"]}
TABLES = {
    "gym": {"device": "sim:gfx942", "prompt": "launch"},
    "corpus": {"per_task": 3},
    "model": {"hidden": 64, "layers": 2, "heads": 2},
    "sft": {"steps": 60, "batch": 6, "learning_rate": 1e-2},
    "assess": {"samples": 2, "every": 1},
}
GRPO = {"steps": 2, "prompts": 1, "generations": 4, "max_tokens": 40, "save_every": 1}
GRPO["starts"] = "varied"


@pytest.fixture(scope="module")
def executor():
    with make_executor("local", device="sim:gfx942", seed=0, workers=2) as executor:
        yield executor


def config(folder, **grpo):
    data = {"out": str(folder), "tasks": TASKS, **TABLES, "grpo": GRPO | grpo}
    return make_config(data)


@pytest.fixture(scope="module")
def run(tmp_path_factory, executor):
    """A finished run of two steps."""
    from kernel_gym.training.train import Training

    folder = tmp_path_factory.mktemp("training") / "run"
    return folder, Training(config(folder), executor).run()


def weights(folder):
    from safetensors.torch import load_file

    return load_file(folder / "model.safetensors")


def metrics(folder, phase):
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    return [line for line in map(json.loads, lines) if line["phase"] == phase]


def rewards_of(assessment):
    """The rewards in an assessment, without the times of its evaluations."""
    rewards = {name: task["rewards"] for name, task in assessment.tasks.items()}
    return assessment.train, assessment.held_out, assessment.step, rewards


def test_sft_lowers_the_loss_and_grpo_changes_the_weights(run):
    folder, (start, final) = run
    losses = [line["loss"] for line in metrics(folder, "sft") if "loss" in line]
    assert losses[-1] < losses[0] / 4
    steps = [line for line in metrics(folder, "grpo") if "gym/reward" in line]
    assert [line["step"] for line in steps] == [1, 2]
    assert {"gym/cache_hits", "gym/busy", "gym/seconds", "frac_reward_zero_std"} <= set(steps[0])
    before, after = weights(folder / "sft"), weights(folder / "final")
    assert any((before[name] != after[name]).any() for name in before)
    assert any(line["grad_norm"] > 0 for line in steps)
    assert (start.step, final.step) == (0, 2)


def test_a_checkpoint_has_its_evaluation_optimizer_and_generators(run):
    folder, _ = run
    measured = [line["step"] for line in metrics(folder, "assess")]
    assert measured == [0, 1, 2]  # the last one once, as the final checkpoint
    assert Assessment.read(folder / "grpo" / "checkpoint-1").step == 1
    assert not (folder / "grpo" / "checkpoint-2" / "evaluation.json").exists()
    checkpoint = folder / "grpo" / "checkpoint-2"
    assert (checkpoint / "gym.json").read_text() == (folder / "final" / "gym.json").read_text()
    names = {path.name for path in checkpoint.iterdir()}
    assert {"optimizer.pt", "rng_state.pth", "trainer_state.json", "tokenizer.json"} <= names
    assert list((folder / "tensorboard").iterdir())


def test_a_run_resumed_from_its_first_checkpoint_ends_the_same(run, executor, tmp_path):
    from kernel_gym.training.train import Training

    folder, (_, final) = run
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    shutil.rmtree(copy / "final")
    shutil.rmtree(copy / "grpo" / "checkpoint-2")
    asked = config(folder)
    stored = json.loads((copy / "config.json").read_text()) | {"out": str(copy)}
    (copy / "config.json").write_text(json.dumps(stored))
    _, again = Training(replace(asked, out=str(copy)), executor, resume=True).run()
    assert rewards_of(again) == rewards_of(final)
    steps = [line["step"] for line in metrics(copy, "grpo") if "gym/reward" in line]
    assert steps == [1, 2]
    expected, resumed = weights(folder / "final"), weights(copy / "final")
    assert all((expected[name] == resumed[name]).all() for name in expected)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_stopped_saves_its_step_and_ends_the_same(
    run, executor, tmp_path, monkeypatch, number
):
    from kernel_gym.training.scoring import Scorer
    from kernel_gym.training.train import Training

    folder, (_, final) = run
    copy, logged, score = tmp_path / "copy", [], Scorer.__call__
    shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("final", "grpo"))
    asked = config(copy, save_every=60)
    (copy / "config.json").write_text(json.dumps(asdict(asked)))

    def stop(scorer, *batch, **draw):
        """Stops the run while its first step is evaluated."""
        os.kill(os.getpid(), number)
        return score(scorer, *batch, **draw)

    monkeypatch.setattr(Scorer, "__call__", stop)
    with pytest.raises(KeyboardInterrupt):
        Training(asked, executor, resume=True, log=logged.append).run()
    monkeypatch.setattr(Scorer, "__call__", score)
    assert "stopping with a checkpoint after this step; again to stop at once" in logged
    assert [path.name for path in (copy / "grpo").iterdir() if path.is_dir()] == ["checkpoint-1"]
    _, again = Training(asked, executor, resume=True).run()
    assert rewards_of(again) == rewards_of(final)
    expected, resumed = weights(folder / "final"), weights(copy / "final")
    assert all((expected[name] == resumed[name]).all() for name in expected)


def test_a_second_signal_stops_at_once():
    logged = []
    stopping = Stopping(logged.append)
    before = signal.getsignal(signal.SIGINT)

    def stopped_twice():
        with stopping.listening():
            os.kill(os.getpid(), signal.SIGINT)
            logged.append("went on")
            os.kill(os.getpid(), signal.SIGINT)
            logged.append("never said")

    with pytest.raises(KeyboardInterrupt):
        stopped_twice()
    assert logged[1:] == ["went on"]
    assert signal.getsignal(signal.SIGINT) is before


def test_the_policy_reloads_with_the_same_tokens(run):
    from transformers import AutoTokenizer

    from kernel_gym.episodes.conversation import LaunchPrompt, converse
    from kernel_gym.episodes.episode import Episode
    from kernel_gym.policies import make_policy
    from kernel_gym.policies.sampling_params import SamplingParams
    from kernel_gym.tasks import get_task
    from kernel_gym.training.corpus import read_corpus

    folder, _ = run
    row = read_corpus(folder / "corpus.jsonl")[0]
    tokenizer = AutoTokenizer.from_pretrained(folder / "final")
    for text in (row.reply, row.prompt, row.source):
        assert tokenizer.decode(tokenizer(text)["input_ids"]) == text
    assert len(tokenizer(row.reply)["input_ids"]) < 40
    policy = make_policy(f"hf:{folder / 'final'}")
    assert policy.params == SamplingParams("launch", 40, 0.5)
    policy.params = replace(policy.params, max_tokens=8)
    chat = converse(Episode(get_task(TASKS["train"][0])), LaunchPrompt("sim:gfx942"))
    replies = policy.reply([chat, chat, chat])
    assert [reply.completion_tokens for reply in replies] == [8, 8, 8]
    assert replies[0].prompt_tokens == len(policy.prompt_ids(chat))


@pytest.mark.parametrize("credit", ["turn", "episode"])
def test_episodes_of_two_turns_train(run, executor, tmp_path, credit):
    from kernel_gym.training.train import Training

    folder, _ = run
    options = {"turns": 2, "gamma": 0.5, "credit": credit, "steps": 1, "feedback_chars": 40}
    asked = config(tmp_path / "run", **options, scale="none")
    asked = replace(asked, lora=replace(asked.lora, rank=2), sft=replace(asked.sft, steps=0))
    asked = replace(asked, model=replace(asked.model, path=str(folder / "sft")))
    training = Training(asked, executor)
    shutil.copy(folder / "corpus.jsonl", tmp_path / "run")
    training.run()
    (step,) = [line for line in metrics(tmp_path / "run", "grpo") if "gym/reward" in line]
    assert step["completions/mean_length"] > 10
    assert (tmp_path / "run" / "final" / "model.safetensors").exists()


def test_feedback_is_read_and_not_learnt(run, executor, tmp_path):
    """A transcript's mask is 1 on the tokens that the policy wrote and on no other."""
    from kernel_gym.episodes.conversation import LaunchPrompt
    from kernel_gym.policies import make_policy
    from kernel_gym.rewards import get_reward
    from kernel_gym.tasks import get_task
    from kernel_gym.training.scoring import Scorer
    from kernel_gym.training.turns import Episodes, TrainingEpisode

    policy = make_policy(f"hf:{run[0] / 'final'}")
    policy.params = replace(policy.params, max_tokens=12)
    options = config(tmp_path, turns=2, credit="episode").grpo
    prompt = LaunchPrompt("sim:gfx942")
    episodes = Episodes(options, [], Scorer(executor, get_reward(), tmp_path))
    task = TASKS["train"][0]
    played = TrainingEpisode(task, prompt(get_task(task)))
    for _ in range(2):
        episodes.play(policy, [played], draw="step 0")
    transcript = played.transcript
    tokens, mask = transcript.completion()
    parts = {0: [], 1: []}
    for token, own in zip(tokens, mask, strict=True):
        parts[own].append(token)
    assert parts[1] == [*transcript.written[0], *transcript.written[1]]
    unlearnt = policy.tokenizer.decode(parts[0])
    assert played.episode.turns[0].feedback[: options.feedback_chars] in unlearnt
    assert unlearnt.endswith("<|im_start|>assistant\n")
    assert transcript.prompt_ids(1) == (
        transcript.prompt_ids(0) + tokens[: -len(transcript.written[1])]
    )


@pytest.mark.sweep
def test_a_policy_made_from_nothing_learns_to_read_what_it_replaces(tmp_path):
    """Its edits apply to launches that it has never seen, whatever their block."""
    from kernel_gym.episodes.conversation import LaunchPrompt
    from kernel_gym.episodes.edits import draw_edits, submission, varied_starts
    from kernel_gym.episodes.episode import Episode
    from kernel_gym.policies.huggingface import HuggingFace
    from kernel_gym.policies.sampling_params import SamplingParams
    from kernel_gym.records import Outcome
    from kernel_gym.tasks import get_task
    from kernel_gym.training.corpus import CorpusRow
    from kernel_gym.training.journal import Journal
    from kernel_gym.training.sft import sft
    from kernel_gym.training.tiny import make_model, make_tokenizer

    prompt, asked = LaunchPrompt("sim:gfx942"), config(tmp_path)
    asked = replace(asked, sft=replace(asked.sft, steps=240, batch=32, learning_rate=5e-3))
    learnt, other = (get_task(TASKS[side][0]) for side in ("train", "held_out"))
    rows = [
        CorpusRow(
            task=learnt.id,
            source=edit.source,
            prompt=prompt.of(learnt, edit.start),
            reply=edit.reply,
            outcome=Outcome.PASSED,
            clock="modelled",
        )
        for edits in draw_edits(learnt.start_source, 40, 0, prompt.space)
        for edit in edits
    ]
    tokenizer = make_tokenizer([text for row in rows for text in (row.prompt, row.reply)], 1024)
    model = make_model(tokenizer, asked.model, seed=0)
    model = sft(asked, model, tokenizer, rows, prompt, tmp_path, Journal(tmp_path)).eval()
    policy = HuggingFace.of(model, tokenizer, SamplingParams("launch", 40, temperature=0))
    applied = []
    for start in varied_starts(other.start_source, prompt.space):
        chat = [{"role": "user", "content": prompt.of(other, start)}]
        ids = tokenizer.apply_chat_template(chat, add_generation_prompt=True)["input_ids"]
        text = tokenizer.decode(policy.generate([ids])[0], skip_special_tokens=True)
        applied.append(not submission(Episode(other, start=start), text).startswith("# edit"))
    assert sum(applied) >= 7
