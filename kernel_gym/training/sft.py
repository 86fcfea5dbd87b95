"""Supervised fine-tuning (SFT): the policy learns to write kernels by imitating a corpus."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from kernel_gym.episodes.conversation import Prompt
from kernel_gym.tasks import get_task
from kernel_gym.training.config import TrainConfig
from kernel_gym.training.corpus import CorpusRow
from kernel_gym.training.journal import Journal
from kernel_gym.training.stopping import Stopping

if TYPE_CHECKING:
    from peft import PeftConfig
    from transformers import PreTrainedModel, PreTrainedTokenizerBase, Trainer
    from trl import SFTConfig


def sft(
    config: TrainConfig,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    rows: Sequence[CorpusRow],
    prompt: Prompt,
    folder: Path,
    journal: Journal,
) -> PreTrainedModel:
    """Trains on a corpus with TRL. The loss covers the replies only.

    It continues from the last checkpoint in the folder, if any. With checkpoints, SIGINT or SIGTERM
    ends the training with one after the current step.

    Args:
        config: The configuration of the run.
        model: A causal language model.
        tokenizer: Its tokenizer, with a chat template.
        rows: The corpus.
        prompt: Writes the prompts.
        folder: The folder for the trainer's files.
        journal: Receives metrics.

    Returns:
        The trained model.

    Raises:
        KeyboardInterrupt: A signal ended the training, and a checkpoint has been saved.
    """
    from datasets import Dataset
    from transformers.trainer_pt_utils import LengthGroupedSampler
    from transformers.trainer_utils import get_last_checkpoint
    from trl import SFTTrainer

    texts = [(row.prompt or prompt(get_task(row.task)), row.reply or row.source) for row in rows]
    tokens = encoded(tokenizer, texts, config.model.context)
    lengths = [len(ids) for ids in tokens["input_ids"]]

    class ByLength(SFTTrainer):
        def _get_train_sampler(self, train_dataset: object = None) -> LengthGroupedSampler:
            """Batches of similar lengths, without a pass over the dataset to learn them."""
            return LengthGroupedSampler(config.sft.batch, lengths=lengths)

    stopping = Stopping(journal.console)
    trainer = (ByLength if config.corpus.pairs else SFTTrainer)(
        model=model,
        args=_arguments(config, folder),
        train_dataset=Dataset.from_dict(tokens),
        processing_class=tokenizer,
        callbacks=[journal.callback("sft"), stopping.callback()],
        peft_config=lora(config),
    )
    quiet(trainer)
    last = get_last_checkpoint(str(folder)) if folder.is_dir() else None
    with stopping.listening() if config.sft.save_every else nullcontext():
        trainer.train(resume_from_checkpoint=last)
    return cast("PreTrainedModel", trainer.model)


def encoded(
    tokenizer: PreTrainedTokenizerBase, texts: Sequence[tuple[str, str]], context: int
) -> dict[str, list[list[int]]]:
    """Encodes prompts and replies together, which a fast tokenizer does on all cores.

    Args:
        tokenizer: A tokenizer with a chat template.
        texts: Pairs of a prompt and a reply.
        context: Most tokens of a pair; the others are cut off.

    Returns:
        `input_ids` and `labels` of each pair. A label of -100 has no loss: the prompt's tokens.
    """
    asked, answered = [], []
    for prompt, reply in texts:
        chat = [{"role": "user", "content": prompt}]
        asked.append(_rendered(tokenizer, chat, True))
        chat.append({"role": "assistant", "content": reply})
        answered.append(_rendered(tokenizer, chat, False))
    read, ids = (
        tokenizer(side, add_special_tokens=False)["input_ids"] for side in (asked, answered)
    )
    ids = [own[:context] for own in ids]
    pairs = zip(read, ids, strict=True)
    return {"input_ids": ids, "labels": [[-100] * len(p[: len(i)]) + i[len(p) :] for p, i in pairs]}


def _rendered(
    tokenizer: PreTrainedTokenizerBase, chat: list[dict[str, str]], reply_follows: bool
) -> str:
    text = tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=reply_follows)
    return cast("str", text)


def _arguments(config: TrainConfig, folder: Path) -> SFTConfig:
    from trl import SFTConfig

    return SFTConfig(
        output_dir=str(folder),
        max_steps=config.sft.steps,
        per_device_train_batch_size=config.sft.batch,
        learning_rate=config.sft.learning_rate,
        lr_scheduler_type="cosine",
        warmup_steps=max(config.sft.steps // 20, 1),
        max_length=config.model.context,
        dataset_kwargs={"skip_prepare_dataset": True},
        logging_steps=max(config.sft.steps // 10, 1),
        save_strategy="steps" if config.sft.save_every else "no",
        save_steps=config.sft.save_every or config.sft.steps,
        save_total_limit=1,
        seed=config.seed,
        **machine(),
    )


def machine() -> dict[str, Any]:
    """Arguments of a trainer that depend on the machine: bfloat16 on a GPU, otherwise float32."""
    import torch

    gpu = torch.cuda.is_available()
    return {
        "use_cpu": not gpu,
        "bf16": gpu,
        "gradient_checkpointing": False,
        "report_to": "none",
        "disable_tqdm": True,
    }


def lora(config: TrainConfig) -> PeftConfig | None:
    """The configuration of LoRA adapters; None trains all weights."""
    if not config.lora.rank:
        return None
    from peft import LoraConfig

    return LoraConfig(
        r=config.lora.rank,
        lora_alpha=config.lora.alpha,
        lora_dropout=config.lora.dropout,
        target_modules="all-linear",
        task_type="CAUSAL_LM",
    )


def quiet(trainer: Trainer) -> None:
    """Stops printed logs, progress bars, and warnings about deprecated calls in TRL."""
    import warnings

    from transformers import PrinterCallback
    from transformers.utils.logging import disable_progress_bar

    trainer.remove_callback(PrinterCallback)
    disable_progress_bar()
    warnings.filterwarnings("ignore", category=FutureWarning, module="transformers")
