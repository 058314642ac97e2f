// SPDX-License-Identifier: Apache-2.0
#pragma once

// The samples of one metric, as metric_data() returns them. metrics.hpp and metric_store.hpp use
// it; counters have no samples.

#include <cstdint>
#include <vector>

namespace xla {

/// One sample of a metric: when it was taken (seconds since the Unix epoch) and its value.
struct metric_sample {
  double time;
  double value;
};

/// The samples of one metric. `total_samples` and `accumulator` (their sum) cover everything since
/// the last clear, `samples` at most the newest 1,024, oldest first. Times are in nanoseconds.
struct metric_values {
  std::int64_t total_samples = 0;
  double accumulator = 0;
  std::vector<metric_sample> samples;
};

}  // namespace xla
