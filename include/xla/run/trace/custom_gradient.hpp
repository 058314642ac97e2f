// SPDX-License-Identifier: Apache-2.0
#pragma once

// custom_gradient(): a function with your own gradient rule, like torch.autograd.Function. Ops with
// kernels have their rule in their struct (op/).

#include <tuple>
#include <type_traits>
#include <utility>

#include "xla/op/create.hpp"
#include "xla/op/custom_gradient.hpp"
#include "xla/run/state/mode.hpp"
#include "xla/run/trace/runtime.hpp"
#include "xla/transform/symbolic_arguments.hpp"

namespace xla {
namespace detail {

/// The result of a forward function of custom_gradient(): its results, and its saved tensors.
template <class Results, class Saved>
struct with_saved {
  Results results;
  Saved saved;
};
template <class X>
inline constexpr bool has_saved = false;
template <class R, class S>
inline constexpr bool has_saved<with_saved<R, S>> = true;

template <class X>
concept tensor_like = is_tensor<bare<X>> || is_state<bare<X>>;
template <tensor_like X>
using tensor_of = Tensor<typename bare<X>::value_type, bare<X>::rank>;

/// A tensor, or a tuple of tensors, as a tuple.
template <tensor_like X>
constexpr auto as_tuple(const X& x) {
  return std::tuple<tensor_of<X>>(x);
}
template <class... X>
constexpr auto as_tuple(const std::tuple<X...>& x) {
  static_assert((tensor_like<X> && ...),
                "xla::custom_gradient: forward returns a tensor or a std::tuple of tensors");
  return std::apply([](const auto&... t) { return std::tuple<tensor_of<X>...>(t...); }, x);
}

/// The graph of one of them; at run time there is none.
template <class... H>
constexpr graph* owner_of(const H&... x) {
  graph* g = nullptr;
  if (__builtin_is_constant_evaluated()) ((g = g ? g : x.owner()), ...);
  return g;
}

template <class G, class X>
inline constexpr bool fits_input = std::is_same_v<bare<G>, std::nullptr_t>;
template <tensor_like G, class X>
  requires(floating_type<typename X::value_type>)
inline constexpr bool fits_input<G, X> = std::is_same_v<tensor_of<G>, X>;

template <class G>
constexpr decltype(auto) as_gradients(const G& g) {
  if constexpr (is_tuple<G>) return (g);
  else return std::tuple<const G&>(g);
}

template <class, class>
inline constexpr bool fit_inputs = false;
template <class... G, class... X>
  requires(sizeof...(G) == sizeof...(X))
inline constexpr bool fit_inputs<std::tuple<G...>, std::tuple<X...>> = (fits_input<G, X> && ...);

/// Refuses a backward function whose parameters or results do not match.
template <class Backward, class... X, class... R, class... S>
constexpr bool check_backward(std::type_identity<std::tuple<X...>>,
                              std::type_identity<std::tuple<R...>>,
                              std::type_identity<std::tuple<S...>>) {
  constexpr bool takes = std::is_invocable_v<const Backward&, const std::tuple<S...>&, const R&...>;
  static_assert(takes,
                "xla::custom_gradient: backward takes the tuple of what is saved, and then the "
                "gradient of each result, a tensor like that result");
  if constexpr (takes) {
    using Given = std::invoke_result_t<const Backward&, const std::tuple<S...>&, const R&...>;
    using G = bare<decltype(as_gradients(std::declval<Given>()))>;
    static_assert(std::tuple_size_v<G> == sizeof...(X),
                  "xla::custom_gradient: backward returns as many gradients as forward has "
                  "inputs, in a std::tuple, nullptr for an input that gets none");
    if constexpr (std::tuple_size_v<G> == sizeof...(X))
      static_assert(fit_inputs<G, std::tuple<X...>>,
                    "xla::custom_gradient: backward returns for each input a gradient of the same "
                    "element type and rank, and nullptr for an input of integers");
    return fit_inputs<G, std::tuple<X...>>;
  } else {
    return false;
  }
}

template <class Backward, class Inputs, class Results, class Saved>
struct function_gradient;
/// The gradient rule of a function with inputs x, results r, and saved tensors s.
template <class Backward, class... X, class... R, class... S>
struct function_gradient<Backward, std::tuple<X...>, std::tuple<R...>, std::tuple<S...>> {
  static constexpr int results = sizeof...(X), saved = results + sizeof...(R);

  static constexpr void rule(gradient_scope& s) {
    [&]<std::size_t... I, std::size_t... K, std::size_t... J>(
        std::index_sequence<I...>, std::index_sequence<K...>, std::index_sequence<J...>) {
      const std::tuple<S...> kept(saved_tensor<S>(s, saved + static_cast<int>(J))...);
      const product_scope as_forward(__builtin_is_constant_evaluated() ? s.out.owner() : nullptr,
                                     unpack<op::custom_gradient::attributes>(s.attr).precision);
      const auto given =
          make_callable<Backward>()(kept, gradient_of_result<R>(s, static_cast<int>(K))...);
      const auto& gradients = as_gradients(given);
      (give(s, static_cast<int>(I), std::get<I>(gradients)), ...);
    }(std::index_sequence_for<X...>{}, std::index_sequence_for<R...>{},
      std::index_sequence_for<S...>{});
  }

 private:
  template <class T>
  static constexpr T as(const handle& h) {
    T t;
    static_cast<handle&>(t) = h;
    return t;
  }
  // A saved result depends on the inputs, for gradients of gradients.
  template <class T>
  static constexpr T saved_tensor(const gradient_scope& s, int at) {
    for (int i = 0; i < results; ++i)
      if (same_value(s.in[i], s.in[at])) return as<T>(s.in[at]);
    for (int k = results; k < saved; ++k)
      if (same_value(s.in[k], s.in[at])) return result_of_function<T>(s.in[k], s.out, k - results);
    return as<T>(s.in[at]);
  }
  template <class T>
  static constexpr T gradient_of_result(const gradient_scope& s, int k) {
    if (k < s.grad_count && s.grads[k].defined()) return as<T>(s.grads[k]);
    return zeros_like(as<T>(s.in[results + k]));
  }
  static constexpr void give(gradient_scope&, int, std::nullptr_t) {}
  static constexpr void give(gradient_scope& s, int i, const handle& g) {
    const shape of_input = s.in[i].dims(), got = g.dims();
    const size_scope sizes{s.in[i].table(), "custom_gradient"};
    if (!sizes.same(got, of_input))
      return sizes.fail(text("backward returned a gradient of shape ")
                        << got << " for input " << i << ", whose shape is " << of_input);
    s.result[i] = g;
  }
};

template <class Backward, class Inputs, class Results, class Saved>
inline constexpr op_info function_info =
    function_with(&function_gradient<Backward, Inputs, Results, Saved>::rule,
                  fields_of<op::custom_gradient::attributes>);

/// The function object that custom_gradient() returns.
template <class Forward, class Backward>
class custom_function {
  static_assert(std::is_empty_v<Forward> && std::is_empty_v<Backward>,
                "xla::custom_gradient: its functions hold no state, as a compiled step keeps their "
                "types alone: capture nothing, and pass what they need as tensors");

 public:
  template <class... X>
  constexpr auto operator()(const X&... x) const {
    constexpr bool tensors = (tensor_like<X> && ...);
    static_assert(tensors,
                  "xla::custom_gradient: the arguments are tensors; what is fixed may be a "
                  "template argument of the functions");
    if constexpr (tensors) {
      constexpr bool takes = std::is_invocable_v<const Forward&, const tensor_of<X>&...>;
      static_assert(takes, "xla::custom_gradient: forward cannot be called with these arguments");
      if constexpr (takes) return call(static_cast<const tensor_of<X>&>(x)...);
    }
  }

 private:
  template <class... X>
  static constexpr auto call(const X&... x) {
    graph* const g = owner_of(x...);
    auto out = forward(g, x...);
    using Out = decltype(out.results);
    auto results = as_tuple(out.results);
    constexpr bool fits = check_backward<Backward>(std::type_identity<std::tuple<X...>>{},
                                                   std::type_identity<decltype(results)>{},
                                                   std::type_identity<decltype(out.saved)>{});
    if constexpr (fits) {
      const bool on = g ? g->recording : !__builtin_is_constant_evaluated() && grad_enabled();
      if (on && (needs_gradient(x) || ...)) connect(g, results, out.saved, x...);
    }
    if constexpr (is_tuple<Out>) return results;
    else return std::get<0>(results);
  }
  template <class X>
  static constexpr bool needs_gradient(const X& x) {
    return x.requires_grad() || (__builtin_is_constant_evaluated() && x.input_grad());
  }
  template <class... X>
  static constexpr auto forward(graph* g, const X&... x) {
    const auto run = [&] {
      auto out = make_callable<Forward>()(x...);
      if constexpr (has_saved<decltype(out)>) return out;
      else return with_saved<decltype(out), std::tuple<>>{out, {}};
    };
    if (!__builtin_is_constant_evaluated()) return without_grad(run);
    const bool recording = g && std::exchange(g->recording, false);
    auto out = run();
    if (g) g->recording = recording;
    return out;
  }
  template <class Run>
  static auto without_grad(const Run& run) {
    const no_grad_scope off;
    return run();
  }

  // Makes the results those of one node, which receives their gradients.
  template <class... R, class... S, class... X>
  static constexpr void connect(graph* g, std::tuple<R...>& results, const std::tuple<S...>& saved,
                                const X&... x) {
    constexpr int count = sizeof...(X) + sizeof...(R) + sizeof...(S);
    handle all[count];
    const handle* in[count];
    int n = 0;
    const auto put = [&](const handle& h) {
      if (g) all[n].name_node(g, h.lift(g));
      else all[n] = h;
      in[n] = &all[n];
      ++n;
    };
    (put(x), ...);
    std::apply([&](const auto&... r) { (put(r), ...); }, results);
    std::apply([&](const auto&... s) { (put(s), ...); }, saved);
    const handle function = function_of<Forward>(
        function_info<Backward, std::tuple<X...>, std::tuple<R...>, std::tuple<S...>>,
        pack(op::custom_gradient::attributes{product_scope::now(g), sizeof...(X), sizeof...(R)}), in,
        count);
    int k = 0;
    const auto join = [&]<class T>(T& r) {
      if constexpr (floating_type<typename T::value_type>)
        r = result_of_function<T>(*in[static_cast<int>(sizeof...(X)) + k], function, k);
      ++k;
    };
    std::apply([&](auto&... r) { (join(r), ...); }, results);
  }
};

}  // namespace detail

/// The result of a forward function of custom_gradient() whose backward function needs tensors: the
/// result, a tensor or a std::tuple of tensors, and the tensors to save, which are inputs, results,
/// or others. It corresponds to ctx.save_for_backward of torch.autograd.Function.
template <class R, detail::tensor_like... S>
constexpr auto save_for_backward(const R& results, const S&... saved) {
  using Saved = std::tuple<detail::tensor_of<S>...>;
  return detail::with_saved<R, Saved>{results, Saved(saved...)};
}

/// A function with its own gradient, like torch.autograd.Function. y = f(x…) is the result of
/// forward(x…), a tensor or a std::tuple of tensors, with save_for_backward() if the gradient needs
/// tensors. backward(saved, g…) gets the std::tuple of those and the gradient of each result, zeros
/// for an unused one. It returns the gradients of the inputs in their order: one, or a std::tuple,
/// with nullptr for an input that has none, such as integers. Gradients reach the inputs alone,
/// even if forward uses other tensors. Inputs are tensors; the functions hold no state, and in a
/// compiled step they are constexpr, as lambdas are. With create_graph the gradients can be
/// differentiated again, through inputs and saved results. Throws shape_error if backward returns a
/// gradient of another shape than the input's.
template <class Forward, class Backward>
constexpr auto custom_gradient(Forward, Backward) {
  return detail::custom_function<Forward, Backward>{};
}

}  // namespace xla
