"""The MCP server with the client of the official SDK."""

import asyncio
import json
import socket
import subprocess
import sys

import pytest

pytest.importorskip("mcp", reason="needs the extra mcp")

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from kernel_gym.agents.serve import desk_server, mcp_server
from kernel_gym.agents.workspace import write_workspace
from kernel_gym.tasks import get_task
from tests.agents.conftest import DEVICE, TASK

GOOD = get_task(TASK).start_source
TOOLS = {"list_tasks", "show_task", "submit_kernel", "profile_kernel", "best_so_far"}


def talk(parameters, talking):
    """Runs a conversation with a server over stdio."""

    async def conversation():
        async with stdio_client(parameters) as (read, write), ClientSession(read, write) as session:
            await session.initialize()
            return await talking(session)

    return asyncio.run(conversation())


def data(result):
    return json.loads(result.content[0].text)


def server(*arguments):
    return StdioServerParameters(
        command=sys.executable, args=["-m", "kernel_gym", "mcp", "--device", DEVICE, *arguments]
    )


def test_an_agent_plays_a_task_over_stdio():
    async def talking(session):
        tools = {tool.name for tool in (await session.list_tools()).tools}
        resources = {str(r.uri) for r in (await session.list_resources()).resources}
        guide = await session.read_resource("kernel-gym://guides/gfx942/triton")
        shown = data(await session.call_tool("show_task", {"task": TASK}))
        wrong = data(await session.call_tool("submit_kernel", {"task": TASK, "source": "x("}))
        right = data(await session.call_tool("profile_kernel", {"task": TASK, "source": GOOD}))
        over = data(await session.call_tool("submit_kernel", {"task": TASK, "source": "y("}))
        best = data(await session.call_tool("best_so_far", {"task": TASK}))
        typo = data(await session.call_tool("show_task", {"task": TASK + "x"}))
        return tools, resources, guide, shown, wrong, right, over, best, typo

    answers = talk(server("--suite", TASK, "--submissions", "2"), talking)
    tools, resources, guide, shown, wrong, right, over, best, typo = answers
    assert tools == TOOLS
    guides = {f"kernel-gym://guides/gfx942/{one}" for one in ("hip", "flydsl", "tilelang")}
    assert {"kernel-gym://skill", *guides} <= resources
    assert "wave" in guide.contents[0].text
    assert "## Signature" in shown["prompt"]
    assert (wrong["outcome"], wrong["left"]) == ("compile_error", 1)
    assert right["profile"]["kernels"][0]["bound_by"]
    assert "budget is used up" in over["error"]
    assert best["source"] == GOOD
    assert "did you mean" in typo["error"]


def test_a_workspace_connects_its_agent_with_the_judge_outside(tmp_path, make_desk):
    folder = tmp_path / "w"
    write_workspace(folder, get_task(TASK), DEVICE, 3)
    desk = make_desk(3)

    async def talking(session):
        (listed,) = (await session.call_tool("list_tasks", {})).content
        answer = await session.call_tool("submit_kernel", {"task": TASK, "source": "x("})
        other = await session.call_tool("show_task", {"task": "hip2hip/softmax"})
        return json.loads(listed.text), data(answer), data(other)

    with desk_server(folder, desk), mcp_server(folder):
        bridge = StdioServerParameters(command=sys.executable, args=["-S", str(folder / "mcp")])
        listed, answer, other = talk(bridge, talking)
    assert listed["task"] == TASK
    assert (answer["outcome"], answer["left"], desk.left) == ("compile_error", 2, 2)
    assert "expected 'triton2triton/softmax'" in other["error"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--workspace", "."], "is no workspace"),
        (["--workspace", ".", "--service", "http://x"], "not both"),
        (["--suite", "quickstar"], "did you mean"),
    ],
)
def test_bad_options_are_one_line(tmp_path, arguments, message):
    command = [sys.executable, "-m", "kernel_gym", "mcp", "--device", DEVICE, *arguments]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 2
    assert message in run.stderr
    assert "Traceback" not in run.stderr


def test_a_port_in_use_is_one_line(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        write_workspace(tmp_path / "w", get_task(TASK), DEVICE, 3)
        command = [sys.executable, "-m", "kernel_gym", "mcp", "--http", port]
        command += ["--workspace", str(tmp_path / "w")]
        run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 2
    assert "Address already in use; name another port" in run.stderr


def test_an_agent_connects_over_http(tmp_path, make_desk):
    from mcp.client.streamable_http import streamablehttp_client

    folder = tmp_path / "w"
    write_workspace(folder, get_task(TASK), DEVICE, 3)
    command = [sys.executable, "-m", "kernel_gym", "mcp", "--http", "0"]
    process = subprocess.Popen(
        [*command, "--workspace", str(folder)], stderr=subprocess.PIPE, text=True
    )
    try:
        url = process.stderr.readline().split()[-1]  # the server says where it listens

        async def conversation():
            async with (
                streamablehttp_client(url) as (read, write, _),
                ClientSession(read, write) as session,
            ):
                await session.initialize()
                return data(await session.call_tool("best_so_far", {"task": TASK}))

        with desk_server(folder, make_desk(3)):
            answer = asyncio.run(conversation())
    finally:
        process.terminate()
        process.wait()
    assert (answer["error"], answer["source"], answer["left"]) == ("", "", 3)
