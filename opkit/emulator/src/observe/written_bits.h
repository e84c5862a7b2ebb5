/// A bit a byte: which bytes of a memory have been written.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace opkit {

/// Cores may set and read bits of one memory at once; bits are only ever set.
class WrittenBits {
 public:
  /// fill: what bytes hold that nothing has written.
  explicit WrittenBits(uint64_t bytes, uint8_t fill = 0)
      : fill_(fill),
        words_(new std::atomic<uint64_t>[bytes / 64 + 1]()),
        pages_(new std::atomic<uint8_t>[bytes / kPageBytes + 1]()) {}

  void set(uint64_t begin, uint64_t end) {
    for (uint64_t at = begin; at < end;) {
      const uint64_t page = at / kPageBytes;
      const uint64_t next = end_of_page(at, end);
      if (!is_whole(page)) {
        set_words(at, next);
        if (next - at == kPageBytes) pages_[page].store(1, std::memory_order_relaxed);
      }
      at = next;
    }
  }

  /// Whether anything was read or written at all.
  bool is_touched() const { return is_touched_.load(std::memory_order_relaxed); }
  void touch() {
    if (!is_touched()) is_touched_.store(true, std::memory_order_relaxed);
  }

  /// Takes bytes as written that no longer hold the fill: raw pointers write past all observers. `memory` is byte 0.
  void adopt(const uint8_t* memory, uint64_t begin, uint64_t end) {
    for (uint64_t at = first_unwritten(begin, end); at < end; at = first_unwritten(at, end)) {
      const uint64_t last = end_of_unwritten(at, end);
      uint64_t i = at;
      while (i < last && memory[i] == fill_) ++i;
      if (i < last) set(at, last);
      at = last;
    }
  }

  /// Gives bytes from `target` on what the source's bytes [begin, end) have: unwritten ones stay so.
  void carry(const WrittenBits& source, uint64_t begin, uint64_t end, uint64_t target) {
    for (uint64_t at = begin; at < end;) {
      const uint64_t gap = source.first_unwritten(at, end);
      set(target + (at - begin), target + (gap - begin));
      at = source.end_of_unwritten(gap, end);
    }
  }

  bool get(uint64_t at) const { return (words_[at / 64].load(std::memory_order_relaxed) >> at % 64 & 1) != 0; }

  /// The first byte of [begin, end) that was never written; `end` when all were.
  uint64_t first_unwritten(uint64_t begin, uint64_t end) const {
    for (uint64_t at = begin; at < end;) {
      const uint64_t page = at / kPageBytes;
      const uint64_t next = end_of_page(at, end);
      if (!is_whole(page)) {
        const uint64_t found = first_unwritten_word(at, next);
        if (found < next) return found;
        if (next - at == kPageBytes) pages_[page].store(1, std::memory_order_relaxed);
      }
      at = next;
    }
    return end;
  }

  /// One past the last of the unwritten bytes that begin at `begin`.
  uint64_t end_of_unwritten(uint64_t begin, uint64_t end) const {
    while (begin < end && !get(begin)) ++begin;
    return begin;
  }

 private:
  static constexpr uint64_t kPageBytes = 2048;

  static uint64_t end_of_page(uint64_t at, uint64_t end) {
    const uint64_t next = (at / kPageBytes + 1) * kPageBytes;
    return next < end ? next : end;
  }

  bool is_whole(uint64_t page) const { return pages_[page].load(std::memory_order_relaxed) != 0; }

  void set_words(uint64_t begin, uint64_t end) {
    for_each_word(begin, end, [this](uint64_t word, uint64_t bits) {
      std::atomic<uint64_t>& target = words_[word];
      if ((target.load(std::memory_order_relaxed) & bits) != bits) target.fetch_or(bits, std::memory_order_relaxed);
      return true;
    });
  }

  uint64_t first_unwritten_word(uint64_t begin, uint64_t end) const {
    uint64_t found = end;
    for_each_word(begin, end, [&](uint64_t word, uint64_t bits) {
      const uint64_t missing = bits & ~words_[word].load(std::memory_order_relaxed);
      if (missing == 0) return true;
      found = word * 64 + static_cast<uint64_t>(__builtin_ctzll(missing));
      return false;
    });
    return found;
  }

  template <typename Visit>
  void for_each_word(uint64_t begin, uint64_t end, Visit&& visit) const {
    for (uint64_t at = begin; at < end;) {
      const uint64_t word = at / 64;
      const uint64_t next = (word + 1) * 64 < end ? (word + 1) * 64 : end;
      const uint64_t count = next - at;
      const uint64_t bits = (count == 64 ? ~0ull : (1ull << count) - 1) << at % 64;
      if (!visit(word, bits)) return;
      at = next;
    }
  }

  std::atomic<bool> is_touched_{false};
  uint8_t fill_;
  std::unique_ptr<std::atomic<uint64_t>[]> words_;
  mutable std::unique_ptr<std::atomic<uint8_t>[]> pages_;  ///< 1 for pages known to be written as a whole
};

}  // namespace opkit
