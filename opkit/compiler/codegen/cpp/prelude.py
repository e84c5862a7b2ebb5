"""C++ that every file of the target `cpp` begins with."""

from __future__ import annotations

__all__ = ["PRELUDE"]

PRELUDE = r"""
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <thread>
#include <type_traits>
#include <vector>

namespace {

struct Half { uint16_t bits; };
struct Brain { uint16_t bits; };

inline float FromBits(uint32_t bits)
{
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
}

inline uint32_t ToBits(float value)
{
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    return bits;
}

inline float Load(Brain from) { return FromBits(static_cast<uint32_t>(from.bits) << 16); }

// Without branches, so that loops over halves are vectors'.
inline float Load(Half from)
{
    const uint32_t sign = static_cast<uint32_t>(from.bits & 0x8000u) << 16;
    const uint32_t rest = static_cast<uint32_t>(from.bits & 0x7fffu) << 13;
    // Exponents differ by 112, those of subnormal halves too.
    const uint32_t finite = ToBits(FromBits(rest) * 5192296858534827628530496329220096.0f);
    return FromBits(sign | (rest >= 0xf800000u ? rest | 0x7f800000u : finite));
}

template <typename T>
inline T Load(T from) { return from; }

inline void Store(Brain& to, float value)
{
    const uint32_t bits = ToBits(value);
    to.bits = value != value ? 0x7fc0u : static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

inline void Store(Half& to, float value)
{
    const uint32_t bits = ToBits(value);
    const uint32_t size = bits & 0x7fffffffu;
    // Adding one half puts the unit of the last place where a subnormal half has it.
    const uint32_t small = ToBits(FromBits(size) + 0.5f) - 0x3f000000u;
    uint32_t half = (size - 0x38000000u + 0xfffu + (size >> 13 & 1u)) >> 13;
    half = size < 0x38800000u ? small : half;
    half = size >= 0x477ff000u ? 0x7c00u : half;
    half = size > 0x7f800000u ? 0x7e00u : half;
    to.bits = static_cast<uint16_t>(bits >> 16 & 0x8000u | half);
}

template <typename T, typename V>
inline void Store(T& to, V value) { to = static_cast<T>(value); }

// A value as the type T of 16 bits holds it.
template <typename T, typename V>
inline float Rounded(V value)
{
    T to;
    Store(to, static_cast<float>(value));
    return Load(to);
}

// What is no number wins, as in NumPy.
template <typename T>
inline T Larger(T left, T right) { return left > right || left != left ? left : right; }
template <typename T>
inline T Smaller(T left, T right) { return left < right || left != left ? left : right; }

// e to the power of x: without branches, so that loops over it are vectors'. Its polynomial is of the remainder of x / ln 2
// within half of ln 2, with coefficients of our own fit; powers of two are two factors, so that denormals come out.
inline double Exp(double x) { return std::exp(x); }
inline float Exp(float x)
{
    const float within = x > 89.0f ? 89.0f : x < -104.0f ? -104.0f : x;
    const float whole = (within * 1.44269504f + 12582912.0f) - 12582912.0f;
    const float rest = within - whole * 0.693359375f + whole * 2.12194440e-4f;
    float power = (((((0.00138436188f * rest + 0.0083741853f) * rest + 0.0416680053f) * rest + 0.166664302f) * rest + 0.49999994f) * rest + 1.0f) * rest + 1.0f;
    const int32_t steps = static_cast<int32_t>(whole), half = steps >> 1;
    power *= FromBits(static_cast<uint32_t>(half + 127) << 23);
    power *= FromBits(static_cast<uint32_t>(steps - half + 127) << 23);
    return x != x ? x : power;
}

#pragma omp declare reduction(larger : float, double : omp_out = Larger(omp_out, omp_in)) initializer(omp_priv = omp_orig)
#pragma omp declare reduction(smaller : float, double : omp_out = Smaller(omp_out, omp_in)) initializer(omp_priv = omp_orig)
#pragma omp declare reduction(larger : bool, int8_t, uint8_t, int16_t, uint16_t, int32_t, uint32_t, int64_t, uint64_t : omp_out = Larger(omp_out, omp_in)) initializer(omp_priv = omp_orig)
#pragma omp declare reduction(smaller : bool, int8_t, uint8_t, int16_t, uint16_t, int32_t, uint32_t, int64_t, uint64_t : omp_out = Smaller(omp_out, omp_in)) initializer(omp_priv = omp_orig)

template <typename T, typename V>
inline T Narrowed(V value)
{
    const double cut = std::trunc(static_cast<double>(value));
    if (cut != cut) return 0;
    if (cut <= static_cast<double>(std::numeric_limits<T>::lowest())) return std::numeric_limits<T>::lowest();
    if (cut >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
    return static_cast<T>(cut);
}

// Calls work(first, last) for shares of `count` things, on as many threads as there is work for.
template <typename Work>
void Parallel(int64_t count, int64_t each, int threads, const Work& work)
{
    const int64_t wanted = std::min<int64_t>({threads, count, count * each / 16384 + 1});
    if (wanted <= 1) {
        work(0, count);
        return;
    }
    std::vector<std::thread> others;
    const auto begin = [&](int64_t share) { return count * share / wanted; };
    for (int64_t share = 1; share < wanted; ++share) {
        others.emplace_back([&, share] { work(begin(share), begin(share + 1)); });
    }
    work(0, begin(1));
    for (std::thread& other : others) other.join();
}

// Products of matrices: left [batch][m][k] or [k][m], right [batch][k][n] or [n][k]. A panel of columns of the right
// matrix lies packed while some rows at a time of the left one run down it, their sums in registers.
#ifdef __AVX512F__
constexpr int kVectorBytes = 64;
#else
constexpr int kVectorBytes = 32;
#endif
constexpr int64_t kRows = 6;
constexpr int64_t kMostRows = 240;

template <typename C>
struct VectorOf {
    typedef C Type __attribute__((vector_size(kVectorBytes)));
};

template <typename C>
void MultiplyPanel(const C* a, int64_t rowStep, int64_t step, const C* b, int64_t k, C* sums)
{
    using Vector = typename VectorOf<C>::Type;
    constexpr int64_t lanes = kVectorBytes / sizeof(C);
    Vector total[kRows][2] = {};
    for (int64_t i = 0; i < k; ++i) {
        Vector low, high;
        std::memcpy(&low, b + i * 2 * lanes, sizeof low);
        std::memcpy(&high, b + (i * 2 + 1) * lanes, sizeof high);
#pragma GCC unroll 8
        for (int64_t row = 0; row < kRows; ++row) {
            total[row][0] += a[row * rowStep + i * step] * low;
            total[row][1] += a[row * rowStep + i * step] * high;
        }
    }
    std::memcpy(sums, total, sizeof total);
}

template <typename T, typename C, typename Y>
void Multiply(const T* left, const T* right, Y* y, const int64_t* sizes, bool isLeftTurned, bool isRightTurned, int threads)
{
    const int64_t batches = sizes[0], leftBatch = sizes[1], rightBatch = sizes[2], m = sizes[3], n = sizes[4], k = sizes[5];
    constexpr int64_t width = 2 * kVectorBytes / sizeof(C);
    const int64_t panels = (n + width - 1) / width, parts = (m + kMostRows - 1) / kMostRows;
    Parallel(batches * parts * panels, std::min(m, kMostRows) * k * width, threads, [&](int64_t first, int64_t last) {
        std::vector<C> packed(k * width), rows(k * kRows), sums(kRows * width);
        for (int64_t at = first; at < last; ++at) {
            const int64_t batch = at / (parts * panels), column = at % panels * width;
            const int64_t columns = std::min(width, n - column);
            const T* a = left + batch * leftBatch;
            const T* b = right + batch * rightBatch;
            for (int64_t i = 0; i < k; ++i) {
                for (int64_t j = 0; j < columns; ++j) {
                    packed[i * width + j] = static_cast<C>(Load(b[isRightTurned ? (column + j) * k + i : i * n + column + j]));
                }
            }
            const int64_t begin = at / panels % parts * kMostRows, end = std::min(m, begin + kMostRows);
            for (int64_t row = begin; row < end; row += kRows) {
                const int64_t some = std::min(kRows, end - row);
                const C* from = rows.data();
                int64_t rowStep = 1, step = kRows;
                if constexpr (std::is_same_v<T, C>) {
                    if (some == kRows) {
                        from = isLeftTurned ? a + row : a + row * k;
                        rowStep = isLeftTurned ? 1 : k;
                        step = isLeftTurned ? m : 1;
                    }
                }
                for (int64_t r = 0; from == rows.data() && r < some; ++r) {
                    for (int64_t i = 0; i < k; ++i) {
                        rows[i * kRows + r] = static_cast<C>(Load(a[isLeftTurned ? i * m + row + r : (row + r) * k + i]));
                    }
                }
                MultiplyPanel(from, rowStep, step, packed.data(), k, sums.data());
                for (int64_t r = 0; r < some; ++r) {
                    for (int64_t j = 0; j < columns; ++j) {
                        Store(y[(batch * m + row + r) * n + column + j], sums[r * width + j]);
                    }
                }
            }
        }
    });
}

// softmax(q kT scale + mask) v, row by row.
template <typename T, typename M>
void Attend(const T* q, const T* k, const T* v, const M* mask, T* y, const int64_t* sizes, float scale, bool isCausal, int threads)
{
    const int64_t batches = sizes[0], queries = sizes[1], keys = sizes[2], width = sizes[3], valueWidth = sizes[4];
    const int64_t keyBatch = sizes[5], maskBatch = sizes[6], maskRow = sizes[7], ahead = sizes[8];
    Parallel(batches * queries, keys * width, threads, [&](int64_t first, int64_t last) {
        std::vector<float> weights(keys), sums(valueWidth);
        for (int64_t at = first; at < last; ++at) {
            const int64_t batch = at / queries, row = at % queries;
            const int64_t end = isCausal ? std::min(keys, row + 1 + ahead) : keys;
            float largest = -std::numeric_limits<float>::infinity();
            for (int64_t j = 0; j < end; ++j) {
                float score = 0;
                for (int64_t i = 0; i < width; ++i) score += Load(q[at * width + i]) * Load(k[(batch * keyBatch + j) * width + i]);
                score *= scale;
                if (mask != nullptr) score += Load(mask[batch * maskBatch + row * maskRow + j]);
                weights[j] = score;
                largest = Larger(largest, score);
            }
            float total = 0;
            std::fill(sums.begin(), sums.end(), 0.0f);
            for (int64_t j = 0; j < end; ++j) {
                const float weight = Exp(weights[j] - largest);
                total += weight;
                for (int64_t i = 0; i < valueWidth; ++i) sums[i] += weight * Load(v[(batch * keyBatch + j) * valueWidth + i]);
            }
            for (int64_t i = 0; i < valueWidth; ++i) Store(y[at * valueWidth + i], sums[i] / total);
        }
    });
}

}  // namespace

// Copies a box of elements: for each axis its extent, and the bytes from one index to the next in both arrays.
extern "C" void opkit_move(char* to, const char* from, const int64_t* axes, int64_t rank, int64_t bytes, int threads)
{
    int64_t count = 1;
    for (int64_t axis = 0; axis + 1 < rank; ++axis) count *= axes[3 * axis];
    const int64_t* inner = axes + 3 * (rank - 1);
    Parallel(count, inner[0], threads, [&](int64_t first, int64_t last) {
        for (int64_t at = first; at < last; ++at) {
            int64_t rest = at;
            char* target = to;
            const char* source = from;
            for (int64_t axis = rank - 2; axis >= 0; --axis) {
                const int64_t index = rest % axes[3 * axis];
                rest /= axes[3 * axis];
                target += index * axes[3 * axis + 1];
                source += index * axes[3 * axis + 2];
            }
            if (inner[1] == bytes && inner[2] == bytes) {
                std::memcpy(target, source, inner[0] * bytes);
                continue;
            }
            for (int64_t i = 0; i < inner[0]; ++i) std::memcpy(target + i * inner[1], source + i * inner[2], bytes);
        }
    });
}
"""
