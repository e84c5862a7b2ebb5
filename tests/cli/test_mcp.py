"""`opkit mcp`, through the SDK's own client; what tools answer where no command is needed."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from opkit.cli import group
from opkit.cli.commands.mcp.tools import TOOLS, Tools, make_server
from opkit.cli.console import run_guarded
from opkit.judging import sandbox_fault

PROTOTYPE = {
    "op": "Swish",
    "input_desc": [{"name": "x", "type": ["float16"]}],
    "output_desc": [{"name": "y", "type": ["float16"], "formula": "x * sigmoid(x)"}],
}


def _call(folder: Path, name: str, *, writes: bool = False, **arguments: Any) -> dict[str, Any]:
    mcp = pytest.importorskip("mcp", reason="needs opkit[mcp]")

    async def run() -> dict[str, Any]:
        async with mcp.Client(make_server(Tools(folder, writes, 120.0))) as client:
            answer = await client.call_tool(name, arguments)
            return dict(json.loads(answer.content[0].text))

    return asyncio.run(run())


def test_the_tools_say_what_they_do_and_that_they_only_read(tmp_path: Path) -> None:
    mcp = pytest.importorskip("mcp", reason="needs opkit[mcp]")

    async def listed() -> list[Any]:
        async with mcp.Client(make_server(Tools(tmp_path, False, 60.0))) as client:
            return list((await client.list_tools()).tools)

    tools = asyncio.run(listed())
    assert [tool.name for tool in tools] == list(TOOLS)
    assert all(tool.description and tool.annotations.read_only_hint for tool in tools)


@pytest.mark.slow
def test_gen_shows_the_files_and_writes_none_unless_it_may(tmp_path: Path) -> None:
    text = json.dumps(PROTOTYPE)
    shown = _call(tmp_path, "gen", prototype=text, project="swish")
    assert shown["exit_code"] == 0
    assert "Compute" in shown["files"]["op_kernel/swish.cpp"]
    assert not list(tmp_path.iterdir())
    written = _call(tmp_path, "gen", writes=True, prototype=text, project="swish")
    assert written["files"] == shown["files"]
    assert (tmp_path / "swish" / "op_kernel" / "swish.cpp").is_file()


def test_a_wrong_call_is_an_answer_that_says_what_to_do(tmp_path: Path) -> None:
    outside = _call(tmp_path, "test", project="../other")
    assert outside["exit_code"] == 2
    assert "outside" in outside["messages"]
    absent = _call(tmp_path, "build", project="absent")
    assert absent["exit_code"] == 2
    assert "absent" in absent["messages"]


@pytest.mark.slow
def test_docs_explain_a_finding(tmp_path: Path) -> None:
    answer = _call(tmp_path, "docs", topic="RACE-RAW")
    assert answer["exit_code"] == 0
    assert "RACE-RAW" in answer["result"]


def test_without_the_sdk_the_command_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "mcp", None)
    monkeypatch.setitem(sys.modules, "mcp.server", None)
    assert run_guarded(group, ["mcp", str(tmp_path)]) == 3
    assert "opkit[mcp]" in capsys.readouterr().err


@pytest.mark.slow
def test_an_agent_goes_the_whole_way_over_the_protocol(tmp_path: Path) -> None:
    # Of these tools none but gen and docs was ever called.
    mcp = pytest.importorskip("mcp", reason="needs opkit[mcp]")
    text = json.dumps(PROTOTYPE)
    (tmp_path / "swish.json").write_text(text)
    few = "float16-17-normal"

    async def run() -> dict[str, dict[str, Any]]:
        async with mcp.Client(make_server(Tools(tmp_path, True, 300.0))) as client:

            async def call(name: str, **arguments: Any) -> dict[str, Any]:
                answer = await client.call_tool(name, arguments)
                return dict(json.loads(answer.content[0].text))

            found = {"gen": await call("gen", prototype=text, project="swish")}
            kernel = tmp_path / "swish" / "op_kernel" / "swish.cpp"
            found["build"] = await call("build", project="swish")
            found["test"] = await call("test", project="swish", cases=few)
            found["check"] = await call("check", project="swish", cases=few)
            found["profile"] = await call("profile", project="swish", shape="1024")
            if not sandbox_fault():
                words = {"candidate": "swish", "task": "swish.json", "cases": few}
                found["judge"] = await call("judge", **words)
            right = kernel.read_text()
            kernel.write_text(right.replace("    const", "    const int never = ;\n    const", 1))
            found["broken"] = await call("build", project="swish")
            kernel.write_text(right)
            case = found["test"]["result"]["cases"][0]["name"]
            found["why"] = await call("why", project="swish", case=case)
            return found

    found = asyncio.run(run())
    broken, why = found.pop("broken"), found.pop("why")
    assert {name: each["exit_code"] for name, each in found.items()} == dict.fromkeys(found, 0)
    assert found["test"]["result"]["passed"]
    if "judge" in found:
        assert found["judge"]["result"]["verdict"] == "accepted"
    assert broken["exit_code"] == 1
    assert "swish.cpp" in json.dumps(broken)
    # Of a right launch there is nothing to explain; the answer says what to ask instead.
    assert why["exit_code"] == 2
    assert "nothing says that this launch is wrong" in json.dumps(why)
