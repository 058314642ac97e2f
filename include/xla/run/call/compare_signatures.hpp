// SPDX-License-Identifier: Apache-2.0
#pragma once

// Describes how a new signature of a compiled function differs from existing ones, for XLA_DEBUG
// and for the warning about too many signatures.

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "xla/base/dependent.hpp"
#include "xla/base/list.hpp"
#include "xla/base/text.hpp"
#include "xla/run/call/call.hpp"
#include "xla/run/execute/executable.hpp"

namespace xla::detail {

template <class In>
using executables = list<std::shared_ptr<dependent<In, executable>>>;

/// The slots whose shapes differ from those of the most similar other signature, for XLA_DEBUG.
template <class In = void>
[[gnu::cold]] std::string what_changed(const dependent<In, executable>& newest,
                                       const executables<In>& known,
                                       const call_arguments& arguments) {
  const list<shape>& now = newest.about().slot_shapes;
  const list<shape>* nearest = nullptr;
  int fewest = now.size() + 1;
  for (const auto& other : known) {
    if (other.get() == &newest) continue;
    const list<shape>& then = other->about().slot_shapes;
    int n = 0;
    for (int i = 0; i < now.size(); ++i) n += !(now[i] == then[i]);
    if (n <= fewest) fewest = n, nearest = &then;
  }
  std::string out;
  if (!nearest) out = "the first signature";
  for (int i = 0; nearest && i < now.size(); ++i) {
    if (now[i] == (*nearest)[i]) continue;
    if (!out.empty()) out += "; ";
    out += arguments.slot_path(i);
    out += (text(": ") << (*nearest)[i] << " -> " << now[i]).view();
  }
  if (out.empty()) out = "which parameters have a gradient";
  return out;
}

/// The axis of a slot in which signatures differ.
struct varying_size {
  int slot = -1, axis = 0;  ///< the first such slot; -1: none, or several sizes differ
  int axes = 0;             ///< axes that have this size, or one larger by a constant
  int signatures = 1;       ///< signatures that differ in this size alone

  bool same_axis(const varying_size& o) const {
    return slot == o.slot && axis == o.axis && axes == o.axes;
  }
};

/// A function with this many signatures that differ in one size alone is reported.
inline constexpr int many_signatures = 16;

template <class In = void>
[[gnu::cold]] bool same_absent(const dependent<In, sized_program>& a,
                               const dependent<In, sized_program>& b) {
  return a.absent == b.absent &&
         (!a.absent || std::memcmp(a.own.get(), b.own.get(),
                                   static_cast<std::size_t>(a.slot_shapes.size())) == 0);
}

/// The size in which two signatures differ, if it is the only one. Several axes may have it: a
/// batch of sequences and its targets have the same length, a cache may have one more entry.
template <class In = void>
[[gnu::cold]] varying_size difference(const dependent<In, executable>& a,
                                      const dependent<In, executable>& b) {
  const dependent<In, sized_program>&p = a.about(), &q = b.about();
  if (a.made_by() != b.made_by() || p.world != q.world || !same_absent<In>(p, q)) return {};
  varying_size out;
  std::int64_t step = 0;
  for (int i = 0; i < p.slot_shapes.size(); ++i)
    for (int k = 0; k < p.slot_shapes[i].rank; ++k) {
      const std::int64_t here = p.slot_shapes[i][k] - q.slot_shapes[i][k];
      if (here == 0) continue;
      if (out.axes++ == 0) out.slot = i, out.axis = k, step = here;
      else if (here != step) return {};
    }
  return out;
}

/// The size in which a signature differs from the latest one that differs from it in one alone.
template <class In = void>
[[gnu::cold]] varying_size size_that_varies(const dependent<In, executable>& newest,
                                            const executables<In>& signatures) {
  varying_size out;
  for (int i = signatures.size() - 1; i >= 0; --i) {
    const varying_size d = difference<In>(newest, *signatures[i]);
    if (out.slot < 0) out = d;
    if (d.slot >= 0 && d.same_axis(out)) ++out.signatures;
  }
  return out;
}

}  // namespace xla::detail
