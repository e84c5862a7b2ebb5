/// What the cores of a launch have touched of global memory, kept until it ends.
#pragma once

#include <algorithm>
#include <vector>

#include "observe/core_clocks.h"
#include "observe/finding.h"

namespace opkit {

/// A run of bytes that one instruction of one core has touched, in one or several executions.
struct Segment {
  uint64_t begin;
  uint64_t end;
  Moment when;
  bool is_write;
  bool is_atomic;
  bool is_cached;  ///< through the core's data cache
  uint64_t instruction;
  AccessSite site;
  DType dtype;
};

/// The segments of one core. Accesses of one line of the source that lie side by side are one.
class CoreAccesses {
 public:
  void add(const Segment& access) {
    for (uint32_t i = 0; i < open_count_; ++i) {
      Segment& open = segments_[open_[i]];
      if (!is_alike(open, access) || access.begin < open.begin || access.begin > open.end) continue;
      open.end = std::max(open.end, access.end);
      return;
    }
    segments_.push_back(access);
    open_[next_open_] = segments_.size() - 1;
    next_open_ = (next_open_ + 1) % kOpenLimit;
    open_count_ = std::min(open_count_ + 1, kOpenLimit);
  }
  const std::vector<Segment>& segments() const { return segments_; }

 private:
  static constexpr uint32_t kOpenLimit = 8;

  static bool is_alike(const Segment& a, const Segment& b) {
    return a.when.seen == b.when.seen && a.when.own == b.when.own && a.is_write == b.is_write &&
           a.is_atomic == b.is_atomic && a.is_cached == b.is_cached && a.site.line == b.site.line &&
           a.site.op == b.site.op && a.site.file == b.site.file;
  }

  std::vector<Segment> segments_;
  size_t open_[kOpenLimit] = {};  ///< segments that the next access may lengthen
  uint32_t open_count_ = 0;
  uint32_t next_open_ = 0;
};

}  // namespace opkit
