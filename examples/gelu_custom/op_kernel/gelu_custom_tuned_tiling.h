// How gelu_custom_tuned is split over cores and tiles: written by TilingFunc on the host, read by the kernel.
#ifndef GELU_CUSTOM_TUNED_TILING_H
#define GELU_CUSTOM_TUNED_TILING_H

#include <cstdint>

struct GeluCustomTunedTilingData {
    int64_t total;          // elements
    int64_t blockLength;    // elements of every core but the last, whole tiles
    uint32_t tileLength;    // elements, a multiple of 64; the last tile of all may be shorter
};

#endif  // GELU_CUSTOM_TUNED_TILING_H
