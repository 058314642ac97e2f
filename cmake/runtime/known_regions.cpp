// SPDX-License-Identifier: Apache-2.0
// Loops for regions that recorded graphs often have, which no C++ compiler sees: the update of a
// parameter by each usual optimizer, batch norms with activations and shortcuts, forward and
// backward, and layer norms and GELU in a transformer's blocks. Compiled with -ffp-contract=off, so
// that the results are those of the ops' own kernels, bit for bit. A test lists those that compiled
// steps have, too (tests/run/known_regions.cpp): here training steps would have to be captured, and
// a change of any op would compile this file again. The others are below: in compiled steps sums of
// rows join them. tests/run/fused.cpp checks that recorded graphs have them.
#include <algorithm>
#include <cstdint>
#include <utility>

#include <xla/kernel/fused/map.hpp>
#include <xla/kernel/fused/row.hpp>
#include <xla/op/arithmetic.hpp>
#include <xla/op/compare.hpp>
#include <xla/op/derived/batch_norm.hpp>
#include <xla/op/derived/normalize.hpp>
#include <xla/op/erf.hpp>
#include <xla/op/exponential.hpp>
#include <xla/op/hardtanh.hpp>
#include <xla/op/reduce.hpp>
#include <xla/op/relu.hpp>
#include <xla/op/root.hpp>
#include <xla/op/where.hpp>
#include <xla/run/plan/known_regions.hpp>

namespace xla::detail {
namespace {

using kernel::micro_op;

constexpr auto f32 = dtype::float32, boolean = dtype::boolean;

/// An input: one value per element, or one for all.
constexpr std::uint64_t elements(dtype type = f32) {
  return micro_op::input_word(type, false, false);
}
constexpr std::uint64_t scalar(dtype type = f32) { return micro_op::input_word(type, true, false); }

/// An op of these values of the region, whose result only the region reads, or which is stored.
template <class Op>
constexpr std::uint64_t value(dtype type, int a, int b = micro_op::none, int c = micro_op::none) {
  return micro_op{.id = id_of<Op>, .type = type, .a = a, .b = b, .c = c}.word();
}
template <class Op>
constexpr std::uint64_t stored(dtype type, int a, int b = micro_op::none, int c = micro_op::none) {
  return micro_op{.id = id_of<Op>, .type = type, .a = a, .b = b, .c = c, .output = true}.word();
}
constexpr std::uint64_t column_sum(int of) {
  return micro_op{.id = id_of<op::sum>, .a = of, .output = true, .column = true}.word();
}

template <class... Words>
constexpr kernel::region_key<sizeof...(Words)> key(Words... words) {
  return {{words...}};
}

struct compiled_region {
  const std::uint64_t* words;
  int count;
  region_kernel kernel;
};

/// The loop of a region, over elements or rows.
template <kernel::region_key Key>
struct region {
  // Everything is inlined here, because a function of the same key in the program may be compiled
  // with other flags.
  [[gnu::flatten]] static void run_map(const tile_call& call) {
    kernel::map_kernel<Key>::run(call);
  }
  [[gnu::flatten]] static void run_rows(const row_call& call) {
    kernel::row_kernel<Key>::run(call);
  }
  static std::int64_t scratch_bytes(std::int64_t n) {
    return kernel::row_kernel<Key>::scratch_bytes(n);
  }
  static constexpr auto words = Key;
  static constexpr compiled_region map() { return {words.words, words.size, {&run_map}}; }
  static constexpr compiled_region rows() {
    return {words.words, words.size, {nullptr, &run_rows, &scratch_bytes}};
  }
};

/// What a batch norm's gradients begin with where relu or relu6 follows, whose result is there: the
/// masked gradient's sums, and its product with the scale.
constexpr auto before_relu =
    key(elements(), scalar(), scalar(), elements(), elements(), elements(), elements(),
        value<op::le>(boolean, 0, 1), value<op::where>(f32, 7, 2, 3), column_sum(8),
        value<op::center_scale>(f32, 4, 5, 8), column_sum(10), stored<op::mul>(f32, 8, 6));
constexpr auto before_relu6 =
    key(elements(), scalar(), scalar(), elements(), scalar(), scalar(), elements(), elements(),
        elements(), value<op::ge>(boolean, 0, 1), value<op::where>(f32, 9, 2, 3),
        value<op::le>(boolean, 0, 4), value<op::where>(f32, 11, 5, 10), column_sum(12),
        value<op::center_scale>(f32, 6, 7, 12), column_sum(14), stored<op::mul>(f32, 12, 8));

/// A layer norm from the mean and the scale of each row on, and GELU with the bias before it.
constexpr auto norm = key(elements(), elements(), elements(), elements(), elements(),
                          value<op::standardize>(f32, 0, 1, 2), value<op::mul>(f32, 5, 3),
                          stored<op::add>(f32, 6, 4));
constexpr auto gelu = key(elements(), elements(), stored<op::add>(f32, 0, 1),
                          stored<op::ndtr>(f32, 2), stored<op::mul>(f32, 2, 3));
/// GELU's gradient, and its sum for that bias.
constexpr auto gelu_gradient =
    key(elements(), elements(), elements(), scalar(), scalar(), value<op::mul>(f32, 0, 1),
        value<op::mul>(f32, 2, 1), value<op::mul>(f32, 2, 2), value<op::mul>(f32, 7, 3),
        value<op::exp>(f32, 8), value<op::mul>(f32, 9, 4), value<op::mul>(f32, 6, 10),
        stored<op::add>(f32, 5, 11), column_sum(12));
/// A layer norm's gradients up to the sums of each row: those of bias and scale, and the products
/// that are summed. The gradient comes from three projections of one input, from one product, or
/// from the head, where no shortcut adds another.
constexpr auto norm_of_three =
    key(elements(), elements(), elements(), elements(), elements(), scalar(), elements(), scalar(),
        elements(), value<op::add>(f32, 0, 1), value<op::add>(f32, 9, 2), column_sum(10),
        stored<op::mul>(f32, 10, 3), value<op::mul>(f32, 10, 4), column_sum(13),
        value<op::mul>(f32, 12, 5), stored<op::sub>(f32, 6, 7), stored<op::mul>(f32, 12, 16),
        stored<op::add>(f32, 15, 8));
constexpr auto norm_of_product = key(
    elements(), elements(), elements(), scalar(), elements(), scalar(), elements(), column_sum(0),
    stored<op::mul>(f32, 0, 1), value<op::mul>(f32, 2, 0), column_sum(9), value<op::mul>(f32, 8, 3),
    stored<op::sub>(f32, 4, 5), stored<op::mul>(f32, 8, 12), stored<op::add>(f32, 11, 6));
constexpr auto norm_of_head =
    key(elements(), elements(), elements(), scalar(), elements(), scalar(), column_sum(0),
        stored<op::mul>(f32, 0, 1), value<op::mul>(f32, 2, 0), column_sum(8),
        stored<op::mul>(f32, 7, 3), stored<op::sub>(f32, 4, 5), stored<op::mul>(f32, 7, 11));
/// The rest of it, and the sum for the bias before it.
constexpr auto norm_input =
    key(elements(), scalar(), elements(), scalar(), value<op::mul>(f32, 0, 1),
        value<op::add>(f32, 4, 4), value<op::add>(f32, 5, 2), stored<op::add>(f32, 6, 3),
        column_sum(7));

#define XLA_MAP_REGION(...) region<key(__VA_ARGS__)>::map(),
#define XLA_ROW_REGION(...) region<key(__VA_ARGS__)>::rows(),
constexpr compiled_region known[] = {
#include "region_keys.inc"
    region<before_relu>::rows(),
    region<before_relu6>::rows(),
    region<norm>::map(),
    region<gelu>::map(),
    region<gelu_gradient>::rows(),
    region<norm_of_three>::rows(),
    region<norm_of_product>::rows(),
    region<norm_of_head>::rows(),
    region<norm_input>::rows()};
#undef XLA_MAP_REGION
#undef XLA_ROW_REGION

/// Finds which value of a region each value of a known one is. Operands of a commutative op may be
/// in either order.
class region_match {
 public:
  region_match(const program& p, const step& s, const compiled_region& k)
      : p_(p), s_(s), known_(k) {}
  /// Results are compared in their order.
  bool run() {
    if (known_.count != s_.words) return false;
    state all;
    std::fill_n(all.value, known_.count, std::int8_t{-1});
    for (int i = known_.count - 1; i >= 0; --i) {
      if (micro_op::of(known_.words[i]).output != micro_op::of(word(i)).output) return false;
      if (micro_op::of(word(i)).output) all.add(i, i);
    }
    return solve(all);
  }
  const std::int8_t* inputs() const { return found_; }

 private:
  struct state {
    std::int8_t
        value[micro_op::none];  ///< of the region, per value of the known one; -1: not yet known
    std::int8_t waiting[4 * micro_op::none][2];
    int count = 0;  ///< of pairs that wait to be compared
    void add(int k, int i) {
      waiting[count][0] = static_cast<std::int8_t>(k);
      waiting[count++][1] = static_cast<std::int8_t>(i);
    }
  };
  std::uint64_t word(int i) const { return p_.words[s_.first_word + i]; }

  bool solve(state now) {
    while (now.count > 0) {
      const auto [k, i] = now.waiting[--now.count];
      if (k == micro_op::none && i == micro_op::none) continue;
      if (k == micro_op::none || i == micro_op::none) return false;
      if (now.value[k] == i) continue;
      const bool same =
          (known_.words[k] | micro_op::no_operands) == (word(i) | micro_op::no_operands);
      if (!same || now.value[k] >= 0) return false;
      now.value[k] = i;
      const micro_op of = micro_op::of(known_.words[k]), is = micro_op::of(word(i));
      if (is.input) continue;
      now.add(of.c, is.c);
      if (p_.word_ops[s_.first_word + i]->commutative) {
        state turned = now;
        turned.add(of.b, is.a);
        turned.add(of.a, is.b);
        if (solve(turned)) return true;
      }
      now.add(of.b, is.b);
      now.add(of.a, is.a);
    }
    return all_differ(now.value);
  }
  bool all_differ(const std::int8_t* value) {
    bool taken[micro_op::none] = {};
    for (int k = 0; k < known_.count; ++k)
      if (value[k] < 0 || std::exchange(taken[value[k]], true)) return false;
    std::copy_n(value, known_.count, found_);
    return true;
  }

  const program& p_;
  const step& s_;
  const compiled_region& known_;
  std::int8_t found_[micro_op::none];
};

}  // namespace

[[gnu::cold]] known_region find_known_region(const program& p, const step& s) {
  known_region found;
  for (const compiled_region& k : known) {
    region_match match(p, s, k);
    if ((k.kernel.row != nullptr) != (s.kind == step_kind::row) || !match.run()) continue;
    found.kernel = k.kernel;
    std::copy_n(match.inputs(), s.inputs, found.input);
    break;
  }
  return found;
}

}  // namespace xla::detail
