// SPDX-License-Identifier: Apache-2.0
#pragma once

// xla::autocast(): mixed precision for a body or a function, as torch.autocast. It changes how
// products are computed and stores nothing in another type by itself.

#include <stdexcept>
#include <utility>

#include "xla/kernel/gemm/rounded_call.hpp"
#include "xla/run/state/mode.hpp"
#include "xla/run/trace/graph_of.hpp"
#include "xla/transform/bfloat16_storage.hpp"
#include "xla/transform/callable.hpp"

namespace xla {

/// Options of xla::autocast.
struct AutocastOptions {
  bool enabled = true;  ///< false: float32 again, within an enabled one
};

namespace detail {

/// In constant evaluation g is the graph of the body's arguments.
template <class Body>
constexpr auto run_autocast(graph* g, AutocastOptions options, Body&& body) {
  if (__builtin_is_constant_evaluated()) {
    if (options.enabled) g->store_bfloat16 = &store_as_bfloat16<dependent<Body, void>>;
  } else if (options.enabled) {
    kernel::use_rounded_matmul<dependent<Body, void>>();
    kernel::use_rounded_convolutions<dependent<Body, void>>();
    kernel::use_rounded_attention<dependent<Body, void>>();
    store_as_bfloat16_when_traced.store(&store_as_bfloat16<dependent<Body, void>>,
                                        std::memory_order_relaxed);
  }
  const product_scope within(g, options.enabled ? precision::bfloat16 : precision::float32);
  return std::forward<Body>(body)();
}

/// The graph of the arguments of an autocast call; at run time there is none.
template <class... X>
constexpr graph* graph_in_autocast(const X&... x) {
  if (!__builtin_is_constant_evaluated()) return nullptr;
  graph* const g = graph_of(x...);
  if (!g)
    throw std::logic_error("xla: in a compiled body name what it uses: autocast(x, [&] { … })");
  return g;
}

/// A function whose body runs in autocast.
template <class F>
struct autocasted : F {
  constexpr autocasted() = default;
  constexpr explicit autocasted(F f) : F(std::move(f)) {}

  template <class... A>
    requires takes<F, A...>
  constexpr auto operator()(A&&... a) const {
    return run_autocast(graph_in_autocast(a...), {},
                        [&] { return static_cast<const F&>(*this)(std::forward<A>(a)...); });
  }
};

/// A module that is called in autocast. It refers to the module.
template <class M>
struct autocasted_module {
  M* module;

  template <class... A>
  constexpr auto operator()(A&&... a) const {
    return run_autocast(graph_in_autocast(*module, a...), {},
                        [&] { return (*module)(std::forward<A>(a)...); });
  }
};

template <class F>
inline constexpr bool is_autocasted_module = false;
template <class M>
inline constexpr bool is_autocasted_module<autocasted_module<M>> = true;

}  // namespace detail

/// Runs a body in mixed precision, like torch.autocast("cpu", torch.bfloat16). Matrix products, and
/// convolutions of one group with at least 32 channels on either side, round both operands to
/// bfloat16, to the nearest even, and sum in float32. So do functions composed of them: linear,
/// einsum, attention, transposed convolutions. Their results and everything else are float32:
/// parameters, sums, norms, softmax, losses, optimizers, other convolutions. A product's gradients
/// use the product's precision, wherever backward() is called. It affects tensors of float alone. x
/// is a tensor or module that the body works on; in a compiled body it identifies the graph. Within
/// a body autocast(x, [&] { … }, {.enabled = false}) is float32 again. A compiled function keeps
/// the precision with which it was compiled, whatever surrounds the call.
template <class X, class Body>
constexpr auto autocast(const X& x, Body&& body, AutocastOptions options = {}) {
  detail::graph* g = nullptr;
  if (__builtin_is_constant_evaluated()) g = detail::graph_of(x);
  if (__builtin_is_constant_evaluated() && !g)
    throw std::logic_error("xla: autocast(x, …): x is a constant, name an argument");
  return detail::run_autocast(g, options, std::forward<Body>(body));
}

/// A function that runs in autocast: auto step = xla::compile(xla::autocast(step_fn)), or called
/// directly. A module is referred to: auto predict = xla::compile(xla::autocast(model)).
template <class F>
constexpr auto autocast(F&& f) {
  using Function = std::remove_cvref_t<F>;
  if constexpr (detail::described<Function>) {
    static_assert(std::is_lvalue_reference_v<F>,
                  "xla::autocast: give a module that lives longer than the result");
    return detail::autocasted_module<std::remove_reference_t<F>>{&f};
  } else {
    constexpr bool object = detail::inspectable<Function> && !detail::is_tensor<Function>;
    static_assert(object,
                  "xla::autocast: give a function object, as a lambda, or a tensor or module and "
                  "a function: autocast(x, [&] { return model(x); })");
    if constexpr (object) return detail::autocasted<Function>(std::forward<F>(f));
  }
}

}  // namespace xla
