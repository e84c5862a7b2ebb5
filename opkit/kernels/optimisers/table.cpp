// The table of the shipped kernels. Each is defined in a file of its own.
#include "kernel_operator.h"
#include "opkit/kernel_entry.h"

#define EIGHT GM_ADDR, GM_ADDR, GM_ADDR, GM_ADDR, GM_ADDR, GM_ADDR, GM_ADDR, GM_ADDR
extern "C" void paged_attention(EIGHT, EIGHT, GM_ADDR, GM_ADDR, GM_ADDR, GM_ADDR);
extern "C" void sparse_direct(EIGHT);
extern "C" void block_sparse(EIGHT);
extern "C" void dense_product(EIGHT);
extern "C" void structured_sparse(GM_ADDR, GM_ADDR, GM_ADDR, GM_ADDR, GM_ADDR);

namespace {

using opkit::kernel_entry;
using opkit::KernelMode;

const opkit::KernelEntry entries[] = {
    kernel_entry<&paged_attention>("paged_attention", KernelMode::Vector),
    kernel_entry<&sparse_direct>("sparse_direct", KernelMode::Vector),
    kernel_entry<&block_sparse>("block_sparse", KernelMode::Cube),
    kernel_entry<&dense_product>("dense_product", KernelMode::Cube),
    kernel_entry<&structured_sparse>("structured_sparse", KernelMode::Cube),
};

}  // namespace

OPKIT_EXPORT_KERNELS(entries)
