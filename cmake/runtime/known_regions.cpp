// SPDX-License-Identifier: Apache-2.0
// Loops for regions that recorded graphs often have, which no C++ compiler sees: the update of a
// parameter by each usual optimizer, and batch norms with activations and shortcuts, forward and
// backward. Compiled with -ffp-contract=off, so that the results are those of the ops' own kernels,
// bit for bit.
#include <algorithm>
#include <array>
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
  const std::uint64_t* words = nullptr;
  int count = 0;
  region_kernel kernel;
};

// Everything is inlined here, because a function of the same key in the program may be compiled
// with other flags.
template <kernel::region_key Key>
[[gnu::flatten]] void run_map_region(const tile_call& call) {
  kernel::map_kernel<Key>::run(call);
}
template <kernel::region_key Key>
[[gnu::flatten]] void run_row_region(const row_call& call) {
  kernel::row_kernel<Key>::run(call);
}
template <kernel::region_key Key>
std::int64_t scratch_of_rows(std::int64_t n) {
  return kernel::row_kernel<Key>::scratch_bytes(n);
}

/// Region I of a compiled function.
template <class Step, int I>
constexpr compiled_region region_of() {
  constexpr const auto& key = key_at<Step::result, I>::value;
  if constexpr (Step::result.storage.keys[I].row)
    return {key.words, key.size, {nullptr, &run_row_region<key>, &scratch_of_rows<key>}};
  else return {key.words, key.size, {&run_map_region<key>}};
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
  static constexpr compiled_region region = region_of<step, index>();
};

/// A convolution with its batch norm.
struct Unit {
  nn::Conv2d<nn::Conv2dConfig{.kernel_size = 1, .bias = false}> convolution{32, 32};
  nn::BatchNorm2d norm{32};
  constexpr auto operator()(const Tensor<float, 4>& x) const { return norm(convolution(x)); }
  XLA_MODULE(convolution, norm)
};

/// Inverted residuals, as of MobileNet-v2 and MNASNet, the second one with a shortcut.
template <class Activation>
struct InvertedResiduals {
  Unit stem, first, second, third, fourth, last;
  constexpr auto operator()(const Tensor<float, 4>& x) const {
    const Activation a;
    const auto y = second(a(first(a(stem(x)))));
    return a(last(y + fourth(a(third(y)))));
  }
  XLA_MODULE(stem, first, second, third, fourth, last)
};

/// Residual blocks, as of ResNet, the second one with a convolution in its shortcut.
struct Residuals {
  Unit stem, first, second, third, fourth, shortcut;
  constexpr auto operator()(const Tensor<float, 4>& x) const {
    const auto y = relu(stem(x));
    const auto z = relu(second(relu(first(y))) + y);
    return relu(fourth(relu(third(z))) + shortcut(z));
  }
  XLA_MODULE(stem, first, second, third, fourth, shortcut)
};

constexpr auto train_normed = [](auto& model, auto& x) {
  const auto y = mean(model(x), {2, 3});
  sum(y * y).backward();
};

/// The regions of batch norms in such a step.
template <class Model>
struct norms_of {
  using step =
      static_program<std::remove_const_t<decltype(train_normed)>, Model&, Tensor<float, 4>&>;
  static constexpr bool is_norm(int key) {
    const distinct_key& k = step::result.storage.keys[key];
    bool images = false, alone = true;
    for (int w = 0; w < k.count; ++w) {
      const auto m = micro_op::of(step::result.storage.words[k.first + w]);
      images |= m.id == id_of<op::center_scale> || m.id == id_of<op::center_square>;
      alone = alone && !m.reduce;
    }
    return images && alone;
  }
  static constexpr int count = [] {
    int n = 0;
    for (int i = 0; i < step::size.keys; ++i) n += is_norm(i);
    return n;
  }();
  static constexpr auto regions = []<std::size_t... I>(std::index_sequence<I...>) {
    std::array<compiled_region, static_cast<std::size_t>(count)> all;
    std::size_t n = 0;
    const auto add = [&]<int Key>(std::integral_constant<int, Key>) {
      if constexpr (is_norm(Key)) all[n++] = region_of<step, Key>();
    };
    (add(std::integral_constant<int, static_cast<int>(I)>{}), ...);
    return all;
  }(std::make_index_sequence<static_cast<std::size_t>(step::size.keys)>{});
};

template <class Op>
constexpr std::uint64_t word(dtype type, int a, int b, int c = micro_op::none) {
  return micro_op{.id = id_of<Op>, .type = type, .a = a, .b = b, .c = c}.word();
}
constexpr std::uint64_t chosen(int a, int b, int c) {
  return word<op::where>(dtype::float32, a, b, c);
}
constexpr std::uint64_t column_sum(int of) {
  return micro_op{.id = id_of<op::sum>, .a = of, .output = true, .column = true}.word();
}
constexpr std::uint64_t elements = micro_op{.input = true}.word();
constexpr std::uint64_t scalar = micro_op{.input = true, .invariant = true}.word();
constexpr std::uint64_t product(int a, int b) {
  return micro_op{.id = id_of<op::mul>, .a = a, .b = b, .output = true}.word();
}

/// What a batch norm's gradients begin with where relu or relu6 follows, whose result is there: the
/// masked gradient's sums, and its product with the scale.
constexpr kernel::region_key<13> before_relu{
    {elements, scalar, scalar, elements, elements, elements, elements,
     word<op::le>(dtype::boolean, 0, 1), chosen(7, 2, 3), column_sum(8),
     word<op::center_scale>(dtype::float32, 4, 5, 8), column_sum(10), product(8, 6)}};
constexpr kernel::region_key<17> before_relu6{
    {elements, scalar, scalar, elements, scalar, scalar, elements, elements, elements,
     word<op::ge>(dtype::boolean, 0, 1), chosen(9, 2, 3), word<op::le>(dtype::boolean, 0, 4),
     chosen(11, 5, 10), column_sum(12), word<op::center_scale>(dtype::float32, 6, 7, 12),
     column_sum(14), product(12, 8)}};
template <const auto& Key>
constexpr compiled_region rows_of{
    Key.words, Key.size, {nullptr, &run_row_region<Key>, &scratch_of_rows<Key>}};

/// Calls f with the known regions, one list after the other, until it returns true.
template <class F>
bool any_known(const F& f) {
  constexpr compiled_region updates[] = {
      update_of<optim::SGD<Layer>>::region, update_of<optim::Adam<Layer>>::region,
      update_of<optim::AdamW<Layer>>::region, rows_of<before_relu>, rows_of<before_relu6>};
  const auto in = [&](const auto& list) {
    return std::any_of(std::begin(list), std::end(list), f);
  };
  return in(updates) || in(norms_of<InvertedResiduals<nn::ReLU6>>::regions) ||
         in(norms_of<InvertedResiduals<nn::ReLU>>::regions) || in(norms_of<Residuals>::regions);
}

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
  any_known([&](const compiled_region& k) {
    region_match match(p, s, k);
    if ((k.kernel.row != nullptr) != (s.kind == step_kind::row) || !match.run()) return false;
    found.kernel = k.kernel;
    std::copy_n(match.inputs(), s.inputs, found.input);
    return true;
  });
  return found;
}

}  // namespace xla::detail
