// SPDX-License-Identifier: Apache-2.0
#pragma once

// Tools that keep templates from being instantiated when a program only includes them. Most headers
// of the run time use them; they change compile time and size, never what is computed.

namespace xla {

namespace detail {
template <class, class X>
struct dependent_type {
  using type = X;
};
}  // namespace detail

/// X, as a type that depends on In. A template instantiates the non-dependent types that it uses as
/// soon as a program includes it; dependent ones only when it is instantiated itself. So the
/// templates of a header name containers, and each other, as dependent<In, …>, where In is their
/// own parameter.
template <class In, class X>
using dependent = typename detail::dependent_type<In, X>::type;

/// x, as an expression that depends on In.
template <class In, class X>
constexpr X& as_dependent(X& x) {
  return x;
}

}  // namespace xla
