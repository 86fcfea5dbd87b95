"""The lists of TritonBench and GEAK-eval: the instruction, the label and the file of each task.

Published predictions name no file. The suites' own scripts find the task by the label, which is the
start kernel, or by the functional description in the instruction. The same rules hold here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernel_gym.imports.readers.base import CheckoutError, read_text

DESCRIPTION, ENTRY = "Functional Description: ", "Wrapper Entry Information:"
"""The words before and behind the description of a task in an instruction of TritonBench-T."""
END_TOKENS = ("<|im_end|>", "<|EOT|>")
"""Ends of replies that models left in published labels and predictions."""


@dataclass(frozen=True)
class ListedTask:
    """A task as the lists of its suite state it.

    Attributes:
        file: The name of its file, without folders.
        instruction: The prompt of the suite.
        label: The code that the suite gives as the answer, as prompts pair it; "" without one.
        code: The code in the suite's main list; "" without one.
        description: What the function does, of a task that starts from PyTorch.
    """

    file: str
    instruction: str
    label: str
    code: str
    description: str

    def has_label(self, label: str) -> bool:
        """Whether a label is this task's code, or a part of it: published labels are cut off."""
        return bool(label.strip()) and (label in self.label or label in self.code)

    def has_description(self, description: str) -> bool:
        """Whether a description is this task's, apart from ends of lines."""
        return bool(description) and description in self.description.replace("\n", "")


_FILES = {
    "tritonbench-g": ("data/TritonBench_G_v1.json", "data/TritonBench_G_comp_alpac_v1.json"),
    "tritonbench-t": ("data/TritonBench_T_v1.jsonl", "data/TritonBench_T_comp_alpac_v1.json"),
    "geak-g": (
        "geak_eval/data/TritonBench/data/TritonBench_G_comp_alpac_v1_fixed_with_difficulty.json",
        "",
    ),
}
"""By suite: the main list, and the list of prompts, or empty where one list has both."""
LISTED_SUITES = tuple(_FILES)
"""The suites that have such lists."""


def listed_tasks(suite: str, checkout: Path) -> list[ListedTask]:
    """Returns the tasks of a suite in the order of its main list.

    Args:
        suite: One of `LISTED_SUITES`.
        checkout: The folder of the checkout.

    Raises:
        CheckoutError: A list is missing or is no JSON list.
    """
    main, prompts = _FILES[suite]
    rows = _rows(checkout, main)
    paired = _rows(checkout, prompts) if prompts else rows
    if suite == "tritonbench-t":
        return list(_of_functions(rows, paired))
    if len(paired) != len(rows):
        raise CheckoutError(f"{prompts}: found {len(paired)} rows, expected {len(rows)} as {main}")
    return [
        ListedTask(_name(row), _text(prompt, "instruction"), _text(prompt, "output"), code, "")
        for row, prompt in zip(rows, paired, strict=True)
        for code in [_text(row, "output")]
    ]


def description_in(instruction: str) -> str:
    """Returns the functional description in an instruction of TritonBench-T; "" if it has none."""
    if DESCRIPTION not in instruction or ENTRY not in instruction:
        return ""
    return instruction.rpartition(DESCRIPTION)[2].partition(ENTRY)[0].replace("\n", "")


def without_end_tokens(text: str) -> str:
    """Returns a text without the tokens with which models end a reply."""
    for token in END_TOKENS:
        text = text.replace(token, "")
    return text


def _of_functions(
    rows: Sequence[Mapping[str, object]], prompts: Sequence[Mapping[str, object]]
) -> Iterator[ListedTask]:
    """Yields the tasks that start from PyTorch, each with the prompt that has its description."""
    instructions = [_text(prompt, "instruction") for prompt in prompts]
    described = [(description_in(text), text) for text in instructions]
    for row in rows:
        task = ListedTask(_name(row), "", "", "", _text(row, "description"))
        own = next((text for words, text in described if task.has_description(words)), "")
        yield ListedTask(task.file, own, "", "", task.description)


def _rows(checkout: Path, name: str) -> list[Mapping[str, object]]:
    text = read_text(checkout, name)
    try:
        rows = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CheckoutError(f"{name}: found no JSON: {error}") from error
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise CheckoutError(f"{name}: expected a list of objects")
    return rows


def _name(row: Mapping[str, object]) -> str:
    return str(row.get("file", "")).rpartition("/")[2]


def _text(row: Mapping[str, object], key: str) -> str:
    value = row.get(key, "")
    return value if isinstance(value, str) else ""
