// How rmsnorm is split over cores and tiles: written by TilingFunc on the host, read by the kernel.
#ifndef RMSNORM_TILING_H
#define RMSNORM_TILING_H

#include <cstdint>

// What the kernel keeps in the unified buffer; the host counts with the same numbers.
constexpr uint32_t kRmsnormBufferCount = 2;  // buffers a queue, at most
constexpr uint32_t kRmsnormLongestTile = 64;  // rows: one repeat of floats holds their sums

struct RmsnormTilingData {
    int64_t rows;             // product of all axes but the last
    int64_t columns;          // elements a row
    int64_t rowsPerBlock;     // rows of every core
    int64_t extraBlocks;      // the first cores take one row more
    uint32_t rowsPerTile;
    uint32_t rowStride;       // elements from row to row in the unified buffer: whole data blocks
    uint32_t bufferCount;     // buffers a queue
    uint32_t gammaBroadcast;  // 1: gamma is one row, the same for all
    float factor;             // 1 / columns
    float epsilon;
};

#endif  // RMSNORM_TILING_H
