// SPDX-License-Identifier: Apache-2.0
#pragma once

// mark_sharding() as attributes of XLA's partitioner. program.hpp writes them on arguments; XLA
// decides the rest.

#include <string>

#include "xla/ext/stablehlo/types.hpp"
#include "xla/shape/sharding.hpp"

namespace xla::detail::hlo {

/// A GSPMD attribute for a tensor of this rank: "mhlo.sharding = "{devices=[2,1]<=[2]}"". Axes of
/// the mesh that divide no axis of the tensor replicate it, in the innermost position.
inline std::string sharding_text(const sharding& s, int rank) {
  shape cuts, order;
  bool whole = true, by_row = true;
  const auto use = [&](int axis) {
    by_row &= axis == order.rank;
    order.push(axis);
  };
  for (int i = 0; i < rank; ++i) {
    cuts.push(s.parts(i));
    if (s.parts(i) == 1) continue;
    use(s.mesh_axis(i));
    whole = false;
  }
  if (whole) return "mhlo.sharding = \"{replicated}\"";
  int same = 1;
  for (int axis = 0; axis < s.axes(); ++axis) {
    bool used = false;
    for (int i = 0; i < rank; ++i) used |= s.parts(i) > 1 && s.mesh_axis(i) == axis;
    if (used) continue;
    use(axis);
    same *= s.mesh(axis);
  }
  const auto list = [](const shape& numbers) {
    std::string out;
    for (int i = 0; i < numbers.rank; ++i) {
      if (i > 0) out += ",";
      add_number(out, numbers[i]);
    }
    return out;
  };
  std::string out = "mhlo.sharding = \"{devices=[" + list(cuts);
  if (same > 1) out += "," + std::to_string(same);
  out += "]<=[";
  shape mesh;
  for (int i = 0; i < s.axes(); ++i) mesh.push(s.mesh(i));
  if (by_row) out += std::to_string(s.devices());
  else out += list(mesh) + "]T(" + list(order);
  out += by_row ? "]" : ")";
  if (same > 1) out += " last_tile_dim_replicate";
  return out + "}\"";
}

}  // namespace xla::detail::hlo
