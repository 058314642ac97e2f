// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "support/backends.hpp"
#include "support/reference.hpp"
#include "xla/compile.hpp"
#include "xla/module.hpp"
#include "xla/run/state/generator.hpp"
#include "xla/run/state/passes.hpp"
#include "xla/run/trace/sync.hpp"
#include "xla/transform/passes.hpp"

namespace test {

/// A parameter that starts with x's value.
template <class T, int R>
xla::Parameter<T, R> parameter(const xla::Tensor<T, R>& x) {
  auto p = xla::Parameter<T, R>::like(x);
  p.copy_(x);
  return p;
}

/// The values of some tensors at one moment, as bytes.
class snapshot {
 public:
  explicit snapshot(bool gradients = true) : gradients_(gradients) {}
  /// Every tensor in x: also in tuples and described structs. Of parameters the gradients as well.
  /// An x that has none, as a loss function, adds nothing.
  template <class X>
  void add(const X& x) {
    if constexpr (xla::detail::tree_leaf<X> || xla::detail::is_tuple<X> ||
                  xla::detail::is_array<X> || xla::detail::described<X>)
      xla::detail::visit_tree(x, [this](auto& leaf, const auto&) { this->add_leaf(leaf); }, {});
    else static_assert(std::is_empty_v<X>, "this test would compare nothing of it");
  }
  /// The first difference in words; empty when all bits are the same. NaN equals NaN. Two without a
  /// tensor are different: they show nothing.
  std::string difference(const snapshot& o) const;
  void append(const snapshot& o);
  std::size_t size() const { return all_.size(); }

 private:
  struct value {
    xla::dtype type;
    sizes_t sizes;
    std::vector<char> bytes;
  };

  template <class L>
  void add_leaf(const L& leaf) {
    if constexpr (xla::detail::is_state<L>) {
      add_tensor(leaf);
      if (const auto g = leaf.grad(); gradients_ && g.defined()) add_tensor(g);
    } else if constexpr (xla::detail::is_tensor<L>) {
      if (leaf.defined()) add_tensor(leaf);
    }
  }
  template <class T, int R>
  void add_tensor(const xla::Tensor<T, R>& t) {
    add_elements(xla::dtype_of<T>, t.sizes(), t.data(), sizeof(T));
  }
  void add_elements(xla::dtype type, sizes_t sizes, const void* elements, std::size_t size);
  template <class T>
  static std::string first_different(const value& a, const value& b);
  static std::string difference(const value& a, const value& b);

  std::vector<value> all_;
  bool gradients_;
};

enum class mode { eager, fused, traced, compiled };

/// The results of a call of g on copies of x, and what it left in them.
template <class G, class... X>
snapshot call_on_copies(G&& g, const X&... x) {
  std::tuple<X...> copies(x...);
  xla::manual_seed(7);
  snapshot s;
  s.add(std::apply([&](auto&... c) { return g(c...); }, copies));
  std::apply([&](auto&... c) { (s.add(c), ...); }, copies);
  return s;
}

/// A call that gives a snapshot, by reference. What checks such calls is compiled once, and not
/// with every function that a test runs.
template <class... A>
class call_of {
 public:
  template <class F>
    requires(!std::is_same_v<F, call_of>)
  call_of(const F& f)
      : f_(&f), call_([](const void* g, A... a) { return (*static_cast<const F*>(g))(a...); }) {}
  snapshot operator()(A... a) const { return call_(f_, a...); }

 private:
  const void* f_;
  snapshot (*call_)(const void*, A...);
};

/// What a call of something compiled gives, which is the same once more and by the interpreter.
snapshot run_again(call_of<> call);

/// What f gives as it is, eager, eager and fused, or traced, and what it leaves in copies of x.
template <class F, class... X>
snapshot run_as_told(mode m, F& f, const X&... x) {
  const bool traced = m == mode::traced;
  const auto as_told =
      m == mode::fused ? xla::eager_mode_guard(xla::Eager::fused) : xla::eager_mode_guard(!traced);
  return call_on_copies(
      [&](auto&... c) {
        auto result = f(c...);
        if (traced) xla::sync();
        return result;
      },
      x...);
}

/// The same compiled with the passes Wanted.
template <xla::Passes Wanted, class F, class... X>
snapshot run_compiled(F f, const X&... x) {
  const xla::eager_mode_guard as_told(false);
  auto g = xla::compile<Wanted>(f);
  return run_again([&] { return call_on_copies(g, x...); });
}

template <mode M, xla::Passes Wanted = xla::Passes{}, class F, class... X>
snapshot run_mode(F f, const X&... x) {
  if constexpr (M == mode::compiled) return run_compiled<Wanted>(f, x...);
  else return run_as_told(M, f, x...);
}

/// Passes that traced graphs do without, "-share", while it lives.
struct traced_without {
  explicit traced_without(const std::string& list) { xla::set_passes(list); }
  ~traced_without() { xla::set_passes(""); }
  traced_without(const traced_without&) = delete;
};

void compare_modes(call_of<mode> as_told, call_of<> compiled);

/// f, a function without captures that returns a tensor or a tuple of tensors, gives the same bits
/// in every mode and leaves the same in its arguments (parameters: also their gradients).
template <xla::Passes Wanted = xla::Passes{}, class F, class... X>
void check_modes(F f, const X&... x) {
  compare_modes([&](mode m) { return run_as_told(m, f, x...); },
                [&] { return run_compiled<Wanted>(f, x...); });
}

}  // namespace test

#ifndef XLA_TEST_LINKED  // a test of one source, built by hand
#include "support/modes.cpp"
#endif
