"""What stands for functions that no source defines."""

from __future__ import annotations

import ctypes
import os
import subprocess
from pathlib import Path

from opkit.toolchain import find_compiler
from opkit.toolchain.building.absent import absent_functions, absent_source

HOST = """
#include <cstring>
#include <stdexcept>

namespace closed {
class Registrar {
 public:
  explicit Registrar(const char* name);
  int ask(int number) const;
};
class Worker {
 public:
  virtual int work();
  virtual ~Worker() = default;
};
class Other {
 public:
  virtual int work() = 0;
  virtual int rest();
};
class Derived final : public Other {
 public:
  int work() override { return 7; }
};
}  // namespace closed

static closed::Registrar registered("Add");

extern "C" int work() {
  closed::Derived derived;
  closed::Other* volatile other = &derived;
  return other->work();
}

extern "C" int call(char* text, bool is_virtual) {
  try {
    closed::Worker worker;
    closed::Worker* volatile one = &worker;
    return is_virtual ? one->work() : registered.ask(3);
  } catch (const std::runtime_error& error) {
    std::strcpy(text, error.what());
    return -1;
  }
}
"""


def test_absent_functions_do_nothing_while_loading_and_end_calls_by_name(tmp_path: Path) -> None:
    # A library whose registrars were absent ended the process that loaded it.
    (tmp_path / "host.cpp").write_text(HOST)
    argv = [*find_compiler().argv, "-std=c++17", "-fPIC", "-shared", "-Wl,--no-undefined", "-O1"]
    host, library = str(tmp_path / "host.cpp"), tmp_path / "host.so"
    log = subprocess.run(
        [*argv, "-Wl,--no-demangle", host, "-o", str(library)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "LC_ALL": "C"},
    ).stderr
    names = absent_functions(log)
    assert {"_ZTVN6closed6WorkerE", "_ZTIN6closed5OtherE"} <= set(names)
    (tmp_path / "absent.cpp").write_text(absent_source(names))
    made = [*argv, "-Wall", "-Wextra", "-Werror", host, str(tmp_path / "absent.cpp")]
    subprocess.run([*made, "-o", str(library)], check=True)
    text = ctypes.create_string_buffer(200)
    loaded = ctypes.CDLL(str(library))
    assert loaded.call(text, False) == -1
    assert text.value.startswith(b"closed::Registrar::ask(int) const is defined by no source")
    assert loaded.call(text, True) == -1
    assert text.value.startswith(b"vtable for closed::Worker is defined by no source")
    assert loaded.work() == 7
