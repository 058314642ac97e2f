// SPDX-License-Identifier: Apache-2.0
#pragma once

// A sum over the pixels of images with channels innermost. The pass that chooses layouts puts it in
// place of sum(); programs never call it.

#include "xla/op/op.hpp"

namespace xla::detail {

/// The sum over the pixels of images whose channels are innermost, and over the images if `images`
/// is set, in the order of a sum over row-major images. The pass layouts replaces such sums by it.
struct image_sum {
  static constexpr auto name = "image_sum";
  static constexpr op_kind kind = op_kind::library;
  struct attributes {
    bool images = false;
    XLA_ATTRIBUTES(images)
  };
  static constexpr shape shape_of(const shape_rule& r) { return r.op.dims_shape(); }
};

}  // namespace xla::detail
