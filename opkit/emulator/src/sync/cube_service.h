/// The requests of a block's vector cores to its cube core.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "opkit/matmul/service.h"

namespace opkit {

struct Core;
struct Instr;
struct LaunchState;

/// Of one block; every access holds LaunchState::wait_lock.
struct CubeService {
  struct Pending {
    CubeRequest request;
    std::vector<uint8_t> payload;
  };
  struct Client {
    std::deque<Pending> requests;
    uint64_t posted = 0;    ///< steps
    uint64_t finished = 0;  ///< steps
    bool has_ended = false;
  };
  Client clients[2];         ///< by GetSubBlockIdx
  bool serves_both = false;  ///< the request being served is that of both
  uint32_t served = 0;       ///< whose request it is
};

void execute_cube_post(Core& core, const Instr& instr);
void execute_cube_take(Core& core, const Instr& instr);
void execute_cube_finish(Core& core, const Instr& instr);
void execute_cube_await(Core& core, const Instr& instr);

/// A vector core has ended: its cube core need not wait for it any more.
void end_cube_client(const Core& core);

}  // namespace opkit
