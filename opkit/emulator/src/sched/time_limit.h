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
  explicit TimeLimit(double seconds);
  ~TimeLimit();
  TimeLimit(const TimeLimit&) = delete;
  TimeLimit& operator=(const TimeLimit&) = delete;

 private:
  void watch();

  double seconds_;
  bool is_over_ = false;
  std::mutex lock_;
  std::condition_variable end_;
  std::thread thread_;
};

}  // namespace opkit
