"""Kernels written for a compiler that compiles them once for each kind of core."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from opkit.cli.commands.cc import command
from opkit.cli.console import run_guarded

# Its cube core writes 1000 + Mark<AIC> + 7, each vector core 2000 + Mark<AIV> + 7; then a vector
# core ten times the 48 elements behind 16 of 64, and 1 for their position, and 2.
SOURCE = r"""
#include <cstdio>

#include "acl/acl.h"
#include "kernel_operator.h"
#include "opdev/bfloat16.h"
#include "opdev/fp16_t.h"

#define KERNEL __global__ __aicore__
#define ANYWHERE __forceinline__[host, aicore]

ANYWHERE constexpr int slot_of(int core) { return core * 16; }

template <int kind>
struct Mark {
  static constexpr int value = 100 + kind;
};

template <class T>
class Report {
 public:
  template <class U>
  struct Chosen {
    using type = U;
  };
  template <>
  struct Chosen<void> {
    using type = T;
  };

  template <int32_t KIND = g_coreType>
  __aicore__ void operator()(GM_ADDR const& out, int offset);

  template <>
  __aicore__ void operator()<AscendC::AIC>(GM_ADDR const& out, int offset) {
    write(out, 0, offset);
  }

  template <>
  __aicore__ void operator()<AscendC::AIV>(GM_ADDR const& out, int offset) {
    write(out, 1 + AscendC::GetSubBlockIdx(), offset);
  }

 private:
  __aicore__ void write(GM_ADDR out, int core, int offset) {
    AscendC::GlobalTensor<typename Chosen<void>::type> tensor;
    tensor.SetGlobalBuffer(reinterpret_cast<T*>(out));
    T added = 1000;
    if constexpr (g_coreType == AscendC::AIV) {
      added = 2000;
    }
    constexpr int mark = Mark<g_coreType>::value;
    tensor.SetValue(slot_of(core), added + mark + offset);
    using namespace AscendC;
    DataCacheCleanAndInvalid<T, CacheLine::SINGLE_CACHE_LINE, DcciDst::CACHELINE_OUT>(
        tensor[slot_of(core)]);
  }
};

template <class Operator>
KERNEL void run(GM_ADDR out, int offset) {
  Operator op;
  op(out, offset);
}

namespace own {
template <class A, class B>
constexpr auto min(A const& a, B const& b) {
  return a < b ? a : b;
}
}  // namespace own
using namespace own;

// Its member has no initialiser, which C++17 refuses in a constant.
struct Late {
  int value[1];
  constexpr explicit Late(int v) { value[0] = v; }
};
constexpr Late late(2);

struct Resource {
  AscendC::TPipe pipe;
  AscendC::TBuf<AscendC::TPosition::VECCALC> buffer;
};

__aicore__ inline int size_behind(Resource resource) {
  // The tensor that the copy's buffer gives, by its address, from its third data block on.
  AscendC::LocalTensor<int32_t> tensor;
  tensor.SetAddr(resource.buffer.Get<int32_t>()[16].address_);
  const bool is_there = tensor.GetPosition() == AscendC::TPosition::VECCALC;
  return min(tensor.GetSize(), 1000u) + static_cast<int>(is_there);
}

KERNEL __attribute__((aic)) void give_out() {
  AscendC::TPipe pipe;
  AscendC::TBuf<AscendC::TPosition::C2PIPE2GM> parameters;
  pipe.InitBuffer(parameters, 7 * 1024);
  AscendC::SetHF32Mode(true);
  AscendC::SetHF32TransMode(false);
}

__attribute__((aiv)) KERNEL void alone(GM_ADDR out) {
  Resource resource;
  resource.pipe.InitBuffer(resource.buffer, 256);
  AscendC::GlobalTensor<int32_t> tensor;
  tensor.SetGlobalBuffer(reinterpret_cast<int32_t*>(out));
  tensor.SetValue(slot_of(3), size_behind(resource) * 10 + late.value[0]);
}

int main() {
  using namespace AscendC;
  static_assert(SizeOfBits<int4b_t>::value == 4 && SizeOfBits<half>::value == 16);
  aclrtStream stream = nullptr;
  aclInit(nullptr);
  aclrtSetDevice(0);
  aclrtCreateStream(&stream);
  void* flags = nullptr;
  if (aclrtGetHardwareSyncAddr(&flags) != ACL_SUCCESS || flags == nullptr) return 1;
  int32_t host[64] = {};
  void* device = nullptr;
  aclrtMalloc(&device, sizeof(host), ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMemcpy(device, sizeof(host), host, sizeof(host), ACL_MEMCPY_HOST_TO_DEVICE);
  run<Report<int32_t>><<<1, nullptr, stream>>>(static_cast<GM_ADDR>(device), 7);
  alone<<<1, nullptr, stream>>>(static_cast<GM_ADDR>(device));
  give_out<<<1, nullptr, stream>>>();
  if (aclrtSynchronizeStream(stream) != ACL_SUCCESS) return 2;
  aclrtMemcpy(host, sizeof(host), device, sizeof(host), ACL_MEMCPY_DEVICE_TO_HOST);
  std::printf("%d %d %d %d\n", host[0], host[slot_of(1)], host[slot_of(2)], host[slot_of(3)]);
  const double third[] = {op::fp16_t(1.0f / 3), op::bfloat16(1.0f / 3)};
  std::printf("%g %g\n", third[0], third[1]);
  return 0;
}
"""


@pytest.mark.slow
def test_a_template_runs_on_both_kinds_of_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("kinds.asc").write_text(SOURCE)
    assert run_guarded(command, ["kinds.asc", "-o", "kinds"]) == 0
    # What only the vendor's compiler knows is gone before another one could warn of it.
    assert "ignored" not in capfd.readouterr().err
    done = subprocess.run(["./kinds"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "1107 2108 2108 492\n0.333252 0.333984\n")
