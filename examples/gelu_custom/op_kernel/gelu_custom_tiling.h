// How gelu_custom is split over cores and tiles: written by TilingFunc on the host, read by the kernel.
#ifndef GELU_CUSTOM_TILING_H
#define GELU_CUSTOM_TILING_H

#include <cstdint>

// What the kernel keeps in the unified buffer beside its queues; the host counts with the same numbers.
constexpr uint32_t kGeluCustomBufferCount = 2;      // buffers a queue, unless a tuned size says otherwise
constexpr uint32_t kGeluCustomScratchTensors = 2;   // of a tile's length, 4 bytes an element
constexpr uint32_t kGeluCustomMaskTensors = 0;      // of a tile's length, one bit an element

struct GeluCustomTilingData {
    int64_t rows;           // product of all axes but the last; 1 where all inputs have one shape
    int64_t columns;        // elements a row
    int64_t tilesPerRow;
    int64_t tilesPerBlock;  // tiles of every core
    int64_t extraBlocks;    // the first cores take one tile more
    uint32_t tileLength;    // elements; the last tile of a row may be shorter
    uint32_t bufferCount;   // buffers a queue
};

#endif  // GELU_CUSTOM_TILING_H
