// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs a program with exchanges as one executable over all replicas. Programs without exchanges run
// as compiled.hpp says.

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "xla/base/error.hpp"
#include "xla/ext/pjrt/call_memory.hpp"
#include "xla/ext/pjrt/compiled.hpp"
#include "xla/run/plan/fingerprint.hpp"
#include "xla/run/state/generator.hpp"
#include "xla/run/world/world.hpp"

namespace xla::detail {

/// Runs a program with exchanges as one executable, each replica on the plugin's device of its
/// ordinal. The replicas meet at the call; when all have brought their arguments, one of them runs
/// it for all. If one replica throws before, or makes another call, the call ends on all of them
/// and has written nothing.
class pjrt_replicas final : public pjrt_compiled {
 public:
  pjrt_replicas(const backend& by, const ext::pjrt::client& on, sized_program&& p)
      : pjrt_compiled(by, on, std::move(p), world_now(), 1),
        told_(whole_fingerprint_of(p_)),
        memories_(static_cast<std::size_t>(world_now())) {}

  void run(const run_arguments& with) override {
    checks_.run(with, true);
    if (!code_) return;
    replica& here = *replica_now();
    call(memories_[static_cast<std::size_t>(here.ordinal)], here.ordinal, [&](call_memory& m) {
      m.prepare(with);
      share mine{code_.get(), m.in()[0], m.out()[0], m.non_donatable(), m.in_flight()};
      meet(here, mine);
      m.keep(with);
    });
  }

 private:
  /// A replica's arguments for the call, and its results.
  struct share {
    const ext::pjrt::executable* program;
    call_memory::handle const* in;
    call_memory::handle* out;
    std::span<const std::int64_t> non_donatable;
    ext::pjrt::abi::event** in_flight;
  };

  void meet(replica& here, share& mine) const {
    fingerprint local_program = told_;
    if (!p_.source.word_ops) local_program.seed = generator::instance().get().seed;
    const exchange_piece piece{.out = &mine, .count = 1};
    here.run({.what = exchange::kind::program,
              .pieces = &piece,
              .piece_count = 1,
              .program = &local_program,
              .run = &run_all});
  }
  static void run_all(void* const* shares, int replicas) {
    std::vector<call_memory::handle const*> in;
    std::vector<call_memory::handle*> out;
    std::vector<std::int64_t> non_donatable;
    std::vector<ext::pjrt::abi::event*> in_flight(static_cast<std::size_t>(replicas));
    const share& first = *static_cast<share*>(shares[0]);
    for (int r = 0; r < replicas; ++r) {
      const share& s = *static_cast<share*>(shares[r]);
      if (s.program != first.program)
        throw runtime_error(
            "xla: replicas have compiled their program for other devices: set_device_count() was "
            "called in between");
      in.push_back(s.in);
      out.push_back(s.out);
      non_donatable.insert(non_donatable.end(), s.non_donatable.begin(), s.non_donatable.end());
    }
    // If one replica must keep an argument, none is donated.
    std::sort(non_donatable.begin(), non_donatable.end());
    non_donatable.erase(std::unique(non_donatable.begin(), non_donatable.end()),
                        non_donatable.end());
    first.program->execute_all(in.data(), out.data(), non_donatable,
                               first.in_flight ? in_flight.data() : nullptr);
    for (int r = 0; r < replicas && first.in_flight; ++r)
      *static_cast<share*>(shares[r])->in_flight = in_flight[static_cast<std::size_t>(r)];
  }

  const fingerprint told_;               // to the other replicas, without the seed
  std::vector<call_memories> memories_;  // of each ordinal that this device may have
};

}  // namespace xla::detail
