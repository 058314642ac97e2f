// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "xla/base/error.hpp"
#include "xla/base/later.hpp"
#include "xla/io/named_array.hpp"
#include "xla/module.hpp"
#include "xla/op/cast.hpp"
#include "xla/op/create.hpp"
#include "xla/run/runtime.hpp"

namespace xla {

/// What did not match when a state was loaded: names that it lacks, and names that nothing has.
struct IncompatibleKeys {
  std::vector<std::string> missing_keys, unexpected_keys;
  bool empty() const { return missing_keys.empty() && unexpected_keys.empty(); }
};

namespace detail {

/// An optimizer, or what else keeps tensors beside the parameters of a model.
template <class X>
concept keeps_state = requires(X& x) {
  x.model();
  x.options;
  x.visit_state([](auto&, auto) {});
};

/// A schedule, or what else has numbers that change as training goes on.
template <class X>
concept keeps_progress = requires(X& x) { x.visit_progress([](const char*, auto&) {}); };

/// Calls f(name, state) for each parameter and buffer of a module; of an optimizer also for its
/// hyper-parameters, each an xla::Scalar: "step", "fc1.weight.0", "options.lr". Of a schedule it is
/// f(name, number).
template <class X, class F>
void visit_named_state(X& x, const std::string& prefix, F&& f) {
  if constexpr (keeps_progress<X>) {
    x.visit_progress([&](const char* name, auto& number) { f(prefix + name, number); });
  } else if constexpr (keeps_state<X>) {
    later<X, std::vector<std::pair<const void*, std::string>>> names;
    visit_tree(x.model(),
               [&](auto& leaf, const tree_path& path) {
                 if constexpr (is_state<std::remove_cvref_t<decltype(leaf)>>)
                   names.emplace_back(static_cast<const void*>(&leaf), prefix + path.str() + '.');
               },
               {});
    std::size_t at = 0;
    int count = 0;
    x.visit_state([&](auto& state, auto parameter) {
      if constexpr (std::is_null_pointer_v<decltype(parameter)>) {
        f(prefix + "step", state);
      } else {
        for (; names.at(at).first != parameter; ++at) count = 0;
        f(names[at].second + std::to_string(count++), state);
      }
    });
    visit_tree(x.options,
               [&](auto& leaf, const tree_path& path) {
                 if constexpr (std::is_same_v<std::remove_cvref_t<decltype(leaf)>, Scalar>)
                   f(prefix + "options." + path.str(), leaf);
               },
               {});
  } else {
    visit_tree(x,
               [&](auto& leaf, const tree_path& path) {
                 if constexpr (is_state<std::remove_cvref_t<decltype(leaf)>>)
                   if (leaf.defined()) f(prefix + path.str(), leaf);
               },
               {});
  }
}

template <class T, int R>
NamedArray to_array(std::string name, const Tensor<T, R>& t) {
  const auto* const from = reinterpret_cast<const std::uint8_t*>(t.data());
  const auto bytes = static_cast<std::size_t>(std::int64_t(t.numel())) * sizeof(T);
  return {std::move(name), dtype_of<T>, t.sizes(), {from, from + bytes}};
}
/// A number as the file has it: double, or a whole number of 64 bits.
template <class N>
  requires(std::is_arithmetic_v<N>)
NamedArray to_array(std::string name, const N& number) {
  using stored = std::conditional_t<std::is_integral_v<N>, std::int64_t, double>;
  NamedArray out{std::move(name), dtype_of<stored>, {}, std::vector<std::uint8_t>(8, 0)};
  const stored value = number;
  std::memcpy(out.bytes.data(), &value, 8);
  return out;
}
template <class In = void>
inline NamedArray to_array(std::string name, const Scalar& s) {
  return to_array(std::move(name), s.value());
}

template <class T>
any_tensor<T> to_tensor(const NamedArray& array) {
  if constexpr (std::is_same_v<T, bool>) {  // any byte but 0 and 1 is no bool
    NamedArray numbers = array;
    numbers.type = dtype::uint8;
    return cast<T>(to_tensor<std::uint8_t>(numbers));
  }
  const auto* const values = reinterpret_cast<const T*>(array.bytes.data());
  any_tensor<T> out;
  if (array.sizes.empty()) out = Tensor<T, 0>(*values);
  [&]<std::size_t... R>(std::index_sequence<R...>) {
    const auto make = [&]<std::size_t... I>(std::index_sequence<I...>) {
      if (array.sizes.size() == sizeof...(I)) out = from_blob(values, {array.sizes[I]...});
    };
    (make(std::make_index_sequence<R + 1>{}), ...);
  }(std::make_index_sequence<static_cast<std::size_t>(max_rank)>{});
  return out;
}

/// Loads in two steps: what is wanted is looked up and compared; then, if all of it fits, written.
template <class In>
class basic_state_loader {
 public:
  explicit basic_state_loader(const StateDict& dict) : taken_(dict.size(), false) {
    for (std::size_t i = 0; i < dict.size(); ++i)
      if (!by_name_.emplace(dict[i].name, std::pair{&dict[i], i}).second)
        mismatched_.push_back(dict[i].name + ": stands there twice");
    dict_ = &dict;
  }

  template <class T, int R, bool B>
  void want(const std::string& name, State<T, R, B>& state) {
    const auto* const found = find(name, dtype_of<T>, state.sizes());
    if (!found) return;
    writes_.push_back([&state, value = any_tensor<T>(), found](bool write) mutable {
      if (write) state.copy_(value);
      else value = to_tensor<T>(*found);
    });
  }
  void want(const std::string& name, Scalar& scalar) { want_number<double>(name, scalar); }
  void want(const std::string& name, double& number) { want_number<double>(name, number); }
  void want(const std::string& name, int& number) { want_number<std::int64_t>(name, number); }

  /// Throws unless everything fits and, when strict, nothing is missing or left over; writes
  /// nothing yet, but takes the memory that writing needs.
  IncompatibleKeys check(bool strict, const std::string& who) {
    IncompatibleKeys report{missing_, {}};
    for (std::size_t i = 0; i < taken_.size(); ++i)
      if (!taken_[i] && by_name_.at((*dict_)[i].name).second == i)
        report.unexpected_keys.push_back((*dict_)[i].name);
    std::string text = list("does not fit", mismatched_, ";\n    ");
    if (strict)
      text = list("missing", report.missing_keys, ", ") +
             list("unexpected", report.unexpected_keys, ", ") + text;
    if (!text.empty()) throw error(who + ": the state does not fit; nothing was loaded" + text);
    for (auto& w : writes_) w(false);
    return report;
  }
  void write() {
    for (auto& w : writes_) w(true);
  }

 private:
  template <class Stored, class N>
  void want_number(const std::string& name, N& number) {
    const auto* const found = find(name, dtype_of<Stored>, {});
    if (!found) return;
    Stored value{};
    std::memcpy(&value, found->bytes.data(), sizeof value);
    if constexpr (std::is_integral_v<N>)
      if (!std::in_range<N>(value))
        return mismatched_.push_back(name + ": " + std::to_string(value) + " is out of range");
    writes_.push_back([&number, value](bool write) {
      if (write) number = static_cast<N>(value);
    });
  }
  const NamedArray* find(const std::string& name, dtype type,
                         const later<In, std::vector<std::int64_t>>& sizes) {
    const auto found = by_name_.find(name);
    if (found == by_name_.end()) {
      missing_.push_back(name);
      return nullptr;
    }
    taken_[found->second.second] = true;
    const NamedArray& a = *found->second.first;
    const auto describe = [](dtype t, const later<In, std::vector<std::int64_t>>& s) {
      return std::string{name_of(t)} + io::sizes_text(s);
    };
    if (a.type != type || a.sizes != sizes)
      mismatched_.push_back(name + ": " + describe(a.type, a.sizes) + " found, " +
                            describe(type, sizes) + " needed");
    else if (a.bytes.size() != io::array_bytes(type, sizes))
      mismatched_.push_back(name + ": " + std::to_string(a.bytes.size()) + " bytes found for " +
                            describe(type, sizes));
    else return &a;
    return nullptr;
  }
  static std::string list(const char* what, const later<In, std::vector<std::string>>& all,
                          const char* between) {
    std::string out;
    for (const auto& s : all) out += (out.empty() ? "" : between) + s;
    return out.empty() ? out : std::string("\n  ") + what + ": " + out;
  }

  const StateDict* dict_ = nullptr;
  later<In, std::unordered_map<std::string_view, std::pair<const NamedArray*, std::size_t>>>
      by_name_;
  later<In, std::vector<bool>> taken_;
  later<In, std::vector<std::string>> missing_, mismatched_;
  later<In, std::vector<std::function<void(bool)>>> writes_;
};
using state_loader = basic_state_loader<void>;

}  // namespace detail

/// The values of a module's parameters and buffers, by PyTorch's names ("fc1.weight"); of an
/// optimizer its step count, the tensors that it keeps beside each parameter ("fc1.weight.0") and
/// its hyper-parameters ("options.lr"); of a schedule its numbers ("last_epoch"). Waits for what is
/// still pending. Gradients are no part.
template <class X>
StateDict state_dict(X& x) {
  StateDict out;
  detail::visit_named_state(x, "", [&](const std::string& name, auto& state) {
    out.push_back(detail::to_array(name, state));
  });
  return out;
}

/// Writes values into a module, an optimizer or a schedule. Throws `xla::error` that lists
/// everything that is missing, unexpected, or of another type or shape, and then has written
/// nothing. Not strict, what is missing or unexpected is left out and returned; other types and
/// shapes are errors still.
template <class X>
IncompatibleKeys load_state_dict(X& x, const StateDict& dict, bool strict = true) {
  detail::later<X, detail::state_loader> loader{dict};
  detail::visit_named_state(
      x, "", [&](const std::string& name, auto& state) { loader.want(name, state); });
  auto report = loader.check(strict, "load_state_dict");
  loader.write();
  return report;
}

}  // namespace xla
