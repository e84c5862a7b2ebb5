"""Load for the service, from a process of its own: the same request on so many connections.

    python benchmarks/service_load.py PORT CONNECTIONS SECONDS

Prints JSON: calls, seconds, failed (any answer but 200), p50_ms, p99_ms, cpu_seconds. Nothing but
sockets, so that the client takes as little of the machine as it can.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
import time

import numpy as np

ELEMENTS = 4096


def request_bytes() -> bytes:
    """Return a request for GELU of 4096 elements, tensors in binary."""
    x = np.random.default_rng(0).normal(size=ELEMENTS).astype(np.float16)
    item = {
        "name": "x",
        "shape": [ELEMENTS],
        "datatype": "FP16",
        "parameters": {"binary_data_size": x.nbytes},
    }
    header = json.dumps({"inputs": [item], "parameters": {"binary_data_output": True}}).encode()
    return (
        b"POST /v2/models/gelu/infer HTTP/1.1\r\nHost: localhost\r\n"
        b"Inference-Header-Content-Length: %d\r\nContent-Length: %d\r\n\r\n"
        % (len(header), len(header) + x.nbytes)
        + header
        + x.tobytes()
    )


def connection(port: int, until: float, times: list[float], failed: list[int]) -> None:
    """Call on one connection until a time."""
    request = request_bytes()
    with socket.create_connection(("127.0.0.1", port), 60) as stream:
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while time.monotonic() < until:
            begin = time.perf_counter()
            stream.sendall(request)
            content = b""
            end = -1
            while end < 0 or len(content) < end:
                content += stream.recv(1 << 16)
                head = content.find(b"\r\n\r\n")
                if end < 0 <= head:
                    lower = content[:head].lower()
                    length = lower.partition(b"content-length: ")[2].partition(b"\r")[0]
                    end = head + 4 + int(length)
            times.append(time.perf_counter() - begin)
            if not content.startswith(b"HTTP/1.1 200"):
                failed[0] += 1


def main() -> None:
    """Send the load and print what it came to."""
    port, connections, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    times: list[float] = []
    failed = [0]
    begin = time.monotonic()
    threads = [
        threading.Thread(target=connection, args=(port, begin + seconds, times, failed))
        for _ in range(connections)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.monotonic() - begin
    times.sort()
    found = {
        "calls": len(times),
        "seconds": took,
        "failed": failed[0],
        "p50_ms": 1e3 * times[len(times) // 2],
        "p99_ms": 1e3 * times[int(0.99 * len(times))],
        "cpu_seconds": time.process_time(),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
