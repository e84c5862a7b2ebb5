/// How a vector core has its block's cube core work for it: requests that the cube core serves one after another until
/// the block's vector cores have ended.
#pragma once

#include <cstdint>

#include "opkit/export.h"
#include "opkit/types.h"

namespace opkit {

/// What a vector core asks for. The payload is copied; `serve` runs on the cube core.
struct CubeRequest {
  void (*serve)(const void* payload) = nullptr;
  const void* payload = nullptr;
  uint32_t payload_bytes = 0;
  uint32_t steps = 1;      ///< how many of its steps can be waited for
  bool is_shared = false;  ///< both vector cores ask for the same, and it is done once
};

/// Queues a request and returns the number of its last step; the steps of a core count from 1.
OPKIT_API uint64_t post_cube_request(const CubeRequest& request, Where where);
/// Waits until the cube core has come to the end of a step.
OPKIT_API void await_cube_step(uint64_t step, Where where);

/// On the cube core: serves requests until every vector core of the block has ended.
OPKIT_API void serve_cube_requests(Where where);
/// On the cube core, while it serves: a step is done.
OPKIT_API void finish_cube_step(Where where);

}  // namespace opkit
