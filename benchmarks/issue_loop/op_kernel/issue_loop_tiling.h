// How many instructions the kernel issues.
#ifndef ISSUE_LOOP_TILING_H
#define ISSUE_LOOP_TILING_H

#include <cstdint>

struct IssueLoopTilingData {
    int64_t instructions;
    int64_t isEmpty;  // 1: the loop runs, but issues nothing
};

#endif  // ISSUE_LOOP_TILING_H
