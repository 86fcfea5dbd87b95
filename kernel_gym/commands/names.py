"""Options and arguments that are names: checked before heavy imports, and completed by shells.

PyTorch takes seconds to load, and a typing error is to be answered at once. Whether a name that may
exist does, such as a GPU's name, is checked later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from kernel_gym.commands.errors import one_line_errors


def _checked(check: Callable[[str], object]) -> Callable[[typer.Context, object], object]:
    """Returns a callback that rejects unknown names with one line."""

    def callback(context: typer.Context, value: Any) -> object:
        if value is not None and not context.resilient_parsing:
            with one_line_errors():
                for name in [value] if isinstance(value, str) else value:
                    check(name)
        return value

    return callback


def _completed(names: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Returns the completions of the beginning of a name."""
    return lambda incomplete: [name for name in names() if name.startswith(incomplete)]


def _check_task(name: str) -> None:
    from kernel_gym.tasks.names import require_task

    require_task(name)


def _check_suite(name: str) -> None:
    from kernel_gym.tasks.names import require_suite

    require_suite(name)
    if name.endswith(".toml"):
        Path(name).open().close()


def _check_device(name: str) -> None:
    from kernel_gym.devices import require_device

    require_device(name)


def _check_reward(name: str) -> None:
    from kernel_gym.rewards import get_reward

    get_reward(name)


def _check_policy(name: str) -> None:
    from kernel_gym.policies.names import require_policy

    require_policy(name)


def _tasks() -> Iterable[str]:
    from kernel_gym.tasks.names import task_ids

    return task_ids()


def _suites() -> Iterable[str]:
    from kernel_gym.tasks.names import suite_names, task_ids

    return (*suite_names(), *task_ids())


def _devices() -> Iterable[str]:
    from kernel_gym.devices import fixed_names

    return fixed_names()


def _rewards() -> Iterable[str]:
    from kernel_gym.rewards import reward_names

    return reward_names()


def _policies() -> Iterable[str]:
    from kernel_gym.policies.names import POLICIES

    return (name.partition(":")[0] + (":" if ":" in name else "") for name in POLICIES)


_TASK: dict[str, object] = {"callback": _checked(_check_task), "autocompletion": _completed(_tasks)}
_SUITE: dict[str, object] = {
    "callback": _checked(_check_suite),
    "autocompletion": _completed(_suites),
}

TaskArgument = Annotated[
    str, typer.Argument(metavar="TASK", help="A task id, such as hip2hip/rope.", **_TASK)
]
TaskOption = Annotated[str, typer.Option("--task", "-t", help="A task id.", **_TASK)]
TasksOption = Annotated[
    list[str] | None,
    typer.Option("--task", "-t", help="This task; may be repeated.", **_TASK),
]
SuiteOption = Annotated[
    str, typer.Option("--suite", "-s", help="A suite's name, a TOML file or a task id.", **_SUITE)
]
OptionalSuiteOption = Annotated[
    str | None,
    typer.Option("--suite", "-s", help="Only these: a suite, a TOML file or a task id.", **_SUITE),
]
DeviceOption = Annotated[
    str,
    typer.Option(
        "--device",
        "-d",
        help="A device name; auto takes a GPU when there is one.",
        callback=_checked(_check_device),
        autocompletion=_completed(_devices),
    ),
]
RewardOption = Annotated[
    str,
    typer.Option(
        "--reward",
        help="What scores a submission: a name, a .toml file, or module:function.",
        callback=_checked(_check_reward),
        autocompletion=_completed(_rewards),
    ),
]
PolicyOption = Annotated[
    str,
    typer.Option(
        "--policy",
        help="baseline, examples, reference, search, inductor, inductor:max-autotune, folder:PATH, "
        "replay:RUN, predictions:PATH, hf:PATH, openai:URL, reflective:POLICY. openai:URL#NAME is "
        "the model NAME of a server that has several; docs/policies.md explains them.",
        callback=_checked(_check_policy),
        autocompletion=_completed(_policies),
    ),
]
