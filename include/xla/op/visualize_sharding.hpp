// SPDX-License-Identifier: Apache-2.0
#pragma once

// visualize_sharding(): draws which devices hold which part of a tensor, as text. It is not in
// xla.hpp; mark_sharding.hpp makes the marks.

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "xla/base/error.hpp"
#include "xla/op/mark_sharding.hpp"

namespace xla {
namespace detail {

/// Rows and columns of the picture are the first two divided axes.
inline std::string picture_of(const sharding& s, int rank, std::string_view function) {
  std::vector<int> sharded;
  for (int i = 0; i < rank; ++i)
    if (s.mesh_axis(i) >= 0) sharded.push_back(i);
  if (sharded.size() > 2)
    throw runtime_error(std::string(function) +
                        ": three axes are sharded, and a picture has two; "
                        "leave one whole, {}");
  const int down = sharded.empty() || (sharded.size() == 1 && sharded[0] > 0) ? -1 : sharded[0];
  const int across = sharded.empty() || sharded.back() == down ? -1 : sharded.back();
  const int rows = down < 0 ? 1 : s.parts(down), columns = across < 0 ? 1 : s.parts(across);
  std::vector<std::string> cells(static_cast<std::size_t>(rows * columns));
  for (int d = 0; d < s.devices(); ++d) {
    const int row = down < 0 ? 0 : s.part_of(d, down),
              column = across < 0 ? 0 : s.part_of(d, across);
    std::string& cell = cells[static_cast<std::size_t>(row * columns + column)];
    cell += (cell.empty() ? "" : ", ") + std::to_string(d);
  }
  std::size_t width = 0;
  for (const std::string& c : cells) width = c.size() > width ? c.size() : width;
  std::string rule = "+";
  for (int i = 0; i < columns; ++i) rule += std::string(width + 2, '-') + "+";
  std::string out = rule + "\n";
  for (int r = 0; r < rows; ++r) {
    out += "|";
    for (int i = 0; i < columns; ++i) {
      const std::string& c = cells[static_cast<std::size_t>(r * columns + i)];
      const std::size_t left = (width - c.size()) / 2;
      out += " " + std::string(left, ' ') + c + std::string(width - c.size() - left, ' ') + " |";
    }
    out += "\n" + rule + "\n";
  }
  return out;
}

}  // namespace detail

/// A picture of how mark_sharding(x, mesh, by) divides a tensor: a box for each part, with the
/// numbers of the devices that hold it. Like torch_xla's and jax.debug's visualize_sharding, as
/// text:
///   constexpr xla::Mesh mesh{{2, 2}, {"data", "model"}};
///   std::cout << xla::visualize_sharding(mesh, {"data", {}});
///   +------+
///   | 0, 1 |
///   +------+
///   | 2, 3 |
///   +------+
/// Rows are the first divided axis, columns the second; a single one that is not the tensor's first
/// gives columns. Throws `xla::error` for a name that the mesh does not have or that divides two
/// axes, and if three axes are divided.
inline std::string visualize_sharding(const Mesh& mesh,
                                      std::initializer_list<std::string_view> by) {
  detail::sharding s = mesh.on();
  int rank = 0;
  for (const std::string_view name : by) {
    const int axis = rank++;
    if (rank > detail::max_rank)
      throw runtime_error("visualize_sharding: tensors have at most " +
                          std::to_string(detail::max_rank) + " axes");
    if (name.empty()) continue;
    const int along = mesh.axis(name);
    if (along < 0)
      throw runtime_error("visualize_sharding: the mesh has no axis \"" + std::string(name) +
                          "\"; name one that it has, or {}");
    for (int k = 0; k < axis; ++k)
      if (s.mesh_axis(k) == along)
        throw runtime_error("visualize_sharding: \"" + std::string(name) +
                            "\" shards two axes; name it once");
    s.shard(axis, along);
  }
  return detail::picture_of(s, rank, "visualize_sharding");
}

/// The same for a tensor, whose sizes are checked like in mark_sharding().
template <class T, int R>
std::string visualize_tensor_sharding(const Tensor<T, R>& x, const Mesh& mesh,
                                      std::initializer_list<std::string_view> by,
                                      caller loc = here()) {
  const detail::size_scope scope{x.table(), {"visualize_tensor_sharding", loc}};
  return detail::picture_of(detail::sharded_as(x, mesh, by, scope), R, "visualize_tensor_sharding");
}

}  // namespace xla
