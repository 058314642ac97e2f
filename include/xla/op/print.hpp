// SPDX-License-Identifier: Apache-2.0
#pragma once

// operator<< for tensors, in PyTorch's format. Graphs and plans are printed by the run time, not
// here.

#include <ostream>

#include "xla/tensor.hpp"

namespace xla {
namespace detail {

/// Larger tensors are shown by the first and last three elements of each axis, as in PyTorch.
inline constexpr std::int64_t print_all_below = 1000;

template <class T>
void print_axis(std::ostream& out, const T* data, const std::vector<std::int64_t>& sizes,
                std::size_t axis, bool shorten) {
  if (axis == sizes.size()) {
    if constexpr (std::is_same_v<T, bool>) out << (*data ? "true" : "false");
    else out << +*data;
    return;
  }
  std::int64_t stride = 1;
  for (std::size_t i = axis + 1; i < sizes.size(); ++i) stride *= sizes[i];
  const bool inner = axis + 1 == sizes.size();
  out << '[';
  for (std::int64_t i = 0; i < sizes[axis]; ++i) {
    if (i > 0) out << (inner ? ", " : ",\n" + std::string(8 + axis, ' '));
    if (shorten && i == 3 && sizes[axis] > 6) {
      out << "..." << (inner ? ", " : ",\n" + std::string(8 + axis, ' '));
      i = sizes[axis] - 3;
    }
    print_axis(out, data + i * stride, sizes, axis + 1, shorten);
  }
  out << ']';
}

}  // namespace detail

/// Prints the elements, and the device: tensor([1, 2], device='xla:0'). Waits for them.
template <class T, int R>
std::ostream& operator<<(std::ostream& out, const Tensor<T, R>& t) {
  if (!t.defined()) return out << "tensor(undefined)";
  const auto sizes = t.sizes();
  out << "tensor(";
  detail::print_axis(out, t.data(), sizes, 0, t.numel() > detail::print_all_below);
  return out << ", device='" << t.device() << "')";
}

}  // namespace xla
