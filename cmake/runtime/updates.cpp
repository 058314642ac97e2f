// SPDX-License-Identifier: Apache-2.0
// One loop for the update of a parameter by each usual optimizer, for recorded graphs, which no
// C++ compiler sees. Compiled with -ffp-contract=off, so that the results are those of the ops' own
// kernels, bit for bit.
#include <algorithm>
#include <utility>

#include <xla/run/plan/known_regions.hpp>
#include <xla/xla.hpp>

namespace xla::detail {
namespace {

using kernel::micro_op;

struct Layer {
  Parameter<float, 2> weight;
  XLA_MODULE(weight)
};

constexpr auto train = [](auto& layer, auto& optimizer, auto& x) {
  optimizer.zero_grad();
  const auto y = matmul(x, layer.weight);
  sum(y * y).backward();
  optimizer.step();
};

/// A region that a compiled function has, with its loop.
struct compiled_region {
  const std::uint64_t* words;
  int count;
  void (*map)(const tile_call&);
};

// Everything is inlined here, because a function of the same key in the program may be compiled
// with other flags.
template <kernel::region_key Key>
[[gnu::flatten]] void run_region(const tile_call& call) {
  kernel::map_kernel<Key>::run(call);
}

/// The update of a parameter: the largest map region of the step that is not of numbers alone.
template <class Optimizer>
struct update_of {
  using step =
      static_program<std::remove_const_t<decltype(train)>, Layer&, Optimizer&, Tensor<float, 2>&>;
  static constexpr int index = [] {
    const auto& keys = step::result.storage.keys;
    const auto reads_elements = [&](const distinct_key& k) {
      for (int w = 0; w < k.count; ++w)
        if (const auto m = micro_op::of(step::result.storage.words[k.first + w]);
            m.input && !m.invariant)
          return true;
      return false;
    };
    int best = -1;
    for (int i = 0; i < step::size.keys; ++i)
      if (!keys[i].row && reads_elements(keys[i]) && (best < 0 || keys[i].count > keys[best].count))
        best = i;
    return best;
  }();
  static constexpr auto key = key_at<step::result, index>::value;
  static constexpr compiled_region region{key.words, key.size, &run_region<key>};
};

constexpr compiled_region known[] = {update_of<optim::SGD<Layer>>::region,
                                     update_of<optim::Adam<Layer>>::region,
                                     update_of<optim::AdamW<Layer>>::region};

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
  for (const compiled_region& k : known)
    if (region_match match(p, s, k); match.run()) {
      found.map = k.map;
      std::copy_n(match.inputs(), s.inputs, found.input);
    }
  return found;
}

}  // namespace xla::detail
