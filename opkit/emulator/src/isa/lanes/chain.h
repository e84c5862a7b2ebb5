/// Elementwise instructions of floats one after the other on a few vectors at a time, which stay in registers from one
/// to the next.
#pragma once

#include "isa/lanes/cast.h"
#include "isa/lanes/elementwise.h"

namespace opkit::lanes {
namespace {

constexpr size_t kChainVectors = 8;
using ChainValues = F32V[kChainVectors];

/// A step, or two that follow one another. It works on eight vectors, which calling conventions hand over in registers,
/// and ends in a call of the next one with its results: a jump, as nothing is left to do here. Jumps to where a table
/// says cost as much as eight vectors of an addition, so loads, stores and the most frequent neighbours share one.
struct ChainLink;
using RunLink = void (*)(F32V, F32V, F32V, F32V, F32V, F32V, F32V, F32V, const ChainLink* link, size_t at);
struct ChainLink {
  RunLink run;
  const uint8_t* first;  ///< what is loaded
  uint8_t* dst;          ///< where the result goes; some instructions read it, too
  const uint8_t* second[2];
  uint64_t scalar[2];
};

#define OPKIT_CHAIN_VALUES F32V v0, F32V v1, F32V v2, F32V v3, F32V v4, F32V v5, F32V v6, F32V v7
#define OPKIT_CHAIN_NEXT(values) \
  link[1].run(values[0], values[1], values[2], values[3], values[4], values[5], values[6], values[7], link + 1, at)

OPKIT_INLINE void load_all(ChainValues& values, const void* from) {
#pragma GCC unroll 8
  for (size_t u = 0; u < kChainVectors; ++u) values[u] = load<F32V>(static_cast<const char*>(from) + u * sizeof(F32V));
}

OPKIT_INLINE void store_all(void* to, const ChainValues& values) {
#pragma GCC unroll 8
  for (size_t u = 0; u < kChainVectors; ++u) store(static_cast<char*>(to) + u * sizeof(F32V), values[u]);
}

OPKIT_INLINE void make_canonical(ChainValues& values) {
  bool has_nan = false;
#pragma GCC unroll 8
  for (size_t u = 0; u < kChainVectors; u += 2) has_nan |= any_nan(values[u], values[u + 1]);
  if (__builtin_expect(!has_nan, 1)) return;
#pragma GCC unroll 8
  for (size_t u = 0; u < kChainVectors; ++u) values[u] = canonical(values[u]);
}

/// Has a value computed before the next one is begun: compilers that mix them run out of registers.
OPKIT_INLINE void keep_order(F32V& value) {
#if defined(__x86_64__)
  asm volatile("" : "+x"(value));
#else
  (void)value;
#endif
}

/// A function of many steps runs in its own lane, in memory: here it would need the registers that the values are in.
template <Lane lane>
__attribute__((noinline)) void run_in_memory(char* spilled) {
  const void* sources[1] = {spilled};
  lane(spilled, sources, nullptr, kChainVectors * kFloats);
}

template <Lane lane>
OPKIT_INLINE void chain_function(ChainValues& values) {
  char spilled[sizeof(ChainValues)];
  store_all(spilled, values);
  run_in_memory<lane>(spilled);
  load_all(values, spilled);
}

/// As exp_run: one check for all vectors.
OPKIT_INLINE void chain_exp(ChainValues& values) {
  U32V largest = {};
#pragma GCC unroll 8
  for (size_t u = 0; u < kChainVectors; ++u) {
    const U32V magnitude = (U32V)values[u] & 0x7fffffff;
    largest = magnitude > largest ? magnitude : largest;
  }
  if (__builtin_expect(any_beyond((F32V)largest, kExpUsual), 0)) return chain_function<&exp_run>(values);
#pragma GCC unroll 8
  for (size_t u = 0; u < kChainVectors; ++u) {
    values[u] = exp_usual(values[u]);
    keep_order(values[u]);
  }
}

/// One instruction, the `index`-th of its link. What NaN it is shows in memory alone.
template <class Row, size_t index>
OPKIT_INLINE void chain_row(ChainValues& values, const ChainLink* link, size_t at) {
  if constexpr (Row::kOp == Op::Exp) return chain_exp(values);
  if constexpr (Row::kOp == Op::Ln) return chain_function<&run<FormatF32, other::Ln>>(values);
  if constexpr (Row::kOp == Op::Rsqrt) return chain_function<&run<FormatF32, other::Rsqrt>>(values);
  const F32V s = Row::kHasScalar ? FormatF32::scalar(link->scalar[index]) : F32V{};
  const uint8_t* second = Row::kSources > 1 ? link->second[index] + at : nullptr;
  const uint8_t* dst = Row::kReadsDst ? link->dst + at : nullptr;
#pragma GCC unroll 8
  for (size_t u = 0; u < kChainVectors; ++u) {
    const F32V a = values[u];
    const F32V b = Row::kSources > 1 ? load<F32V>(second + u * sizeof(F32V)) : a;
    const F32V d = Row::kReadsDst ? load<F32V>(dst + u * sizeof(F32V)) : a;
    values[u] = Row::apply(a, b, d, s, F32V{});
    keep_order(values[u]);
  }
}

struct NoRow {};

void link_end(F32V, F32V, F32V, F32V, F32V, F32V, F32V, F32V, const ChainLink*, size_t) {}

template <bool loads, bool stores, class First, class Second>
void link_rows(OPKIT_CHAIN_VALUES, const ChainLink* link, size_t at) {
  ChainValues values = {v0, v1, v2, v3, v4, v5, v6, v7};
  if constexpr (loads) load_all(values, link->first + at);
  chain_row<First, 0>(values, link, at);
  if constexpr (!__is_same(Second, NoRow)) chain_row<Second, 1>(values, link, at);
  if constexpr (stores) {
    make_canonical(values);
    store_all(link->dst + at, values);
  }
  OPKIT_CHAIN_NEXT(values);
}

/// Cast from 16 bits. They lie in memory, as the results of casts to them do.
template <DType dtype, bool stores>
void link_widen(F32V, F32V, F32V, F32V, F32V, F32V, F32V, F32V, const ChainLink* link, size_t at) {
  ChainValues values;
#pragma GCC unroll 8
  for (size_t u = 0; u < kChainVectors; ++u) {
    values[u] = read_floats(reinterpret_cast<const char*>(link->first) + at / 2 + u * sizeof(HalvesV), dtype);
  }
  if constexpr (stores) {
    make_canonical(values);
    store_all(link->dst + at, values);
  }
  OPKIT_CHAIN_NEXT(values);
}

/// Cast to 16 bits; what the values were before is what the next link is given.
template <DType dtype, bool loads>
void link_narrow(OPKIT_CHAIN_VALUES, const ChainLink* link, size_t at) {
  ChainValues values = {v0, v1, v2, v3, v4, v5, v6, v7};
  if constexpr (loads) load_all(values, link->first + at);
#pragma GCC unroll 8
  for (size_t u = 0; u < kChainVectors; ++u) {
    write_floats<dtype, kRint>(reinterpret_cast<char*>(link->dst) + at / 2 + u * sizeof(HalvesV), values[u]);
    keep_order(values[u]);
  }
  OPKIT_CHAIN_NEXT(values);
}

RunLink link_of_cast(const ChainStep& step) {
  const bool is_half = step.first_dtype == DType::F16 || step.dst_dtype == DType::F16;
  if (step.dst_dtype == DType::F32) {
    if (is_half) return step.is_stored ? &link_widen<DType::F16, true> : &link_widen<DType::F16, false>;
    return step.is_stored ? &link_widen<DType::BF16, true> : &link_widen<DType::BF16, false>;
  }
  if (is_half) return step.first == nullptr ? &link_narrow<DType::F16, false> : &link_narrow<DType::F16, true>;
  return step.first == nullptr ? &link_narrow<DType::BF16, false> : &link_narrow<DType::BF16, true>;
}

/// By whether it loads, and stores.
struct LinkForms {
  RunLink of[2][2] = {};
};

template <class First, class Second = NoRow>
constexpr LinkForms forms_of() {
  LinkForms forms;
  if constexpr ((First::kTypes & type_bits::bit_of(DType::F32)) != 0) {
    forms.of[0][0] = &link_rows<false, false, First, Second>;
    forms.of[0][1] = &link_rows<false, true, First, Second>;
    forms.of[1][0] = &link_rows<true, false, First, Second>;
    forms.of[1][1] = &link_rows<true, true, First, Second>;
  }
  return forms;
}

/// The instructions that share a link with another one of them.
constexpr size_t kPairing = 5;
constexpr size_t pairing_index(Op op) {
  switch (op) {
    case Op::Add: return 0;
    case Op::Sub: return 1;
    case Op::Mul: return 2;
    case Op::Adds: return 3;
    case Op::Muls: return 4;
    default: return kPairing;
  }
}

struct ChainLinks {
  LinkForms one[kOps] = {};  ///< null for what does not take floats
  LinkForms two[kPairing][kPairing] = {};

  template <class First, class... Second>
  constexpr void add_pairs() {
    ((two[pairing_index(First::kOp)][pairing_index(Second::kOp)] = forms_of<First, Second>()), ...);
  }
  template <class... Row>
  constexpr void add_all_pairs() {
    (add_pairs<Row, Row...>(), ...);
  }

  constexpr ChainLinks() {
#define OPKIT_ADD_LINK(name, ...) one[static_cast<size_t>(Op::name)] = forms_of<other::name>();
#define VEC_UNARY OPKIT_ADD_LINK
#define VEC_BINARY OPKIT_ADD_LINK
#define VEC_BINARY_SCALAR OPKIT_ADD_LINK
#include "opkit/isa/vec_unary.inc"
#include "opkit/isa/vec_binary.inc"
#include "opkit/isa/vec_binary_scalar.inc"
#undef VEC_UNARY
#undef VEC_BINARY
#undef VEC_BINARY_SCALAR
#undef OPKIT_ADD_LINK
    add_all_pairs<other::Add, other::Sub, other::Mul, other::Adds, other::Muls>();
  }
};

constexpr ChainLinks kChainLinks;

/// Writes the links of steps; returns the last one's end.
ChainLink* link_steps(const ChainStep* step, const ChainStep* end, ChainLink* link) {
  for (; step != end; ++step, ++link) {
    *link = {nullptr, step->first, step->dst, {step->second, nullptr}, {step->scalar, 0}};
    if (step->op == Op::Cast) {
      link->run = link_of_cast(*step);
      continue;
    }
    const ChainStep* next = step + 1;
    const LinkForms* forms = &kChainLinks.one[static_cast<size_t>(step->op)];
    const size_t index = pairing_index(step->op);
    if (!step->is_stored && next != end && next->first == nullptr && index != kPairing) {
      const size_t next_index = pairing_index(next->op);
      if (next_index != kPairing) {
        forms = &kChainLinks.two[index][next_index];
        link->dst = next->dst;
        link->second[1] = next->second;
        link->scalar[1] = next->scalar;
        step = next;
      }
    }
    link->run = forms->of[link->first != nullptr][step->is_stored];
  }
  return link;
}

size_t run_chain(const ChainStep* steps, size_t step_count, size_t count) {
  constexpr size_t kElements = kChainVectors * kFloats;
  ChainLink links[kMostChainSteps + 1];
  link_steps(steps, steps + step_count, links)->run = &link_end;
  const size_t end = count / kElements * kElements;
  const F32V none = {};
  for (size_t at = 0; at != end * sizeof(float); at += kElements * sizeof(float)) {
    links->run(none, none, none, none, none, none, none, none, links, at);
  }
  return end;
}

#undef OPKIT_CHAIN_VALUES
#undef OPKIT_CHAIN_NEXT

constexpr void add_chain(LaneTable& table) { table.run_chain = &run_chain; }

}  // namespace
}  // namespace opkit::lanes
