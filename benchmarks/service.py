"""The service under load, under versions that go astray, killed, and sent nonsense.

    python benchmarks/service.py [load] [overhead] [chaos] [kills] [nonsense] [--small]

Without a name all of them, which takes a quarter of an hour; --small does a tenth of each. Client
and server share the machine, on the loopback address. What else the machine does is printed first.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from service_load import ELEMENTS, request_bytes
from service_versions import AFTER_CALLS, MODES, build_versions
from table import print_figure, print_head

from opkit.errors import OpkitError
from opkit.service import Client, Service, ServiceSettings
from opkit.service.store import Store

_HERE = Path(__file__).resolve().parent
_TICKS = os.sysconf("SC_CLK_TCK")
SAMPLE_RATE = 0.02


def config_text(folder: Path, versions: dict[str, Path], *, store: str) -> str:
    """Return a configuration whose default is the good version."""
    lines = [f'store = "{folder / store}"', "[[operators]]", 'name = "gelu"']
    lines.append("[operators.versions]")
    lines += [f'{name} = {{ source = "{path}" }}' for name, path in versions.items()]
    lines += ["[operators.deployment]", 'default = "good"', 'by = "request"']
    lines += ["[operators.checks]", f"sample_rate = {SAMPLE_RATE}"]
    lines += ["[operators.limits]", "attempt_seconds = 1.0"]
    return "\n".join(lines) + "\n"


class Served:
    """`opkit serve` in a process of its own."""

    def __init__(self, folder: Path, versions: dict[str, Path], store: str = "store") -> None:
        config = folder / f"{store}.toml"
        config.write_text(config_text(folder, versions, store=store))
        self.log = folder / f"{store}.log"
        command = [sys.executable, "-m", "opkit", "serve", str(config), "--json", "--port", "0"]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        assert self.process.stdout is not None
        text = ""
        for line in self.process.stdout:
            text += line
            if line.startswith("}"):
                break
        self.url = str(json.loads(text)["address"])
        self.port = int(self.url.rpartition(":")[2])

    def wait_until_ready(self, versions: int = 1) -> None:
        """Wait until so many versions have loaded."""
        with Client(self.url) as client:
            while True:
                report = client.get("/opkit/v1/operators/gelu")
                if report["reference"]["ready"] and (
                    sum(item["ready"] for item in report["versions"]) >= versions
                ):
                    return
                time.sleep(0.1)

    def cpu_seconds(self) -> float:
        """Return the CPU time of the service and its workers so far."""
        return sum(_cpu_seconds(pid) for pid in (self.process.pid, *self.workers()))

    def workers(self) -> list[int]:
        """Return the numbers of the worker processes."""
        tasks = Path(f"/proc/{self.process.pid}/task").iterdir()
        return [int(pid) for task in tasks for pid in (task / "children").read_text().split()]

    def memory_bytes(self) -> int:
        """Return what the service's own process holds."""
        pages = Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def stop(self) -> None:
        """End it as a service manager does."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=60)


@contextmanager
def served(folder: Path, versions: dict[str, Path], store: str) -> Iterator[Served]:
    """Give a service that is stopped afterwards."""
    service = Served(folder, versions, store)
    try:
        service.wait_until_ready(len(versions))
        yield service
    finally:
        service.stop()


def measure_load(folder: Path, versions: dict[str, Path], scale: float) -> None:
    """Print calls a second, and what a call costs in CPU time wherever it is spent."""
    with served(folder, {"good": versions["good"]}, "load") as service:
        for connections in (4, 8):
            before = service.cpu_seconds()
            seconds = max(2.0, 20 * scale)
            command = [sys.executable, str(_HERE / "service_load.py"), str(service.port)]
            done = subprocess.run(
                [*command, str(connections), str(seconds)], capture_output=True, check=True
            )
            found = json.loads(done.stdout)
            cpu = service.cpu_seconds() - before
            rate = found["calls"] / found["seconds"]
            print_figure(
                f"GELU of {ELEMENTS}, binary, {connections} connections",
                f"{rate:.0f} calls/s, p50 {found['p50_ms']:.1f} ms, p99 {found['p99_ms']:.1f} ms,"
                f" {found['failed']} failed; CPU a call {1e3 * cpu / found['calls']:.2f} ms server"
                f" and workers, {1e3 * found['cpu_seconds'] / found['calls']:.2f} ms client",
                ">= 1,000 calls/s at p99 <= 20 ms",
            )


def measure_overhead(folder: Path, versions: dict[str, Path], scale: float) -> None:
    """Print what a call in process takes beside the version's own code."""
    x = np.random.default_rng(0).normal(size=ELEMENTS).astype(np.float16)
    for isolation, limit in (("none", "<= 30 us"), ("process", "<= 300 us")):
        settings = {
            "store": folder / "overhead",
            "isolation": isolation,
            "operators": [
                {
                    "name": "gelu",
                    "versions": {"good": {"source": str(versions["good"])}},
                    # Checks are work of their own, whose rate is a setting.
                    "checks": {"sample_rate": 0},
                }
            ],
        }
        with Service(ServiceSettings.model_validate(settings)) as service:
            service.wait_until_ready()
            for _ in range(200):
                service.call("gelu", [x])
            service.settle()
            meter = next(iter(service.metrics.meters.values()))
            extra = []
            for _ in range(int(20_000 * scale)):
                begin = time.perf_counter()
                service.call("gelu", [x])
                extra.append(time.perf_counter() - begin - meter.own_recent[-1])
            extra.sort()
            name = "without a worker process" if isolation == "none" else "with one"
            median, best = (1e6 * extra[int(share * len(extra))] for share in (0.5, 0.1))
            print_figure(
                f"overhead of a call in process, {name}",
                f"median {median:.0f} us, fastest tenth {best:.0f} us",
                limit,
            )


def expected_of(x: np.ndarray) -> np.ndarray:
    """Return GELU in float64."""
    wide = x.astype(np.float64)
    return 0.5 * wide * (1 + np.tanh(np.sqrt(2 / np.pi) * (wide + 0.044715 * wide**3)))


class Judge:
    """Calls that look at every answer."""

    def __init__(self, url: str) -> None:
        self.outcomes: Counter[str] = Counter()
        self.lost: Counter[str] = Counter()
        self.late_failures = 0
        self.unchecked_wrong = self.checked_wrong = 0
        self._url = url
        self._inputs = [
            np.random.default_rng(n).normal(size=ELEMENTS).astype(np.float16) for n in range(8)
        ]
        self._expected = [expected_of(x) for x in self._inputs]
        self.stop_at = 0.0

    def run(self, seconds: float, connections: int = 6) -> None:
        """Call on some connections for a time."""
        self.stop_at = time.monotonic() + seconds
        threads = [threading.Thread(target=self._call) for _ in range(connections)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _call(self) -> None:
        number = 0
        with Client(self._url) as client:
            while time.monotonic() < self.stop_at:
                number += 1
                which = number % len(self._inputs)
                try:
                    answer = client.call("gelu", {"x": self._inputs[which]})
                except OpkitError as error:
                    self.outcomes[f"failed: {type(error).__name__}"] += 1
                    continue
                self.outcomes[answer.version] += 1
                if "opkit_failed" in answer.parameters:
                    self.lost[answer.parameters["opkit_failed"]] += 1
                right = np.allclose(answer.outputs[0], self._expected[which], rtol=4e-3, atol=1e-3)
                if not right and answer.parameters["opkit_checked"]:
                    self.checked_wrong += 1
                elif not right:
                    self.unchecked_wrong += 1


def measure_chaos(folder: Path, versions: dict[str, Path], scale: float) -> None:
    """Print what versions that go astray cost; each has half of the calls."""
    for mode in MODES:
        with served(folder, {"good": versions["good"], mode: versions[mode]}, mode) as service:
            judge = Judge(service.url)
            with Client(service.url) as client:
                client.post("/opkit/v1/operators/gelu/deployment", {"shares": {mode: 0.5}})
                judge.run(max(4.0, 15 * scale))
                version = client.get("/opkit/v1/operators/gelu")["versions"][1]
            failed = sum(n for name, n in judge.outcomes.items() if name.startswith("failed"))
            wrong = f"{judge.checked_wrong} of those checked"
            if judge.unchecked_wrong:
                wrong += f", {judge.unchecked_wrong} of those not checked"
            print_figure(
                f"{mode} from call {AFTER_CALLS} on, half of the calls",
                f"{sum(judge.outcomes.values())} calls, {failed} failed, wrong answers: {wrong};"
                f" attempts lost {dict(judge.lost)}, breaker {version['breaker']}"
                f" ({version['breaker_times_opened']} times)",
                f"0 failed, 0 wrong of the checked ({SAMPLE_RATE:.0%}, all NaN, the first 2)",
            )


def measure_kills(folder: Path, versions: dict[str, Path], scale: float) -> None:
    """Print what is left of a service that is killed in the middle of deployments."""
    rounds = max(3, int(100 * scale))
    draw = random.Random(0)
    two = {"good": versions["good"], "segfault": versions["segfault"]}
    lost = damaged = acknowledged = changes = 0
    shutil.rmtree(folder / "kills", ignore_errors=True)
    for number in range(rounds):
        service = Served(folder, two, "kills")
        with Client(service.url) as client:
            history = client.get("/opkit/v1/operators/gelu/history")
            # One change more may have reached the disk than was acknowledged.
            if number and len(history) - acknowledged not in (0, 1):
                lost += 1
            now = client.get("/opkit/v1/operators/gelu")["deployment"]
            if now != history[-1]["deployment"]:
                lost += 1
            acknowledged = len(history)
            timer = threading.Timer(draw.uniform(0, 0.3), service.process.kill)
            timer.start()
            try:
                while True:
                    change = {"pins": {f"caller {changes}": "good"}}
                    path = "/opkit/v1/operators/gelu/deployment"
                    if draw.random() < 0.2 and acknowledged > 2:
                        change, path = {}, "/opkit/v1/operators/gelu/rollback"
                    acknowledged = client.post(path, change)["revision"]
                    changes += 1
            except OpkitError:
                pass
            timer.join()
        service.process.wait()
        store = Store(folder / "kills")
        damaged += len(store.damaged_versions())
        states = [item.deployment.to_json() for item in store.history("gelu")]
        lost += len(states) - acknowledged not in (0, 1)
        acknowledged = len(states)
        store.close()
    print_figure(
        f"kill -9 in the middle of deployments, {rounds} times",
        f"{changes} changes acknowledged, {lost} lost, {damaged} versions damaged",
        "the store is whole, the last acknowledged state is served",
    )


def nonsense(draw: random.Random) -> tuple[str, str, bytes, dict[str, str]]:
    """Return a request that is none: method, path, body, headers."""
    whole = request_bytes().partition(b"\r\n\r\n")[2]
    header = bytes(whole[: whole.find(b"}}") + 2])
    names = ["gelu", "x", "%00", "..", "a" * 300, "gelu/versions/good", "gelu/versions/%ff"]
    paths = [f"/v2/models/{draw.choice(names)}/infer"] * 6
    paths += ["/v2", "/nowhere", "/opkit/v1/operators/gelu/deployment", "/metrics", "/%2e%2e/etc"]
    kinds: list[Callable[[], bytes]] = [
        lambda: b"",
        lambda: draw.randbytes(draw.randrange(200)),
        lambda: whole[: draw.randrange(len(whole))],
        lambda: _mutated(whole, draw),
        lambda: _mutated(header, draw),
        lambda: b"[" * draw.randrange(5000),
        lambda: json.dumps(_any_json(draw, 3)).encode(),
        lambda: json.dumps({"inputs": [_any_tensor(draw)]}).encode(),
        lambda: json.dumps({"default": _any_json(draw, 1), "shares": _any_json(draw, 2)}).encode(),
    ]
    headers = {}
    if draw.random() < 0.5:
        length = draw.choice([0, 1, 150, len(header), 1 << 40, -1])
        headers["Inference-Header-Content-Length"] = str(length)
    if draw.random() < 0.1:
        headers["X-Opkit-Seconds"] = draw.choice(["nan", "-1", "1e9", "x", "1e-9"])
    method = draw.choice(["POST"] * 8 + ["GET", "PUT", "DELETE"])
    return method, draw.choice(paths), draw.choice(kinds)(), headers


def _mutated(text: bytes, draw: random.Random) -> bytes:
    changed = bytearray(text)
    for _ in range(draw.randrange(1, 4)):
        changed[draw.randrange(len(changed))] = draw.randrange(256)
    return bytes(changed)


def _any_json(draw: random.Random, depth: int) -> object:
    scalars = [None, True, -1, 1 << 70, 0.5, "", "good", "\ud800", "NaN", 1e308]
    if depth == 0 or draw.random() < 0.4:
        return draw.choice(scalars)
    if draw.random() < 0.5:
        return [_any_json(draw, depth - 1) for _ in range(draw.randrange(4))]
    keys = ["inputs", "name", "shape", "data", "datatype", "parameters", "default", "v"]
    return {draw.choice(keys): _any_json(draw, depth - 1) for _ in range(draw.randrange(4))}


def _any_tensor(draw: random.Random) -> dict[str, object]:
    tensor: dict[str, object] = {"name": "x", "shape": [3], "datatype": "FP16", "data": [1, 2, 3]}
    for key in draw.sample(list(tensor), draw.randrange(1, 3)):
        tensor[key] = _any_json(draw, 2)
    return tensor


def measure_nonsense(folder: Path, versions: dict[str, Path], scale: float) -> None:
    """Print how random and malformed requests are answered, and what the service holds then."""
    count = int(100_000 * scale)
    with served(folder, {"good": versions["good"]}, "nonsense") as service:
        statuses: Counter[int] = Counter()
        without_reason: Counter[str] = Counter()
        memory: list[int] = []

        def send(seed: int) -> None:
            draw = random.Random(seed)
            connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=60)
            for number in range(count // 4):
                method, path, body, headers = nonsense(draw)
                try:
                    connection.request(method, path, body, headers)
                    answer = connection.getresponse()
                    content = answer.read()
                except (OSError, http.client.HTTPException):
                    # It has closed the connection behind an answer, as it may.
                    connection.close()
                    statuses[0] += 1
                    continue
                statuses[answer.status] += 1
                if answer.status >= 400 and not _has_reason(content):
                    without_reason[f"{answer.status} {content[:80]!r}"] += 1
                if number % (count // 40) == 0 and seed == 0:
                    memory.append(service.memory_bytes())

        threads = [threading.Thread(target=send, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        memory.append(service.memory_bytes())
        tracebacks = service.log.read_text("utf-8", "replace").count("Traceback")
        with Client(service.url) as client:
            x = np.ones(ELEMENTS, np.float16)
            is_well = client.call("gelu", {"x": x}).version == "good"
    half = len(memory) // 2
    print_figure(
        f"{sum(statuses.values())} random and malformed requests",
        f"by status {dict(sorted(statuses.items()))}; without a reason {dict(without_reason)};"
        f" {tracebacks} tracebacks; memory {memory[0] >> 20} MiB at first,"
        f" {statistics.median(memory[:half]) / 2**20:.0f} in the first half,"
        f" {memory[-1] >> 20} at the end; serves {'well' if is_well else 'no more'}",
        "4xx with a reason, no traceback, memory flat",
    )


def _has_reason(content: bytes) -> bool:
    try:
        return bool(json.loads(content)["error"])
    except (ValueError, KeyError, TypeError):
        return False


MEASURES = {
    "load": measure_load,
    "overhead": measure_overhead,
    "chaos": measure_chaos,
    "kills": measure_kills,
    "nonsense": measure_nonsense,
}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("measures", nargs="*", choices=[*MEASURES, []])
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--folder", type=Path, help="for what is built; a temporary one by default")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = (options.folder or Path(name)).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        versions = build_versions(folder)
        load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
        print(f"{os.cpu_count()} cores, load average before: {load}\n")
        print_head()
        for measure in options.measures or MEASURES:
            MEASURES[measure](folder, versions, 0.1 if options.small else 1.0)


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


if __name__ == "__main__":
    main()
