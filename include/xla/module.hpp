// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <tuple>
#include <utility>

#include "xla/base/hana.hpp"
#include "xla/base/instance.hpp"
#include "xla/base/join.hpp"
#include "xla/base/later.hpp"
#include "xla/op/scalar.hpp"
#include "xla/tensor/state.hpp"
#include "xla/tensor/training.hpp"

namespace xla {
namespace detail {

/// One described member: its name, and how to reach it.
template <class Get>
struct member {
  const char* name;
  Get get;
};
template <class Get>
constexpr member<Get> make_member(const char* name, Get get) {
  return {name, get};
}

template <class X>
concept described = requires { std::remove_cvref_t<X>::xla_members(); };

template <class X>
inline constexpr bool is_array = false;
template <class X, std::size_t N>
inline constexpr bool is_array<std::array<X, N>> = true;

template <class X>
inline constexpr bool is_tuple = false;
template <class... X>
inline constexpr bool is_tuple<std::tuple<X...>> = true;
template <class A, class B>
inline constexpr bool is_tuple<std::pair<A, B>> = true;

template <class X>
inline constexpr bool is_part = false;
template <class T, int R, int Rank>
inline constexpr bool is_part<indexed<T, R, Rank>> = true;

/// What a result is to the caller: a part that was chosen by an index becomes a tensor.
template <class X>
struct result_of {
  using type = X;
};
template <class T, int R, int Rank>
struct result_of<indexed<T, R, Rank>> {
  using type = Tensor<T, Rank>;
};
template <class... X>
struct result_of<std::tuple<X...>> {
  using type = std::tuple<typename result_of<X>::type...>;
};
template <class A, class B>
struct result_of<std::pair<A, B>> {
  using type = std::pair<typename result_of<A>::type, typename result_of<B>::type>;
};

template <class X>
concept container = requires(X& x) {
  x.begin();
  x.size();
};

/// What an argument is made of at its ends.
template <class X>
concept tree_leaf = is_tensor<X> || is_state<X> || std::is_same_v<X, Scalar> ||
                    std::is_same_v<X, TrainingFlag> || std::is_arithmetic_v<X> || std::is_enum_v<X>;

/// The way from an argument to a member, as a list from the inside out.
struct tree_path {
  const tree_path* parent = nullptr;
  const char* name = nullptr;
  std::int64_t index = -1;

  template <class = void>
  [[gnu::cold]] std::string str() const {
    const std::string number = index < 0 ? std::string() : std::to_string(index);
    if (!parent) return index < 0 ? number : join({"argument ", number});
    const std::string s = parent->str();
    if (!name && index < 0) return s;
    return join({s, s.empty() ? "" : ".", name ? std::string_view(name) : number});
  }
};

XLA_INSTANCE(std::string tree_path::str<void>() const);

template <class X, class F>
constexpr void visit_tree(X& x, F&& f, const tree_path& path);

/// Y, const where X is.
template <class X, class Y>
using same_const = std::conditional_t<std::is_const_v<X>, const Y, Y>;

template <class Tuple, class F, std::size_t... I>
constexpr void visit_tuple(Tuple& t, F&& f, const tree_path& path, std::index_sequence<I...>) {
  (visit_tree(std::get<I>(t), f, tree_path{&path, nullptr, static_cast<std::int64_t>(I)}), ...);
}

/// Calls f(leaf, path) for every leaf of x in the order of the described members.
template <class X, class F>
constexpr void visit_tree(X& x, F&& f, const tree_path& path) {
  using U = std::remove_cv_t<X>;
  if constexpr (tree_leaf<U>) {
    f(x, path);
  } else if constexpr (is_part<U>) {
    f(static_cast<same_const<X, typename result_of<U>::type>&>(x), path);
  } else if constexpr (is_array<U>) {
    for (std::size_t i = 0; i < x.size(); ++i)
      visit_tree(x[i], f, tree_path{&path, nullptr, static_cast<std::int64_t>(i)});
  } else if constexpr (is_tuple<U>) {
    visit_tuple(x, f, path, std::make_index_sequence<std::tuple_size_v<U>>{});
  } else if constexpr (described<U>) {
    hana::for_each(U::xla_members(), [&](auto m) {
      visit_tree(m.get(x), f, tree_path{&path, m.name, -1});
    });
  } else {
    static_assert(
        !container<U>,
        "xla: a container whose size is known only at run time cannot be part of a model: "
        "use std::array");
    static_assert(std::is_empty_v<U> || container<U>,
                  "xla: the members of this struct are not described: "
                  "write XLA_MODULE(member, ...) at its end");
  }
}

/// Parameters of a type, counted without making one.
template <class X>
constexpr int count_parameters() {
  using U = std::remove_cvref_t<X>;
  if constexpr (is_state<U>) return U::trainable ? 1 : 0;
  else if constexpr (tree_leaf<U>) return 0;
  else if constexpr (is_array<U>)
    return static_cast<int>(std::tuple_size_v<U>) * count_parameters<typename U::value_type>();
  else if constexpr (is_tuple<U>)
    return []<std::size_t... I>(std::index_sequence<I...>) {
      return (0 + ... + count_parameters<std::tuple_element_t<I, U>>());
    }(std::make_index_sequence<std::tuple_size_v<U>>{});
  else if constexpr (described<U>)
    return hana::unpack(U::xla_members(), [](auto... m) {
      return (0 + ... + count_parameters<decltype(m.get(std::declval<U&>()))>());
    });
  else return 0;
}

}  // namespace detail

namespace detail {
/// Calls f(state, path) for every parameter of a module, or every buffer.
template <bool Parameters, class Module, class F>
constexpr void visit_states(Module& module, F&& f) {
  visit_tree(module,
             [&](auto& leaf, const tree_path& path) {
               if constexpr (is_state<std::remove_cvref_t<decltype(leaf)>>)
                 if constexpr (std::remove_cvref_t<decltype(leaf)>::trainable == Parameters)
                   f(leaf, path);
             },
             {});
}
}  // namespace detail

/// Calls f(name, parameter) for every parameter of a module; names as in PyTorch: "fc1.weight".
template <class Module, class F>
void named_parameters(Module& module, F&& f) {
  detail::visit_states<true>(module,
                             [&](auto& p, const detail::tree_path& path) { f(path.str(), p); });
}

/// Calls f(parameter) for every parameter of a module.
template <class Module, class F>
constexpr void for_each_parameter(Module& module, F&& f) {
  detail::visit_states<true>(module, [&](auto& p, const detail::tree_path&) { f(p); });
}

/// Calls f(name, buffer) for every buffer of a module: "norm.running_mean".
template <class Module, class F>
void named_buffers(Module& module, F&& f) {
  detail::visit_states<false>(module,
                              [&](auto& b, const detail::tree_path& path) { f(path.str(), b); });
}

/// Calls f(buffer) for every buffer of a module.
template <class Module, class F>
constexpr void for_each_buffer(Module& module, F&& f) {
  detail::visit_states<false>(module, [&](auto& b, const detail::tree_path&) { f(b); });
}

namespace detail {
template <class Module>
constexpr void set_training(Module& module, bool on) {
  visit_tree(module,
             [on](auto& leaf, const tree_path&) {
               if constexpr (std::is_same_v<std::remove_cvref_t<decltype(leaf)>, TrainingFlag>)
                 leaf.set(on);
             },
             {});
}
template <class Module>
constexpr bool is_training(Module& module) {
  bool on = true;
  visit_tree(module,
             [&on](auto& leaf, const tree_path&) {
               if constexpr (std::is_same_v<std::remove_cvref_t<decltype(leaf)>, TrainingFlag>)
                 on = on && leaf;
             },
             {});
  return on;
}
}  // namespace detail

/// The number of trainable elements of a module.
template <class Module>
std::int64_t parameter_count(Module& module) {
  std::int64_t n = 0;
  for_each_parameter(module, [&](auto& p) { n += p.numel(); });
  return n;
}
/// The same of a module's type, all of whose sizes it fixes; without making one.
template <class Module>
consteval std::int64_t parameter_count() {
  Module module;
  std::int64_t n = 0;
  for_each_parameter(module, [&](auto& p) {
    std::int64_t elements = 1;
    for (int i = 0; i < p.shape().rank; ++i) {
      if (p.shape()[i] < 0) throw runtime_error("parameter_count: the type leaves a size open");
      elements *= p.shape()[i];
    }
    n += elements;
  });
  return n;
}

}  // namespace xla

#define XLA_DETAIL_PARENS ()
#define XLA_DETAIL_EXPAND(...) \
  XLA_DETAIL_EXPAND3(XLA_DETAIL_EXPAND3(XLA_DETAIL_EXPAND3(XLA_DETAIL_EXPAND3(__VA_ARGS__))))
#define XLA_DETAIL_EXPAND3(...) \
  XLA_DETAIL_EXPAND2(XLA_DETAIL_EXPAND2(XLA_DETAIL_EXPAND2(XLA_DETAIL_EXPAND2(__VA_ARGS__))))
#define XLA_DETAIL_EXPAND2(...) \
  XLA_DETAIL_EXPAND1(XLA_DETAIL_EXPAND1(XLA_DETAIL_EXPAND1(XLA_DETAIL_EXPAND1(__VA_ARGS__))))
#define XLA_DETAIL_EXPAND1(...) __VA_ARGS__
#define XLA_DETAIL_MEMBER(m) \
  ::xla::detail::make_member(#m, [](auto& self) -> auto& { return self.m; })
#define XLA_DETAIL_MEMBERS(m, ...) \
  XLA_DETAIL_MEMBER(m) __VA_OPT__(, XLA_DETAIL_MEMBERS_AGAIN XLA_DETAIL_PARENS(__VA_ARGS__))
#define XLA_DETAIL_MEMBERS_AGAIN() XLA_DETAIL_MEMBERS

/// Describes the members of a module, in a struct or a class template: tensors, parameters, other
/// modules, std::array and std::tuple of them, plain numbers. Up to 64 members. Gives the struct
/// train(), eval() and is_training(), which concern every TrainingFlag in it, also in the body of a
/// step: the model stays as that left it, in every mode. And to(device), which returns the module
/// itself.
#define XLA_MODULE(...)                          \
  XLA_DETAIL_MEMBER_LIST(constexpr, __VA_ARGS__) \
  XLA_DETAIL_TRAINING(constexpr, *this)

/// The same for a struct in a header, outside of functions: the members that it gives are
/// templates, so that a program which includes the header and does not use the module does not pay
/// for it.
#define XLA_HEADER_MODULE(...)                                           \
  XLA_DETAIL_MEMBER_LIST(template <class = void> constexpr, __VA_ARGS__) \
  XLA_DETAIL_TRAINING(template <class XlaIn = void> constexpr,           \
                      ::xla::detail::dependent<XlaIn>(*this))

/// The same for a container with one member, whose name stays out of the parameters' names, as in
/// PyTorch: "0.weight", not "layers.0.weight".
#define XLA_CONTAINER(m)                                                                  \
  static constexpr auto xla_members() {                                                   \
    return ::xla::hana::make_tuple(                                                       \
        ::xla::detail::make_member(nullptr, [](auto& self) -> auto& { return self.m; })); \
  }                                                                                       \
  XLA_DETAIL_TRAINING(constexpr, *this)

// XLA_MODULE's members are no templates: it also stands in structs inside functions.
#define XLA_DETAIL_MEMBER_LIST(how, ...)                                 \
  how static auto xla_members() {                                        \
    return ::xla::hana::make_tuple(                                      \
        __VA_OPT__(XLA_DETAIL_EXPAND(XLA_DETAIL_MEMBERS(__VA_ARGS__)))); \
  }
#define XLA_DETAIL_TRAINING(how, self)                                              \
  how void train(bool xla_on = true) { ::xla::detail::set_training(self, xla_on); } \
  how void eval() { ::xla::detail::set_training(self, false); }                     \
  how bool is_training() const { return ::xla::detail::is_training(self); }         \
  how auto& to(const ::xla::Device& xla_device) {                                   \
    xla_device.check("to");                                                         \
    return self;                                                                    \
  }
