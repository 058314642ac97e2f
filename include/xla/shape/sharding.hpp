// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which axes of a tensor are split over which axes of a mesh of devices. mark_sharding() records
// it, and XLA by a plugin (ext/pjrt/) obeys it; the native backend goes on as without it.

#include <cstdint>

#include "xla/shape/shape.hpp"

namespace xla::detail {

/// How a tensor is shared out to the devices of a mesh: which axis of the mesh cuts which of its
/// axes. Devices are numbered row by row, those of one position along these axes have the same
/// part.
struct sharding {
  static constexpr int max_axes = 3, max_devices = 64;  ///< of a mesh, along an axis

  std::uint32_t bits = 0;  ///< sizes of the mesh less 1, 6 each; then 1 + what cuts an axis, 2 each

  constexpr int mesh(int axis) const { return 1 + static_cast<int>(bits >> 6 * axis & 63); }
  constexpr void set_mesh(int axis, int devices) {
    bits |= static_cast<std::uint32_t>(devices - 1) << 6 * axis;
  }
  /// The mesh's axis that cuts one of the tensor; -1: none.
  constexpr int cut_by(int axis) const { return static_cast<int>(bits >> (18 + 2 * axis) & 3) - 1; }
  constexpr void cut(int axis, int by) {
    bits |= static_cast<std::uint32_t>(by + 1) << (18 + 2 * axis);
  }
  /// The same mesh, and the tensor whole on all of it.
  constexpr sharding uncut() const { return {bits & ((1u << 18) - 1)}; }
  /// Axes of the mesh, but for last ones of one device.
  constexpr int axes() const { return mesh(2) > 1 ? 3 : mesh(1) > 1 ? 2 : 1; }
  /// 1 where nobody has marked it.
  constexpr int devices() const { return mesh(0) * mesh(1) * mesh(2); }
  /// In how many parts an axis of the tensor is cut.
  constexpr int parts(int axis) const { return cut_by(axis) < 0 ? 1 : mesh(cut_by(axis)); }
  /// Whether a tensor of these sizes has the axes, and they can be cut.
  constexpr bool fits(const shape& whole) const {
    for (int i = 0; i < max_rank; ++i)
      if (cut_by(i) >= 0 && (i >= whole.rank || whole[i] % parts(i) != 0)) return false;
    return true;
  }
  /// Which of them a device has.
  constexpr int part_of(int device, int axis) const {
    if (cut_by(axis) < 0) return 0;
    for (int i = max_axes - 1; i > cut_by(axis); --i) device /= mesh(i);
    return device % mesh(cut_by(axis));
  }
  /// What a device has of a tensor.
  constexpr shape part_of(const shape& whole) const {
    shape part = whole;
    for (int i = 0; i < whole.rank; ++i) part[i] /= parts(i);
    return part;
  }
  friend constexpr bool operator==(sharding, sharding) = default;
};

}  // namespace xla::detail
