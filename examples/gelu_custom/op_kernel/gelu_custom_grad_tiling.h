// How gelu_custom_grad is split over cores and tiles: written by TilingFunc on the host, read by the kernel.
#ifndef GELU_CUSTOM_GRAD_TILING_H
#define GELU_CUSTOM_GRAD_TILING_H

#include <cstdint>

// How gelu_custom_grad is split over cores and tiles: written by the host for each launch.
struct GeluCustomGradTiling {
    int64_t perBlock;  // tiles or rows of every core
    int64_t extra;  // the first cores take one more
    int64_t rowsPerBatch;
    int64_t partsPerRow;
    int64_t columns;  // elements of a row
    int64_t gradYSize;
    int64_t gradYStep;  // from row to row; 0: one for all
    int64_t xSize;
    int64_t xStep;  // from row to row; 0: one for all
    int64_t gradXSize;
    uint32_t tileLength;  // elements that a tile has room for
    uint32_t reserved;
};

#endif  // GELU_CUSTOM_GRAD_TILING_H
