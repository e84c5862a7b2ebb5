// The table of this library's kernels.
#include "kernel_operator.h"
#include "opkit/kernel_entry.h"

#define P GM_ADDR
extern "C" __global__ __aicore__ void vector_program(P, P, P, P, P, P, P, P, P, P, P);
extern "C" __global__ __aicore__ void vector_list(P, P, P);
extern "C" __global__ __aicore__ void copy_strided(P, P, P);
extern "C" __global__ __aicore__ void convert_widths(P, P, P);
extern "C" __global__ __aicore__ void gather_rows(P, P, P, P);
extern "C" __global__ __aicore__ void add_rows(P, P, P, P);
extern "C" __global__ __aicore__ void move_by_index(P, P, P, P, P, P, P);
extern "C" __global__ __aicore__ void sort_lines(P, P, P, P);
extern "C" __global__ __aicore__ void scan_lines(P, P, P);
extern "C" __global__ __aicore__ void fold_lines(P, P, P);
extern "C" __global__ __aicore__ void extreme_lines(P, P, P, P, P);
extern "C" __global__ __aicore__ void random_uniform(P, P);
extern "C" __global__ __aicore__ void matmul_batched(P, P, P, P);
extern "C" __global__ __aicore__ void attention(P, P, P, P, P, P, P, P, P);
#undef P

namespace {

using opkit::kernel_entry;
using opkit::KernelMode;

const opkit::KernelEntry kKernels[] = {
    kernel_entry<&vector_program>("vector_program", KernelMode::Vector),
    kernel_entry<&vector_list>("vector_list", KernelMode::Vector),
    kernel_entry<&copy_strided>("copy_strided", KernelMode::Vector),
    kernel_entry<&convert_widths>("convert_widths", KernelMode::Vector),
    kernel_entry<&gather_rows>("gather_rows", KernelMode::Vector),
    kernel_entry<&add_rows>("add_rows", KernelMode::Vector),
    kernel_entry<&move_by_index>("move_by_index", KernelMode::Vector),
    kernel_entry<&sort_lines>("sort_lines", KernelMode::Vector),
    kernel_entry<&scan_lines>("scan_lines", KernelMode::Vector),
    kernel_entry<&fold_lines>("fold_lines", KernelMode::Vector),
    kernel_entry<&extreme_lines>("extreme_lines", KernelMode::Vector),
    kernel_entry<&random_uniform>("random_uniform", KernelMode::Vector),
    kernel_entry<&matmul_batched>("matmul_batched", KernelMode::Cube),
    kernel_entry<&attention>("attention", KernelMode::Mix12),
};

}  // namespace

OPKIT_EXPORT_KERNELS(kKernels)
