// SPDX-License-Identifier: Apache-2.0
#pragma once

// Decides whether a type can be an argument of a compiled function, and says in one sentence why
// not. All of it runs in the compiler; visit.hpp asks before it visits an argument.

#include <cstdint>
#include <optional>
#include <string_view>

#include "xla/base/compiler.hpp"
#include "xla/base/refuse.hpp"
#include "xla/tensor/tree.hpp"

namespace xla::detail {

template <class X>
concept pointer_like = std::is_null_pointer_v<X> || std::is_pointer_v<X> || requires(X& x) {
  *x;
  x.get();
};
template <class X>
concept optional_like = requires(X& x) {
  *x;
  x.has_value();
};
template <class X>
concept text_like = std::is_convertible_v<const X&, std::string_view> && !std::is_null_pointer_v<X>;
template <class X>
concept reference_like = requires(X& x) {
  typename X::type;
  { x.get() } -> std::same_as<typename X::type&>;
};
template <class X>
concept schedule_like = requires(X& x) {
  x.last_epoch();
  x.last_lr();
};

/// The bytes of the members that are described, each with what may follow it as padding.
template <class X>
constexpr std::int64_t bytes_of_members(auto members) {
  constexpr std::int64_t unit = alignof(X);
  return hana::unpack(members, []<class... M>(M... m) {
    return (std::int64_t{0} + ... +
            ((std::int64_t{sizeof(m.get(std::declval<X&>()))} + unit - 1) / unit * unit));
  });
}

/// Bytes of a described struct that are neither in a described member nor in a plain one.
template <class X>
constexpr std::int64_t bytes_left_out() {
  std::int64_t left = std::int64_t{sizeof(X)} - bytes_of_members<X>(X::xla_members());
  if constexpr (requires { X::xla_plain_members(); })
    left -= bytes_of_members<X>(X::xla_plain_members());
  if constexpr (std::is_polymorphic_v<X>) left -= std::int64_t{sizeof(void*)};
  return left;
}

/// Why a type cannot be an argument or a member of one, not counting its own members.
enum class mismatch {
  none,
  size,
  pointer,
  reference,
  optional,
  text,
  array,
  container,
  schedule,
  members,
  bytes
};

template <class X>
constexpr mismatch mismatch_of() {
  if constexpr (tree_leaf<X> || is_part<X> || is_array<X> || is_tuple<X> || optimizer_like<X>)
    return mismatch::none;
  else if constexpr (std::is_same_v<X, Size>) return mismatch::size;
  else if constexpr (described<X>)
    return bytes_left_out<X>() > 0 ? mismatch::bytes : mismatch::none;
  else if constexpr (text_like<X>) return mismatch::text;
  else if constexpr (std::is_array_v<X>) return mismatch::array;
  else if constexpr (optional_like<X>) return mismatch::optional;
  else if constexpr (reference_like<X>) return mismatch::reference;
  else if constexpr (pointer_like<X>) return mismatch::pointer;
  else if constexpr (container<X>) return mismatch::container;
  else if constexpr (schedule_like<X>) return mismatch::schedule;
  else return std::is_empty_v<X> ? mismatch::none : mismatch::members;
}

template <class U>
constexpr bool find_fit();
/// Whether a type, with all of its members, can be an argument. A constant, as many ask.
template <class X>
inline constexpr bool fits = find_fit<std::remove_cvref_t<X>>();

template <class U>
constexpr bool find_fit() {
  bool all = mismatch_of<U>() == mismatch::none;
  if constexpr (!tree_leaf<U> && !is_part<U> && !optimizer_like<U> &&
                mismatch_of<U>() == mismatch::none)
    for_each_member<U>(
        [&]<class Get>(const Get&, const auto&) { all = all && fits<member_type<U, Get>>; });
  return all;
}

/// A type's name, as the compiler writes it.
template <class X>
constexpr std::string_view type_name() {
#if XLA_GNU_EXTENSIONS
  constexpr std::string_view all = __PRETTY_FUNCTION__;
  constexpr std::size_t from = all.find("X = ") + 4;
  return all.substr(from, all.find_first_of(";]", from) - from);
#else
  return "this type";
#endif
}

template <class X>
constexpr void explain_mismatch(text& why) {
  switch (mismatch_of<X>()) {
    case mismatch::none: break;
    case mismatch::size: why << "a size: pass the tensor that has it, and write x.size(0)"; break;
    case mismatch::pointer:
      why << "a pointer: pass what it points to, *p, by reference; a member is the module itself, "
             "nn::Linear fc{8, 3}";
      break;
    case mismatch::reference: why << "a reference wrapper: pass the object itself"; break;
    case mismatch::optional:
      why << "std::optional: whether it holds a value is known only at run time: write a function "
             "for each case, or use a mask of ones";
      break;
    case mismatch::text: why << "text: a graph has none; use an enum, or keep it outside"; break;
    case mismatch::array: why << "an array of C: use std::array"; break;
    case mismatch::container:
      why << "a container whose size is known only at run time cannot be part of a model: use "
             "std::array (pass tensors one by one)";
      break;
    case mismatch::schedule:
      why << "a learning-rate schedule steps between calls; for a loop of training steps pass the "
             "rates of its next n steps, xla::optim::next_lr(schedule, n), and call "
             "optimizer.step(rate)";
      break;
    case mismatch::members:
      why << type_name<X>()
          << ": the members of this struct are not described: write XLA_MODULE(member, ...) at its "
             "end, where it is public";
      break;
    case mismatch::bytes:
      if constexpr (described<X>) {
        why << type_name<X>() << ": XLA_MODULE leaves out " << bytes_left_out<X>()
            << " bytes: name every member there, a base by XLA_DERIVED_MODULE(Base, ...), what is "
               "no part of the model in XLA_PLAIN(...). Named:";
        for_each_member<X>(
            [&](const auto&, const char* name) { why << ' ' << (*name ? name : "-"); });
      }
  }
}

/// Adds the way to the first type that does not fit, and what keeps it from fitting.
template <class X>
constexpr void find_mismatch(text& why, const text& path) {
  using U = std::remove_cvref_t<X>;
  if constexpr (mismatch_of<U>() != mismatch::none) {
    why << path << ": ";
    explain_mismatch<U>(why);
  } else if constexpr (!tree_leaf<U> && !optimizer_like<U>) {
    for_each_member<U>([&]<class Get>(const Get&, const auto& called) {
      using Y = member_type<U, Get>;
      if (!fits<Y> && why.empty()) find_mismatch<Y>(why, text(path) << '.' << called);
    });
  }
}

template <class X>
inline constexpr text mismatch_in_module = [] {
  text why;
  find_mismatch<X>(why, "xla: the model");
  return why;
}();

/// What a compiled function cannot return: numbers would be those of the symbolic tensors.
template <class X>
inline constexpr bool is_number_result =
    std::is_same_v<X, Size> || std::is_arithmetic_v<X> || std::is_enum_v<X>;

template <class X>
constexpr void find_result_mismatch(text& why, const text& path) {
  using U = std::remove_cvref_t<X>;
  if (!why.empty()) return;
  if constexpr (is_number_result<U>) {
    why << path << ": " << type_name<U>()
        << ": a compiled function returns tensors: return the tensor and read its number outside, "
           "loss.item(); sizes too, x.size(0)";
  } else if constexpr (is_tuple<U> || is_array<U>) {
    for_each_member<U>([&]<class Get>(const Get&, const auto& called) {
      find_result_mismatch<member_type<U, Get>>(why, text(path) << '.' << called);
    });
  } else if constexpr (!fits<U>) {
    find_mismatch<U>(why, path);
  }
}
template <class X>
inline constexpr text mismatch_in_result = [] {
  text why;
  find_result_mismatch<X>(why, "xla::compile: the result");
  return why;
}();

/// Stops the build where a module's type, or that of one of its members, does not fit.
template <class X>
constexpr void check_fit() {
  if constexpr (!fits<X>) refuse<mismatch_in_module<X>>();
}

}  // namespace xla::detail
