"""Tiling of matrix multiplication: outcomes that the documents show, and the chip's limits for any shape."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opkit import emulator

# Settings come as name=value; the fields of the tiling go out in their order in memory.
PROGRAM = r"""
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include "kernel_tiling/kernel_tiling.h"
#include "tiling/platform/platform_ascendc.h"
#include "tiling/tiling_api.h"

using namespace matmul_tiling;

std::map<std::string, int> settings;
int get(const char* name, int otherwise) { return settings.count(name) ? settings[name] : otherwise; }

template <typename Tiling>
void set_up(Tiling& tiling) {
  const auto input = static_cast<DataType>(get("input", 1));
  const auto output = static_cast<DataType>(get("output", 0));
  const auto a_position = get("a_in_l1", 0) ? matmul_tiling::TPosition::TSCM : matmul_tiling::TPosition::GM;
  const auto format = [](const char* name) { return static_cast<CubeFormat>(get(name, 0)); };
  tiling.SetAType(a_position, format("format_a"), input, get("trans_a", 0));
  tiling.SetBType(matmul_tiling::TPosition::GM, format("format_b"), input, get("trans_b", 0));
  tiling.SetCType(matmul_tiling::TPosition::GM, format("format_c"), output);
  const int m = get("m", 0), n = get("n", 0), k = get("k", 0);
  tiling.SetOrgShape(m, n, k);
  tiling.SetShape(get("shape_m", m), get("shape_n", n), k);
  tiling.EnableBias(get("bias", 0));
  tiling.SetFixSplit(get("base_m", -1), get("base_n", -1), -1);
  tiling.SetBufferSpace(get("l1", -1), get("l0c", -1), -1);
  tiling.SetMatmulConfigParams(1, false, static_cast<ScheduleType>(get("schedule", 0)));
  if (get("n_first", -1) >= 0) tiling.SetTraverse(static_cast<MatrixTraverse>(get("n_first", 0) + 1));
  if (get("batch", 0)) tiling.SetBatchInfoForNormal(get("batch", 0), get("batch", 0), m, n, k);
}

/// Says why there is no tiling.
template <typename Tiling>
struct Probe : Tiling {
  using Tiling::Tiling;
  void explain() {
    AscendC::tiling::TCubeTiling tiling;
    const char* error = opkit::host::solve_matmul(this->problem_, tiling, this->cores_);
    std::fputs(error == nullptr ? "" : error, stderr);
  }
};

/// Calls that can never be right, those that are: 1 for each that returned -1.
int refused() {
  MultiCoreMatmulTiling t(*platform_ascendc::PlatformAscendCManager::GetInstance("Ascend910B2"));
#define CALL(call) std::printf("%s=%d\n", #call, t.call == -1)
  CALL(SetShape(0, 16, 16));
  CALL(SetShape(16, -2, 16));
  CALL(SetOrgShape(16, 16, 0));
  CALL(SetSingleShape(0));
  CALL(SetSingleRange(16, -1, -1, 32));
  CALL(SetAlignSplit(-2, 0, 0));
  const auto gm = matmul_tiling::TPosition::GM;
  CALL(SetBType(gm, CubeFormat::ND, DataType::DT_HIFLOAT8));
  CALL(SetBType(gm, CubeFormat::ND, DataType::DT_FLOAT8_E8M0));
  CALL(SetBType(gm, CubeFormat::ND, DataType::DT_FLOAT8_E4M3FN));
  CALL(SetBType(gm, CubeFormat::ND, DataType::DT_FLOAT4_E2M1));
  CALL(SetFixSplit(24));
  CALL(SetFixSplit(0, 16));
  CALL(SetBufferSpace(1 << 20));
  CALL(SetBufferSpace(-1, 1 << 18));
  CALL(SetBufferSpace(-2));
  CALL(SetDim(0));
  CALL(SetTraverse(MatrixTraverse::NOSET));
  CALL(SetBatchNum(0));
  CALL(SetBatchInfoForNormal(3, 2, 16, 16, 16));
  CALL(SetALayout(1, 16, 0, 1, 16));
  CALL(SetMadType(MatrixMadType::MXMODE));
  CALL(SetAType(matmul_tiling::TPosition::GM, CubeFormat::ND, DataType::DT_INT64));
  std::puts("allowed=0");
  CALL(SetShape(-1, 16, -1));
  CALL(SetSingleRange(64, -1, -1, 32));
  CALL(SetAlignSplit(0, -1, 64));
  CALL(SetFixSplit(32, -1, -1));
  CALL(SetBufferSpace(-1, -1, -1));
  CALL(SetBufferSpace((1 << 19) - 256, 1 << 17, 0, 1024));  // what GetCoreMemSize says of L1
  CALL(SetBatchInfoForNormal(4, 2, 16, 16, 16));
  return 0;
}

int main(int argc, char** argv) {
  if (argc == 1) return refused();
  for (int i = 1; i < argc; ++i) {
    const char* equals = std::strchr(argv[i], '=');
    settings[std::string(argv[i], equals - argv[i])] = std::atoi(equals + 1);
  }
  auto* platform = platform_ascendc::PlatformAscendCManager::GetInstance("Ascend910B2");
  optiling::TCubeTiling result;
  AscendC::tiling::TCubeTiling plain;
  int64_t status = 0;
  if (get("cores", 0) == 0) {
    Probe<MatmulApiTiling> tiling(*platform);
    set_up(tiling);
    status = tiling.GetTiling(result);
    if (status != 0) tiling.explain();
  } else {
    Probe<MultiCoreMatmulTiling> tiling(*platform);
    set_up(tiling);
    tiling.SetDim(get("cores", 1));
    tiling.SetSingleShape(get("single_m", -1), get("single_n", -1), -1);
    tiling.SetSingleRange(get("max_m", -1), get("max_n", -1));
    tiling.SetAlignSplit(get("align_m", -1), get("align_n", -1), -1);
    tiling.EnableMultiCoreSplitK(get("split_k", 0));
    status = tiling.GetTiling(result);
    if (status != 0) tiling.explain();
  }
  if (status != 0) return 1;
  if (result.GetDataSize() != sizeof plain) return 2;
  result.SaveToBuffer(&plain, sizeof plain);
#define CUBE_TILING_FIELD(name) std::printf(#name "=%d\n", plain.name);
#include "opkit/host/cube_tiling_fields.inc"
}
"""

Solve = Callable[..., dict[str, int]]
MEMORY = {"l0a": 65536, "l0b": 65536, "l0c": 131072, "l1": 524288}
BITS = {1: 16, 27: 16, 0: 32, 2: 8, 29: 4}  # by data type number


@pytest.fixture(scope="module")
def solve(tmp_path_factory: pytest.TempPathFactory) -> Solve:
    """Return a function from settings to the fields of the tiling."""
    folder = tmp_path_factory.mktemp("tiling")
    compiler = shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    (folder / "main.cpp").write_text(PROGRAM)
    library = emulator.library_path().parent
    command = [
        *(compiler, "-std=c++17", "-O0", "-isystem", str(emulator.include_dir())),
        *(str(folder / "main.cpp"), "-o", str(folder / "main")),
        *("-L", str(library), "-lopkit_emulator", f"-Wl,-rpath,{library}"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return lambda **settings: run(folder / "main", settings)


def run(program: Path, given_settings: dict[str, int]) -> dict[str, int]:
    arguments = [f"{name}={value}" for name, value in given_settings.items()]
    done = subprocess.run(
        [program, *arguments], capture_output=True, text=True, check=False, timeout=60
    )
    if done.returncode != 0:
        raise ValueError(done.stderr)
    return {
        name: int(value) for name, value in (x.rsplit("=", 1) for x in done.stdout.splitlines())
    }


def test_the_published_bytes_of_a_tiling_are_met(solve: Solve) -> None:
    # Source: public sample of ahead-of-time compilation, its tiling of 512 x 512 x 128 on two cores.
    tiling = solve(m=512, n=512, k=128, cores=2)
    assert list(tiling.values()) == [
        *(2, 512, 512, 128, 128, 256, 512, 128, 128, 256, 64, 4, 4, 2, 2, 0, 0, 0, 0),
        *(196608, 131072, 0, 1, 1, 1, 1, 2, 2, 0, 0, 2, 2, 1),
        *([0] * 17),
    ]


@pytest.mark.parametrize(
    ("given_settings", "expected"),
    [
        # Source: public sample matmul_leakyrelu_advanced_api, README.
        (
            {"m": 512, "n": 128, "k": 128, "cores": 2, "base_m": 128, "base_n": 64, "bias": 1},
            {"singleCoreM": 512, "singleCoreN": 64, "baseM": 128, "baseN": 64, "baseK": 128},
        ),
        # Source: tuning case "IBShare".
        (
            {"m": 64, "n": 256, "k": 384, "cores": 2},
            {"singleCoreM": 32, "singleCoreN": 256, "baseM": 32, "baseN": 256, "baseK": 64}
            | {"stepM": 1, "stepN": 1, "stepKa": 6, "stepKb": 6},
        ),
        # Source: tuning case "constant tiling", on 24 and on 20 cores; on 48: "cube only".
        ({"m": 128, "n": 30720, "k": 64, "cores": 24}, {"singleCoreM": 128, "singleCoreN": 1280}),
        ({"m": 128, "n": 30720, "k": 64, "cores": 20}, {"singleCoreM": 128, "singleCoreN": 1536}),
        ({"m": 128, "n": 30720, "k": 64, "cores": 48}, {"singleCoreM": 128, "singleCoreN": 640}),
        # Source: tuning case "MTE2 preload".
        (
            {"m": 128, "n": 24576, "k": 512, "cores": 24},
            {"singleCoreM": 128, "singleCoreN": 1024, "baseM": 128, "baseN": 128, "baseK": 64}
            | {"stepM": 1, "stepN": 1, "stepKa": 8, "stepKb": 8, "depthA1": 8, "depthB1": 16},
        ),
        # Source: tuning case "MDL".
        (
            {"m": 128, "n": 30720, "k": 1024, "cores": 24},
            {"singleCoreM": 128, "singleCoreN": 1280, "baseM": 128, "baseN": 256, "baseK": 64}
            | {"stepM": 1, "stepN": 1, "stepKa": 4, "stepKb": 4, "depthA1": 8, "depthB1": 8},
        ),
        # Source: tuning case "NBuffer33".
        (
            {"m": 256, "n": 512, "k": 192, "cores": 24, "schedule": 2},
            {"singleCoreM": 256, "singleCoreN": 256, "baseM": 128, "baseN": 256, "baseK": 64}
            | {"stepM": 2, "stepN": 1, "stepKa": 3, "stepKb": 3, "usedCoreNum": 2},
        ),
        # Source: tuning case "several cores split K".
        ({"m": 16, "n": 16, "k": 1024, "cores": 2, "split_k": 1}, {"singleCoreK": 512}),
        # Source: tuning case "tiling strategy", base blocks for a given baseM and baseN.
        (
            {"m": 4096, "n": 5120, "k": 4096, "cores": 20, "base_m": 128, "base_n": 256},
            {"baseK": 64},
        ),
    ],
)
def test_outcomes_of_the_documents_are_met(
    solve: Solve, given_settings: dict[str, int], expected: dict[str, int]
) -> None:
    tiling = solve(**given_settings)
    assert {name: tiling[name] for name in expected} == expected


LENGTHS = st.one_of(
    st.integers(1, 300),
    st.integers(1, 20000),
    st.sampled_from([16, 64, 128, 256, 1024, 4096, 8192]),
)
MAYBE = st.sampled_from([0, 1])


@settings(max_examples=250, deadline=None, derandomize=True)
@given(
    shape=st.tuples(LENGTHS, LENGTHS, LENGTHS),
    given_settings=st.fixed_dictionaries(
        {
            "cores": st.sampled_from([0, 1, 2, 7, 20, 24, 48]),
            "input": st.sampled_from(sorted(BITS)),
            **dict.fromkeys(("bias", "trans_a", "trans_b", "format_a", "format_b"), MAYBE),
            "format_c": st.sampled_from([0, 1, 5]),
        },
        optional={
            "n_first": MAYBE,
            "schedule": st.sampled_from([1, 2]),
            "l1": st.sampled_from([65536, 262144]),
            "l0c": st.sampled_from([16384, 65536]),
            "base_m": st.sampled_from([16, 48, 128, 256]),
            "base_n": st.sampled_from([16, 64, 256]),
            "align_m": st.sampled_from([16, 64]),
            "align_n": st.sampled_from([16, 64]),
            "max_m": st.sampled_from([64, 1024]),
            "max_n": st.sampled_from([64, 1024]),
            "a_in_l1": st.just(1),
        },
    ),
)
def test_every_tiling_is_legal_or_says_why_there_is_none(
    solve: Solve, shape: tuple[int, int, int], given_settings: dict[str, int]
) -> None:
    m, n, k = shape
    try:
        t = solve(m=m, n=n, k=k, **given_settings)
    except ValueError as error:
        # Without the settings that shrink memories or fix blocks, only A in L1 may leave no room.
        assert str(error)
        assert given_settings.keys() & LIMITING, str(error)
        return
    bits = BITS[given_settings["input"]]
    trans_a, trans_b = (bool(given_settings[name]) for name in ("trans_a", "trans_b"))
    check_limits(t, bits, trans_a, trans_b, is_a_whole="a_in_l1" in given_settings)
    assert t["shareL1Size"] <= given_settings.get("l1", MEMORY["l1"])
    assert t["baseM"] * t["baseN"] * 4 <= given_settings.get("l0c", MEMORY["l0c"])
    cores = max(1, given_settings["cores"])
    shares = -(-m // t["singleCoreM"]) * -(-n // t["singleCoreN"])
    assert shares == t["usedCoreNum"] <= cores
    assert t["singleCoreK"] == k
    assert (t["M"], t["N"], t["Ka"], t["Kb"]) == (m, n, k, k)
    if given_settings["cores"] > 0:
        for axis, length in (("M", m), ("N", n)):
            single = t[f"singleCore{axis}"]
            align = given_settings.get(f"align_{axis.lower()}", 1)
            assert (
                single % align == 0 or single == length or f"max_{axis.lower()}" in given_settings
            )
            assert single <= given_settings.get(f"max_{axis.lower()}", length)
    for axis in "MN":
        fixed = given_settings.get(f"base_{axis.lower()}")
        assert fixed is None or t[f"base{axis}"] == fixed
    if "n_first" in given_settings:
        assert t["iterateOrder"] == given_settings["n_first"]
    if given_settings.get("schedule") == 1:
        assert t["dbL0C"] == 2


LIMITING = {"l1", "l0c", "base_m", "base_n", "max_m", "max_n", "a_in_l1", "schedule"}


def check_limits(
    t: dict[str, int], bits: int, trans_a: bool, trans_b: bool, *, is_a_whole: bool = False
) -> None:
    """Source: TCubeTiling, tables 2 and 3. `is_a_whole`: the kernel itself puts A into L1."""
    block = 256 // bits
    assert t["baseM"] % 16 == 0
    assert t["baseN"] % 16 == 0
    assert t["baseK"] % (block if not trans_a and trans_b else 16) == 0
    assert t["baseM"] * t["baseK"] * bits // 8 * t["dbL0A"] <= MEMORY["l0a"]
    assert t["baseN"] * t["baseK"] * bits // 8 * t["dbL0B"] <= MEMORY["l0b"]
    assert t["baseM"] * t["baseN"] * 4 * t["dbL0C"] <= MEMORY["l0c"]
    assert t["baseN"] * 4 <= 1024 or not t["isBias"]
    l1 = t["baseM"] * t["baseK"] * t["depthA1"] * bits // 8
    if is_a_whole:
        l1 = t["singleCoreM"] * t["singleCoreK"] * bits // 8
    l1 += t["baseN"] * t["baseK"] * t["depthB1"] * bits // 8
    assert l1 + t["isBias"] * t["baseN"] * 4 <= MEMORY["l1"]
    assert t["depthA1"] in (t["stepM"] * t["stepKa"], t["stepM"] * t["stepKa"] * 2)
    assert t["depthB1"] in (t["stepN"] * t["stepKb"], t["stepN"] * t["stepKb"] * 2)
    assert all(t[name] > 0 for name in ("baseK", "depthA1", "depthB1", "stepM", "stepN", "stepKa"))
    is_all_k = t["baseK"] * t["stepKa"] >= t["singleCoreK"]
    assert is_all_k or (t["stepM"] == 1 and t["stepN"] == 1)


def test_the_shape_may_be_a_block_that_is_larger_than_the_matrix(solve: Solve) -> None:
    # The kernel says its own sizes; the document of SetShape has no constraint. It was refused.
    settings = {"trans_b": 1, "base_m": 128, "base_n": 256, "shape_m": 128, "shape_n": 256}
    tiling = solve(m=7, n=65, k=33, **settings)
    assert (tiling["M"], tiling["N"], tiling["baseM"], tiling["baseN"]) == (7, 65, 128, 256)


@pytest.mark.parametrize(
    ("shape", "cores"), [((640, 1024, 256), 48), ((1024, 1024, 1024), 24), ((2048, 512, 64), 20)]
)
def test_cores_get_equal_shares_where_whole_blocks_divide_the_shape(
    solve: Solve, shape: tuple[int, int, int], cores: int
) -> None:
    # 22 cores of 176 x 256 and a shorter last one: public samples handle none.
    m, n, k = shape
    tiling = solve(m=m, n=n, k=k, cores=cores)
    assert m % tiling["singleCoreM"] == n % tiling["singleCoreN"] == 0
    assert 2 * tiling["usedCoreNum"] >= cores


def test_a_smaller_l1_is_kept_to(solve: Solve) -> None:
    tiling = solve(m=4096, n=4096, k=4096, cores=24, l1=131072)
    assert tiling["shareL1Size"] <= 131072


@pytest.mark.parametrize(
    ("given_settings", "message"),
    [
        ({"m": 0, "n": 16, "k": 16}, "a size is not positive"),
        ({"m": 512, "n": 512, "k": 16, "base_m": 512, "base_n": 512}, "does not fit into L0C"),
        ({"m": 16, "n": 16, "k": 64, "cores": 2, "split_k": 1, "bias": 1}, "added once per core"),
        ({"m": 512, "n": 512, "k": 512, "l1": 1024}, "L1 does not hold one base block"),
    ],
)
def test_what_cannot_be_tiled_returns_minus_one_and_says_why(
    solve: Solve, given_settings: dict[str, int], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        solve(**given_settings)


def test_setters_return_minus_one_for_what_can_never_be_right(solve: Solve) -> None:
    calls = solve()
    assert len(calls) == 30
    is_wrong = True
    for call, is_refused in calls.items():
        if call == "allowed":
            is_wrong = False
        else:
            assert bool(is_refused) == is_wrong, call


def test_layouts_of_batches_reach_the_kernel(solve: Solve) -> None:
    tiling = solve(m=32, n=256, k=64, cores=1, batch=3)
    assert tiling["ALayoutInfoB"] == 3
    assert [tiling[f"CLayoutInfo{axis}"] for axis in ("B", "S1", "N", "G", "S2")] == [
        3,
        32,
        1,
        1,
        256,
    ]
