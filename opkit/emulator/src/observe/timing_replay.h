/// The scoreboard: replays what the cores recorded, pipe by pipe, with memory shared among them.
#pragma once

#include <memory>
#include <vector>

#include "observe/timing_record.h"

namespace opkit {

/// Fills `timing` from the cores' records. One thread, in order of time, ties by core: the same result however many
/// host threads recorded. `cores` may hold null for sub-cores that issued nothing.
void replay(const TimingCosts& costs, const std::vector<std::unique_ptr<CoreRecord>>& cores, uint64_t events_per_core,
            LaunchTiming& timing);

/// When the scalar pipe has issued what a core has recorded so far, if the core ran alone: nothing of the memory's time
/// goes to other cores, and none is waited for.
double scalar_cycle_alone(const TimingCosts& costs, const CoreRecord& record);

/// Fills `timing.lifted_cycles`: the launch replayed without each limit that it meets, one at a time.
void replay_lifted(const TimingCosts& costs, const std::vector<std::unique_ptr<CoreRecord>>& cores,
                   LaunchTiming& timing);

}  // namespace opkit
