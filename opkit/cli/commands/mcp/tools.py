"""The tools of `opkit mcp`: each is a command of opkit's, in a process of its own.

So what a tool answers is what the command says with --json, and a kernel that ends its process ends
a command and not the server. Without leave to write, what commands make goes to the cache.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import signal
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import opkit
from opkit.errors import SetupError, UsageError
from opkit.folders import cache_folder
from opkit.toolchain import OPKIT_COMMAND

__all__ = ["TOOLS", "Tools", "make_server", "serve_tools"]

_SHOWN_BYTES = 64 << 10
"""Bytes of a written file that gen's answer shows."""


@dataclass(frozen=True)
class Tools:
    """What may be seen and written, and for how long a call may run."""

    folder: Path
    writes: bool
    timeout_seconds: float

    async def gen(self, prototype: str, project: str = "") -> dict[str, Any]:
        """Write an operator project from a prototype: JSON text, one operator or a list of them.

        An output with a "formula" over the inputs has a complete kernel, host code and golden, such
        as {"op": "Swish", "input_desc": [{"name": "x", "type": ["float16"]}], "output_desc":
        [{"name": "y", "type": ["float16"], "formula": "x * sigmoid(x)"}]}. The project goes to the
        folder `project` where the server may write; else only the texts of its files are answered.
        """
        with tempfile.TemporaryDirectory(prefix="opkit-mcp-") as scratch:
            source = Path(scratch, "prototype.json")
            source.write_text(prototype, encoding="utf-8")
            writes = self.writes and bool(project)
            target = self._place(project, new=True) if writes else Path(scratch, "project")
            answer = await self._run("gen", "-i", str(source), "-o", str(target), as_json=False)
            names = ("op_kernel", "op_host")
            if answer["exit_code"] == 0:
                answer["files"] = {
                    str(path.relative_to(target)): _text(path)
                    for name in names
                    for path in sorted((target / name).glob("*"))
                    if path.is_file()
                }
                answer["written"] = writes
            return _without(answer, scratch)

    async def build(self, project: str) -> dict[str, Any]:
        """Compile a project's kernels, host code and bindings; errors name file and line."""
        return await self._of_project("build", project)

    async def test(self, project: str, cases: str = "", seed: int = 0) -> dict[str, Any]:
        """Compare a project's results with its golden, case by case.

        `cases` chooses among them as pytest's -k does: "float16 and not 1000003".
        """
        chosen = ("-k", cases) if cases else ()
        return await self._of_project("test", project, *chosen, "--seed", str(seed))

    async def check(self, project: str, cases: str = "") -> dict[str, Any]:
        """Find races, memory, queue and synchronisation bugs of a project's kernels."""
        return await self._of_project("check", project, *(("-k", cases) if cases else ()))

    async def profile(self, project: str, shape: str = "", dtype: str = "") -> dict[str, Any]:
        """Time an operator on the modelled chip: pipes, hottest lines, what to change first.

        `shape` has sizes joined by x, such as 1048576 or 2048x4096.
        """
        options = [*(("--shape", shape) if shape else ()), *(("--dtype", dtype) if dtype else ())]
        return await self._of_project("profile", project, "--events", "0", *options)

    async def judge(
        self, candidate: str, task: str, cases: str = "", base_us: float = 0.0
    ) -> dict[str, Any]:
        """Judge a candidate project against a task, in sandboxes: right, how fast, and cheats.

        `task` is a prototype JSON with formulas, a project, or a task's folder.
        """
        options = ["-k", cases] if cases else []
        options += ["--base", str(base_us)] if base_us else []
        paths = (str(self._place(candidate)), "--task", str(self._place(task)))
        return await self._run("judge", *paths, *options)

    async def why(self, project: str, case: str) -> dict[str, Any]:
        """Say why a case of `test` fails: back from the wrong byte to the line that made it."""
        return await self._of_project("debug", project, "--case", case, "-e", "why", as_json=False)

    async def docs(self, topic: str = "") -> dict[str, Any]:
        """Explain a class of finding (RACE-RAW), an instruction (Exp), or a command (opkit test).

        Without a topic: the classes of findings and the instructions that there are.
        """
        if not topic:
            classes = await self._run("explain", as_json=False)
            instructions = await self._run("isa", as_json=False)
            return {"exit_code": 0, "result": f"{classes['result']}\n{instructions['result']}"}
        word = topic.removeprefix("opkit ").strip()
        if word.startswith("-") or not word:
            raise UsageError(f'"{topic}" is no topic', help="give a class, a name or a command")
        for way in (("explain", word), ("isa", word), (word, "--help")):
            answer = await self._run(*way, as_json=False)
            if answer["exit_code"] == 0:
                return answer
        return answer

    def _place(self, name: str, *, new: bool = False) -> Path:
        """Return a path below the folder.

        Raises:
            UsageError: it leads out of it, or is not there.
        """
        path = (self.folder / name).resolve()
        if not path.is_relative_to(self.folder):
            raise UsageError(f'"{name}" is outside of the folder that this server shows')
        if not new and not path.exists():
            raise UsageError(f'there is no "{name}"', help="paths are relative to the folder")
        return path

    async def _of_project(
        self, command: str, project: str, *options: str, as_json: bool = True
    ) -> dict[str, Any]:
        place = self._place(project)
        into: tuple[str, ...] = ()
        if not self.writes:
            key = hashlib.sha256(str(place).encode()).hexdigest()[:16]
            into = ("--into", str(cache_folder() / "mcp" / key / "opkit"))
        return await self._run(command, str(place), *into, *options, as_json=as_json)

    async def _run(self, *words: str, as_json: bool = True) -> dict[str, Any]:
        """Run a command of opkit's; answer its exit code, its result and what it said meanwhile."""
        argv = [*OPKIT_COMMAND, *words, *(("--json",) if as_json else ())]
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=self.folder,
            env={**os.environ, "NO_COLOR": "1"},
            start_new_session=True,
        )
        try:
            out, said = await asyncio.wait_for(process.communicate(), self.timeout_seconds)
        except asyncio.TimeoutError:
            return {
                "exit_code": 1,
                "result": None,
                "messages": f"ended: it took more than {self.timeout_seconds:g} s",
            }
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        text = out.decode(errors="replace")
        result: Any = text
        if as_json:
            with contextlib.suppress(ValueError):
                result = json.loads(text)
        return {
            "exit_code": process.returncode,
            "result": result,
            "messages": said.decode(errors="replace"),
        }


TOOLS = ("gen", "build", "test", "check", "profile", "judge", "why", "docs")
"""Methods of `Tools` that are offered, by their names."""


def _text(path: Path) -> str:
    return path.read_bytes()[:_SHOWN_BYTES].decode(errors="replace")


def _without(answer: dict[str, Any], folder: str) -> dict[str, Any]:
    """Return an answer without a scratch folder's name."""
    plain: dict[str, Any] = json.loads(json.dumps(answer).replace(folder, "."))
    return plain


def make_server(tools: Tools) -> Any:
    """Return the server, of the official SDK.

    Raises:
        SetupError: the SDK is not installed.
    """
    try:
        from mcp.server import MCPServer
        from mcp.types import ToolAnnotations
    except ImportError as error:
        raise SetupError(
            "the Model Context Protocol needs its SDK, mcp 2 or later",
            help="pip install 'opkit[mcp]'",
        ) from error
    server = MCPServer(
        "opkit",
        version=opkit.__version__,
        instructions="Write, build, test, check, time and judge AI-core operators without a chip."
        " Paths are relative to the folder that is served. Exit codes: 0 done, 1 the operator is at"
        " fault, 2 a wrong call, 3 something is missing on the machine.",
    )
    for name in TOOLS:
        reads = not tools.writes or name in ("docs", "judge")
        hints = ToolAnnotations(read_only_hint=reads, destructive_hint=False, open_world_hint=False)
        server.tool(name=name, annotations=hints)(_guarded(getattr(tools, name)))
    return server


def _guarded(tool: Callable[..., Any]) -> Callable[..., Any]:
    """Return a tool whose wrong calls are answers: an agent reads them and calls again."""
    import functools

    @functools.wraps(tool)
    async def run(*arguments: Any, **named: Any) -> dict[str, Any]:
        try:
            answer: dict[str, Any] = await tool(*arguments, **named)
        except (UsageError, SetupError) as error:
            return {"exit_code": error.exit_code, "result": None, "messages": str(error)}
        return answer

    return run


def serve_tools(folder: Path, *, writes: bool, timeout_seconds: float) -> None:
    """Serve on stdin and stdout until they close."""
    make_server(Tools(folder, writes, timeout_seconds)).run("stdio")
