"""JSON in host code: what nlohmann/json.hpp gives where that library is not installed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from opkit import emulator
from opkit.toolchain import find_compiler

PROGRAM = r"""
#include <cstdio>
#include <nlohmann/json.hpp>

using nlohmann::json;

namespace mine {
struct Key {
  int32_t rows;
  float scale;
  std::string name;
  std::vector<int64_t> lengths;
  bool is_turned;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Key, rows, scale, name, lengths, is_turned)
struct Pair {
  Key key;
  uint64_t count;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Pair, key, count)
}  // namespace mine

int main() {
  const mine::Pair pair{{-3, 0.1f, "a\"\n\xc3\xa9", {1, -2}, true}, UINT64_MAX};
  const json written = pair;
  std::puts(written.dump().c_str());
  const auto read = json::parse(written.dump(2)).get<mine::Pair>();
  const json again = read;
  if (again != written || read.key.scale != 0.1f || read.count != UINT64_MAX) return 1;

  const json text = json::parse(R"( {"a": [1, 2.5e1, null, "\u00e9\ud83d\ude00\\"], "b": {}, "c": false} )");
  std::puts(text.dump().c_str());
  if (text.find("z") != text.cend() || text.find("b")->type() != json::value_t::object) return 2;
  if (!text["a"][2].is_null() || text.value("z", 7) != 7 || !text.contains("c") || text["b"].size() != 0) return 3;
  const double number = text["a"][1];
  std::string keys;
  keys = json("first");
  if (keys != "first") return 6;
  keys.clear();
  for (auto it = text.begin(); it != text.end(); ++it) keys += it.key();
  if (number != 25 || keys != "abc") return 4;

  for (const char* wrong : {"{\"a\":}", "[1, 2", "tru", "1 2", "\"\\q\"", "-", "01x"}) {
    try {
      json::parse(wrong);
      std::printf("%s is read\n", wrong);
      return 5;
    } catch (const json::parse_error&) {
    }
  }
  try {
    (void)text.at("missing");
  } catch (const json::exception& error) {
    std::puts(error.what());
  }
  try {
    (void)text["a"].get<std::string>();
  } catch (const json::type_error& error) {
    std::puts(error.what());
  }
}
"""


def test_host_code_writes_and_reads_json(tmp_path: Path) -> None:
    source, program = tmp_path / "main.cpp", tmp_path / "main"
    source.write_text(PROGRAM)
    argv = [*find_compiler().argv, "-std=c++17", "-isystem", str(emulator.include_dir())]
    probe = subprocess.run(
        [*argv, "-M", str(source)], capture_output=True, text=True, check=True
    ).stdout
    if "opkit/host/json_value.h" not in probe:
        pytest.skip("the library of that name is installed here")
    subprocess.run([*argv, "-Wall", "-Werror", str(source), "-o", str(program)], check=True)
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert done.stdout.splitlines() == [
        '{"count":18446744073709551615,"key":{"is_turned":true,"lengths":[1,-2],'
        '"name":"a\\"\\u000aé","rows":-3,"scale":0.10000000149011612}}',
        '{"a":[1,25.0,null,"é😀\\\\"],"b":{},"c":false}',
        'JSON: the object has no member "missing"',
        "JSON: the value is an array, not a string",
    ]
