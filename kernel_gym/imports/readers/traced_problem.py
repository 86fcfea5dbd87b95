"""Makes the problems of readers that have modules traced."""

from __future__ import annotations

from collections.abc import Mapping

from kernel_gym.imports.readers.base import FoundTask, UnsupportedTask
from kernel_gym.imports.traced.loading import load_text
from kernel_gym.tasks.problem import Problem


def traced_problem(found: FoundTask, data: Mapping[str, object], **facts: object) -> Problem:
    """Makes a problem from the text that tracing has left.

    Args:
        found: The task.
        data: What the reader's `prepare` returned: `text` and `adapter`.
        facts: Attributes of the problem that its suite decides, such as `code` and `source`.

    Raises:
        UnsupportedTask: The text or the adapter is missing.
    """
    try:
        text, adapter = str(data["text"]), str(data["adapter"])
    except KeyError as error:
        raise UnsupportedTask(f"what was prepared lacks {error}: import it again") from None
    kind = type(load_text(found.name, text))
    return type(kind.__name__, (kind,), {"adapter": adapter, **facts})()
