// SPDX-License-Identifier: Apache-2.0
#pragma once

// A loop at run time whose body is recorded once and stays a loop. If the body cannot be recorded,
// for instance because it reads values, stepwise.hpp runs the steps one by one.

#include <memory>
#include <type_traits>
#include <utility>

#include "xla/base/list.hpp"
#include "xla/loop/stepwise.hpp"
#include "xla/run/trace/traced_loop.hpp"

namespace xla::detail {

/// The results of a loop that is recorded at run time, or nothing if its body cannot be recorded.
/// Give makes the further arguments of a step, slices of all steps' tensors.
template <class Carry, class Body, class Give>
std::unique_ptr<traced_loop> record_body_over(const Body& body, const Carry& init,
                                              const list<const handle*>& all,
                                              const traced_steps& steps, call_site site,
                                              const Give& give) {
  using In = dependent<Carry, void>;
  list<const handle*> carries;
  each_tensor(init, [&](const auto& t) { carries.push_back(&t); });
  std::unique_ptr<traced_loop> loop =
      open_traced_loop<In>(carries.data(), carries.size(), all.data(), all.size(), steps, site);
  auto record = [&] {
    do {
      loop->begin();
      Carry carry = init;
      each_tensor(carry, [&, k = 0](auto& t) mutable { loop->carry(k++, t); });
      auto made = in_body(site, -1, [&] { return body(carry, give(*loop)); });
      check_carry<Carry>(carry, made.first, site);
      each_tensor(made.first, [&](const auto& t) { loop->hand_on(t); });
      each_tensor(made.second, [&](const auto& t) { loop->keep(t); });
    } while (loop->end());
  };
  const auto run = [](void* f) { (*static_cast<decltype(record)*>(f))(); };
  if (!record_loop<In>(run, &record)) loop.reset();
  return loop;
}

/// The same over xs, of a type X.
template <class Carry, class Body, class X, class Give>
std::unique_ptr<traced_loop> record_body(const Body& body, const Carry& init, const X& xs,
                                         std::int64_t trip, bool reverse, std::int64_t every,
                                         call_site site, const Give& give) {
  list<const handle*> all;
  each_tensor(xs, [&](const auto& t) { all.push_back(&t); });
  const traced_steps steps{.trip = trip > 0 ? trip : 0, .reverse = reverse, .every = every};
  return record_body_over(body, init, all, steps, site, give);
}

/// Its results: the last carry, and all y of a type Y along a new first axis.
template <class Carry, class Y>
auto results_of(traced_loop& loop) {
  int k = 0;
  Carry last;
  each_tensor(last, [&](auto& t) { loop.result(k++, t); });
  auto all = map_tree(Y(), [&](const auto& y) {
    using T = std::remove_cvref_t<decltype(y)>;
    Tensor<typename T::value_type, T::rank + 1> t;
    loop.result(k++, t);
    return t;
  });
  return std::pair<Carry, decltype(all)>(std::move(last), std::move(all));
}

}  // namespace xla::detail
