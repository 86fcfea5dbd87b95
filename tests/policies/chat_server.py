"""A chat server whose answers are scripted, and a policy that talks to it."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from kernel_gym.episodes.episode import Episode
from kernel_gym.policies import Conversation
from kernel_gym.tasks import get_task

TASK = get_task("triton2triton/softmax")
GOOD = object()
"""Stands for an answer as it should be, among those that are scripted."""


class Server(ThreadingHTTPServer):
    """Answers chats by repeating their last message, after the answers that are scripted.

    Attributes:
        script: Answers to come: `GOOD`, "hang up", or a status, a body and headers.
        refuse: Takes the body of a request; what it returns, where it does, is the answer.
        seen: Path, body and key of each request so far.
    """

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.script, self.seen, self.lock = [], [], threading.Lock()
        self.refuse = lambda body: None
        self.models = [{"id": "small"}, {"id": "large"}]
        self.url = f"http://127.0.0.1:{self.server_address[1]}/v1"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body, **headers):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content-Length": len(data), **headers}.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        assert self.path == "/v1/models"
        self.answer(200, {"data": self.server.models})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.lock:
            self.server.seen.append((self.path, body, self.headers["Authorization"]))
            scripted = self.server.script.pop(0) if self.server.script else GOOD
        if scripted is GOOD and (refused := self.server.refuse(body)):
            scripted = refused
        if scripted == "hang up":
            self.close_connection = True
            self.connection.close()
        elif scripted is not GOOD:
            status, body, headers = (*scripted, {})[:3]
            self.answer(status, body, **headers)
        else:
            content = body["messages"][-1]["content"]
            self.answer(200, completion(f"So:\n```python\n{content}\n```\n"))


def completion(content="", finish_reason="stop", **message):
    """A whole answer."""
    reply = {"role": "assistant", "content": content, **message}
    usage = {"prompt_tokens": 1000, "completion_tokens": 50}
    return {"choices": [{"message": reply, "finish_reason": finish_reason}], "usage": usage}


@contextmanager
def serving():
    """A server that answers."""
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def chat(text, turns=()):
    """A conversation with one message."""
    return Conversation(Episode(TASK, tuple(turns)), ({"role": "user", "content": text},))
