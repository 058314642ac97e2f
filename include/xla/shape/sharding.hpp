// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "xla/shape/shape.hpp"

namespace xla::detail {

/// How a tensor is shared out to the devices of a mesh: which axis of the mesh cuts which of its
/// axes. Devices are numbered row by row, those of one place along these axes have the same part.
struct sharding {
  static constexpr int most_axes = 3;

  std::uint8_t mesh[most_axes] = {};   ///< sizes; 0: there is no such axis
  std::uint8_t cut_by[max_rank] = {};  ///< per axis of the tensor: 1 + that of the mesh; 0: none

  constexpr int axes() const {
    int n = 0;
    while (n < most_axes && mesh[n] > 0) ++n;
    return n;
  }
  /// 1 where nobody has marked it.
  constexpr int devices() const {
    int n = 1;
    for (int i = 0; i < axes(); ++i) n *= mesh[i];
    return n;
  }
  /// In how many parts an axis of the tensor is cut.
  constexpr int parts(int axis) const { return cut_by[axis] == 0 ? 1 : mesh[cut_by[axis] - 1]; }
  /// Which of them a device has.
  constexpr int part_of(int device, int axis) const {
    if (cut_by[axis] == 0) return 0;
    for (int i = axes() - 1; i > cut_by[axis] - 1; --i) device /= mesh[i];
    return device % mesh[cut_by[axis] - 1];
  }
  /// What a device has of a tensor.
  constexpr shape part_of(const shape& whole) const {
    shape part = whole;
    for (int i = 0; i < whole.rank; ++i) part[i] /= parts(i);
    return part;
  }
  constexpr bool same_mesh(const sharding& o) const {
    for (int i = 0; i < most_axes; ++i)
      if (mesh[i] != o.mesh[i]) return false;
    return true;
  }
};

}  // namespace xla::detail
