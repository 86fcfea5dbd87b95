"""A service in this process, on a port that the system chose."""

import contextlib
import threading

import pytest

from kernel_gym.executors import make_executor
from kernel_gym.service.settings import ServiceSettings


@contextlib.contextmanager
def serving(settings, executor):
    """Serves in a thread; gives the address and the service."""
    import uvicorn

    from kernel_gym.service.app import make_app

    app = make_app(settings, executor)
    listening = threading.Event()

    class Server(uvicorn.Server):
        async def startup(self, sockets=None):
            await super().startup(sockets)
            listening.set()

    config = uvicorn.Config(app, port=0, log_level="error", timeout_graceful_shutdown=5)
    server = Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    assert listening.wait(60)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}", app.state.service
    finally:
        app.state.service.drain_soon()
        server.should_exit = True
        thread.join(60)
        assert not thread.is_alive()


@pytest.fixture
def serve(tmp_path):
    """Starts services and stops them."""
    with contextlib.ExitStack() as stack:

        def start(executor=None, **settings):
            executor = executor or make_executor("local", device="sim:gfx942", workers=2)
            allowed = ServiceSettings(tmp_path / "service", **settings)
            return stack.enter_context(serving(allowed, executor))

        yield start
