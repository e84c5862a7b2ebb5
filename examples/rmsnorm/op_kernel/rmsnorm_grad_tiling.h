// How rmsnorm_grad is split over cores and tiles: written by TilingFunc on the host, read by the kernel.
#ifndef RMSNORM_GRAD_TILING_H
#define RMSNORM_GRAD_TILING_H

#include <cstdint>

// What the kernel keeps in the unified buffer beside its queues; the host counts with the same numbers.
constexpr uint32_t kRmsnormGradBufferCount = 2;      // buffers a queue, at most
constexpr uint32_t kRmsnormGradScratchTensors = 5;   // of a tile's length, 4 bytes an element
constexpr uint32_t kRmsnormGradMaskTensors = 0;      // of a tile's length, one bit an element
constexpr uint32_t kRmsnormGradRowTensors = 11;       // of 256 bytes

struct RmsnormGradTilingData {
    int64_t rows;           // product of all axes but the last; 1 where all inputs have one shape
    int64_t columns;        // elements a row
    int64_t rowsPerBlock;   // rows of every core
    int64_t extraBlocks;    // the first cores take one row more
    uint32_t rowsPerTile;
    uint32_t partLength;    // elements of a row at once; columns where a row fits the unified buffer
    uint32_t bufferCount;   // buffers a queue
    uint32_t xBroadcast;  // 1: x is one row, the same for all
    uint32_t gammaBroadcast;  // 1: gamma is one row, the same for all
    float factor0;  // 1/columns
    float epsilon;  // epsilon
};

#endif  // RMSNORM_GRAD_TILING_H
