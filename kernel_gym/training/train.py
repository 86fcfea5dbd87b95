"""A training run from start to end: corpus, warm start, reinforcement learning, assessment.

    corpus.jsonl        the kernels that SFT imitated, with their evaluations
    evaluations.jsonl   every evaluation
    metrics.jsonl       every metric, by phase and step; tensorboard/ has them too
    sft/                the checkpoint that GRPO starts from
    grpo/checkpoint-N/  the state from which the run can be resumed
    final/              the last checkpoint
    config.json         the configuration
    secret.json         the secret that draws are mixed with; only its owner may read it
    held_out.toml       a suite of the held-out tasks, for `kernel-gym eval`

An assessed checkpoint has an `evaluation.json`, and its replies in `replies.jsonl`. The first and
the final checkpoint are assessed, and those between as the configuration says. An interrupted run
continues where it stopped.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from kernel_gym.episodes.conversation import PROMPTS
from kernel_gym.executors import Executor
from kernel_gym.policies.huggingface import HuggingFace
from kernel_gym.policies.sampling_params import SamplingParams
from kernel_gym.rewards import get_reward
from kernel_gym.storage.secret import SECRET, RunSecret, kept_secret, read_secret
from kernel_gym.tasks import get_task
from kernel_gym.training.assess import ASSESSMENT, Assessment, assess
from kernel_gym.training.config import ConfigError, TrainConfig
from kernel_gym.training.corpus import CorpusRow, generate, read_corpus, write_corpus
from kernel_gym.training.graph_corpus import draw_pairs
from kernel_gym.training.grpo import grpo
from kernel_gym.training.journal import Journal
from kernel_gym.training.paid_workloads import paying
from kernel_gym.training.scoring import Scorer
from kernel_gym.training.sft import sft
from kernel_gym.training.tiny import make_model, make_tokenizer

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

TOKENIZER_ROWS = 6000
"""Most rows of a corpus that a new tokenizer is trained on; that takes a millisecond a row."""
REPLIES_A_BATCH = 320
"""Replies that a GPU generates together: a token of many costs as much time as one of a few."""
CONFIG, HELD_OUT = "config.json", "held_out.toml"
CORPUS, START, STEPS, FINAL = "corpus.jsonl", "sft", "grpo", "final"


class Training:
    """One training run in one folder.

    Args:
        config: The configuration.
        executor: Evaluates submissions, with the seed `config.gym.seed` and the folder's secret.
        resume: Continue the run in the folder.
        log: Called with each line for the console.

    Raises:
        ConfigError: The folder has a run that is not to be resumed, or a run with another
            configuration.
    """

    def __init__(
        self,
        config: TrainConfig,
        executor: Executor,
        resume: bool = False,
        log: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.config, self.folder = config, Path(config.out)
        _claim(self.folder, config, resume)
        self.scorer = Scorer(executor, get_reward(config.gym.reward), self.folder)
        self.prompt = PROMPTS[config.gym.prompt](executor.device)
        self.journal = Journal(self.folder, log)
        self.log = log

    def run(self) -> tuple[Assessment, Assessment]:
        """Runs the phases that are not finished.

        Returns:
            The assessments before and after reinforcement learning.
        """
        try:
            start = self.run_sft()
            final = self.folder / FINAL
            if not (final / ASSESSMENT).exists():
                self.run_grpo()
        finally:
            self.journal.close()
        return start, Assessment.read(final)

    def corpus(self) -> list[CorpusRow]:
        """The corpus: the configured one, the one in the run folder, or a new one."""
        config, path = self.config, self.folder / CORPUS
        if config.corpus.path:
            return read_corpus(Path(config.corpus.path))
        if path.exists():
            return read_corpus(path)
        rows = self._drawn()
        write_corpus(path, rows)
        self.log(f"corpus: {len(rows)} kernels")
        return rows

    def _drawn(self) -> list[CorpusRow]:
        corpus, seed = self.config.corpus, self.config.seed
        if corpus.pairs:
            self.log("corpus: drawing pairs of graphs and kernels")
            return draw_pairs(corpus.pairs, corpus.max_depth, seed, self.prompt, corpus.bound)
        self.log("corpus: evaluating variants")
        tasks = self.config.tasks.train
        return generate(self.scorer, tasks, corpus.per_task, seed, self.prompt)

    def run_sft(self) -> Assessment:
        """Makes the policy that GRPO starts from, and assesses it."""
        folder = self.folder / START
        if (folder / ASSESSMENT).exists():
            return Assessment.read(folder)
        rows = self.corpus()
        model, tokenizer = self._fresh(rows)
        self.log(f"sft: a policy of {model.num_parameters() / 1e6:.2f} M parameters")
        if self.config.sft.steps:
            model = sft(self.config, model, tokenizer, rows, self.prompt, folder, self.journal)
        return self._keep(model, tokenizer, folder, 0)

    def run_grpo(self) -> Assessment:
        """Trains from the warm start or the last checkpoint, and assesses the result."""
        trained, tokenizer = self.train_grpo()
        return self._keep(trained, tokenizer, self.folder / FINAL, self.config.grpo.steps)

    def train_grpo(self) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
        """Trains from the warm start or the last checkpoint."""
        from transformers import AutoModelForCausalLM, AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(self.folder / START, padding_side="left")
        model = AutoModelForCausalLM.from_pretrained(self.folder / START)
        trained = grpo(
            self.config,
            model,
            tokenizer,
            paying(self.scorer, self.config.gym.unseen, self.config.tasks.train),
            self.prompt,
            self.folder / STEPS,
            self.journal,
            lambda *saved: self._at_checkpoint(tokenizer, *saved),
        )
        return trained, tokenizer

    def _fresh(self, rows: list[CorpusRow]) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
        """The model and the tokenizer that SFT starts from."""
        shape = self.config.model
        if shape.path:
            from transformers import AutoModelForCausalLM, AutoTokenizer

            model = AutoModelForCausalLM.from_pretrained(shape.path)
            return model, AutoTokenizer.from_pretrained(shape.path, padding_side="left")
        rows = rows[:TOKENIZER_ROWS]
        texts = [row.prompt or self.prompt(get_task(row.task)) for row in rows]
        texts += [row.reply or row.source for row in rows]
        tokenizer = make_tokenizer(texts, shape.vocabulary, shape.tokens)
        return make_model(tokenizer, shape, self.config.seed), tokenizer

    def _keep(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, folder: Path, step: int
    ) -> Assessment:
        """Saves a checkpoint with its adapters merged, and assesses it."""
        if callable(merged := getattr(model, "merge_and_unload", None)):
            model = merged()
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        return self._measure(model, tokenizer, folder, step)

    def _at_checkpoint(
        self,
        tokenizer: PreTrainedTokenizerBase,
        model: PreTrainedModel,
        folder: Path,
        step: int,
        last: bool,
    ) -> None:
        """Adds sampling parameters to a checkpoint, and assesses it if that is due.

        The last checkpoint is assessed after it has been saved as the final one.
        """
        self._sampling_params().write(folder)
        every = self.config.assess.every
        if every and step % every == 0 and not last:
            self._measure(model, tokenizer, folder, step)

    def _sampling_params(self) -> SamplingParams:
        """The sampling parameters for the checkpoints of this run."""
        config = self.config
        return SamplingParams(config.gym.prompt, config.grpo.max_tokens, config.assess.temperature)

    def _measure(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, folder: Path, step: int
    ) -> Assessment:
        import torch

        config, params = self.config, self._sampling_params()
        model.eval()
        torch.manual_seed(config.seed)
        tasks, samples = config.tasks, config.assess.samples
        params.write(folder)
        batch = max(samples, REPLIES_A_BATCH if torch.cuda.is_available() else 1)
        policy = HuggingFace.of(model, tokenizer, params, batch_size=batch)
        assessment = assess(
            policy, self.scorer, self.prompt, tasks.train, tasks.held_out, samples, step, folder
        )
        assessment.write(folder)
        self.journal.log("assess", step, assessment.metrics())
        self.log(
            f"step {step}: mean reward {assessment.train:.3f} over tasks trained on, "
            f"{assessment.held_out:.3f} over those held out"
        )
        return assessment


def secret_of(folder: Path) -> RunSecret:
    """The secret of a run. It is created if the folder has no run.

    Raises:
        StoreError: The run in the folder has no secret, or its file is malformed.
    """
    path = folder / SECRET
    return read_secret(path) if (folder / CONFIG).exists() else kept_secret(path)


def _claim(folder: Path, config: TrainConfig, resume: bool) -> None:
    """Writes the configuration into a new folder, or compares it with the run in the folder."""
    path = folder / CONFIG
    wanted = json.loads(json.dumps(asdict(config)))
    if path.exists():
        recorded = json.loads(path.read_text(encoding="utf-8"))
        if not resume:
            raise ConfigError(f"{folder} holds another run: give --resume or another folder")
        for key, value in wanted.items():
            if recorded.get(key) != value:
                raise ConfigError(
                    f"{folder} holds another run: its {key} is {recorded.get(key)}, not {value}"
                )
        return
    folder.mkdir(parents=True, exist_ok=True)
    if config.tasks.held_out:
        tasks = json.dumps(config.tasks.held_out)  # a list of strings looks the same in TOML
        text = f'name = "held-out"\nsummary = "Tasks held out of {folder.name}."\ntasks = {tasks}\n'
        (folder / HELD_OUT).write_text(text, encoding="utf-8")
    path.write_text(json.dumps(wanted, indent=1) + "\n", encoding="utf-8")
