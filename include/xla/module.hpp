// SPDX-License-Identifier: Apache-2.0
#pragma once

// Makes a struct of layers a module: visits of its parameters and buffers, training mode, moves to
// a device. Layers themselves are in nn/; the struct lists its members with XLA_MODULE.

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "xla/base/hana.hpp"
#include "xla/tensor/visit.hpp"

namespace xla {

/// Calls f(state, path) for every parameter of a module, or every buffer. path, a tree_path, names
/// the state by the members and indices from the module to it.
template <bool Parameters, class Module, class F>
constexpr void visit_states(Module& module, F&& f, const tree_path& path = {}) {
  detail::visit_tree(
      module,
      [&](auto& leaf, const tree_path& at) {
        if constexpr (detail::is_state<std::remove_cvref_t<decltype(leaf)>>)
          if constexpr (std::remove_cvref_t<decltype(leaf)>::trainable == Parameters) f(leaf, at);
      },
      path);
}

/// The same for every parameter and buffer, in the order of the members.
template <class Module, class F>
constexpr void visit_states(Module& module, F&& f, const tree_path& path = {}) {
  detail::visit_tree(
      module,
      [&](auto& leaf, const tree_path& at) {
        if constexpr (detail::is_state<std::remove_cvref_t<decltype(leaf)>>) f(leaf, at);
      },
      path);
}

/// Calls f(std::type_identity<S>, path) for the type S of every parameter and buffer of the type X.
/// It needs no object, so it also works while a program is compiled.
template <class X, class F>
constexpr void visit_state_types(F&& f) {
  detail::visit_types<std::remove_cvref_t<X>>(
      [&]<class L>(std::type_identity<L> type, const tree_path& path) {
        if constexpr (detail::is_state<L>) f(type, path);
      });
}

/// Counts the parameters of a type without making an object.
template <class X>
constexpr int count_parameters() {
  return detail::leaves_of<std::remove_cvref_t<X>>.parameters;
}

/// Whether X, with all of its members, can be a model or another argument of a compiled function:
/// every member is named by XLA_MODULE or excluded by XLA_PLAIN.
template <class X>
constexpr bool is_argument() {
  return detail::fits<X>;
}
/// Stops the build if it cannot, with the reason.
template <class X>
constexpr void check_argument() {
  detail::check_fit<X>();
}

/// Calls f(name, parameter) for every parameter of a module; names as in PyTorch: "fc1.weight".
template <class Module, class F>
void named_parameters(Module& module, F&& f) {
  visit_states<true>(module, [&](auto& p, const tree_path& path) { f(path.str(), p); });
}

/// Calls f(parameter) for every parameter of a module.
template <class Module, class F>
constexpr void for_each_parameter(Module& module, F&& f) {
  visit_states<true>(module, [&](auto& p, const tree_path&) { f(p); });
}

/// Calls f(name, buffer) for every buffer of a module: "norm.running_mean".
template <class Module, class F>
void named_buffers(Module& module, F&& f) {
  visit_states<false>(module, [&](auto& b, const tree_path& path) { f(path.str(), b); });
}

/// Calls f(buffer) for every buffer of a module.
template <class Module, class F>
constexpr void for_each_buffer(Module& module, F&& f) {
  visit_states<false>(module, [&](auto& b, const tree_path&) { f(b); });
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
template <class Module>
constexpr void drop_gradients(Module& module) {
  for_each_parameter(module, [](auto& p) { p.zero_grad(); });
}
template <class Module>
constexpr void move_to_device(Module& module, const Device& device) {
  device.check<Module>({"to"});
  if (__builtin_is_constant_evaluated()) return;
  visit_tree(module,
             [&device]<class Leaf>(Leaf& leaf, const tree_path&) {
               if constexpr (is_state<Leaf>) machine_of<Leaf>::move_to_device(leaf, device.index);
               else if constexpr (is_tensor<Leaf>) leaf = leaf.to(device);
             },
             {});
}
}  // namespace detail

/// Restores the training flags of a module at the end of a scope.
template <class Module>
class training_flags_guard {
 public:
  explicit training_flags_guard(Module& module) : module_(module) {
    each([this](TrainingFlag& f) { before_.push_back(f); });
  }
  training_flags_guard(const training_flags_guard&) = delete;
  ~training_flags_guard() {
    each([next = before_.begin()](TrainingFlag& f) mutable { f.set(*next++); });
  }

 private:
  void each(auto f) {
    detail::visit_tree(
        module_,
        [&f](auto& leaf, const auto&) {
          if constexpr (std::is_same_v<std::remove_cvref_t<decltype(leaf)>, TrainingFlag>) f(leaf);
        },
        {});
  }
  Module& module_;
  std::vector<bool> before_;
};

/// The number of trainable elements of a module.
template <class Module>
std::int64_t parameter_count(Module& module) {
  std::int64_t n = 0;
  for_each_parameter(module, [&](auto& p) { n += p.numel(); });
  return n;
}
/// The same for a module's type, if it fixes all sizes; without making an object.
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
/// train(), eval() and is_training(), which concern every TrainingFlag in it. They also work in the
/// body of a step: the model stays in the mode that the body has set, in every mode of running.
/// zero_grad() drops the gradients of its parameters. to(device) moves all its tensors and returns
/// the module itself. A member that is not listed stops the build: see XLA_PLAIN.
#define XLA_MODULE(...)                          \
  XLA_DETAIL_MEMBER_LIST(constexpr, __VA_ARGS__) \
  XLA_DETAIL_TRAINING(constexpr, *this)

/// The same for a struct that derives from a module: its members are the base's, then the listed
/// ones.
#define XLA_DERIVED_MODULE(Base, ...)                                                          \
  static constexpr auto xla_members() {                                                        \
    return ::xla::detail::more_members(                                                        \
        Base::xla_members() __VA_OPT__(, XLA_DETAIL_EXPAND(XLA_DETAIL_MEMBERS(__VA_ARGS__)))); \
  }                                                                                            \
  XLA_DETAIL_TRAINING(constexpr, *this)

/// With XLA_MODULE: lists the members that are no part of the model (names, caches, counters). A
/// compiled function must not use them; optimizers and files ignore them.
#define XLA_PLAIN(...) XLA_DETAIL_NAMED_LIST(constexpr, xla_plain_members, __VA_ARGS__)

/// With XLA_MODULE: lists parameters that files also know by a second name, because a layer there
/// shares another one's weight: XLA_TIED({"decoder.weight", "encoder.weight"}) if the model uses
/// encoder.weight in both. A file may have either name, or both with equal values. The model's
/// state has the second name of each pair.
#define XLA_TIED(...)                                                \
  static constexpr auto xla_tied_names() {                           \
    return ::std::to_array<::xla::detail::tied_name>({__VA_ARGS__}); \
  }

/// The same for a struct in a header, outside of functions. The members that it adds are templates,
/// so that a program pays for them only if it uses the module.
#define XLA_HEADER_MODULE(...)                                           \
  XLA_DETAIL_MEMBER_LIST(template <class = void> constexpr, __VA_ARGS__) \
  XLA_DETAIL_TRAINING(template <class XlaIn = void> constexpr, ::xla::as_dependent<XlaIn>(*this))

/// The same for a container with one member, whose name is left out of the parameters' names, as in
/// PyTorch: "0.weight", not "layers.0.weight".
#define XLA_CONTAINER(m)                                                             \
  static constexpr auto xla_members() {                                              \
    return ::xla::hana::make_basic_tuple(                                            \
        ::xla::detail::make_member("", [](auto& self) -> auto& { return self.m; })); \
  }                                                                                  \
  XLA_DETAIL_TRAINING(constexpr, *this)

/// The same for a layer around another one whose weight it computes from other parameters. Its
/// members are the inner layer's, with `from` renamed to `to`, then others with names of their own,
/// as in PyTorch's parametrizations: XLA_MEMBER_AS("parametrizations.weight.original0", g).
#define XLA_RENAMED_MODULE(layer, from, to, ...)                                             \
  static constexpr auto xla_members() {                                                      \
    return ::xla::detail::renamed_members<decltype(layer)>(                                  \
        [](auto& self) -> auto& { return self.layer; }, from, to __VA_OPT__(, __VA_ARGS__)); \
  }                                                                                          \
  XLA_DETAIL_TRAINING(constexpr, *this)
#define XLA_MEMBER_AS(name, m) \
  ::xla::detail::make_member(name, [](auto& self) -> auto& { return self.m; })

// XLA_MODULE's members are not templates, because it is also used in structs inside functions.
#define XLA_DETAIL_MEMBER_LIST(how, ...) XLA_DETAIL_NAMED_LIST(how, xla_members, __VA_ARGS__)
#define XLA_DETAIL_NAMED_LIST(how, list, ...)                            \
  how static auto list() {                                               \
    return ::xla::hana::make_basic_tuple(                                \
        __VA_OPT__(XLA_DETAIL_EXPAND(XLA_DETAIL_MEMBERS(__VA_ARGS__)))); \
  }
#define XLA_DETAIL_TRAINING(how, self)                                              \
  how void train(bool xla_on = true) { ::xla::detail::set_training(self, xla_on); } \
  how void eval() { ::xla::detail::set_training(self, false); }                     \
  how bool is_training() const { return ::xla::detail::is_training(self); }         \
  how void zero_grad() { ::xla::detail::drop_gradients(self); }                     \
  how auto& to(const ::xla::Device& xla_device) {                                   \
    ::xla::detail::move_to_device(self, xla_device);                                \
    return self;                                                                    \
  }
