// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which axes of a tensor are divided over which axes of a mesh of devices. mark_sharding() records
// it, and XLA by a plugin (ext/pjrt/) obeys it; the native backend ignores it.

#include <cstdint>

#include "xla/shape/shape.hpp"

namespace xla::detail {

/// How a tensor is distributed over the devices of a mesh: which axis of the mesh divides which of
/// its axes. Devices are numbered row by row; those with the same position along these axes have
/// the same part.
struct sharding {
  static constexpr int max_axes = 3, max_devices = 64;  ///< of a mesh, along an axis

  std::uint32_t bits = 0;  ///< sizes of the mesh less 1, 6 bits each; then 1 + the mesh axis of
                           ///< each axis, 2 bits each

  constexpr int mesh(int axis) const { return 1 + static_cast<int>(bits >> 6 * axis & 63); }
  constexpr void set_mesh(int axis, int devices) {
    bits |= static_cast<std::uint32_t>(devices - 1) << 6 * axis;
  }
  /// The mesh's axis that divides one of the tensor's; -1: none.
  constexpr int mesh_axis(int axis) const {
    return static_cast<int>(bits >> (18 + 2 * axis) & 3) - 1;
  }
  constexpr void shard(int axis, int by) {
    bits |= static_cast<std::uint32_t>(by + 1) << (18 + 2 * axis);
  }
  /// The same mesh, with the tensor replicated.
  constexpr sharding replicated() const { return {bits & ((1u << 18) - 1)}; }
  /// The axes of the mesh, without trailing ones of one device.
  constexpr int axes() const { return mesh(2) > 1 ? 3 : mesh(1) > 1 ? 2 : 1; }
  /// 1 if it is not marked.
  constexpr int devices() const { return mesh(0) * mesh(1) * mesh(2); }
  /// The number of parts along an axis of the tensor.
  constexpr int parts(int axis) const { return mesh_axis(axis) < 0 ? 1 : mesh(mesh_axis(axis)); }
  /// Whether a tensor of these sizes has the axes, and they can be divided.
  constexpr bool fits(const shape& whole) const {
    for (int i = 0; i < max_rank; ++i)
      if (mesh_axis(i) >= 0 && (i >= whole.rank || whole[i] % parts(i) != 0)) return false;
    return true;
  }
  /// The part that a device has.
  constexpr int part_of(int device, int axis) const {
    if (mesh_axis(axis) < 0) return 0;
    for (int i = max_axes - 1; i > mesh_axis(axis); --i) device /= mesh(i);
    return device % mesh(mesh_axis(axis));
  }
  /// The sizes of a device's part.
  constexpr shape part_of(const shape& whole) const {
    shape part = whole;
    for (int i = 0; i < whole.rank; ++i) part[i] /= parts(i);
    return part;
  }
  friend constexpr bool operator==(sharding, sharding) = default;
};

}  // namespace xla::detail
