// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/op/argmax.hpp"
#include "xla/op/check_index.hpp"
#include "xla/op/create.hpp"
#include "xla/op/derived/softmax.hpp"

namespace xla {

/// Mean cross-entropy between logits (batch, classes) and class numbers (batch). A class outside
/// [0, classes) is an index_error, an empty batch a shape_error.
template <class T>
constexpr Tensor<T, 0> cross_entropy(const Tensor<T, 2>& logits,
                                     const Tensor<std::int64_t, 1>& target) {
  const detail::shape s = logits.dims();
  const detail::size_scope scope{logits.table(), "cross_entropy"};
  detail::extent batch = s[0];
  if (!scope.equal(batch, target.dims()[0]))
    scope.fail(detail::text("logits ") << s << " and target " << target.dims()
                                       << ": one class number per row of logits is needed");
  scope.nonzero(batch, "cross_entropy: the batch is empty, its mean loss is not defined");
  // Class numbers are compared as T: exact up to 2^24 classes in float.
  const auto index = detail::check_index(target, logits.size(1), "cross_entropy");
  const auto hit = unsqueeze(cast<T>(index), 1) == arange<T>(logits.size(1));
  const auto picked = sum(where(hit, log_softmax(logits), 0), {1}, keepdim);
  return -mean(picked);
}

/// Mean of the squared differences; the shapes must be equal.
template <class T, int A, int B>
constexpr Tensor<T, 0> mse_loss(const Tensor<T, A>& input, const Tensor<T, B>& target) {
  static_assert(A == B, "xla::mse_loss: input and target have different numbers of axes");
  const detail::shape a = input.dims(), b = target.dims();
  const detail::size_scope scope{input.table() ? input.table() : target.table(), "mse_loss"};
  for (int i = 0; i < a.rank; ++i)
    if (detail::extent e = a[i]; !scope.equal(e, b[i]))
      scope.fail(detail::text("input ") << a << " and target " << b << " have different sizes");
  const auto d = input - target;
  return mean(d * d);
}

}  // namespace xla
