// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace xla::kernel {

/// Where a matrix lies: element (i, j) is data[i * row_stride + j * col_stride].
template <class T>
struct matrix_view {
  const T* data;
  std::int64_t row_stride, col_stride;
};

}  // namespace xla::kernel
