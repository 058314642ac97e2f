// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes one number as an element of any type, for constants and hyper-parameters of programs.
// Plans, backends and the interpreter call it; tensors are written by kernels.

#include "xla/graph/builtin.hpp"
#include "xla/shape/bfloat16.hpp"
#include "xla/shape/dtype.hpp"

namespace xla::detail {

/// Writes a number as an element; integers from exact.
template <class In = void>
[[gnu::noinline]] inline void store_number(void* to, dtype type,
                                           const op::constant::attributes& number) {
  const auto [value, exact] = number;
  switch (type) {
    case dtype::float32: *static_cast<float*>(to) = static_cast<float>(value); break;
    case dtype::float64: *static_cast<double*>(to) = value; break;
    case dtype::int32: *static_cast<std::int32_t*>(to) = static_cast<std::int32_t>(exact); break;
    case dtype::int64: *static_cast<std::int64_t*>(to) = exact; break;
    case dtype::uint8: *static_cast<std::uint8_t*>(to) = static_cast<std::uint8_t>(exact); break;
    case dtype::boolean: *static_cast<bool*>(to) = value != 0; break;
    case dtype::bfloat16: *static_cast<bfloat16*>(to) = bfloat16(value); break;
  }
}

}  // namespace xla::detail
