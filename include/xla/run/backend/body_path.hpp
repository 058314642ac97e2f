// SPDX-License-Identifier: Apache-2.0
#pragma once

// Adds to an error in a loop's body the enclosing loops, the innermost first, and the step of each.
// Both stepwise loops in loop/ and plans (loops.hpp) use it.

#include <string>
#include <typeinfo>
#ifndef __cpp_rtti
#include <cxxabi.h>
#endif

#include "xla/base/caller.hpp"
#include "xla/base/dependent.hpp"
#include "xla/base/error.hpp"
#include "xla/base/instance.hpp"

namespace xla::detail {

template <class Error>
void throw_in_body(const runtime_error& e, const text& where) {
#ifdef __cpp_rtti
  if (typeid(e) == typeid(Error)) throw Error(e.what() + std::string(where.view()));
#else  // types of exceptions exist without RTTI, only typeid does not
  const std::type_info& type = *abi::__cxa_current_exception_type();
  try {
    throw Error("");
  } catch (const Error&) {
    if (type != *abi::__cxa_current_exception_type()) return;
  }
  throw Error(e.what() + std::string(where.view()));
#endif
}

/// In a catch clause: rethrows an error about sizes with the loop in whose body it occurred, an
/// error about elements also with the step (in scan_layers() the block), and any other error
/// unchanged. step: -1 if it has no number.
template <class In = void>
[[noreturn, gnu::cold]] void refuse_in_body(const runtime_error& e, const call_site& loop,
                                            std::int64_t step) {
  const bool branch = loop.function == "cond";
  text body(branch ? ", in a branch of " : ", in the body of "), in_step;
  body << loop.function << loop.at;
  const char* const one = loop.function == "scan_layers" ? ", in block " : ", in step ";
  if (step < 0 || branch) in_step = body;
  else in_step << one << step << " of " << loop.function << loop.at;
  throw_in_body<dependent<In, shape_error>>(e, body);
  throw_in_body<dependent<In, index_error>>(e, in_step);
  throw_in_body<dependent<In, runtime_error>>(e, in_step);
  throw;
}
XLA_INSTANCE(void refuse_in_body<void>(const runtime_error&, const call_site&, std::int64_t));

/// The result type of a function that runs a step of a loop.
template <class F>
constexpr auto in_body(const call_site& loop, std::int64_t step, const F& f) {
  if (__builtin_is_constant_evaluated()) return f();
  try {
    return f();
  } catch (const runtime_error& e) {
    refuse_in_body<dependent<F, void>>(e, loop, step);
  }
}

}  // namespace xla::detail
