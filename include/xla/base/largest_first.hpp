// SPDX-License-Identifier: Apache-2.0
#pragma once

// Sorts numbered things by size, the largest first. The planners of memory and of steps side by
// side use it, once for each signature; it is no general sort.

#include <cstdint>
#include <cstdlib>

#include "xla/base/instance.hpp"
#include "xla/base/list.hpp"

namespace xla::detail {

/// One of many things, by its number, and how large it is.
struct measured {
  std::int64_t size;
  int number;
};

/// The largest first; those of a size by their numbers. By the C library's function: std::sort is
/// made anew for each comparison.
template <class = void>
[[gnu::cold]] void largest_first(list<measured>& all) {
  if (all.size() < 2) return;
  std::qsort(all.data(), static_cast<std::size_t>(all.size()), sizeof(measured),
             [](const void* a, const void* b) {
               const auto& x = *static_cast<const measured*>(a);
               const auto& y = *static_cast<const measured*>(b);
               if (x.size != y.size) return x.size > y.size ? -1 : 1;
               return x.number < y.number ? -1 : 1;
             });
}
XLA_INSTANCE(void largest_first<void>(list<measured>&));

}  // namespace xla::detail
