// SPDX-License-Identifier: Apache-2.0
#pragma once

// mark_sharding() and Mesh: how arguments of a compiled function are divided over the devices of an
// XLA plugin. It is no op: it marks slots of the graph.

#include <initializer_list>
#include <stdexcept>
#include <string_view>

#include "xla/op/op.hpp"
#include "xla/shape/sharding.hpp"

namespace xla {

/// Devices of one process in a grid with named axes, like torch_xla's xs.Mesh: `constexpr xla::Mesh
/// mesh{{2, 2}, {"data", "model"}};`. At most three axes and 64 devices per axis; devices are
/// numbered row by row, from 0 on.
class Mesh {
 public:
  /// Throws `std::logic_error` for other sizes, and if axes share a name.
  constexpr Mesh(std::initializer_list<int> sizes, std::initializer_list<std::string_view> names) {
    if (sizes.size() != names.size() || sizes.size() == 0 || sizes.size() > most)
      throw std::logic_error("xla::Mesh: 1 to 3 sizes, and a name for each");
    int n = 0;
    for (const int size : sizes) {
      if (size < 1 || size > detail::sharding::max_devices)
        throw std::logic_error("xla::Mesh: an axis has 1 to 64 devices");
      on_.set_mesh(n++, size);
    }
    n = 0;
    for (const std::string_view name : names) {
      if (name.empty() || axis(name) >= 0)
        throw std::logic_error("xla::Mesh: each axis has a name of its own");
      names_[n++] = name;
    }
  }
  /// How many devices there are.
  constexpr int size() const { return on_.devices(); }
  /// The number of an axis; -1 if there is none of that name.
  constexpr int axis(std::string_view name) const {
    for (int i = 0; i < most; ++i)
      if (!names_[i].empty() && names_[i] == name) return i;
    return -1;
  }
  constexpr const detail::sharding& on() const { return on_; }

 private:
  static constexpr int most = detail::sharding::max_axes;
  detail::sharding on_;
  std::string_view names_[most];
};

namespace detail {

/// The slot whose value at entry this is; -1 if it is no argument's.
template <class T, int R>
constexpr int slot_of_argument(const Tensor<T, R>& x) {
  if (const int cell = x.slot_index(); cell >= 0) return cell;
  const graph* const g = x.owner();
  if (!g || !is<op::input>(g->nodes[x.node_index()])) return -1;
  return slot_of_value(g->nodes[x.node_index()]);
}

/// Parses which mesh axis divides which axis of a tensor; refuses mismatches.
template <class T, int R>
constexpr sharding sharded_as(const Tensor<T, R>& x, const Mesh& mesh,
                              std::initializer_list<std::string_view> by, const size_scope& scope) {
  sharding s = mesh.on();
  const shape dims = x.dims();
  if (static_cast<int>(by.size()) != dims.rank) {
    scope.fail(text("a tensor of shape ")
               << dims << ", and " << static_cast<int>(by.size())
               << " names: one for each axis, or {} where it stays whole");
    return mesh.on();
  }
  int i = 0;
  for (const std::string_view name : by) {
    const int axis = i++;
    if (name.empty()) continue;
    const int along = mesh.axis(name);
    for (int k = 0; k < axis; ++k)
      if (along >= 0 && s.mesh_axis(k) == along)
        scope.fail(text("\"") << name << "\" shards two axes of a tensor of shape " << dims);
    if (along < 0) scope.fail(text("the mesh has no axis \"") << name << "\"");
    s.shard(axis, along);
    const extent parts = s.parts(axis), size = x.size(axis).extent();
    extent whole = scope.multiply(scope.divide(size, parts), parts);
    if (!scope.equal(whole, size))
      scope.fail(text("axis ") << axis << " of " << dims << " cannot be divided into " << parts
                               << " equal parts, one for each position along \"" << name << "\"");
  }
  return s;
}

}  // namespace detail

/// Divides an argument of a compiled function, a tensor or a parameter, over the devices of a
/// plugin of XLA (ext/pjrt.hpp): for each axis the name of the mesh axis that divides it, or {}.
/// Like torch_xla's xs.mark_sharding, it is called in the body of the function, before anything
/// else:
///   xla::mark_sharding(data, mesh, {"data", {}});
///   xla::mark_sharding(model.fc1.weight, mesh, {"model", {}});
/// XLA divides all intermediate values; an optimizer's state is divided like its parameter. Numbers
/// change only by rounding. This library's own backend, and eager and traced mode, check names and
/// sizes and otherwise ignore it. Sizes that cannot be divided into equal parts are a shape_error.
template <class T, int R>
constexpr void mark_sharding(const Tensor<T, R>& x, const Mesh& mesh,
                             std::initializer_list<std::string_view> by, caller loc = here()) {
  const detail::size_scope scope{x.table(), {"mark_sharding", loc}};
  const detail::sharding s = detail::sharded_as(x, mesh, by, scope);
  if (!__builtin_is_constant_evaluated()) return;
  const int slot = detail::slot_of_argument(x);
  if (slot >= 0) x.owner()->slots[slot].sharded_as = s;
  else if (x.table())
    scope.fail(
        "marks arguments of the compiled function, before they are changed; XLA divides "
        "what is computed from them");
  else throw std::logic_error("xla: mark_sharding() marks arguments of the compiled function");
}

}  // namespace xla
