// Flags, barriers and waits that do not fit together; parameters outside their domain.

// SYNC-UNPAIRED: the flag of the last tile is never waited for
template <bool kMended>
inline void last_flag_stays_up(GM_ADDR, GM_ADDR) {
  SetFlag<HardEvent::MTE3_MTE2>(EVENT_ID0);
  for (int tile = 0; tile < 2; ++tile) {
    WaitFlag<HardEvent::MTE3_MTE2>(EVENT_ID0);
    SetFlag<HardEvent::MTE3_MTE2>(EVENT_ID0);  // here
  }
  if (kMended) WaitFlag<HardEvent::MTE3_MTE2>(EVENT_ID0);
}

// SYNC-DUPLICATE, cube: a flag of the cube's pipes is raised twice
template <bool kMended>
inline void raised_twice(GM_ADDR, GM_ADDR) {
  for (int tile = 0; tile < 2; ++tile) {
    SetFlag<HardEvent::MTE1_M>(kMended && tile == 1 ? EVENT_ID1 : EVENT_ID0);  // here
  }
  WaitFlag<HardEvent::MTE1_M>(EVENT_ID0);
  WaitFlag<HardEvent::MTE1_M>(kMended ? EVENT_ID1 : EVENT_ID0);
}

// SYNC-DEADLOCK: the wait names another event id than the signal
template <bool kMended>
inline void wait_for_another_id(GM_ADDR, GM_ADDR) {
  SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
  WaitFlag<HardEvent::V_MTE3>(kMended ? EVENT_ID0 : EVENT_ID1);  // here
}

// SYNC-DEADLOCK, 2 blocks: a block returns before SyncAll
template <bool kMended>
inline void barrier_without_a_block(GM_ADDR, GM_ADDR) {
  if (!kMended && GetBlockIdx() == 1) return;
  SyncAll();  // here
}

// SYNC-DEADLOCK, mixed: a flag between cores that nobody sets
template <bool kMended>
inline void flag_between_cores_never_set(GM_ADDR, GM_ADDR) {
  if ASCEND_IS_AIC {
    if (kMended) CrossCoreSetFlag<2, PIPE_FIX>(5);
  } else {
    CrossCoreWaitFlag(5);  // here
  }
}

// SYNC-DEADLOCK, mixed: cube and vector cores wait for each other
template <bool kMended>
inline void waits_in_a_circle(GM_ADDR, GM_ADDR) {
  if ASCEND_IS_AIC {
    if (kMended) CrossCoreSetFlag<2, PIPE_FIX>(5);
    CrossCoreWaitFlag(6);  // here
    if (!kMended) CrossCoreSetFlag<2, PIPE_FIX>(5);
  } else {
    CrossCoreWaitFlag(5);  // here
    CrossCoreSetFlag<2, PIPE_MTE3>(6);
  }
}

// SYNC-DEADLOCK, mixed: the counter of a flag between cores is full and nobody takes from it
template <bool kMended>
inline void too_many_signals(GM_ADDR, GM_ADDR) {
  if ASCEND_IS_AIC {
    for (int i = 0; i < 16; ++i) CrossCoreSetFlag<2, PIPE_FIX>(5);  // here
  } else {
    for (int i = 0; kMended && i < 16; ++i) CrossCoreWaitFlag(5);
  }
}

// SYNC-CROSS-UNPAIRED, mixed: the cube core signals once too often
template <bool kMended>
inline void one_signal_left(GM_ADDR, GM_ADDR) {
  if ASCEND_IS_AIC {
    CrossCoreSetFlag<2, PIPE_FIX>(5);
    if (!kMended) CrossCoreSetFlag<2, PIPE_FIX>(5);  // here
  } else {
    CrossCoreWaitFlag(5);
  }
}

// API-OPERAND: 256 repeats
template <bool kMended>
inline void too_many_repeats(GM_ADDR, GM_ADDR) {
  LocalTensor<half> a(TPosition::VECCALC, 0, 256 * 128);
  Duplicate(a, half(1.0f), 256 * 128);
  WholeReduceSum<half>(a, a, 128, kMended ? 255 : 256, 1, 1, 8);  // here
}

// API-OPERAND: a rounding mode that this pair of types does not have
template <bool kMended>
inline void rounding_mode_without_meaning(GM_ADDR, GM_ADDR) {
  LocalTensor<half> a(TPosition::VECCALC, 0, 64);
  LocalTensor<float> b(TPosition::VECCALC, 256, 64);
  Duplicate(a, half(1.0f), 64);
  Cast(b, a, kMended ? RoundMode::CAST_NONE : RoundMode::CAST_FLOOR, 64);  // here
}

// API-OPERAND: a vector instruction on a tensor that does not lie in UB
template <bool kMended>
inline void wrong_position(GM_ADDR, GM_ADDR) {
  LocalTensor<float> a(kMended ? TPosition::VECCALC : TPosition::A1, 0, 64);
  Duplicate(a, 1.0f, 64);  // here
}

// API-OPERAND: more bursts than a copy can have
template <bool kMended>
inline void too_many_bursts(GM_ADDR x, GM_ADDR) {
  LocalTensor<float> a(TPosition::VECIN, 0, 16);
  GlobalTensor<float> far = input(x);
  DataCopy(a, far, DataCopyParams(kMended ? 2 : 4096, 1, 0, 0));  // here
}

// API-OVERLAP: a sum writes what its next repeat reads
template <bool kMended>
inline void result_ahead_of_its_source(GM_ADDR, GM_ADDR) {
  LocalTensor<float> a(TPosition::VECCALC, 0, 256);
  Duplicate(a, 1.0f, 256);
  const uint64_t mask = 64;
  Adds(a[kMended ? 0 : 64], a, 1.0f, mask, 2, {1, 1, 8, 8});  // here
}

// API-OVERLAP: a result that covers half of its source
template <bool kMended>
inline void result_over_half_a_source(GM_ADDR, GM_ADDR) {
  LocalTensor<float> a(TPosition::VECCALC, 0, 128);
  Duplicate(a, 1.0f, 128);
  const uint64_t mask = 64;
  Adds(a, a[kMended ? 64 : 8], 1.0f, mask, 1, {1, 1, 8, 8});  // here
}

// API-OVERLAP: a widening cast at its source's place
template <bool kMended>
inline void wider_result_over_its_source(GM_ADDR, GM_ADDR) {
  LocalTensor<half> a(TPosition::VECCALC, 0, 64);
  LocalTensor<float> b(TPosition::VECCALC, kMended ? 128 : 0, 64);
  Duplicate(a, half(1.0f), 64);
  Cast(b, a, RoundMode::CAST_NONE, 64);  // here
}

// API-OVERLAP: a widening cast whose source lies in the middle of its result; at its end, as in the twin, it may
template <bool kMended>
inline void widening_cast_into_its_own_end(GM_ADDR, GM_ADDR) {
  LocalTensor<float> a(TPosition::VECCALC, 0, 256);
  LocalTensor<half> source(TPosition::VECCALC, kMended ? 512 : 256, 256);
  Duplicate(source, (half)1.0f, 256);
  Cast(a, source, RoundMode::CAST_NONE, 256);  // here
}

// API-OVERLAP: repeats are added up in src0; in src1, as in the twin, they may be
template <bool kMended>
inline void sum_of_repeats(GM_ADDR, GM_ADDR) {
  LocalTensor<float> a(TPosition::VECCALC, 0, 256);
  LocalTensor<float> total(TPosition::VECCALC, 1024, 64);
  Duplicate(a, 1.0f, 256);
  Duplicate(total, 0.0f, 64);
  const uint64_t mask = 64;
  if (kMended) {
    Add(total, a, total, mask, 4, {1, 1, 1, 0, 8, 0});
  } else {
    Add(total, total, a, mask, 4, {1, 1, 1, 0, 0, 8});  // here
  }
}

// API-OVERLAP: a narrowing cast writes ahead of what it reads; at its source's place, as in the twin, it may
template <bool kMended>
inline void narrower_result_ahead_of_its_source(GM_ADDR, GM_ADDR) {
  LocalTensor<float> a(TPosition::VECCALC, 0, 256);
  LocalTensor<half> b(TPosition::VECCALC, kMended ? 0 : 256, 128);
  Duplicate(a, 1.0f, 256);
  Cast(b, a, RoundMode::CAST_NONE, 128);  // here
}

// API-OVERLAP: a widening cast of nibbles, of which 512 end behind 256 bytes
template <bool kMended>
inline void wider_result_over_nibbles(GM_ADDR, GM_ADDR) {
  LocalTensor<int4b_t> a(TPosition::VECCALC, 0, 512);
  LocalTensor<half> b(TPosition::VECCALC, kMended ? 256 : 224, 512);
  Duplicate(a.ReinterpretCast<half>(), half(1.0f), 128);
  Cast(b, a, RoundMode::CAST_NONE, 512);  // here
}

// API-OVERLAP: Brcb reads eight elements and writes eight data blocks
template <bool kMended>
inline void blocks_over_their_elements(GM_ADDR, GM_ADDR) {
  LocalTensor<float> a(TPosition::VECCALC, 0, 128);
  Duplicate(a, 1.0f, 128);
  Brcb(a[kMended ? 64 : 0], a, 1, {1, 8});  // here
}

// API-OVERLAP: what Gather picks may lie anywhere in its source
template <bool kMended>
inline void picked_over_their_source(GM_ADDR, GM_ADDR) {
  LocalTensor<float> a(TPosition::VECCALC, 0, 128);
  LocalTensor<int32_t> places(TPosition::VECCALC, 1024, 64);
  Duplicate(a, 1.0f, 128);
  Duplicate(places, 4, 64);
  Gather(a[kMended ? 64 : 0], a, places.ReinterpretCast<uint32_t>(), 0, 64);  // here
}
