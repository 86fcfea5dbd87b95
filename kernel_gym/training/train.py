"""A training run from start to end: corpus, warm start, reinforcement learning, measurement.

    corpus.jsonl        what SFT imitated, with what each kernel was found to be
    evaluations.jsonl   every evaluation made
    metrics.jsonl       every metric, by phase and step; tensorboard/ has them too
    sft/                the checkpoint that GRPO starts from
    grpo/checkpoint-N/  what the run can be resumed from
    final/              the checkpoint that it ends with
    config.json         what was asked for
    secret.json         what draws were mixed with; only its owner may read it
    held_out.toml       a suite of the tasks held out, for `kernel-gym eval`

The checkpoints that are measured have an `evaluation.json`: the first, the final one and, of those
between, as many as the configuration asks for. A run that was interrupted continues where it
stopped.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kernel_gym.episodes.conversation import PROMPTS
from kernel_gym.executors import Executor
from kernel_gym.policies.huggingface import HuggingFace, Manner
from kernel_gym.rewards import get_reward
from kernel_gym.storage.secret import SECRET, RunSecret, kept_secret, read_secret
from kernel_gym.tasks import get_task
from kernel_gym.training.assess import ASSESSMENT, Assessment, assess
from kernel_gym.training.config import ConfigError, TrainConfig
from kernel_gym.training.corpus import CorpusRow, generate, read_corpus, write_corpus
from kernel_gym.training.grpo import grpo
from kernel_gym.training.journal import Journal
from kernel_gym.training.scoring import Scorer
from kernel_gym.training.sft import sft
from kernel_gym.training.tiny import make_model, make_tokenizer

CONFIG, HELD_OUT = "config.json", "held_out.toml"
CORPUS, START, STEPS, FINAL = "corpus.jsonl", "sft", "grpo", "final"


class Training:
    """One run in one folder.

    Args:
        config: What to do.
        executor: What evaluates, with the seed `config.gym.seed` and the secret of the folder.
        resume: Continue the run that the folder holds.
        say: Takes lines for the console.

    Raises:
        ConfigError: The folder holds a run and it is not to be resumed, or one of another
            configuration.
    """

    def __init__(
        self,
        config: TrainConfig,
        executor: Executor,
        resume: bool = False,
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.config, self.folder = config, Path(config.out)
        _claim(self.folder, config, resume)
        self.scorer = Scorer(executor, get_reward(config.gym.reward), self.folder)
        self.prompt = PROMPTS[config.gym.prompt](executor.device)
        self.journal = Journal(self.folder, say)
        self.say = say

    def run(self) -> tuple[Assessment, Assessment]:
        """Runs what is left of it.

        Returns:
            What the policy was worth before and after reinforcement learning.
        """
        try:
            start = self.start()
            final = self.folder / FINAL
            if not (final / ASSESSMENT).exists():
                self.learn()
        finally:
            self.journal.close()
        return start, Assessment.read(final)

    def corpus(self) -> list[CorpusRow]:
        """The corpus: the configured one, that of the run so far, or a new one."""
        config, path = self.config, self.folder / CORPUS
        if config.corpus.path:
            return read_corpus(Path(config.corpus.path))
        if path.exists():
            return read_corpus(path)
        self.say("corpus: evaluating variants")
        per_task = config.corpus.per_task
        rows = generate(self.scorer, config.tasks.train, per_task, config.seed, self.prompt)
        write_corpus(path, rows)
        self.say(f"corpus: {len(rows)} kernels")
        return rows

    def start(self) -> Assessment:
        """The warm start: a policy that writes kernels."""
        folder = self.folder / START
        if (folder / ASSESSMENT).exists():
            return Assessment.read(folder)
        rows = self.corpus()
        model, tokenizer = self._fresh(rows)
        self.say(f"sft: a policy of {model.num_parameters() / 1e6:.2f} M parameters")
        if self.config.sft.steps:
            model = sft(self.config, model, tokenizer, rows, self.prompt, folder, self.journal)
        return self._keep(model, tokenizer, folder, 0)

    def learn(self) -> Assessment:
        """The reinforcement learning, from the warm start or the last checkpoint."""
        from transformers import AutoModelForCausalLM, AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(self.folder / START, padding_side="left")
        model = AutoModelForCausalLM.from_pretrained(self.folder / START)
        model = grpo(
            self.config,
            model,
            tokenizer,
            self.scorer,
            self.prompt,
            self.folder / STEPS,
            self.journal,
            lambda *saved: self._at_checkpoint(tokenizer, *saved),
        )
        return self._keep(model, tokenizer, self.folder / FINAL, self.config.grpo.steps)

    def _fresh(self, rows: list[CorpusRow]) -> tuple[Any, Any]:
        """The model and tokenizer that SFT starts from."""
        shape = self.config.model
        if shape.path:
            from transformers import AutoModelForCausalLM, AutoTokenizer

            tokenizer = AutoTokenizer.from_pretrained(shape.path, padding_side="left")
            return AutoModelForCausalLM.from_pretrained(shape.path), tokenizer
        texts = [row.prompt or self.prompt(get_task(row.task)) for row in rows]
        texts += [row.reply or row.source for row in rows]
        tokenizer = make_tokenizer(texts, shape.vocabulary)
        return make_model(tokenizer, shape, self.config.seed), tokenizer

    def _keep(self, model: Any, tokenizer: Any, folder: Path, step: int) -> Assessment:
        """Saves a checkpoint, adapters merged, and measures it."""
        if hasattr(model, "merge_and_unload"):
            model = model.merge_and_unload()
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        return self._measure(model, tokenizer, folder, step)

    def _at_checkpoint(
        self, tokenizer: Any, model: Any, folder: Path, step: int, last: bool
    ) -> None:
        """Makes a checkpoint one that can be played, and measures it where that is due.

        The last is measured when it has been saved as the final one, or not yet.
        """
        self._manner().write(folder)
        every = self.config.assess.every
        if every and step % every == 0 and not last:
            self._measure(model, tokenizer, folder, step)

    def _manner(self) -> Manner:
        """How a checkpoint of this run is played."""
        config = self.config
        return Manner(config.gym.prompt, config.grpo.max_tokens, config.assess.temperature)

    def _measure(self, model: Any, tokenizer: Any, folder: Path, step: int) -> Assessment:
        import torch

        config, manner = self.config, self._manner()
        model.eval()
        torch.manual_seed(config.seed)
        tasks, samples = config.tasks, config.assess.samples
        manner.write(folder)
        policy = HuggingFace.of(model, tokenizer, manner, batch_size=samples)
        found = assess(policy, self.scorer, self.prompt, tasks.train, tasks.held_out, samples, step)
        found.write(folder)
        self.journal.log("assess", step, found.metrics())
        self.say(
            f"step {step}: mean reward {found.train:.3f} over tasks trained on, "
            f"{found.held_out:.3f} over those held out"
        )
        return found


def secret_of(folder: Path) -> RunSecret:
    """The secret of a run, made when the folder holds no run yet.

    Raises:
        StoreError: The folder holds a run without one, or the file is malformed.
    """
    path = folder / SECRET
    return read_secret(path) if (folder / CONFIG).exists() else kept_secret(path)


def _claim(folder: Path, config: TrainConfig, resume: bool) -> None:
    """Makes the folder this run's, or checks that it is."""
    path = folder / CONFIG
    asked = json.loads(json.dumps(asdict(config)))
    if path.exists():
        found = json.loads(path.read_text(encoding="utf-8"))
        if not resume:
            raise ConfigError(f"{folder} holds another run: give --resume or another folder")
        for key, value in asked.items():
            if found.get(key) != value:
                raise ConfigError(
                    f"{folder} holds another run: its {key} is {found.get(key)}, not {value}"
                )
        return
    folder.mkdir(parents=True, exist_ok=True)
    if config.tasks.held_out:
        tasks = json.dumps(config.tasks.held_out)  # a list of words is the same in TOML
        text = f'name = "held-out"\nsummary = "Tasks held out of {folder.name}."\ntasks = {tasks}\n'
        (folder / HELD_OUT).write_text(text, encoding="utf-8")
    path.write_text(json.dumps(asked, indent=1) + "\n", encoding="utf-8")
