/// A limit on how long launches may go on without progress.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "opkit/export.h"

namespace opkit {

/// While it lives, ends every launch of which no core has ended for so long; see stop_launch().
class OPKIT_API TimeLimit {
 public:
  /// `counts_host`: what runs while no launch does is limited, too, as it is an operator's host code.
  explicit TimeLimit(double seconds, bool counts_host = false);
  ~TimeLimit();
  TimeLimit(const TimeLimit&) = delete;
  TimeLimit& operator=(const TimeLimit&) = delete;

 private:
  void watch();

  double seconds_;
  bool counts_host_;
  bool is_over_ = false;
  std::mutex lock_;
  std::condition_variable end_;
  std::thread thread_;
};

}  // namespace opkit
