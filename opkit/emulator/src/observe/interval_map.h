/// A map from byte ranges to values: ranges do not overlap, and a range is split where an access ends inside it.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>

namespace opkit {

template <typename Value>
class IntervalMap {
 public:
  struct Cell {
    uint64_t end;
    Value value;
  };

  /// Calls `visit(begin, end, value)` for every known part of [begin, end), makes the range one, and calls
  /// `reset(value)` for it: the value may be a fresh one or that of a part.
  template <typename Visit, typename Reset>
  void assign(uint64_t begin, uint64_t end, Visit&& visit, Reset&& reset) {
    auto cell = first_overlap(begin);
    // The usual case: the same tile again.
    if (cell != cells_.end() && cell->first == begin && cell->second.end == end) {
      visit(begin, end, cell->second.value);
      reset(cell->second.value);
      return;
    }
    split(begin);
    split(end);
    cell = cells_.lower_bound(begin);
    while (cell != cells_.end() && cell->first < end) {
      visit(cell->first, cell->second.end, cell->second.value);
      cell = cells_.erase(cell);
    }
    cell = cells_.emplace_hint(cell, begin, Cell{end, Value()});
    reset(cell->second.value);
  }

  /// Calls `update(begin, end, value)` for every part of [begin, end); parts that were not known start as Value().
  template <typename Update>
  void update(uint64_t begin, uint64_t end, Update&& update) {
    auto cell = first_overlap(begin);
    if (cell != cells_.end() && cell->first == begin && cell->second.end == end) {
      update(begin, end, cell->second.value);
      return;
    }
    split(begin);
    split(end);
    cell = cells_.lower_bound(begin);
    uint64_t at = begin;
    while (at < end) {
      if (cell == cells_.end() || cell->first > at) {
        const uint64_t gap_end = cell == cells_.end() || cell->first > end ? end : cell->first;
        cell = cells_.emplace_hint(cell, at, Cell{gap_end, Value()});
      }
      update(cell->first, cell->second.end, cell->second.value);
      at = cell->second.end;
      ++cell;
    }
  }

  void clear() { cells_.clear(); }

  /// Calls `change(value)` for every part that is known.
  template <typename Change>
  void each(Change&& change) {
    for (auto& cell : cells_) change(cell.second.value);
  }

 private:
  using Cells = std::map<uint64_t, Cell>;

  typename Cells::iterator first_overlap(uint64_t begin) {
    auto cell = cells_.upper_bound(begin);
    if (cell == cells_.begin()) return cell;
    auto previous = std::prev(cell);
    return previous->second.end > begin ? previous : cell;
  }

  /// Makes `at` the border of two cells where it lies inside one.
  void split(uint64_t at) {
    auto cell = cells_.lower_bound(at);
    if (cell == cells_.begin()) return;
    auto previous = std::prev(cell);
    if (previous->second.end <= at) return;
    Cell right = previous->second;
    previous->second.end = at;
    cells_.emplace_hint(cell, at, right);
  }

  Cells cells_;
};

}  // namespace opkit
