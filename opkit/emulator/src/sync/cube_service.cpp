// Requests from vector cores to their cube core. Each function is an instruction, so that whoever watches instructions
// sees which core has waited for which; dst.address names the direction: from a block's vector cores, or to them.
#include "sync/cube_service.h"

#include <atomic>
#include <mutex>

#include "core/launch_state.h"
#include "isa/table.h"
#include "opkit/matmul/core_extension.h"
#include "sched/wait.h"

namespace opkit {
namespace {

CubeService& service_of(const Core& core) { return core.launch->cross_core.services[core.block]; }

/// The two directions as addresses that no tensor has.
uint64_t channel(const Core& core, bool is_to_cube) { return 1 + uint64_t{core.block} * 2 + (is_to_cube ? 0 : 1); }

Instr instruction(Op op, bool is_to_cube, Where where) {
  const Core* core = current_core();
  if (core == nullptr) raise_fault(Fault::Internal, nullptr, nullptr, "no kernel runs on this thread");
  Instr instr;
  instr.op = op;
  instr.pipe = Pipe::ALL;
  instr.dst.space = Space::GM;
  instr.dst.address = channel(*core, is_to_cube);
  instr.where = where;
  return instr;
}

/// A bit for each vector core whose request the running cube core serves.
uint64_t served_clients() {
  const Core& core = *current_core();
  std::lock_guard<std::mutex> guard(core.launch->wait_lock);
  const CubeService& service = service_of(core);
  return service.serves_both ? 3 : uint64_t{1} << service.served;
}

struct Wait {
  LaunchState* launch;
  CubeService* service;
  uint64_t step = 0;
  uint32_t client = 0;
  uint32_t client_count = 0;
  CubeService::Pending* taken = nullptr;
  bool has_taken = false;
};

bool is_step_done(void* context) {
  const auto& wait = *static_cast<Wait*>(context);
  std::lock_guard<std::mutex> guard(wait.launch->wait_lock);
  return wait.service->clients[wait.client].finished >= wait.step;
}

/// Takes a request if there is one, also true when none will come any more.
bool take_request(void* context) {
  auto& wait = *static_cast<Wait*>(context);
  std::lock_guard<std::mutex> guard(wait.launch->wait_lock);
  CubeService& service = *wait.service;
  bool have_ended = true;
  for (uint32_t i = 0; i < wait.client_count; ++i) {
    CubeService::Client& client = service.clients[i];
    have_ended = have_ended && client.has_ended && client.requests.empty();
    if (client.requests.empty()) continue;
    const bool is_shared = client.requests.front().request.is_shared && wait.client_count == 2;
    if (is_shared) {
      CubeService::Client& other = service.clients[1 - i];
      if (other.requests.empty() || !other.requests.front().request.is_shared) continue;
      service.clients[1].requests.pop_front();
      i = 0;
    }
    CubeService::Client& chosen = service.clients[i];
    *wait.taken = std::move(chosen.requests.front());
    chosen.requests.pop_front();
    service.served = i;
    service.serves_both = is_shared;
    wait.has_taken = true;
    return true;
  }
  return have_ended;
}

}  // namespace

void execute_cube_post(Core& core, const Instr& instr) {
  OPKIT_CHECK(core.kind == SubCore::AIV && cube_cores(core.launch->launch->mode) == 1, IllegalOperand, &instr,
              "give the kernel __mix__(1, 2), or define ASCENDC_CUBE_ONLY and call it on cube cores",
              "Matmul: a vector core has no cube core that works for it in this launch");
  const auto& request = *reinterpret_cast<const CubeRequest*>(instr.scalar_bits[0]);
  {
    std::lock_guard<std::mutex> guard(core.launch->wait_lock);
    CubeService::Client& client = service_of(core).clients[core.sub_block];
    const auto* bytes = static_cast<const uint8_t*>(request.payload);
    client.requests.push_back({request, std::vector<uint8_t>(bytes, bytes + request.payload_bytes)});
    client.posted += request.steps;
    *reinterpret_cast<uint64_t*>(instr.scalar_bits[1]) = client.posted;
  }
  signal_progress(*core.launch);
}

void execute_cube_take(Core& core, const Instr& instr) {
  const uint32_t clients = vector_cores(core.launch->launch->mode);
  OPKIT_CHECK(core.kind == SubCore::AIC && clients > 0, IllegalOperand, &instr,
              "define ASCENDC_CUBE_ONLY before lib/matmul_intf.h is included",
              "Matmul: this kernel has no vector cores, and its Matmul objects wait for requests of vector cores");
  Wait wait;
  wait.launch = core.launch;
  {
    std::lock_guard<std::mutex> guard(core.launch->wait_lock);
    wait.service = &service_of(core);
  }
  wait.client_count = clients;
  wait.taken = reinterpret_cast<CubeService::Pending*>(instr.scalar_bits[0]);
  wait_until(take_request, &wait, instr, "Matmul requests of the block's vector cores");
  *reinterpret_cast<bool*>(instr.scalar_bits[1]) = wait.has_taken;
}

void execute_cube_finish(Core& core, const Instr& instr) {
  (void)instr;
  {
    std::lock_guard<std::mutex> guard(core.launch->wait_lock);
    CubeService& service = service_of(core);
    ++service.clients[service.served].finished;
    if (service.serves_both) ++service.clients[1 - service.served].finished;
  }
  signal_progress(*core.launch);
}

void execute_cube_await(Core& core, const Instr& instr) {
  Wait wait;
  wait.launch = core.launch;
  {
    std::lock_guard<std::mutex> guard(core.launch->wait_lock);
    wait.service = &service_of(core);
  }
  wait.step = instr.scalar_bits[0];
  wait.client = core.sub_block;
  wait_until(is_step_done, &wait, instr, "the result of a Matmul request");
}

void end_cube_client(const Core& core) {
  if (core.kind != SubCore::AIV || cube_cores(core.launch->launch->mode) == 0) return;
  {
    std::lock_guard<std::mutex> guard(core.launch->wait_lock);
    service_of(core).clients[core.sub_block].has_ended = true;
  }
  signal_progress(*core.launch);
}

uint64_t post_cube_request(const CubeRequest& request, Where where) {
  uint64_t last_step = 0;
  Instr instr = instruction(Op::CubePost, true, where);
  instr.scalar_bits[0] = reinterpret_cast<uint64_t>(&request);
  instr.scalar_bits[1] = reinterpret_cast<uint64_t>(&last_step);
  issue(instr);
  return last_step;
}

void await_cube_step(uint64_t step, Where where) {
  Instr instr = instruction(Op::CubeAwait, false, where);
  instr.scalar_bits[0] = step;
  issue(instr);
}

void finish_cube_step(Where where) {
  Instr instr = instruction(Op::CubeFinish, false, where);
  instr.scalar_bits[0] = served_clients();
  issue(instr);
}

void serve_cube_requests(Where where) {
  for (;;) {
    CubeService::Pending pending;
    bool has_request = false;
    Instr instr = instruction(Op::CubeTake, true, where);
    instr.scalar_bits[0] = reinterpret_cast<uint64_t>(&pending);
    instr.scalar_bits[1] = reinterpret_cast<uint64_t>(&has_request);
    issue(instr);
    if (!has_request) return;
    Instr serve = instruction(Op::CubeServe, true, where);
    serve.scalar_bits[0] = served_clients();
    issue(serve);
    pending.request.serve(pending.payload.data());
  }
}

void* matmul::core_extension() { return running_core()->extension; }

uint64_t matmul::next_pass() {
  static std::atomic<uint64_t> next{1};
  return next.fetch_add(1) << 32;
}

}  // namespace opkit
