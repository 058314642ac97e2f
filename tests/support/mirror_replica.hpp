// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <exception>
#include <limits>
#include <stdexcept>
#include <vector>

#include <time.h>

#include "xla/run/state/context.hpp"
#include "xla/run/world/replica.hpp"

namespace test {

/// Replica 0 of two, of which the other one always has half of what this one has and one more, in
/// time. Between start and wait the elements are its own: it fills them with NaN, and finds out who
/// has changed them. Exchanges follow one another on a line that takes latency seconds and bytes /
/// bandwidth for each, and no processor: on a clock of its own, which goes while this thread
/// computes, and jumps to the end of what it waits for. While it lives it is this thread's
/// device's.
class mirror_replica final : public xla::detail::replica {
 public:
  explicit mirror_replica(double latency = 0,
                          double bandwidth = std::numeric_limits<double>::infinity())
      : replica(0, 2), latency_(latency), bandwidth_(bandwidth) {
    xla::detail::this_thread.device->replica.store(this);
  }
  ~mirror_replica() override { xla::detail::this_thread.device->replica.store(nullptr); }

  std::uint64_t start(const xla::detail::exchange& e) override {
    if (static_cast<int>(sizes.size()) == fails_at) throw std::runtime_error("the line is cut");
    trip t;
    std::int64_t bytes = 0;
    for (int i = 0; i < e.piece_count; ++i) bytes += add(t, e, e.pieces[i]);
    sizes.push_back(bytes);
    pieces.push_back(e.piece_count);
    t.end = free_ = std::max(now(), free_) + latency_ + double(bytes) / bandwidth_;
    trips_.push_back(std::move(t));
    return trips_.size();
  }
  void wait(std::uint64_t ticket) override {
    if (waits_in_vain) throw std::runtime_error("nobody comes");
    trip& t = trips_[static_cast<std::size_t>(ticket - 1)];
    waited_ += std::max(0.0, t.end - now());
    for (part& p : t.parts) finish(p);
    t.parts.clear();
  }
  void abort(std::exception_ptr why) noexcept override {
    aborted = why;
    for (trip& t : trips_) t.parts.clear();
  }
  bool progresses_alone() const noexcept override { return progresses; }
  void progress() noexcept override { ++pushed; }

  /// What this thread has computed, in seconds, and waited.
  double now() const {
    timespec t{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return double(t.tv_sec) + 1e-9 * double(t.tv_nsec) + waited_;
  }

  std::vector<std::int64_t> sizes;  ///< of the exchanges so far, in bytes
  std::vector<int> pieces;          ///< of each
  int disturbed = 0;                ///< elements changed before the exchange has ended
  int fails_at = -1;                ///< the exchange that throws when it starts
  bool waits_in_vain = false;       ///< every wait throws
  bool progresses = true;
  int pushed = 0;
  std::exception_ptr aborted;

 private:
  struct part {
    const float* in;
    float* out;
    xla::reduce_type how;
    std::vector<float> before;
  };
  struct trip {
    double end = 0;
    std::vector<part> parts;
  };

  std::int64_t add(trip& t, const xla::detail::exchange& e, const xla::detail::exchange_piece& p) {
    if (e.type != xla::dtype::float32 || e.what != xla::detail::exchange::kind::all_reduce)
      throw std::logic_error("mirror_replica: only all_reduce of float32");
    const auto* in = static_cast<const float*>(p.in);
    auto* out = static_cast<float*>(p.out);
    t.parts.push_back({in, out, e.how, {in, in + p.count}});
    std::fill_n(out, p.count, std::numeric_limits<float>::quiet_NaN());
    return p.count * std::int64_t{sizeof(float)};
  }
  void finish(const part& p) {
    for (std::size_t i = 0; i < p.before.size(); ++i) {
      const float x = p.before[i], other = x / 2 + 1;
      disturbed += !std::isnan(p.out[i]) || (p.in != p.out && !(p.in[i] == x));
      const float sum = p.how == xla::reduce_type::max ? std::max(x, other) : x + other;
      p.out[i] = p.how == xla::reduce_type::mean ? sum * 0.5f : sum;
    }
  }

  double latency_, bandwidth_;
  double free_ = 0, waited_ = 0;
  std::deque<trip> trips_;
};

}  // namespace test
