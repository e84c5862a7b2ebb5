"""td::mm as programs use it: compiled, linked to the emulator, run."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from opkit.emulator import include_dir, library_path
from opkit.toolchain import find_compiler

PROGRAM = r"""
#include <cstdio>
#include "td/mm/memory_manager.h"
using namespace td::mm;
#define EXPECT(condition) if (!(condition)) { std::printf("line %d: %s\n", __LINE__, #condition); return 1; }
int main() {
  auto& mm = MemoryManager::instance();
  TensorDesc desc;
  desc.dtype = DataType::FLOAT16;
  desc.shape = {100, 3};
  auto first = mm.allocate_tensor(desc, CacheLevel::LEVEL_1);
  EXPECT(reinterpret_cast<uintptr_t>(first->data()) % 256 == 0);
  EXPECT(first->bytes() == 600);
  void* address = first->data();
  first.reset();
  auto again = mm.allocate_tensor(desc);
  EXPECT(again->data() == address);  // from the cache
  EXPECT(mm.statistics().cache_hits >= 1);

  alignas(64) static char host[600];
  for (int i = 0; i < 600; ++i) host[i] = static_cast<char>(i);
  auto zero_copy = mm.prepare_tensor(host, desc, CacheLevel::LEVEL_1);
  EXPECT(zero_copy->data() == host && zero_copy->is_zero_copy());
  auto copied = mm.prepare_tensor(host, desc, CacheLevel::LEVEL_1, false);
  EXPECT(copied->data() != host);
  EXPECT(mm.statistics().copies_avoided == 1);

  auto target = mm.allocate_tensor(desc);
  DMATask task;
  task.src = copied;
  task.dst = target;
  task.size = 500;
  task.offset = 100;
  auto low = mm.schedule_dma(task, PRIORITY_LOW);
  auto high = mm.schedule_dma({copied, again}, PRIORITY_HIGH);
  EXPECT(!low.is_done);
  low = mm.wait(low);
  high = mm.wait(high);
  EXPECT(low.is_done && high.is_done && high.start_us <= low.start_us && high.engine != low.engine);
  char back[600];
  mm.copy_to_host(again, back);
  EXPECT(std::memcmp(back, host, 600) == 0);
  mm.copy_to_host(target, back);
  EXPECT(std::memcmp(back + 100, host, 500) == 0);
  EXPECT(mm.statistics().copy_us > 0 && mm.statistics().hidden_us > 0);

  task.offset = 101;
  try {
    mm.schedule_dma(task);
    return 1;
  } catch (const std::out_of_range&) {
  }
  mm.reuse_memory(copied, target, REUSE_EAGER);
  EXPECT(target->data() == copied->data());
  desc.shape = {int64_t{1} << 60};
  try {
    mm.allocate_tensor(desc);
    return 1;
  } catch (const std::bad_alloc&) {
  }
  for (int i = 0; i < 50; ++i) {
    desc.shape = {1000};
    auto a = mm.allocate_tensor(desc);
    desc.shape = {2000};
    auto b = mm.allocate_tensor(desc);
  }
  const auto statistics = mm.statistics();
  EXPECT(statistics.right_predictions * 100 >= statistics.predictions * 90);
  std::puts("right");
  return 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("memory")
    source, made = folder / "program.cpp", folder / "program"
    source.write_text(PROGRAM, encoding="utf-8")
    library = library_path()
    argv = [*find_compiler().argv, "-std=c++17", "-Wall", "-Wextra", "-Werror", str(source)]
    argv += ["-I", str(include_dir()), "-o", str(made), str(library)]
    subprocess.run([*argv, f"-Wl,-rpath,{library.parent}"], check=True)
    return made


def test_a_program_allocates_prepares_schedules_and_reuses(program: Path) -> None:
    done = subprocess.run([str(program)], capture_output=True, text=True, check=False)
    assert done.stdout == "right\n"
