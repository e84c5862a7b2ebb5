"""How a product is cut into blocks, as C++ for an operator's host code.

This is the search of `cutting`, which loops as far as a launch's sizes ask for: no expression says
it, so that it stands here a second time. A test compares both for many sizes.
"""

from __future__ import annotations

from dataclasses import astuple

from opkit.chips import Chip

from .cutting import (
    BEST,
    BLOCK_CYCLES,
    BURST_CYCLES,
    CHUNK_BYTES,
    MOST_MORE_READ,
    STEP_BYTES,
    CubeRates,
)

__all__ = ["CUT_CPP", "cut_call"]

CUT_CPP = f"""// A product's result in blocks: how many there are down and across, and how many across share a band.
struct CubeCut {{
    int64_t down = 1;
    int64_t across = 1;
    int64_t band = 1;
    int64_t cores = 1;
}};

// What a core computes and copies in a cycle, what it takes to begin, and the sums that it holds.
struct CubeRates {{
    int64_t limit;
    double macs;
    double copied;
    double cold;    // of what L2 does not have yet
    double launch;  // cycles that each core adds to a launch
    int64_t bytes;  // of an element of the matrices
}};

class CubeCutter {{
public:
    CubeCutter(int64_t givenBatches, int64_t givenM, int64_t givenN, int64_t givenK, int64_t givenCores, const CubeRates& given)
        : batches(givenBatches), m(givenM), n(givenN), k(givenK), cores(givenCores), rates(given)
    {{
    }}

    // The cut whose launch is done first: rough estimates of all, and the best of them block by block.
    CubeCut Best() const
    {{
        std::vector<std::tuple<double, int64_t, int64_t, double, int64_t>> rough;
        const double first = static_cast<double>(batches * (m + n) * k * rates.bytes) * (1 / rates.cold - 1 / rates.copied);
        const std::vector<int64_t> downs = Counts(m);
        const std::vector<int64_t> acrosses = Counts(n);
        for (const int64_t down : downs) {{
            for (const int64_t across : acrosses) {{
                if (Most(m, down) * Most(n, across) <= rates.limit) {{
                    const int64_t blocks = batches * down * across;
                    const double each = Estimate(down, across) + first / static_cast<double>(blocks);
                    const int64_t rounds = Rounds(blocks, each);
                    const int64_t used = DivideUp(blocks, rounds);
                    const double estimate = static_cast<double>(rounds) * each;
                    rough.emplace_back(estimate + rates.launch * static_cast<double>(used), down, across, estimate, used);
                }}
            }}
        }}
        std::sort(rough.begin(), rough.end());
        CubeCut best;
        double least = 0.0;
        for (size_t index = 0; index < rough.size() && index < {BEST}; ++index) {{
            CubeCut cut;
            cut.down = std::get<1>(rough[index]);
            cut.across = std::get<2>(rough[index]);
            const int64_t blocks = batches * cut.down * cut.across;
            cut.cores = std::get<4>(rough[index]);
            cut.band = Band(cut);
            const int64_t all = batches * m * n;
            const double busiest = static_cast<double>(Busiest(cut) * cut.cores) / static_cast<double>(all);
            const int64_t rounds = DivideUp(blocks, cut.cores);
            const double even = static_cast<double>(blocks) / static_cast<double>(cut.cores) / static_cast<double>(rounds);
            const double cost = std::get<3>(rough[index]) * std::max(1.0, busiest * even) + rates.launch * static_cast<double>(cut.cores);
            if (index == 0 || cost < least) {{
                least = cost;
                best = cut;
            }}
        }}
        return best;
    }}

private:
    static int64_t Most(int64_t extent, int64_t parts)
    {{
        return DivideUp(DivideUp(extent, 16), parts) * 16;
    }}

    static int64_t Begin(int64_t extent, int64_t parts, int64_t index)
    {{
        const int64_t fractals = DivideUp(extent, 16);
        return (index * (fractals / parts) + std::min(index, fractals % parts)) * 16;
    }}

    // Numbers of blocks worth trying along an axis.
    static std::vector<int64_t> Counts(int64_t extent)
    {{
        const int64_t fractals = DivideUp(extent, 16);
        std::vector<int64_t> counts;
        for (int64_t side = std::min<int64_t>(fractals, 16); side >= 1; --side) {{
            const int64_t count = DivideUp(fractals, side);
            if (counts.empty() || counts.back() != count) {{
                counts.push_back(count);
            }}
        }}
        return counts;
    }}

    double Burst(double size) const
    {{
        return std::max(size / rates.copied, {BURST_CYCLES});
    }}

    // Blocks of a core at most: about the root of what all cores would take to begin over what a block takes.
    int64_t Rounds(int64_t blocks, double each) const
    {{
        const auto root = static_cast<int64_t>(std::sqrt(static_cast<double>(blocks) * rates.launch / each));
        const int64_t least = DivideUp(blocks, cores);
        const auto cost = [&](int64_t rounds) {{
            return static_cast<double>(rounds) * each + rates.launch * static_cast<double>(DivideUp(blocks, rounds));
        }};
        int64_t best = least;
        for (const int64_t rounds : {{std::max(least, root), std::max(least, root + 1)}}) {{
            if (cost(rounds) < cost(best)) {{
                best = rounds;
            }}
        }}
        return best;
    }}

    // Cycles of one block.
    double Estimate(int64_t down, int64_t across) const
    {{
        const double rows = static_cast<double>(Most(m, down));
        const double columns = static_cast<double>(Most(n, across));
        const double chunk = static_cast<double>({CHUNK_BYTES} / rates.bytes);
        const double step = static_cast<double>({STEP_BYTES} / rates.bytes);
        const double exactRows = static_cast<double>(m) / static_cast<double>(down);
        const double exactColumns = static_cast<double>(n) / static_cast<double>(across);
        const double area = std::min(rows, exactRows + 4) * std::min(columns, exactColumns + 4);
        const double height = std::min(rows, exactRows);
        const double width = std::min(columns, exactColumns);
        const double depth = static_cast<double>(k);
        const double cube = area * depth / rates.macs * (1 + 10 / (rows * columns * step / rates.macs));
        const double right = rates.bytes > 1 ? chunk * Burst(static_cast<double>(rates.bytes) * width)
                                             : width * Burst({CHUNK_BYTES});
        const double moved = (height * Burst({CHUNK_BYTES}) + right) * depth / chunk * 1.06;
        return std::max(cube, moved) + 0.3 * std::min(cube, moved) + {BLOCK_CYCLES};
    }}

    // Cores that work at the same time read the fewest bytes where what they compute is about square.
    int64_t Band(CubeCut cut) const
    {{
        const double rows = static_cast<double>(m) / static_cast<double>(cut.down);
        const double columns = static_cast<double>(n) / static_cast<double>(cut.across);
        const auto read = [&](int64_t width) {{
            return static_cast<double>(DivideUp(cut.cores, width)) * rows + static_cast<double>(width) * columns;
        }};
        double least = 0.0;
        for (int64_t width = 1; width <= std::min(cut.across, cut.cores); ++width) {{
            if (cut.cores % width == 0 && (width == 1 || read(width) < least)) {{
                least = read(width);
            }}
        }}
        int64_t band = 0;
        int64_t busiest = 0;
        for (int64_t width = 1; width <= std::min(cut.across, cut.cores); ++width) {{
            if (cut.cores % width != 0 || read(width) > least * {MOST_MORE_READ}) {{
                continue;
            }}
            cut.band = width;
            const int64_t load = Busiest(cut);
            if (band == 0 || load < busiest || (load == busiest && read(width) < read(band))) {{
                band = width;
                busiest = load;
            }}
        }}
        return band;
    }}

    // The elements of the core that has most.
    int64_t Busiest(const CubeCut& cut) const
    {{
        const int64_t blocks = batches * cut.down * cut.across;
        if (blocks > 4096) {{
            return Most(m, cut.down) * Most(n, cut.across) * DivideUp(blocks, cut.cores);
        }}
        std::vector<int64_t> loads(static_cast<size_t>(cut.cores));
        for (int64_t index = 0; index < blocks; ++index) {{
            const int64_t inBatch = index % (cut.down * cut.across);
            const int64_t first = inBatch / (cut.down * cut.band) * cut.band;
            const int64_t wide = std::min(cut.band, cut.across - first);
            const int64_t i = inBatch % (cut.down * cut.band) / wide;
            const int64_t j = first + inBatch % (cut.down * cut.band) % wide;
            const int64_t rows = std::min(m, Begin(m, cut.down, i + 1)) - Begin(m, cut.down, i);
            const int64_t columns = std::min(n, Begin(n, cut.across, j + 1)) - Begin(n, cut.across, j);
            loads[static_cast<size_t>(index % cut.cores)] += rows * columns;
        }}
        return *std::max_element(loads.begin(), loads.end());
    }}

    int64_t batches;
    int64_t m;
    int64_t n;
    int64_t k;
    int64_t cores;
    CubeRates rates;
}};
"""
"""Needs `DivideUp`, <algorithm>, <cmath>, <tuple> and <vector>."""


def cut_call(
    batches: str, m: str, n: str, k: str, cores: str, chip: Chip, *, is_int8: bool = False
) -> str:
    """Return the C++ of a product's cut; arguments are C++."""
    rates = ", ".join(map(repr, astuple(CubeRates.of(chip, is_int8=is_int8))))
    return f"CubeCutter({batches}, {m}, {n}, {k}, {cores}, CubeRates{{{rates}}}).Best()"
