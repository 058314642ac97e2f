// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "support/modes.hpp"
#include "support/ops_used.hpp"
#include "support/world.hpp"
#include "xla/run/state/context.hpp"

namespace test {

/// Runs body(ordinal) on a thread for each replica of a world, each with a device of its own, and
/// throws what the first one has thrown.
inline void replicate(xla::detail::world& world, const std::function<void(int)>& body) {
  if (xla::device_count() < world.size()) xla::set_device_count(world.size());
  const auto thrown = on_replicas(world, [&](xla::detail::replica& r) {
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
/// The same of threads that share memory.
inline void replicate(int replicas, const std::function<void(int)>& body) {
  replicate(*xla::detail::open_world(replicas, 60), body);
}

/// What two calls give each replica in a mode.
inline std::vector<snapshot> run_replicas(int replicas, mode m, call_of<int> call) {
  std::vector<snapshot> all(static_cast<std::size_t>(replicas));
  replicate(replicas, [&](int ordinal) {
    const xla::eager_mode_guard as_told(m == mode::eager);
    for (int i = 0; i < 2; ++i) all[static_cast<std::size_t>(ordinal)].append(call(ordinal));
  });
  return all;
}

inline std::vector<snapshot> compare_replicas(int replicas, call_of<int> as_told,
                                              call_of<int> compiled) {
  const auto eager = run_replicas(replicas, mode::eager, as_told);
  bool same = true;
  const auto compare = [&](const char* way, const std::vector<snapshot>& other) {
    for (std::size_t i = 0; i < eager.size(); ++i) {
      INFO(way << " against eager, replica " << i << " of " << replicas);
      const std::string difference = other[i].difference(eager[i]);
      CHECK(difference == "");
      same = same && difference.empty();
    }
  };
  compare("traced", run_replicas(replicas, mode::traced, as_told));
  compare("compiled", run_replicas(replicas, mode::compiled, compiled));
  const ops_used ops;
  {
    const on_backend op_by_op("interpreter");
    compare("interpreted", run_replicas(replicas, mode::compiled, compiled));
  }
  if (same) ops.note();
  return eager;
}

/// f gives every replica the same bits in every mode and on the interpreter: what it returns, and
/// leaves in its arguments, a tuple that make(ordinal) makes. Returns them, of two calls.
template <class F, class Make>
std::vector<snapshot> check_replicas(int replicas, F f, const Make& make) {
  auto g = xla::compile(f);  // one for all
  const auto on_made = [&](auto&& call, int ordinal) {
    return std::apply([&](const auto&... x) { return call_on_copies(call, x...); }, make(ordinal));
  };
  const auto plain = [&](auto&... x) {
    auto result = f(x...);
    xla::sync();
    return result;
  };
  return compare_replicas(
      replicas, [&](int ordinal) { return on_made(plain, ordinal); },
      [&](int ordinal) { return on_made(g, ordinal); });
}

}  // namespace test
