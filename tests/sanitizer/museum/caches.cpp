// Data caches of the scalar units: lines of 64 bytes that copies and other cores do not see.

inline void clean(const GlobalTensor<float>& line) {
  DataCacheCleanAndInvalid<float, CacheLine::SINGLE_CACHE_LINE, DcciDst::CACHELINE_OUT>(line);
}

// CACHE-LOST-WRITE, 2 blocks: a copy ends in the line that the next block sets one element of
template <bool kMended>
inline void copied_beside_a_set_element(GM_ADDR x, GM_ADDR y) {
  constexpr uint32_t kApart = kMended ? 16 : 8;
  if (GetBlockIdx() == 0) {
    LocalTensor<float> a(TPosition::VECIN, 0, 8);
    DataCopy(a, input(x), 8);
    pass<HardEvent::MTE2_MTE3>();
    DataCopy(output(y), a, 8);  // here
  } else {
    output(y).SetValue(kApart, 1.0f);
  }
}

// CACHE-LOST-WRITE, 2 blocks: the blocks take turns, but the first has its line still
template <bool kMended>
inline void turns_without_cleaning(GM_ADDR, GM_ADDR y) {
  if (GetBlockIdx() == 0) {
    output(y).SetValue(0, 1.0f);
    if (kMended) clean(output(y));
  }
  SyncAll();
  if (GetBlockIdx() == 1) output(y).SetValue(1, 1.0f);  // here
}

// CACHE-LOST-WRITE: the rest of a row is set before the row is copied to the line in front of it
template <bool kMended>
inline void tail_set_before_the_copy(GM_ADDR x, GM_ADDR y) {
  LocalTensor<float> a(TPosition::VECIN, 0, 8);
  DataCopy(a, input(x), 8);
  pass<HardEvent::MTE2_MTE3>();
  if (!kMended) output(y).SetValue(8, 1.0f);
  DataCopy(output(y), a, 8);  // here
  pass<HardEvent::MTE3_S>();
  if (kMended) output(y).SetValue(8, 1.0f);
}

// CACHE-UNWRITTEN, 2 blocks: a block reads what the other has set, in order, but from its cache
template <bool kMended>
inline void read_from_another_cache(GM_ADDR, GM_ADDR y) {
  if (GetBlockIdx() == 0) {
    output(y).SetValue(0, 1.0f);
    if (kMended) clean(output(y));
  }
  SyncAll();
  if (GetBlockIdx() == 1) output(y).SetValue(16, output(y).GetValue(0));  // here
}

// CACHE-STALE-READ, 2 blocks: the line was loaded before the other block copied into it
template <bool kMended>
inline void loaded_before_the_barrier(GM_ADDR x, GM_ADDR y) {
  const float before = output(y).GetValue(0);
  SyncAll();
  if (GetBlockIdx() == 0) {
    LocalTensor<float> a(TPosition::VECIN, 0, 8);
    DataCopy(a, input(x), 8);
    pass<HardEvent::MTE2_MTE3>();
    DataCopy(output(y), a, 8);
  }
  SyncAll();
  if (GetBlockIdx() == 1) {
    if (kMended) clean(output(y));
    output(y).SetValue(16, output(y).GetValue(1) + before);  // here
  }
}

// CACHE-UNWRITTEN, 2 blocks: a block polls a flag whose writer keeps it, and waits for the other meanwhile
template <bool kMended>
inline void flag_that_stays_in_the_cache(GM_ADDR, GM_ADDR y) {
  if (GetBlockIdx() == 0) {
    output(y).SetValue(0, 1.0f);
    if (kMended) clean(output(y));
  } else {
    do clean(output(y));
    while (output(y).GetValue(0) != 1.0f);  // here
  }
  SyncAll();
}
