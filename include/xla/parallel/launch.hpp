// SPDX-License-Identifier: Apache-2.0
#pragma once

// launch(): runs a function once on each device of the process, as replicas of one world, and moves
// its arguments there. mpirun starts the processes themselves (ext/mpi.hpp).

#include <concepts>
#include <cstddef>
#include <functional>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "xla/op/collectives.hpp"
#include "xla/run/state/mode.hpp"
#include "xla/run/state/seed.hpp"
#include "xla/run/trace/runtime.hpp"
#include "xla/run/trace/sync.hpp"
#include "xla/run/world/launch.hpp"
#include "xla/tensor.hpp"

namespace xla::parallel {

/// Puts a tensor, a module, or each element of a tuple of them on a device. Other objects, and the
/// targets of a tuple's references, stay as they are.
template <class X>
void move_to(X& x, const Device& device) {
  if constexpr (requires { std::tuple_size<X>::value; }) {
    const auto move_part = [&]<std::size_t I>() {
      using part = std::tuple_element_t<I, X>;
      if constexpr (!std::is_reference_v<part>) move_to(std::get<I>(x), device);
    };
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (move_part.template operator()<I>(), ...);
    }(std::make_index_sequence<std::tuple_size_v<X>>{});
  } else if constexpr (requires {
                         { x.to(device) } -> std::same_as<X>;
                       }) {
    x = x.to(device);
  } else if constexpr (requires { x.to(device); }) {
    x.to(device);
  }
}

}  // namespace xla::parallel

namespace xla {
namespace parallel {

/// Computes the pending ops of this thread, so that other threads may read their results.
inline void finish_pending() {
  if (records_ops()) sync(true);
}

/// Calls f(0), f(1), … for the devices of a list, each on a thread of its own that works on its
/// device, all in one world (run_replicas). Random numbers continue from this thread's generator,
/// with a stream for each replica; afterwards it is in the state of the first replica's. Returns
/// the results in the same order.
template <class F>
auto on_devices(const std::vector<Device>& devices, F&& f) {
  using Result = std::invoke_result_t<F&, std::size_t>;
  if constexpr (std::is_void_v<Result>) {
    const rng_state begin = get_rng_state();
    rng_state end;
    const auto work = [&](std::size_t index) {
      set_rng_state(begin);
      f(index);
      if (index == 0) end = get_rng_state();
    };
    const auto run = [](void* self, std::size_t index) {
      (*static_cast<decltype(work)*>(self))(index);
    };
    run_replicas(devices,
                 {run, finish_pending, const_cast<void*>(static_cast<const void*>(&work))});
    set_rng_state(end);
  } else {
    std::vector<std::optional<Result>> made(devices.size());
    on_devices(devices, [&](std::size_t index) { made[index].emplace(f(index)); });
    std::vector<Result> results;
    for (auto& result : made) results.push_back(std::move(*result));
    return results;
  }
}

}  // namespace parallel

/// Calls fn(index, args...) on every device of the process, like `torch_xla.launch`: each on a
/// thread of its own that works on its device, `xla::device(i)`, together one world. `index` is the
/// replica's ordinal in it. Each call has copies of the arguments, made before the first call
/// begins. Tensors and modules are moved to its device; std::ref gives all calls the same object.
/// Returns the results of this process's devices in a vector, or nothing. If one call throws, all
/// of them end, and this rethrows the exception with its ordinal (replica_error). If the world has
/// one device, fn runs on the calling thread.
///
/// The state of the other replicas' models then: in eager mode an optimizer has updated all
/// parameters or none. A compiled step that waited for its first exchange has changed nothing
/// except gradients to which it adds without an exchange. A step that was further may have updated
/// some parameters and not others. Values of a traced graph that ran while the program went on
/// report the error when they are read. In both cases continue from a checkpoint.
template <class Fn, class... Args>
auto launch(Fn&& fn, const Args&... args) {
  const auto all = devices();
  using Copies = decltype(std::make_tuple(args...));
  std::vector<Copies> copies;
  copies.reserve(all.size());
  for (const Device& device : all) {
    copies.push_back(std::make_tuple(args...));
    parallel::move_to(copies.back(), device);
  }
  parallel::finish_pending();
  return parallel::on_devices(all, [&](std::size_t index) {
    const auto call = [&](auto&... copy) { return fn(global_ordinal(), copy...); };
    return std::apply(call, copies[index]);
  });
}

}  // namespace xla
