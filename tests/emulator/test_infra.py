"""Pools, placed buffers, tensor lists, layouts and the small names that kernels use."""

from __future__ import annotations

import numpy as np
import pytest

from opkit.errors import KernelFault

KERNEL = """
%s
extern "C" __global__ __aicore__ void kernel(GM_ADDR x, GM_ADDR y) {
  GlobalTensor<int64_t> out;
  out.SetGlobalBuffer((__gm__ int64_t*)y, 16);
  (void)x;
  %s
}
"""


def values(
    compile_kernel, body: str, *, before: str = "", x: np.ndarray | None = None
) -> list[int]:
    y = np.full(16, -1, np.int64)
    compile_kernel(KERNEL % (before, body))(np.zeros(64, np.int64) if x is None else x, y)
    return [int(value) for value in y if value != -1]


POOLS = """
  TPipe pipe;
  TBufPool<TPosition::VECCALC> first, second, inner, shared;
  TQue<TPosition::VECIN, 1> a, b;
  TBuf<TPosition::VECCALC> scratch;
  %s
"""


def test_pools_share_memory_and_divide_it(compile_kernel) -> None:
    body = """
      pipe.InitBuffer(scratch, 64);
      pipe.InitBufPool(first, 1024);
      pipe.InitBufPool(second, 1024, first);
      first.InitBufPool(inner, 256);
      first.InitBuffer(a, 2, 100);
      second.InitBuffer(b, 1, 32);
      inner.InitBuffer(scratch, 64);
      out.SetValue(0, a.AllocTensor<half>().GetPhyAddr() - scratch.Get<half>().GetPhyAddr());
      out.SetValue(1, b.AllocTensor<half>().GetPhyAddr() - scratch.Get<half>().GetPhyAddr());
      out.SetValue(2, a.AllocTensor<half>().GetSize());
    """
    assert values(compile_kernel, POOLS % body) == [256, 0, 64]


def test_a_pool_can_be_given_out_again_after_reset_without_running_out_of_events(
    compile_kernel,
) -> None:
    body = """
      pipe.InitBufPool(first, 256);
      for (int round = 0; round < 20; ++round) {
        first.InitBuffer(a, 2, 128);
        auto tensor = a.AllocTensor<half>();
        a.EnQue(tensor);
        a.FreeTensor(a.DeQue<half>());
        first.Reset();
      }
      for (int round = 0; round < 20; ++round) {
        pipe.InitBuffer(a, 2, 128);
        auto tensor = a.AllocTensor<half>();
        a.EnQue(tensor);
        a.FreeTensor(a.DeQue<half>());
        pipe.Reset();
      }
      out.SetValue(0, 7);
    """
    assert values(compile_kernel, POOLS % body) == [7]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("first.InitBuffer(a, 1, 32);", "this pool has no memory"),
        (
            "pipe.InitBufPool(first, 64); first.InitBuffer(a, 1, 96);",
            "do not fit: 0 of the pool's 64",
        ),
        ("pipe.InitBufPool(first, 640); first.InitBuffer(a, 5, 32);", "5 buffers, its limit is 4"),
        (
            "pipe.InitBufPool(first, 64); pipe.InitBufPool(second, 96, first);",
            "96 bytes in a shared pool of 64",
        ),
        ("pipe.InitBuffer(a, Std::make_tuple(16, 64));", "a buffer at byte 16"),
        (
            "pipe.InitBuffer(a, Std::make_tuple(196608, 64));"
            " Duplicate(a.AllocTensor<half>(), half(1), 32);",
            r"bytes 196608\.\.196672 of UB",
        ),
    ],
)
def test_what_does_not_fit_faults(compile_kernel, body, text) -> None:
    with pytest.raises(KernelFault, match=text):
        values(compile_kernel, POOLS % body)


def test_buffers_lie_where_they_are_told(compile_kernel) -> None:
    body = """
      pipe.InitBuffer(a, Std::make_tuple(0, 1024), Std::make_tuple(2048, 512));
      auto one = a.AllocTensor<float>();
      auto two = a.AllocTensor<float>();
      out.SetValue(0, one.GetSize());
      out.SetValue(1, two.GetSize());
      out.SetValue(2, two.GetPhyAddr() - one.GetPhyAddr());
    """
    assert values(compile_kernel, POOLS % body) == [256, 128, 2048]


CUSTOM = """
class OwnPool {
 public:
  OwnPool() { Init(); }
  template <class T> bool InitBuffer(T& queue, uint8_t count, uint32_t bytes) {
    auto handle = GetBufHandle(GetCurBufSize());
    uint32_t address = GetCurAddr();
    queue.InitStartBufHandle(handle, count, bytes);
    for (uint32_t i = 0; i < count; ++i) queue.InitBufHandle(this, i, handle, address + i * bytes, bytes);
    SetCurAddr(address + count * bytes);
    SetCurBufSize(GetCurBufSize() + count);
    return true;
  }
  EXTERN_IMPL_BUFPOOL(OwnPool, TPosition::VECCALC, 16);
};
"""


def test_a_kernel_can_bring_its_own_pool(compile_kernel) -> None:
    body = """
      OwnPool pool;
      pipe.InitBuffer(scratch, 96);
      pipe.InitBufPool(pool, 512);
      pool.InitBuffer(a, 2, 64);
      pool.InitBuffer(b, 1, 64);
      auto tensor = b.AllocTensor<half>();
      b.EnQue(tensor);
      b.FreeTensor(b.DeQue<half>());
      out.SetValue(0, tensor.GetPhyAddr() - scratch.Get<half>().GetPhyAddr());
      out.SetValue(1, pool.GetCurBufSize());
      pool.Reset();
    """
    assert values(compile_kernel, POOLS % body, before=CUSTOM) == [96 + 128, 3]


def test_a_list_of_tensors_gives_addresses_and_shapes(compile_kernel) -> None:
    body = """
      ListTensorDesc list((__gm__ void*)x, 0xffffffff, 2);
      uint64_t shape[8] = {0};
      TensorDesc<int64_t> desc;
      desc.SetShapeAddr(shape);
      list.GetDesc(desc, 1);
      out.SetValue(0, list.GetSize());
      out.SetValue(1, desc.GetDim());
      out.SetValue(2, desc.GetIndex());
      out.SetValue(3, desc.GetShape(2));
      out.SetValue(4, (int64_t)list.GetDataPtr<half>(0));
      out.SetValue(5, desc.GetDataObj().GetValue(0));
    """
    data = np.array([77], np.int64)
    words = [8 * 8, 2 | 0 << 32, 8, 9, 3 | 1 << 32, 4, 5, 6, 4096, data.ctypes.data]
    x = np.array([*words, 77], np.int64)
    x[9] = x.ctypes.data + 80
    assert values(compile_kernel, body, x=x) == [2, 3, 1, 6, 4096, 77]


def test_a_tensor_list_is_not_read_past_its_end(compile_kernel) -> None:
    body = "ListTensorDesc list((__gm__ void*)x); list.GetDataPtr<half>(1);"
    with pytest.raises(KernelFault, match="fewer tensors"):
        values(compile_kernel, body, x=np.array([24, 1, 5, 4096], np.int64))


def test_names_of_the_language_can_be_shadowed(compile_kernel) -> None:
    body = """
      out.SetValue(0, block_idx * 8u + block_num);
      int block_idx = 5;
      out.SetValue(1, block_idx);
    """
    assert values(compile_kernel, body) == [1, 5]


def test_layouts_turn_coordinates_into_indices(compile_kernel) -> None:
    body = """
      constexpr auto layout = MakeLayout(MakeShape(3, 4, 5), MakeStride(20, 5, 1));
      static_assert(Std::get<1>(layout.GetShape()) == 4 && is_layout<decltype(layout)>::value == false);
      out.SetValue(0, layout(MakeCoord(1, 2, 3)));
      out.SetValue(1, Crd2Idx(Coord<int, int>(2, 1), MakeShape(4, 2), MakeStride(4, 1)));
    """
    assert values(compile_kernel, body) == [33, 9]


def test_a_kernels_own_helper_is_preferred_whatever_the_types(compile_kernel) -> None:
    body = """
      using namespace AscendC;
      out.SetValue(0, CeilDiv(uint64_t{7}, uint32_t{0}));
      out.SetValue(1, AscendC::CeilDiv(uint64_t{7}, 2));
    """
    own = "inline uint64_t CeilDiv(uint64_t x, uint64_t y) { return y == 0 ? x : (x + y - 1) / y; }"
    assert values(compile_kernel, body, before=own) == [7, 4]


def test_a_quotient_has_a_type_that_a_kernels_own_template_deduces_by(compile_kernel) -> None:
    # As grouped_matmul of ops-transformer has it.
    body = """
      using namespace AscendC;
      const int32_t base = 16;
      out.SetValue(0, own::rounded(33, 2, base));
      static_assert(std::is_same_v<decltype(Ceil(33u, 2)), uint32_t>);
      static_assert(std::is_same_v<decltype(Ceil(int64_t{33}, 2)), uint32_t>);
    """
    own = """
      namespace own {
      using namespace AscendC;
      template <uint32_t base, typename T = uint32_t>
      inline T AlignUp(T a) { return (a + base - 1) / base * base; }
      template <typename T>
      inline T AlignUp(T a, T base) { return (a + base - 1) / base * base; }
      inline int32_t rounded(int32_t a, int32_t b, const int32_t& c) { return AlignUp(Ceil(a, b), c); }
      }  // namespace own
    """
    assert values(compile_kernel, body, before=own) == [32]


def test_align_is_seen_before_a_kernels_own_template_of_that_name(compile_kernel) -> None:
    # As MLA prolog of ops-transformer has it.
    body = """
      out.SetValue(0, own::before(33, 16u) + own::after(33u, 16u));
      static_assert(std::is_same_v<decltype(AscendC::Align(int64_t{7}, 2)), int64_t>);
      out.SetValue(1, AscendC::Align(int64_t{-3} + 8, 4) + AscendC::Align(5u, 0));
    """
    own = """
      namespace own {
      using namespace AscendC;
      template <typename T> inline T before(T a, uint32_t base) { return Align(a, base); }
      template <typename T> inline T Align(T a, T base) { return a / base * base; }
      inline uint32_t after(uint32_t a, uint32_t base) { return Align(a, base); }
      }  // namespace own
    """
    assert values(compile_kernel, body, before=own) == [48 + 32, 8]


def test_a_buffers_address_makes_a_tensor(compile_kernel) -> None:
    body = """
      TPipe pipe;
      TBuf<TPosition::VECCALC> first, second;
      pipe.InitBuffer(first, 64);
      pipe.InitBuffer(second, 128);
      LocalTensor<float> tensor;
      tensor.SetAddr(second.GetBufferAddr(second.Get<float>().GetBufferHandle()));
      out.SetValue(0, tensor.address());
      out.SetValue(1, tensor.GetSize());
    """
    assert values(compile_kernel, body) == [64, 32]


def test_small_helpers(compile_kernel) -> None:
    body = """
      static_assert(IsSameType<half, half>::value && !IsSameType<half, float>::value);
      static_assert(TOTAL_UB_SIZE == 192 * 1024 && ONE_BLK_FLOAT_NUM == 8);
      out.SetValue(0, DivCeil(7, 2) + AlignUp(33, 32) + CeilDiv(1, 8) + Ceil(17, 8));
      out.SetValue(1, Std::max(3, int64_t{4}) + Std::min(1.5f, 2));
      int64_t kind = likely(1) + unlikely(0);
      if ASCEND_IS_AIV {
        if ASCEND_IS_NOT_AIC kind += 0;
      }
      if ASCEND_IS_NOT_AIV {
        kind += 100;
      }
      out.SetValue(2, kind);
      out.SetValue(3, GetTaskRation());
      LocalTensor<float> wide(TPosition::VECCALC, 64, 32);
      LocalTensor<half> narrow;
      narrow.SetAddrWithOffset(wide, 8);
      narrow.SetUserTag(9);
      out.SetValue(4, narrow.address() + narrow.GetUserTag());
      SetSysWorkspace((__gm__ uint8_t*)64);
      out.SetValue(5, (int64_t)GetSysWorkSpacePtr());
    """
    assert values(compile_kernel, body) == [4 + 64 + 1 + 3, 5, 1, 1, 64 + 32 + 9, 64]
