// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs the steps of a loop one after the other, as in eager mode, and as in recording modes if the
// body cannot be recorded. captured.hpp records loops in compiled functions.

#include <cstddef>
#include <utility>

#include "xla/base/owned_array.hpp"
#include "xla/loop/step_tape.hpp"
#include "xla/op/concat.hpp"
#include "xla/op/create.hpp"
#include "xla/run/backend/body_path.hpp"
#include "xla/run/state/mode.hpp"
#include "xla/run/state/seed.hpp"
#include "xla/run/state/transaction.hpp"
#include "xla/run/trace/runtime.hpp"

namespace xla::detail {

/// Stacks the same leaf of many trees along a new first axis, for each leaf. at(i) is the i-th
/// tree, of type Y.
template <class Y, class At>
constexpr auto stack_trees(std::size_t n, const At& at) {
  if constexpr (is_tensor<Y>) {
    using T = Tensor<typename Y::value_type, Y::rank + 1>;
    const owned_array<T> parts(n);
    for (std::size_t i = 0; i < n; ++i) parts.get()[i] = unsqueeze(at(i), 0);
    return T(concat_all(parts.get(), static_cast<int>(n), 0, unknown_caller));
  } else if constexpr (is_array<Y>) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      using E = std::tuple_element_t<0, Y>;
      return std::array{
          stack_trees<E>(n, [&](std::size_t i) -> const auto& { return at(i)[I]; })...};
    }(std::make_index_sequence<std::tuple_size_v<Y>>{});
  } else {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return std::tuple(stack_trees<std::tuple_element_t<I, Y>>(
          n, [&](std::size_t i) -> const auto& { return std::get<I>(at(i)); })...);
    }(std::make_index_sequence<std::tuple_size_v<Y>>{});
  }
}

/// Carries keep their shapes, as in a compiled function.
template <class Carry>
void check_carry(const Carry& from, const Carry& to, call_site site) {
  list<shape> shapes;
  each_tensor(from, [&](const auto& t) { shapes.push_back(t.dims()); });
  each_tensor(to, [&, k = 0](const auto& t) mutable {
    const shape& was = shapes[k++];
    if (was == t.dims()) return;
    size_scope{nullptr, site}.fail(text("a carry of shape ")
                                   << was << " became one of shape " << t.dims()
                                   << ": each step must keep the shape of every carry");
  });
}

/// For each tensor a zero tensor of one slice's shape.
template <class X>
constexpr auto zeros_for_step(const X& xs) {
  return map_tree(xs, [](const auto& t) {
    using T = std::remove_cvref_t<decltype(t)>;
    using V = typename T::value_type;
    shape s;
    for (int i = 1; i < T::rank; ++i) s.push(t.dims()[i]);
    return fill_shape<V, T::rank - 1>(constant(V{}), s, nullptr);
  });
}

/// When it ends, undoes all writes and draws since it began, unless they are to be kept.
template <class In>
class dry_run {
 public:
  dry_run() = default;
  dry_run(const dry_run&) = delete;
  ~dry_run() {
    close_writes<In>(writes_, keep_);
    if (!keep_) set_rng_state<In>(random_);
  }
  void keep() noexcept { keep_ = true; }

 private:
  const rng_state random_ = get_rng_state<In>();
  void* const writes_ = open_writes<In>();
  bool keep_ = false;
};

/// The type and shapes of y for no steps: the body is recorded, and does not run.
template <class Body, class Carry, class X>
auto no_steps(const Body& body, const Carry& init, const X& x, call_site site) {
  const auto recorded = [&] {
    const eager_mode_guard traced(!has_traced_mode);
    const dry_run<dependent<Body, void>> nothing;
    return in_body(site, -1, [&] { return body(init, x); }).second;
  };
  return map_tree(recorded(), [](const auto& t) {
    using T = std::remove_cvref_t<decltype(t)>;
    using V = typename T::value_type;
    shape s;
    s.push(0);
    for (int i = 0; i < T::rank; ++i) s.push(t.dims()[i]);
    return fill_shape<V, T::rank + 1>(constant(V{}), s, nullptr);
  });
}

/// Runs one step after the other at run time. give(i) makes step i's arguments.
template <class Y, class Carry, class Body, class Give, class Tape>
constexpr auto run_steps(const Body& body, const Carry& init, const Give& give, std::int64_t trip,
                         bool reverse, call_site site, Tape& tape) {
  Carry carry = init;
  owned_array<Y> ys(static_cast<std::size_t>(trip > 0 ? trip : 0));
  typename Tape::running now(tape);
  for (std::int64_t i = 0; i < trip; ++i) {
    const std::int64_t at = reverse ? trip - 1 - i : i;
    const auto step = [&] { return body(carry, give(at)); };
    auto made = in_body(site, at, step);
    if (!__builtin_is_constant_evaluated()) check_carry<Carry>(carry, made.first, site);
    carry = std::move(made.first);
    ys.get()[at] = std::move(made.second);
    tape.end_step(carry, ys.get()[at], at);
    now.next();
  }
  if (trip > 0) tape.end(carry, init);
  return std::pair(std::move(carry), std::move(ys));
}

}  // namespace xla::detail
