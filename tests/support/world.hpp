// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <thread>
#include <vector>

#include "xla/run/world/launch.hpp"

namespace test {

/// Runs body(replica) on a thread for each replica of a world, as a launch does: what one throws
/// ends the world. Returns what each has thrown.
template <class Body>
std::vector<std::exception_ptr> on_replicas(xla::detail::world& w, const Body& body) {
  std::vector<std::exception_ptr> thrown(static_cast<std::size_t>(w.size()));
  std::vector<std::thread> threads;
  for (int i = 0; i < w.size(); ++i)
    threads.emplace_back([&, i] {
      try {
        body(w.at(i));
      } catch (...) {
        thrown[static_cast<std::size_t>(i)] = std::current_exception();
        w.at(i).abort(std::current_exception());
      }
    });
  for (std::thread& t : threads) t.join();
  return thrown;
}

/// What an exception says; "" of none.
inline std::string sentence(const std::exception_ptr& e) try {
  if (e) std::rethrow_exception(e);
  return "";
} catch (const std::exception& x) {
  return x.what();
}

}  // namespace test
