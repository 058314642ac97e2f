// SPDX-License-Identifier: Apache-2.0
#pragma once

// state_dict() and load_state_dict(): a model's values by name, in memory. Files are
// ext/safetensors.hpp and ext/pretrained.hpp.

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "xla/base/dependent.hpp"
#include "xla/base/instance.hpp"
#include "xla/io/named_array.hpp"
#include "xla/module.hpp"
#include "xla/run/trace/runtime.hpp"
#include "xla/tensor/part.hpp"

namespace xla {

/// The mismatches of a loaded state: names that it lacks, and names that the model does not have.
struct IncompatibleKeys {
  std::vector<std::string> missing_keys, unexpected_keys;
  bool empty() const { return missing_keys.empty() && unexpected_keys.empty(); }
};

namespace detail {

/// A schedule, or another object with numbers that change during training.
template <class X>
concept keeps_progress = requires(X& x) { x.visit_progress([](const char*, auto&) {}); };

/// Calls f(name, state) for each parameter and buffer of a module; for an optimizer also for its
/// hyper-parameters, each an xla::Scalar: "step", "fc1.weight.0", "options.lr". For a schedule it
/// calls f(name, number).
template <class X, class F>
void visit_named_state(X& x, const std::string& prefix, F&& f) {
  if constexpr (keeps_progress<X>) {
    x.visit_progress([&](const char* name, auto& number) { f(prefix + name, number); });
  } else {
    visit_tree(x,
               [&](auto& leaf, const tree_path& path) {
                 using L = std::remove_cvref_t<decltype(leaf)>;
                 if constexpr (is_state<L>) {
                   if (leaf.defined()) f(prefix + path.str(), leaf);
                 } else if constexpr (optimizer_like<X> && std::is_same_v<L, Scalar>) {
                   f(prefix + path.str(), leaf);
                 }
               },
               {});
  }
}

/// The value of a tensor, or a number as files store it: double, or a 64-bit integer.
/// nn/state_loader.hpp defines them, and the loader.
template <class In = void>
NamedArray array_of(const std::string& name, dtype type, const handle& value);
template <class In = void>
NamedArray number_array(const std::string& name, dtype type, const void* number);

template <class T, int R>
NamedArray to_array(const std::string& name, const Tensor<T, R>& t) {
  return array_of<dependent<T, void>>(name, dtype_of<T>, t);
}
template <class N>
  requires(std::is_arithmetic_v<N>)
NamedArray to_array(const std::string& name, const N& number) {
  using stored = std::conditional_t<std::is_integral_v<N>, std::int64_t, double>;
  const stored value = number;
  return number_array<dependent<N, void>>(name, dtype_of<stored>, &value);
}
template <class In = void>
inline NamedArray to_array(const std::string& name, const Scalar& s) {
  return to_array(name, s.value());
}

/// Loads in two steps: looks up and compares all that a model has, and writes if all of it matches.
template <class In>
class basic_state_loader {
 public:
  explicit basic_state_loader(const StateDict& dict);
  basic_state_loader(const basic_state_loader&) = delete;
  basic_state_loader& operator=(const basic_state_loader&) = delete;
  ~basic_state_loader();

  template <class T, int R, bool B>
  void want(const std::string& name, State<T, R, B>& state) {
    want(name, dtype_of<T>, state);
  }
  /// Gives a value a second name for later lookups.
  void tie(std::string alias, std::string name);
  void want(const std::string& name, dtype type, handle& target);
  void want(const std::string& name, Scalar& scalar);
  void want(const std::string& name, double& number);
  void want(const std::string& name, int& number);

  /// Throws unless everything matches and, when strict, nothing is missing or left over. Writes
  /// nothing yet, but allocates the memory for writing.
  IncompatibleKeys check(bool strict, const std::string& function);
  void write();

 private:
  struct state;
  state* state_;
};
using state_loader = basic_state_loader<void>;

}  // namespace detail

/// The values of a module's parameters and buffers, by PyTorch's names ("fc1.weight"). For an
/// optimizer: its step count, the tensors that it keeps for each parameter ("fc1.weight.0") and its
/// hyper-parameters ("options.lr"). For a schedule: its numbers ("last_epoch"). Waits for pending
/// ops. Gradients are not included.
template <class X>
StateDict state_dict(X& x) {
  StateDict out;
  detail::visit_named_state(x, "", [&](const std::string& name, auto& state) {
    out.push_back(detail::to_array(name, state));
  });
  return out;
}

/// Writes values into a module, an optimizer or a schedule. Values that the module lists in
/// XLA_TIED may have either name, or both with equal values. Floating-point values of another type
/// are rounded to the target's (so a float file loads into a double model, and back), integers are
/// converted if they fit. Throws `xla::error` that lists everything that is missing, unexpected, of
/// another kind or shape, and then has written nothing. If not strict, missing and unexpected
/// values are skipped and returned; other kinds and shapes remain errors.
template <class X>
IncompatibleKeys load_state_dict(X& x, const StateDict& dict, bool strict = true) {
  dependent<X, detail::state_loader> loader{dict};
  detail::visit_ties<std::remove_cv_t<X>>(
      [&](const detail::tied_name& t, const tree_path& path) {
        const std::string at = path.str(), prefix = at.empty() ? at : at + ".";
        loader.tie(prefix + t.alias, prefix + t.name);
      });
  detail::visit_named_state(
      x, "", [&](const std::string& name, auto& state) { loader.want(name, state); });
  auto report = loader.check(strict, "load_state_dict");
  loader.write();
  return report;
}

}  // namespace xla

#if XLA_RUNTIME_HERE
#include "xla/nn/state_loader.hpp"
#endif
