// The article's calculate_optimal_tile, by the name that the host file calls.
#include <algorithm>
#include <cstdint>

uint32_t gelu_custom_tile(uint32_t total_size, uint32_t ub_capacity) {
    uint32_t aligned_ub = (ub_capacity / 32) * 32;
    uint32_t min_tile = 128;
    uint32_t max_tile = aligned_ub / sizeof(uint16_t);

    if (total_size <= 1024) {
        return total_size;
    } else if (total_size <= 65536) {
        return 1024;
    } else {
        uint32_t core_num = 32;
        uint32_t tile = (total_size + core_num - 1) / core_num;
        return std::min(std::max(tile, min_tile), max_tile);
    }
}
