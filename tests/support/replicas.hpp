// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <string>
#include <tuple>
#include <vector>

#include "support/modes.hpp"
#include "support/world.hpp"
#include "xla/run/state/context.hpp"

namespace test {

/// Runs body(ordinal) on a thread for each replica of a world, each with a device of its own, and
/// throws what the first one has thrown.
template <class Body>
void replicate(int replicas, const Body& body) {
  if (xla::device_count() < replicas) xla::set_device_count(replicas);
  const auto world = xla::detail::open_world(replicas, 60);
  const auto thrown = on_replicas(*world, [&](xla::detail::replica& r) {
    const xla::device_guard works_on(xla::device(r.ordinal));
    auto& device = *xla::detail::this_thread.device;
    const struct attached {
      xla::detail::device_context& device;
      ~attached() { device.replica.store(nullptr); }
    } during{device};
    device.replica.store(&r);
    body(r.ordinal);
  });
  for (const std::exception_ptr& e : thrown)
    if (e) std::rethrow_exception(e);
}

/// What f returns to each replica and leaves in its arguments, a tuple that make(ordinal) makes.
template <mode M, class F, class Make>
std::vector<snapshot> run_replicas(int replicas, F f, const Make& make) {
  std::vector<snapshot> all(static_cast<std::size_t>(replicas));
  auto compiled = xla::compile(f);  // one for all
  replicate(replicas, [&](int ordinal) {
    snapshot& own = all[static_cast<std::size_t>(ordinal)];
    const xla::eager_mode_guard as_told(M == mode::eager);
    auto call = [&](auto&& g) {
      std::apply([&](const auto&... x) { own.append(call_on_copies(g, x...)); }, make(ordinal));
    };
    if constexpr (M == mode::compiled) {
      call(compiled);
      call(compiled);
    } else {
      auto g = [&](auto&... x) {
        auto result = f(x...);
        if constexpr (M == mode::traced) xla::sync();
        return result;
      };
      call(g);
      call(g);
    }
  });
  return all;
}

/// f gives every replica the same bits in every mode and on the interpreter. Returns them, of two
/// calls.
template <class F, class Make>
std::vector<snapshot> check_replicas(int replicas, F f, const Make& make) {
  const auto eager = run_replicas<mode::eager>(replicas, f, make);
  bool same = true;
  const auto compare = [&](const char* way, const std::vector<snapshot>& other) {
    for (std::size_t i = 0; i < eager.size(); ++i) {
      INFO(way << " against eager, replica " << i << " of " << replicas);
      const std::string difference = other[i].difference(eager[i]);
      CHECK(difference == "");
      same = same && difference.empty();
    }
  };
  compare("traced", run_replicas<mode::traced>(replicas, f, make));
  compare("compiled", run_replicas<mode::compiled>(replicas, f, make));
  const ops_used ops;
  {
    const on_engine op_by_op("interpreter");
    compare("interpreted", run_replicas<mode::compiled>(replicas, f, make));
  }
  if (same) ops.note();
  return eager;
}

}  // namespace test
