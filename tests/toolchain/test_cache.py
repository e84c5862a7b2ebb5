"""The build cache: hits, misses, damage, and a disk that does not play along."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from opkit.toolchain.building.cache import BuildCache, unit_key
from opkit.toolchain.building.digests import FileDigests

KEY = unit_key("a compiler", ["-O2"], "text")


def stored(cache: BuildCache, root: Path, key: str = KEY, data: bytes = b"object") -> Path:
    header = root / "a.h"
    if not header.exists():
        header.write_text("one")
    digest = FileDigests().of(str(header)) or ""
    cache.store(key, data=data, log="a warning", dependencies=(("a.h", digest),))
    return header


def entries(folder: Path) -> list[Path]:
    return [path for path in folder.glob("units/*/*") if path.suffix != ".json"]


def test_what_was_stored_is_found_again_with_its_log(tmp_path: Path) -> None:
    cache = BuildCache(tmp_path / "cache")
    stored(cache, tmp_path)
    found = BuildCache(tmp_path / "cache").lookup(KEY, FileDigests(), tmp_path)
    assert found is not None
    assert (found.data, found.log) == (b"object", "a warning")


def test_another_key_misses(tmp_path: Path) -> None:
    cache = BuildCache(tmp_path / "cache")
    stored(cache, tmp_path)
    assert cache.lookup(unit_key("a compiler", ["-O3"], "text"), FileDigests(), tmp_path) is None


def test_a_changed_header_misses_the_cache(tmp_path: Path) -> None:
    cache = BuildCache(tmp_path / "cache")
    header = stored(cache, tmp_path)
    header.write_text("two")
    assert cache.lookup(KEY, FileDigests(), tmp_path) is None


def test_a_header_changed_back_hits_again(tmp_path: Path) -> None:
    cache = BuildCache(tmp_path / "cache")
    header = stored(cache, tmp_path, data=b"first")
    header.write_text("two")
    stored(cache, tmp_path, data=b"second")
    header.write_text("one")
    found = cache.lookup(KEY, FileDigests(), tmp_path)
    assert found is not None
    assert found.data == b"first"


def test_a_deleted_header_misses(tmp_path: Path) -> None:
    cache = BuildCache(tmp_path / "cache")
    stored(cache, tmp_path).unlink()
    assert cache.lookup(KEY, FileDigests(), tmp_path) is None


@pytest.mark.parametrize("keep_bytes", [0, 5, 40, -1])
def test_a_truncated_entry_is_a_miss_and_is_deleted(tmp_path: Path, keep_bytes: int) -> None:
    cache = BuildCache(tmp_path / "cache")
    stored(cache, tmp_path)
    (entry,) = entries(tmp_path / "cache")
    entry.write_bytes(entry.read_bytes()[:keep_bytes])
    assert cache.lookup(KEY, FileDigests(), tmp_path) is None
    assert not entry.exists()


def test_a_flipped_bit_is_a_miss(tmp_path: Path) -> None:
    cache = BuildCache(tmp_path / "cache")
    stored(cache, tmp_path)
    (entry,) = entries(tmp_path / "cache")
    content = bytearray(entry.read_bytes())
    content[-1] ^= 1
    entry.write_bytes(content)
    assert cache.lookup(KEY, FileDigests(), tmp_path) is None


@pytest.mark.parametrize("text", ["", "{", "[1]", '[["name"]]', "null", '{"a": 1}'])
def test_a_damaged_manifest_is_a_miss_and_can_be_replaced(tmp_path: Path, text: str) -> None:
    cache = BuildCache(tmp_path / "cache")
    stored(cache, tmp_path)
    (manifest,) = (tmp_path / "cache").glob("units/*/*.json")
    manifest.write_text(text)
    assert cache.lookup(KEY, FileDigests(), tmp_path) is None
    stored(cache, tmp_path)
    assert cache.lookup(KEY, FileDigests(), tmp_path) is not None


def test_a_cache_that_cannot_be_written_warns_once_and_goes_on(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")
    warnings: list[str] = []
    cache = BuildCache(tmp_path / "cache", warn=warnings.append)
    stored(cache, tmp_path)
    stored(cache, tmp_path)
    assert len(warnings) == 1
    assert "cannot be written" in warnings[0]
    assert cache.lookup(KEY, FileDigests(), tmp_path) is None


def test_a_full_disk_leaves_no_half_written_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warnings: list[str] = []
    cache = BuildCache(tmp_path / "cache", warn=warnings.append)

    def no_room(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", no_room)
    stored(cache, tmp_path)
    assert "No space left on device" in warnings[0]
    assert [path for path in (tmp_path / "cache").rglob("*") if path.is_file()] == []


def test_the_entries_used_longest_ago_are_evicted_first(tmp_path: Path) -> None:
    cache = BuildCache(tmp_path / "cache", max_bytes=5000)
    keys = [unit_key("unit", str(number)) for number in range(5)]
    for age, key in enumerate(keys):
        before = set(entries(tmp_path / "cache"))
        stored(cache, tmp_path, key=key, data=bytes(1000))
        (new,) = set(entries(tmp_path / "cache")) - before
        for path in (new, tmp_path / "cache" / "units" / key[:2] / f"{key}.json"):
            os.utime(path, (1000 + age, 1000 + age))
    assert cache.evict() > 0
    left = [key for key in keys if cache.lookup(key, FileDigests(), tmp_path)]
    assert left == keys[-len(left) :]
    assert 0 < len(left) < len(keys)
    assert cache.evict() == 0


def test_a_cache_within_its_limit_keeps_everything(tmp_path: Path) -> None:
    cache = BuildCache(tmp_path / "cache")
    stored(cache, tmp_path)
    assert cache.evict() == 0
    assert cache.lookup(KEY, FileDigests(), tmp_path) is not None


def test_many_writers_of_one_key_leave_a_whole_entry(tmp_path: Path) -> None:
    header = stored(BuildCache(tmp_path / "cache"), tmp_path)
    digest = FileDigests().of(str(header)) or ""

    def write(byte: int) -> None:
        cache = BuildCache(tmp_path / "cache")
        for _ in range(20):
            data = bytes([byte]) * 10_000
            cache.store(KEY, data=data, log="", dependencies=(("a.h", digest),))

    threads = [threading.Thread(target=write, args=(byte,)) for byte in range(4)]
    for thread in threads:
        thread.start()
    reader = BuildCache(tmp_path / "cache")
    seen = [reader.lookup(KEY, FileDigests(), tmp_path) for _ in range(50)]
    for thread in threads:
        thread.join()
    # The first entry is there until the first thread has written.
    whole = [b"object", *(bytes([byte]) * 10_000 for byte in range(4))]
    assert all(entry is not None and entry.data in whole for entry in seen)


def test_texts_in_a_key_cannot_run_together() -> None:
    assert unit_key("ab", "c") != unit_key("a", "bc")
    assert unit_key(["a", "b"]) != unit_key("a", "b")
