"""Workspaces: a folder in which an agent works on one task, without oracle and unseen workloads.

The folder holds texts for the agent and scripts that speak with the judge. Nothing in it decides
a verdict: the judge reads the kernel file alone, as text, and evaluates it outside.
"""

from __future__ import annotations

import json
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from kernel_gym.devices import describe
from kernel_gym.errors import InputError
from kernel_gym.judge.protocol import MAX_SOURCE_BYTES
from kernel_gym.storage.run_store import SUFFIX
from kernel_gym.tasks import Task, c_prototype, prompt, python_prototype, train_workloads
from kernel_gym.tasks.guide import topics_of, whole_guide
from kernel_gym.tasks.task import Mode

SETTINGS = "workspace.json"
SOCKET, MCP_SOCKET = "judge.sock", "mcp.sock"
KERNEL = "kernel"
_FILES = Path(__file__).parent / "files"
_MAX_SETTINGS = 1 << 16


class WorkspaceError(InputError, ValueError):
    """A folder is no workspace, or cannot become one. The message says what is missing."""


class WorkspaceSettings(BaseModel):
    """The file `workspace.json`. The agent may change it: a verdict never depends on it."""

    model_config = ConfigDict(extra="forbid")

    task: str
    device: str
    kernel: str
    submissions: int
    socket: str = ""
    service: str = ""
    session: str = ""
    token: str = ""
    """The token of the session, which is good for nothing else."""


@dataclass(frozen=True)
class Remote:
    """The session of a service that takes the submissions of a workspace."""

    service: str
    session: str
    token: str


def kernel_name(task: Task) -> str:
    """The name of the file that the agent edits."""
    return KERNEL + SUFFIX[task.language]


def write_workspace(
    folder: Path, task: Task, device: str, submissions: int, remote: Remote | None = None
) -> None:
    """Writes a workspace.

    Args:
        folder: An empty folder or one that does not exist.
        task: The task.
        device: The full name of the device that evaluates.
        submissions: The budget, for the texts.
        remote: The session that takes submissions; by default the judge's socket in the folder.

    Raises:
        WorkspaceError: The folder is not empty, or a file has its name.
    """
    require_empty(folder)
    folder.mkdir(parents=True, exist_ok=True)
    described = describe(device)
    name = kernel_name(task)
    settings = WorkspaceSettings(
        task=task.id,
        device=described.name,
        kernel=name,
        submissions=submissions,
        socket="" if remote else SOCKET,
        service=remote.service if remote else "",
        session=remote.session if remote else "",
        token=remote.token if remote else "",
    )
    words = _text("AGENTS.md").format(kernel=name, submissions=submissions)
    workloads = train_workloads(task.problem, described.scale)
    answer = f"Write the complete source to `{name}` and submit it with `./check`."
    texts = {
        "TASK.md": prompt(
            task, described.facts, workloads, described.spec.arch, answer, described.embedded
        ),
        "DEVICE.md": f"# Device\n\n{described.facts}\n\n"
        + whole_guide(described.spec.arch, task.written_in, topics_of(task.problem))
        + "\n",
        name: task.start_source or stub(task),
        "AGENTS.md": words,
        "CLAUDE.md": words,
        SETTINGS: settings.model_dump_json(indent=2) + "\n",
    }
    if task.mode is not Mode.INSTRUCTION2TRITON:
        texts["reference.py"] = task.reference_source
    if remote is None:
        texts[".mcp.json"] = _mcp_settings({"command": "./mcp", "args": []})
    for file, text in texts.items():
        (folder / file).write_text(text, encoding="utf-8")
    scripts = {"check": "check", "profile": "check"} | ({} if remote else {"mcp": "mcp"})
    for script, source in scripts.items():
        (folder / script).write_text(_text(source), encoding="utf-8")
        (folder / script).chmod(0o755)


def require_empty(folder: Path) -> None:
    """Checks that a workspace can be written to a folder.

    Raises:
        WorkspaceError: The folder is not empty, or a file has its name.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise WorkspaceError(
            f"{folder}: found files, expected an empty folder or none; name another folder"
        )


def stub(task: Task) -> str:
    """The first content of the kernel file in a mode without a start kernel."""
    if task.language == "hip":
        return f"// Write the launcher and its kernels here:\n// {c_prototype(task.problem)}\n"
    return f"# Write the function and its kernels here:\n# {python_prototype(task.problem)}\n"


def read_settings(folder: Path) -> WorkspaceSettings:
    """Reads the settings of a workspace that a person names.

    Raises:
        WorkspaceError: The folder is no workspace.
    """
    try:
        text = read_regular(folder, SETTINGS, _MAX_SETTINGS)
        return WorkspaceSettings.model_validate_json(text)
    except OSError as error:
        raise WorkspaceError(
            f"{folder} is no workspace: {SETTINGS}: {error.strerror}; "
            "write one with `kernel-gym workspace TASK DIR`"
        ) from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise WorkspaceError(f"{folder / SETTINGS}: {where}: {first['msg']}") from None


def read_kernel(folder: Path, task: Task) -> tuple[str | None, str]:
    """Reads the kernel file that an agent left, as text.

    Args:
        folder: The workspace; the agent may have changed or deleted anything in it.
        task: The task, from the judge's own record and not from the folder.

    Returns:
        The source and "", or None and the reason why there is none. Links are not followed.
    """
    name = kernel_name(task)
    try:
        return read_regular(folder, name, MAX_SOURCE_BYTES), ""
    except FileNotFoundError:
        return None, f"{name} is missing"
    except OSError as error:
        return None, f"{name} cannot be read: {error.strerror}"


def is_untouched(source: str | None, task: Task) -> bool:
    """Whether a kernel file is still the one that :func:`write_workspace` wrote."""
    return source == (task.start_source or stub(task))


def read_regular(folder: Path, name: str, limit: int) -> str:
    """Reads a file of a folder that an agent may write, without following a link.

    Raises:
        OSError: The file is missing, is a link, is no regular file, or is longer than the limit.
    """
    descriptor = os.open(folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(0, "found no regular file")
        if status.st_size > limit:
            raise OSError(0, f"found {status.st_size} bytes, expected at most {limit}")
        data = b""
        while len(data) <= limit and (part := os.read(descriptor, limit + 1 - len(data))):
            data += part
        if len(data) > limit:
            raise OSError(0, f"found more than {limit} bytes")
    finally:
        os.close(descriptor)
    return data.decode("utf-8", errors="replace")


def _mcp_settings(server: dict[str, object]) -> str:
    return json.dumps({"mcpServers": {"kernel-gym": server}}, indent=2) + "\n"


def _text(name: str) -> str:
    return (_FILES / name).read_text(encoding="utf-8")
