// SPDX-License-Identifier: Apache-2.0
#pragma once

// Public: copies and views between tensors and Eigen's matrices. Kernels do not use it.

#include "xla/kernel/simd/packet.hpp"
#include "xla/op/create.hpp"

namespace xla {

namespace detail {
/// Whether the program has included Eigen/Core; xla.hpp declares Eigen's types without including
/// it.
template <class T>
concept has_eigen = requires { sizeof(Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>); };
}  // namespace detail

/// A tensor with a copy of an Eigen matrix or array expression: (rows, cols).
template <class Derived>
Tensor<typename Derived::Scalar, 2> from_eigen(const Eigen::DenseBase<Derived>& m) {
  using T = typename Derived::Scalar;
  const Eigen::Array<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> rows = m.derived().array();
  return from_blob(static_cast<const T*>(rows.data()), {rows.rows(), rows.cols()});
}

/// A tensor of one or two axes as an Eigen matrix, without a copy. It shares the elements, and
/// keeps the values of the moment when it was made.
template <class T, int R>
class EigenView
    : public Eigen::Map<const Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>> {
  static_assert(R == 1 || R == 2, "xla::as_eigen: needs a tensor with one or two axes");
  using Map = Eigen::Map<const Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>;

 public:
  explicit EigenView(const Tensor<T, R>& t)
      : Map(t.data(), std::int64_t(t.size(0)), R == 2 ? std::int64_t(t.size(-1)) : 1), share_(t) {}

 private:
  Tensor<T, R> share_;
};
template <class T, int R>
auto as_eigen(const Tensor<T, R>& t) {
  static_assert(detail::has_eigen<T>, "xla::as_eigen: write #include <Eigen/Core> as well");
  if constexpr (detail::has_eigen<T>) return EigenView<T, R>(t);
}

}  // namespace xla
