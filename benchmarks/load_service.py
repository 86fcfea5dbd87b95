"""Measures the service under load, on loopback, by hand: kills it and counts what is lost.

    python -m benchmarks.load_service --clients 200 --evaluations 10000 --devices 64 --kills 2
    python -m benchmarks.load_service --clients 20 --evaluations 100 --devices 2 --simulator

The devices sleep for the time of an evaluation; the queue, HTTP, the clients and the records are
real. With `--simulator` they are workers that evaluate a cheap task. The same closed loop of
clients first calls the executor in its own process, for comparison. The script prints JSON: rates,
latencies, what was lost or recorded twice, and the memory of the service after each tenth of the
evaluations.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import signal
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from benchmarks.sleeping import Load, SleepingLocalExecutor
from kernel_gym.client import AsyncClient
from kernel_gym.executors import Executor, make_executor
from kernel_gym.records import Evaluation
from kernel_gym.tasks import get_task

TASK = "triton2triton/softmax"
SOURCE = get_task(TASK).kernel_source
SECONDS = (0.5, 0.7, 0.9, 1.1, 1.3)


def load(record: Path) -> Load:
    """The times and the record of the sleeping devices."""
    return Load(SECONDS, [Evaluation.model_validate_json(record.read_bytes())])


def make_pool(folder: Path, devices: int) -> Executor:
    """Sleeping devices, or workers on the simulator if the folder has no record."""
    record = folder / "record.json"
    if record.exists():
        return SleepingLocalExecutor(load(record), devices)
    return make_executor("local", device="sim:gfx942", workers=devices)


def serve(folder: Path, port: int, devices: int) -> None:
    """Serves; this runs in a process of its own, which is killed."""
    from kernel_gym.commands.serve import run
    from kernel_gym.service.settings import ServiceSettings

    run(ServiceSettings(folder / "service"), make_pool(folder, devices), "127.0.0.1", port)


def start(folder: Path, port: int, devices: int) -> subprocess.Popen[bytes]:
    """Starts the service."""
    arguments = ["--serve", str(folder), "--port", str(port), "--devices", str(devices)]
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "benchmarks.load_service", *arguments], stdout=log, stderr=log
        )


def in_process(folder: Path, clients: int, count: int, devices: int) -> tuple[float, list[float]]:
    """The same load on the executor alone: evaluations a second, and the latency of each."""
    numbers, lock = iter(range(count)), threading.Lock()
    latencies: list[float] = []

    def client() -> None:
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            began = time.perf_counter()
            executor.evaluate(TASK, f"{SOURCE}# {number}", number)
            latencies.append(time.perf_counter() - began)

    with make_pool(folder, devices) as executor:
        threads = [threading.Thread(target=client) for _ in range(clients)]
        began = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return count / (time.perf_counter() - began), latencies


class Watch:
    """Kills and restarts the service, and reads its memory."""

    def __init__(self, folder: Path, port: int, devices: int, count: int, kills: int) -> None:
        self.folder, self.port, self.devices = folder, port, devices
        self.process = start(folder, port, devices)
        self.down = 0.0
        self.memory: list[float] = []
        self._kill_at = {count * (n + 1) // (kills + 1) for n in range(kills)}
        self._look_at = {count * n // 10 for n in range(1, 11)}

    async def done(self, number: int) -> None:
        """Called with the number of results so far."""
        if number in self._look_at:
            text = Path(f"/proc/{self.process.pid}/status").read_text()
            kilobytes = next(line for line in text.splitlines() if line.startswith("VmRSS"))
            self.memory.append(round(int(kilobytes.split()[1]) / 1024))
        if number in self._kill_at:
            began = time.perf_counter()
            self.process.kill()
            self.process.wait()
            self.process = start(self.folder, self.port, self.devices)
            await listening(self.port)
            self.down += time.perf_counter() - began


async def listening(port: int) -> None:
    """Waits until the service listens."""
    while True:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        await asyncio.sleep(0.1)


async def over_http(watch: Watch, clients: int, count: int) -> tuple[float, list[float], set[str]]:
    """The load over HTTP: evaluations a second of uptime, latencies, ids of the results."""
    numbers = iter(range(count))
    latencies: list[float] = []
    ids: set[str] = set()
    await listening(watch.port)

    async def client() -> None:
        for number in numbers:
            began = time.perf_counter()
            down = watch.down
            result = await http.evaluate(TASK, f"{SOURCE}# {number}", seed=number)
            if down == watch.down:
                latencies.append(time.perf_counter() - began)
            ids.add(result.id)
            await watch.done(len(ids))

    async with AsyncClient(f"http://127.0.0.1:{watch.port}") as http:
        began = time.perf_counter()
        await asyncio.gather(*(client() for _ in range(clients)))
        return count / (time.perf_counter() - began - watch.down), latencies, ids


async def unloaded(record: Path, port: int, count: int) -> list[float]:
    """Seconds that the service adds to an evaluation if a device is free, beside the sleep."""
    sleeps = load(record)
    added = []
    async with AsyncClient(f"http://127.0.0.1:{port}") as http:
        for number in range(count):
            source = f"{SOURCE}# alone {number}"
            began = time.perf_counter()
            await http.evaluate(TASK, source, seed=number)
            added.append(time.perf_counter() - began - sleeps.draw(source)[0])
    return added


def recorded(folder: Path) -> dict[str, int]:
    """Counts of the queue: results, and submissions with more or less than one result."""
    with sqlite3.connect(folder / "service" / "queue.sqlite3") as db:
        ask = "SELECT COUNT(*), COUNT(DISTINCT seed || source), SUM(state = 'done') FROM jobs"
        rows, distinct, done = db.execute(f"{ask} WHERE source NOT LIKE '%alone%'").fetchone()
    return {"rows": rows, "twice": rows - distinct, "not done": rows - done}


def main() -> None:
    """Measures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--evaluations", type=int, default=10_000)
    parser.add_argument("--devices", type=int, default=64)
    parser.add_argument("--kills", type=int, default=2)
    parser.add_argument("--port", type=int, default=8765)
    parser.add_argument("--simulator", action="store_true")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve(given.serve, given.port, given.devices)
        return
    with tempfile.TemporaryDirectory() as name:
        print(json.dumps(measure(Path(name), given), indent=2))


def measure(folder: Path, given: argparse.Namespace) -> dict[str, object]:
    """The figures."""
    record, added = folder / "record.json", []
    if not given.simulator:
        with make_executor("inline", device="sim:gfx942", seed=0) as executor:
            record.write_text(executor.evaluate(TASK, SOURCE).model_dump_json())
    count = given.evaluations
    rate, alone = in_process(folder, given.clients, count, given.devices)
    watch = Watch(folder, given.port, given.devices, count, given.kills)
    try:
        over, latencies, ids = asyncio.run(over_http(watch, given.clients, count))
        if not given.simulator:
            added = asyncio.run(unloaded(record, given.port, 50))
    finally:
        os.kill(watch.process.pid, signal.SIGTERM)
        watch.process.wait(60)
    return {
        "clients": given.clients,
        "evaluations": count,
        "devices": given.devices,
        "kills": given.kills,
        "results": len(ids),
        **recorded(folder),
        "in process, a second": round(rate, 2),
        "over HTTP, a second of uptime": round(over, 2),
        "share": round(over / rate, 4),
        "median latency in process, s": round(statistics.median(alone), 3),
        "median latency over HTTP, s": round(statistics.median(latencies), 3),
        "median added without load, ms": added and round(1e3 * statistics.median(added), 1),
        "seconds down": round(watch.down, 1),
        "memory, MB": watch.memory,
    }


if __name__ == "__main__":
    main()
