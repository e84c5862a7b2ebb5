"""The configuration: what is wrong is said with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from opkit.errors import UsageError
from opkit.service import load_settings
from opkit.service.security import is_loopback, read_tokens, refuse_open_door
from opkit.service.settings import HttpSettings


def write(folder: Path, text: str) -> Path:
    path = folder / "service.toml"
    path.write_text(text)
    return path


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    text = 'store = "kept"\n[http]\ntokens = "tokens"\n[telemetry]\nlog = "log"\ntraces = "spans"\n'
    settings = load_settings(write(tmp_path, text))
    assert settings.store == tmp_path / "kept"
    assert settings.http.tokens == tmp_path / "tokens"
    assert settings.telemetry.log == tmp_path / "log"
    assert settings.telemetry.traces == str(tmp_path / "spans")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[http", "not TOML: "),
        ("colour = 1", "colour: Extra inputs are not permitted"),
        ("[http]\nport = 70000", r"http.port: .*less than or equal to 65535 \(it is 70000\)"),
        ('[[operators]]\nname = "a b"', "operators.0.name"),
        ('[[operators]]\nname = "a"\n[[operators]]\nname = "a"', "two operators are called a"),
        (
            '[[operators]]\nname = "a"\n[operators.deployment]\nshares = { b = 0.7, c = 0.7 }',
            "come to more than 1",
        ),
        (
            '[[operators]]\nname = "a"\n[operators.checks]\nsample_rate = "often"',
            r"sample_rate: .*valid number.* \(it is 'often'\)",
        ),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load_settings(write(tmp_path, text))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        load_settings(tmp_path / "service.toml")


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("example.com", False),
        ("127.0.0.1.example.com", False),
    ],
)
def test_which_hosts_are_loopback(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


def test_other_hosts_want_tokens() -> None:
    refuse_open_door(HttpSettings())
    with pytest.raises(UsageError, match="no tokens"):
        refuse_open_door(HttpSettings(host="0.0.0.0"))
    refuse_open_door(HttpSettings(host="0.0.0.0", tokens=Path("tokens")))


@pytest.mark.parametrize(
    ("text", "mode", "message"),
    [
        ("call 0123456789abcdef", 0o644, "others may read it"),
        ("root 0123456789abcdef", 0o600, ":1: expected ROLE TOKEN"),
        ("# none\ncall short", 0o600, ":2: expected ROLE TOKEN"),
        ("# none", 0o600, "it has no token"),
    ],
)
def test_token_files_that_would_not_protect_are_refused(
    tmp_path: Path, text: str, mode: int, message: str
) -> None:
    path = tmp_path / "tokens"
    path.write_text(text)
    path.chmod(mode)
    with pytest.raises(UsageError, match=message):
        read_tokens(path)
