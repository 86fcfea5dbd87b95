"""The load script on a small load: the service is killed twice, and nothing is lost or doubled."""

import json
import socket
import subprocess
import sys

import pytest

from tests.test_architecture import ROOT


@pytest.mark.sweep
def test_nothing_is_lost_or_recorded_twice_when_the_service_is_killed():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    options = ["--clients", "12", "--evaluations", "60", "--devices", "8", "--kills", "2"]
    command = [sys.executable, "-m", "benchmarks.load_service", *options, "--port", port]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    figures = json.loads(done.stdout)
    assert (figures["results"], figures["rows"]) == (60, 60)
    assert (figures["twice"], figures["not done"]) == (0, 0)
