// SPDX-License-Identifier: Apache-2.0
#pragma once

// Hashes of what a program does, equal in every process. Replicas compare them before they
// exchange, so that different programs are an error. The cache of signatures does not use them.

#include <bit>
#include <cstdint>

#include "xla/base/hash.hpp"
#include "xla/base/instance.hpp"
#include "xla/kernel/gemm/product_bfloat16.hpp"
#include "xla/kernel/simd/packet.hpp"
#include "xla/run/plan/buckets.hpp"
#include "xla/run/plan/sized.hpp"
#include "xla/run/world/replica.hpp"

namespace xla::detail {

/// A hash of what a program does. It is the same in every process, because it is made of names and
/// numbers, not of addresses.
template <class In = void>
[[gnu::cold]] fingerprint whole_fingerprint_of(const dependent<In, sized_program>& p) {
  const program& source = p.source;
  fingerprint f;
  const auto add = [](std::uint64_t& h, auto v) { h = mix(h, static_cast<std::uint64_t>(v)); };
  for (int v = 0; v < source.count.values; ++v) {
    const node& n = source.values[v];
    add(f.structure, n.op->id);
    add(f.structure, n.attr.hash());
    for (int k = 0; k < n.arity; ++k) add(f.structure, source.inputs_of(v)[k]);
    if (n.op->loops_steps) add(f.sizes, value_at(p.symbols, n.attr.size));  // how many
    add(f.sizes, n.type);
    for (int i = 0; i < p.shapes[v].rank; ++i) add(f.sizes, p.shapes[v][i]);
  }
  for (int i = 0; i < source.count.writes; ++i) {
    const write& w = source.writes[i];
    add(f.structure, 2 * w.slot + w.gradient);
    add(f.structure, w.value);
  }
  for (int i = 0; i < source.count.results; ++i) add(f.structure, source.results[i]);
  return f;
}

template <class In = void>
[[XLA_PLANS]] bool multiplies_bfloat16(const program& p) {
  for (int v = 0; v < p.count.values; ++v)
    if (precision_of(*p.values[v].op, p.values[v].attr) == precision::bfloat16) return true;
  return false;
}

/// The parts that must be equal on all replicas, without the seed. For a traced graph these are the
/// options alone, because a replica that reads a value earlier than others runs the same in more
/// graphs.
template <class In = void>
[[gnu::cold]] fingerprint fingerprint_of(const dependent<In, sized_program>& p) {
  fingerprint f;
  if (!p.source.word_ops) f = whole_fingerprint_of<In>(p);
  const auto add = [&](auto v) { f.options = mix(f.options, static_cast<std::uint64_t>(v)); };
  add(p.source.passes.left_out);
  add(p.winograd);
  add(std::bit_cast<std::uint64_t>(bucket_bytes()));
  add(kernel::lanes<float>);
#ifdef __FMA__
  add(true);
#endif
  // Algorithms of bfloat16 differ in their sums. Which products a graph has may differ like its
  // ops.
  if (!p.source.word_ops && multiplies_bfloat16<In>(p.source)) add(kernel::bfloat16_products<>());
  return f;
}

}  // namespace xla::detail
