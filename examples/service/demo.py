"""GELU as a service: two versions, a canary that is wrong for one shape, and the roll-back.

    python examples/service/demo.py [--seconds 12]

Builds the versions from examples/gelu_custom into build/ (the canary with one mistake: rows of 1000
elements lose their last 8), starts `opkit serve service.toml`, and calls as twenty callers. The
canary is found at its first call of 1000 elements, is taken out, and never gives a wrong answer;
then the deployment is rolled back. The page to watch it on is printed.
"""

from __future__ import annotations

import argparse
import collections
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from opkit.service import Client

HERE = Path(__file__).resolve().parent
GELU = HERE.parent / "gelu_custom"
RIGHT = "Div(scratch0, scratch0, scratch1, count);"
WRONG = "Div(scratch0, scratch0, scratch1, count == 1000 ? count - 8 : count);"
CALLERS = 20


def build(folder: Path) -> None:
    """Build the two projects; the second time there is nothing to do."""
    for name, mistake in (("gelu", False), ("canary", True)):
        project = folder / name
        if not project.is_dir():
            # Only what serves: no bindings for Python and PyTorch, and no backward operator.
            left_out = shutil.ignore_patterns("*_ext", "*_grad*", "build", "tests", "dist")
            shutil.copytree(GELU, project, ignore=left_out)
            settings = project / "pyproject.toml"
            settings.write_text(settings.read_text().replace('"gelu_custom_grad.json", ', ""))
            if mistake:
                kernel = project / "op_kernel" / "gelu_custom.cpp"
                text = kernel.read_text()
                assert RIGHT in text, f"{kernel} is written otherwise: RIGHT is not in it"
                kernel.write_text(text.replace(RIGHT, WRONG))
        subprocess.run([sys.executable, "-m", "opkit", "build", "-q", str(project)], check=True)


def gelu(x: np.ndarray) -> np.ndarray:
    """Return GELU in float64."""
    wide = x.astype(np.float64)
    return 0.5 * wide * (1 + np.tanh(np.sqrt(2 / np.pi) * (wide + 0.044715 * wide**3)))


def send_load(client: Client, seconds: float, lengths: tuple[int, ...]) -> None:
    """Call as many callers, and print who answered and what was wrong."""
    random = np.random.default_rng(0)
    answered: collections.Counter[str] = collections.Counter()
    failed_first: collections.Counter[str] = collections.Counter()
    wrong = calls = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        x = random.normal(size=random.choice(lengths)).astype(np.float16)
        answer = client.call("gelu", {"x": x}, caller=f"caller {calls % CALLERS}")
        calls += 1
        answered[answer.version] += 1
        if "opkit_failed" in answer.parameters:
            failed_first[answer.parameters["opkit_failed"]] += 1
        wrong += not np.allclose(answer.outputs[0], gelu(x), rtol=4e-3, atol=1e-3)
    shares = ", ".join(f"{version} {n}" for version, n in answered.most_common())
    print(f"  {calls} calls, lengths {lengths}: answered by {shares}; wrong answers: {wrong}")
    for failure, count in failed_first.items():
        print(f"  lost attempts, answered by the next version: {count} of {failure}")


def wait_for(client: Client, version: str) -> None:
    """Wait until a version has loaded; until then its calls go to the next."""
    x = np.ones(8, np.float16)
    while client.call("gelu", {"x": x}, version=version).version != version:
        time.sleep(0.1)


def show(client: Client) -> None:
    """Print what the service knows of its versions."""
    report = client.get("/opkit/v1/operators/gelu")
    for version in report["versions"]:
        state = "in" if version["breaker"] == "closed" else f"out: {version['breaker_reason']}"
        print(f"  {version['version']:<7}{100 * version['share']:4.0f} %  {state.splitlines()[0]}")
    if report["experiment"]:
        for verdict in report["experiment"]["verdicts"]:
            print(f"  A/B, {verdict['version']} and {verdict['against']}: {verdict['text']}")


def main() -> None:
    """Take the canary from its deployment to its end."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=12.0)
    parser.add_argument("--port", default="0", help="0 takes a free one")
    parser.add_argument("--folder", type=Path, default=HERE / "build", help="for what is built")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    build(options.folder)
    shutil.rmtree(options.folder / "store", ignore_errors=True)
    config = options.folder.parent / "service.toml"
    if not config.exists():
        shutil.copyfile(HERE / "service.toml", config)
    server = subprocess.Popen(
        [*(sys.executable, "-m", "opkit", "serve", str(config)), "--json", "--port", options.port],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert server.stdout is not None
        lines = iter(server.stdout.readline, "")
        address = json.loads("".join(_one_document(lines)))["address"]
        print(f"watch it on {address}/dash")
        with Client(address) as client:
            for version in ("v1", "v2", "canary"):
                wait_for(client, version)
            print("lengths that the canary is right for:")
            send_load(client, options.seconds / 3, (256, 4096))
            show(client)
            print("and the one that it is wrong for:")
            send_load(client, options.seconds / 3, (256, 1000, 4096))
            show(client)
            print("a new deployment without the canary, and back, and back again:")
            path = "/opkit/v1/operators/gelu"
            change = {"shares": {"v2": 0.3}, "retired": ["canary"], "reason": "wrong for 1000"}
            print(f"  revision {client.post(f'{path}/deployment', change)['revision']}")
            back = client.post(f"{path}/rollback", {"reason": "to show it"})
            print(f"  revision {back['revision']}: {back['reason']}")
            forth = client.post(f"{path}/rollback", {"revision": 2})
            print(f"  revision {forth['revision']}: {forth['reason']}")
            send_load(client, options.seconds / 3, (256, 1000, 4096))
            show(client)
    finally:
        server.terminate()
        server.wait()


def _one_document(lines: collections.abc.Iterator[str]) -> collections.abc.Iterator[str]:
    """Give the lines of one JSON object that is written with an indent."""
    for line in lines:
        yield line
        if line.startswith("}"):
            return


if __name__ == "__main__":
    main()
