// SPDX-License-Identifier: Apache-2.0
#pragma once

// The pass bfloat16_storage: values that only products in autocast read are stored in half the
// memory. Traced graphs reach it by a pointer, so that programs without autocast compile none of
// it.

#include <atomic>

#include "xla/base/dependent.hpp"
#include "xla/base/instance.hpp"
#include "xla/base/owned_array.hpp"
#include "xla/op/cast.hpp"
#include "xla/op/matmul.hpp"
#include "xla/op/reshape.hpp"
#include "xla/transform/fuse.hpp"
#include "xla/transform/pass.hpp"

namespace xla::detail {

/// The pass bfloat16_storage: a result of fused ops that only products in autocast read is stored
/// as bfloat16, in half the memory. The products round it anyway, and rounding twice is rounding
/// once, so no bit changes. There is one exception: a denormal float that rounds up to the smallest
/// normal number stays that number, where a product that flushes denormals would read 0.
template <class In>
class bfloat16_storage_pass {
 public:
  constexpr explicit bfloat16_storage_pass(pass_state& s) : s_(s) {}
  bfloat16_storage_pass(const bfloat16_storage_pass&) = delete;

  [[gnu::cold]] constexpr void run() {
    if (!find()) return;
    const int count = g_.count, segment = g_.segment;
    const owned_array<node> for_old(s_.room());
    old_ = for_old.get();
    for (int i = 0; i < count; ++i) {
      moved_[i] = -1;
      if (s_.live[i]) old_[i] = g_.nodes[i];
    }
    g_.count = 0;
    for (int i = 0; i < count; ++i)
      if (s_.live[i]) emit(i);
    g_.segment = segment;
    s_.renumber(moved_);
  }

 private:
  constexpr bool rounds(int i) const {
    const node& n = g_.nodes[i];
    if (is<op::matmul>(n)) return n.attributes<op::matmul>().precision == precision::bfloat16;
    return is<op::reshape>(n) && half_[i];
  }
  /// Whether the step that computes it could round it as well. One number per row, or fewer, is not
  /// worth it.
  constexpr bool worthwhile(const node& n) const {
    const bool fuses = n.op->kind == op_kind::map || (s_.row_kernels && adds_in_row(g_, n));
    return fuses && n.rank > 1 && n.dims[n.rank - 1] != 1;
  }
  /// False if there is none.
  [[gnu::cold]] constexpr bool find() {
    for (int i = 0; i < g_.count; ++i) half_[i] = g_.nodes[i].type == dtype::float32;
    for (int i = 0; i < g_.count; ++i) read_[i] = false;
    const graph_roots& roots = s_.roots;
    for (int i = 0; i < roots.result_count; ++i) half_[s_.to[roots.results[i]]] = false;
    for (int i = 0; i < roots.write_count; ++i) half_[s_.to[roots.writes[i].value]] = false;
    for (int i = g_.count - 1; i >= 0; --i) {
      if (!s_.live[i]) continue;
      half_[i] = half_[i] && read_[i];
      const bool all = rounds(i);
      const int* const inputs = g_.inputs(g_.nodes[i]);
      for (int k = 0; k < g_.nodes[i].arity; ++k) {
        const int in = inputs[k];
        read_[in] = true;
        half_[in] = half_[in] && all;
      }
    }
    bool any = false;
    for (int i = 0; i < g_.count; ++i) {
      if (!s_.live[i] || !half_[i]) continue;
      const node& n = g_.nodes[i];
      half_[i] = worthwhile(n) || (is<op::reshape>(n) && half_[n.in[0]]);
      any |= half_[i];
    }
    return any;
  }

  [[gnu::cold]] constexpr void emit(int i) {
    node n = old_[i];
    const bool seen = half_[i] && is<op::reshape>(n);  // the values stored this way
    if (is<op::matmul>(n)) {
      auto a = n.attributes<op::matmul>();
      a.half_a |= half_[n.in[0]];
      a.half_b |= half_[n.in[1]];
      n.set<op::matmul>(a);
    }
    int* const in = g_.inputs(n);  // nodes of old_ are not requested again
    for (int k = 0; k < n.arity; ++k) in[k] = moved_[in[k]];
    for (int& before : n.after)
      if (before >= 0) before = moved_[before];
    if (seen) n.type = dtype::bfloat16;
    moved_[i] = add(n);
    if (!half_[i] || seen) return;
    node stored;
    stored.op = as_half;
    stored.type = dtype::bfloat16;
    stored.gradient = n.gradient;
    stored.segment = n.segment;
    stored.arity = 1;
    stored.in[0] = moved_[i];
    stored.set_shape(n.dims_shape());
    moved_[i] = add(stored);
  }
  constexpr int add(const node& n) {
    g_.segment = n.segment;
    return g_.add(n);
  }
  static constexpr const op_info* as_half =
      &info_of<op::cast, dependent<In, bfloat16>, float, op_parts::values>;

  pass_state& s_;
  graph& g_ = s_.g;
  const owned_array<int> for_moved_{s_.room()};
  const owned_array<bool> for_flags_{2 * s_.room()};
  int* const moved_ = for_moved_.get();  // per old node: its replacement
  bool* const half_ = for_flags_.get();  // per old node: it is stored as bfloat16
  bool* const read_ = half_ + s_.room();
  node* old_ = nullptr;  // before the pass
};

template <class In = void>
constexpr void store_as_bfloat16(pass_state& s) {
  bfloat16_storage_pass<dependent<In, void>>(s).run();
}
XLA_INSTANCE(void store_as_bfloat16<void>(pass_state&));

/// The pass for traced graphs; null in programs that never use autocast.
inline constinit std::atomic<void (*)(pass_state&)> store_as_bfloat16_when_traced{nullptr};

}  // namespace xla::detail
