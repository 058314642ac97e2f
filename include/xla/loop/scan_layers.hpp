// SPDX-License-Identifier: Apache-2.0
#pragma once

// scan_layers(): calls equal blocks of a network one after the other as one loop, so that the graph
// has one block. It is not in xla.hpp; deep networks include it to compile faster.

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <tuple>
#include <type_traits>
#include <utility>

#include "xla/loop/layer_stacks.hpp"
#include "xla/loop/scan.hpp"

namespace xla {

/// Options of xla::scan_layers.
struct ScanLayersOptions {
  /// Like ScanOptions::checkpoint_every, in blocks: with 1 backward() keeps only each block's
  /// input, and runs the block again for its gradients.
  Size checkpoint_every = 0;
};

namespace detail {

/// See per_layer().
template <class Row>
struct per_layer_argument {
  const Row& row;
};

template <std::size_t N, class X>
constexpr auto argument_of_layers(const X& x) {
  return shared_argument<X>(x);
}
template <class X>
constexpr const X& per_layer_first(const X& x) {
  return x;
}
template <class Row>
constexpr const typename blocks_in<Row>::type& per_layer_first(const per_layer_argument<Row>& x);

inline constexpr text has_other_number{"per_layer() must have one element for each block"};
template <std::size_t N, class Row>
constexpr auto argument_of_layers(const per_layer_argument<Row>& x) {
  using in = blocks_in<Row>;
  if constexpr (in::count != N) refuse_call<layers_of<Row>, has_other_number>();
  return own_arguments<typename in::type, in::count>(x.row);
}

inline constexpr text returns_another_type{
    "a block must return x of the type that it is given, or a pair of such an x and what to keep "
    "of each block: a tensor, or a tuple or array of tensors"};

/// A block as the body of a loop. Its result is a pair, even if the block returns x alone.
template <class Carry, class Made>
constexpr auto result_of_block(const auto& made) {
  if constexpr (std::is_convertible_v<Made, Carry>) {
    return step_results<Carry, std::tuple<>>(made, std::tuple<>());
  } else if constexpr (is_pair<Made>) {
    constexpr auto function = layers_of<Made>;
    require_same_carry<function, Carry, std::tuple_element_t<0, Made>>();
    require_tree<function, std::tuple_element_t<1, Made>>();
    auto y = map_tree(std::get<1>(made), [](const auto& t) { return t; });
    return step_results<Carry, decltype(y)>(std::get<0>(made), y);
  } else {
    refuse_call<layers_of<Made>, returns_another_type>();
    return step_results<Carry, std::tuple<>>(Carry(), std::tuple<>());
  }
}

/// A call over N blocks. Its first argument is the blocks; each argument is an own_arguments, with
/// an element per block, or a shared_argument.
template <std::size_t N, class Carry, class... Argument>
class layer_scan {
  static constexpr int leaves = (0 + ... + Argument::leaves);
  using arguments = std::tuple<Argument...>;
  static constexpr auto all_of = std::index_sequence_for<Argument...>();

 public:
  constexpr layer_scan(const arguments& of, const ScanLayersOptions& options, caller loc)
      : of_(of),
        options_{.checkpoint_every = options.checkpoint_every},
        call_{loop_function::scan_layers, loc} {}

  constexpr auto run(const Carry& x, graph* g) const {
    check_options(options_, g ? &g->sizes : nullptr, call_.site());
    const same_blocks same(g, call_.site());
    each([&](const auto& argument, int) { argument.check(same); });
    if (g) return captured(*g, same, x);
    return at_run_time(x);
  }

 private:
  static constexpr int trip = static_cast<int>(N);

  /// Calls f(argument, number of its first leaf) for each.
  template <class F>
  constexpr void each(const F& f) const {
    int first = 0;
    std::apply([&](const auto&... a) { ((f(a, first), first += a.leaves), ...); }, of_);
  }
  /// The block applied to x and to its other arguments, each made by get(I).
  template <class Get, std::size_t... I>
  static constexpr auto call(const Carry& x, const Get& get, std::index_sequence<0, I...>) {
    const auto& block = get(std::integral_constant<std::size_t, 0>());
    auto made = block(x, get(std::integral_constant<std::size_t, I>())...);
    return result_of_block<Carry, typename result_of<decltype(made)>::type>(made);
  }

  /// Copies of the first block and of its own arguments, which represent those of any block while
  /// the body is recorded.
  struct copies {
    std::tuple<typename Argument::copy...> of;
    constexpr explicit copies(const arguments& all)
        : copies(all, std::index_sequence_for<Argument...>()) {}
    template <std::size_t... I>
    constexpr copies(const arguments& all, std::index_sequence<I...>)
        : of(std::get<I>(all).first()...) {}

    template <class F>
    constexpr void each(const F& f) {
      int first = 0;
      std::apply([&](auto&... c) { ((f(c, first), first += Argument::leaves), ...); }, of);
    }
    constexpr auto call_on(const Carry& x) const {
      const auto get = [&](auto i) -> const auto& { return std::get<i()>(of).get(); };
      return call(x, get, all_of);
    }
  };

  constexpr auto captured(graph& g, const same_blocks& same, const Carry& x) const {
    const owned_array<handle> stacks(leaves + 1), slices(leaves + 1);
    const owned_array<int> written(leaves + 1);
    each([&](const auto& a, int first) { a.stack(&g, stacks.get() + first); });
    const auto slice = [&](graph& to, loop_recorder& loop) {
      for (int k = 0; k < leaves; ++k) {
        written.get()[k] = -1;
        if (const handle& all = stacks.get()[k]; all.defined())
          slices.get()[k].name_node(&to, loop.slice(all.lift(&to)));
      }
      return slices.get();
    };
    const auto body = [&](const Carry& now, const handle* given) {
      copies block(of_);
      block.each([&](auto& c, int first) { c.begin(given + first); });
      auto made = block.call_on(now);
      block.each([&](const auto& c, int first) {
        const auto write = [&](int k, int node) { written.get()[first + k] = node; };
        const auto refuse = [&](const tree_path& path) {
          same.refuse(text("a block writes its parameter ") << path.written());
        };
        c.each_written(given + first, write, refuse);
      });
      return made;
    };
    const auto keep = [&](const auto& y, graph& to, loop_recorder& loop) {
      for (int k = 0; k < leaves; ++k)
        if (int& node = written.get()[k]; node >= 0) node = loop.steps(node);
      return steps_of_tree(y, to, loop);
    };
    loop_capture<Carry> loop(g, call_, trip, false, {}, options_.checkpoint_every.extent());
    auto made = loop.run(body, x, slice, keep);
    each([&](const auto& a, int first) { a.write(g, written.get() + first); });
    return made;
  }

  /// As one loop if the block can be recorded, else block by block.
  auto at_run_time(const Carry& x) const {
    using Y = decltype(call_block(x, 0).second);
    if constexpr (has_traced_mode)
      if (records_ops())
        if (const auto loop = recorded(x)) return results_of<Carry, Y>(*loop);
    const auto number = [](std::int64_t i) { return i; };
    const auto body = [this](const Carry& now, std::int64_t i) {
      return call_block(now, static_cast<std::size_t>(i));
    };
    step_tape<dependent<Carry, void>> tape(false);
    Carry first = x;
    tape.begin(first, std::tuple<>(), trip);
    auto all = run_steps<Y, Carry>(body, first, number, trip, false, call_.site(), tape);
    auto ys = stack_trees<Y>(N, [&](std::size_t i) -> const auto& { return all.second.get()[i]; });
    return std::pair<Carry, decltype(ys)>(std::move(all.first), std::move(ys));
  }
  auto call_block(const Carry& x, std::size_t i) const {
    const auto get = [&](auto k) -> const auto& { return std::get<k()>(of_).at(i); };
    return call(x, get, all_of);
  }
  std::unique_ptr<traced_loop> recorded(const Carry& x) const {
    handle stacks[leaves + 1], slices[leaves + 1];
    list<const handle*> xs;
    each([&](const auto& a, int first) { a.stack(nullptr, stacks + first); });
    for (int k = 0; k < leaves; ++k)
      if (stacks[k].defined()) xs.push_back(&stacks[k]);
    copies block(of_);
    const auto slice = [&](traced_loop& loop) {
      for (int k = 0, n = 0; k < leaves; ++k)
        if (stacks[k].defined()) loop.slice(n++, slices[k]);
      return 0;
    };
    const auto body = [&](const Carry& now, int) {
      const struct given {  // a step releases the tensors that stand for nodes
        copies& to;
        handle* slices;
        ~given() {
          to.each([](auto& c, int) { c.end(); });
          for (int k = 0; k < leaves; ++k) slices[k] = handle();
        }
      } step{block, slices};
      block.each([&](auto& c, int first) { c.begin(slices + first); });
      return block.call_on(now);
    };
    return record_body_over(body, x, xs, {.trip = trip, .every = options_.checkpoint_every},
                            call_.site(), slice);
  }

  const arguments& of_;
  ScanOptions options_;
  loop_call call_;
};

inline constexpr text are_no_blocks{
    "the blocks must be a std::array, an nn::ModuleArray or an nn::Sequential of modules of one "
    "type"};
inline constexpr text is_no_row{
    "per_layer() takes a std::array or nn::ModuleArray with an element for each block"};
inline constexpr text collects_nothing{
    "there are no blocks, so that what each of them keeps has no shape"};

template <std::size_t N, class Carry, class... Argument>
constexpr auto run_layers(const std::tuple<Argument...>& of, const ScanLayersOptions& options,
                          caller loc, const Carry& x, graph* g) {
  return layer_scan<N, Carry, Argument...>(of, options, loc).run(x, g);
}

/// Without blocks the result is x. Refused if blocks would return outputs to stack, as there are
/// none.
template <class Blocks, class Carry, class... More>
constexpr auto require_no_outputs(const Carry& x, const More&... more) {
  if constexpr (requires { typename blocks_in<Blocks>::type; }) {
    using Block = typename blocks_in<Blocks>::type;
    using Made = decltype(std::declval<const Block&>()(x, per_layer_first(more)...));
    if constexpr (!std::is_convertible_v<Made, Carry>)
      refuse_call<layers_of<Blocks>, collects_nothing>();
  }
}

template <class Blocks, class X, class... More>
constexpr auto scan_layers_as(const Blocks& blocks, const X& x, const ScanLayersOptions& options,
                              caller loc, const More&... more) {
  using Carry = typename carried_as<X>::type;
  using in = blocks_in<Blocks>;
  if constexpr (!in::are) {
    refuse_call<layers_of<Blocks>, are_no_blocks>();
  } else if constexpr (!of_tensors<Carry>()) {
    refuse_call<layers_of<Blocks>, holds_others>();
  } else if constexpr (in::count == 0) {
    require_no_outputs<Blocks, Carry>(x, more...);
    return Carry(x);
  } else {
    const own_arguments<typename in::type, in::count> all(blocks);
    const std::tuple of(all, argument_of_layers<in::count>(more)...);
    const Carry first = x;
    graph* g = nullptr;
    if (__builtin_is_constant_evaluated()) {
      g = graph_of(first, blocks, more...);
      if (!g)
        throw std::logic_error(
            "xla::scan_layers: all arguments are constant; start from "
            "zeros_like(x) of a tensor x");
    }
    const auto made = run_layers<in::count, Carry>(of, options, loc, first, g);
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(made.second)>, std::tuple<>>)
      return made.first;
    else return made;
  }
}

template <class X>
concept layer_argument = !std::is_same_v<X, ScanLayersOptions>;

}  // namespace detail

/// Marks an argument of scan_layers(), a std::array or nn::ModuleArray with one element per block:
/// each block gets its own element, such as its cache of keys and values. The array must outlive
/// the call.
template <class Row>
constexpr auto per_layer(const Row& row) {
  if constexpr (!detail::blocks_in<Row>::are)
    detail::refuse_call<detail::layers_of<Row>, detail::is_no_row>();
  return detail::per_layer_argument<Row>{row};
}

/// Applies the blocks one after the other, x = block(x, more...), as a loop over their parameters:
/// its body is recorded once, so that a deep model compiles as fast as one block. Blocks: a
/// std::array, nn::ModuleArray or nn::Sequential of modules of one type, or std::tie(…) of such
/// modules, with the same sizes, flags and plain numbers. Each block keeps its own parameters,
/// buffers and hyper-parameters, with the same names, gradients, states and files. Every block gets
/// the same further arguments, up to four, except that those in per_layer() have an element per
/// block. If blocks return a pair {x, y}, the result is a pair, too, with all y along a new first
/// axis.
///
/// A compiled function reads the parameters of each block in place. So does traced mode if it can
/// record the block; else it runs block by block. XLA gets stacked parameters. Eager mode runs the
/// blocks one by one. All give the same bits as calling the blocks in a C++ loop, unless several
/// blocks read one tensor: its gradients are added from the last block to the first.
template <class Blocks, class X>
constexpr auto scan_layers(const Blocks& blocks, const X& x, ScanLayersOptions options = {},
                           caller loc = here()) {
  return detail::scan_layers_as(blocks, x, options, loc);
}
template <class Blocks, class X, detail::layer_argument A>
constexpr auto scan_layers(const Blocks& blocks, const X& x, const A& a,
                           ScanLayersOptions options = {}, caller loc = here()) {
  return detail::scan_layers_as(blocks, x, options, loc, a);
}
template <class Blocks, class X, detail::layer_argument A, detail::layer_argument B>
constexpr auto scan_layers(const Blocks& blocks, const X& x, const A& a, const B& b,
                           ScanLayersOptions options = {}, caller loc = here()) {
  return detail::scan_layers_as(blocks, x, options, loc, a, b);
}
template <class Blocks, class X, detail::layer_argument A, detail::layer_argument B,
          detail::layer_argument C>
constexpr auto scan_layers(const Blocks& blocks, const X& x, const A& a, const B& b, const C& c,
                           ScanLayersOptions options = {}, caller loc = here()) {
  return detail::scan_layers_as(blocks, x, options, loc, a, b, c);
}
template <class Blocks, class X, detail::layer_argument A, detail::layer_argument B,
          detail::layer_argument C, detail::layer_argument D>
constexpr auto scan_layers(const Blocks& blocks, const X& x, const A& a, const B& b, const C& c,
                           const D& d, ScanLayersOptions options = {}, caller loc = here()) {
  return detail::scan_layers_as(blocks, x, options, loc, a, b, c, d);
}

}  // namespace xla

namespace xla::nn {

using xla::per_layer;  // calls in nn's models find only functions of their own namespace

}  // namespace xla::nn
