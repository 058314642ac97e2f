// SPDX-License-Identifier: Apache-2.0
#pragma once

// The interface of the thread pool. Kernels include it instead of pool.hpp, which is compiled once.

#include <cstdint>
#include <type_traits>

#include "xla/base/instance.hpp"

namespace xla {

/// How many threads one operation may use on this thread's device, including the caller:
/// XLA_NUM_THREADS, or one for each hardware thread; with several devices an equal part of them. 1
/// on a thread that computes a part of an operation.
template <class = void>
int num_threads();

/// Sets how many threads one operation may use on this thread's device; 1 runs everything in the
/// caller. Results do not depend on it. Throws `xla::error` when n is below 1.
template <class = void>
void set_num_threads(int n);

namespace kernel {
namespace detail {

/// The type-erased body of a loop, called for each chunk, so that loops are compiled once.
struct loop_body {
  void (*call)(void* body, std::int64_t chunk);
  void* body;

  void operator()(std::int64_t chunk) const { call(body, chunk); }
};

template <class = void>
void run_loop(std::int64_t chunks, loop_body f);

}  // namespace detail

/// Calls f(i) for every i in [0, chunks), on up to num_threads() threads; returns when all are
/// done. The first exception is rethrown in the caller. Inside another loop, or while another
/// thread has the device's pool, the caller runs its chunks itself.
template <class F>
void parallel_for(std::int64_t chunks, F&& f) {
  using body = std::remove_reference_t<F>;
  detail::run_loop(chunks, {[](void* self, std::int64_t i) { (*static_cast<body*>(self))(i); },
                            const_cast<void*>(static_cast<const void*>(&f))});
}

}  // namespace kernel
}  // namespace xla

#if XLA_RUNTIME_HERE
#include "xla/kernel/threads/pool.hpp"
#endif
