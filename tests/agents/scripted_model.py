"""A model behind an OpenAI-compatible endpoint that answers with bash commands by script."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LAST = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
"""The command that ends mini-swe-agent."""


def tool_call(command, number):
    arguments = json.dumps({"command": command})
    call = {"id": f"call_{number}", "type": "function"}
    return call | {"function": {"name": "bash", "arguments": arguments}}


class Handler(BaseHTTPRequestHandler):
    """Answers each request with the command of its turn."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        turn = sum(message["role"] == "assistant" for message in body["messages"])
        commands = self.server.commands
        command = commands[turn] if turn < len(commands) else LAST
        message = {
            "role": "assistant",
            "content": "Next.",
            "tool_calls": [tool_call(command, turn)],
        }
        usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
        answer = {
            "id": "x",
            "object": "chat.completion",
            "created": 0,
            "model": "scripted",
            "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
            "usage": usage,
        }
        self.server.requests += 1
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


@contextmanager
def scripted_model(commands):
    """Serves the commands; yields the address and the server."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.commands, server.requests = commands, 0
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1", server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
