// SPDX-License-Identifier: Apache-2.0
#pragma once

// An exchange without a step around it, for the parts replicas and exchange.

#include <cstdint>
#include <vector>

#include <xla/run/world/world.hpp>
#include <xla/xla.hpp>

#include "measure.hpp"

namespace bench {

/// An all_reduce of this many floats, which all replicas do as often.
class all_reduce {
 public:
  explicit all_reduce(std::int64_t floats)
      : in(static_cast<std::size_t>(floats), 1.0f),
        out(in.size()),
        piece_{in.data(), out.data(), floats} {
    what_.what = xla::detail::exchange::kind::all_reduce;
    what_.pieces = &piece_;
    what_.piece_count = 1;
  }
  all_reduce(const all_reduce&) = delete;
  all_reduce& operator=(const all_reduce&) = delete;

  void operator()() const { xla::detail::replica_now()->run(what_); }

  std::vector<float> in, out;

 private:
  xla::detail::exchange_piece piece_;
  xla::detail::exchange what_;
};

}  // namespace bench
