// SPDX-License-Identifier: Apache-2.0
#pragma once

// How an op is written in StableHLO: the template that lower_*.hpp specialise for each op.
// Elementwise ops need no lowering: their kernels run on lanes that write text (lane.hpp).

#include <concepts>
#include <cstdint>
#include <string_view>

#include "xla/ext/stablehlo/lane.hpp"
#include "xla/ext/stablehlo/writer.hpp"
#include "xla/op/elementwise.hpp"
#include "xla/op/reduce.hpp"
#include "xla/run/plan/sized.hpp"

namespace xla::detail::hlo {

/// A node to be written: the values it reads, and the type of its result.
class lowering_call {
 public:
  lowering_call(const sized_program& of, int at, list<value> inputs, const value* draws)
      : program(of), number(at), in_(std::move(inputs)), draws_(draws) {}

  const sized_program& program;
  const int number;  ///< of the value that the program gives the result

  const detail::node& node() const { return program.source.values[number]; }
  int inputs() const { return in_.size(); }
  const value& in(int k) const { return in_[k]; }
  tensor_type out() const { return {element_of(node().type), program.shapes[number]}; }
  /// The op's attributes, with symbolic sizes replaced by numbers.
  template <class Op>
  typename Op::attributes attributes() const {
    return unpack<typename Op::attributes>(attributes_at<void>(program, node()));
  }
  /// The generator's state for a random op: two ui64.
  value seed(writer& w) const { return drawn(w, 0); }
  value offset(writer& w) const { return drawn(w, 1); }

 private:
  value drawn(writer& w, int which) const {
    const value& both = draws_[program.random[number]];
    const value one = w.reshape(w.slice(both, {1, {which}}, {1, {which + 1}}, {1, {1}}), {});
    return w.op("bitcast_convert", {one}, {element::ui64, {}});
  }
  list<value> in_;
  const value* draws_;
};

/// How an op is written in StableHLO. A specialisation has
///   static value write(writer&, const lowering_call&)
/// which returns a list<value> for an op with several results; or, if there is no lowering,
///   static constexpr std::string_view refused = "why, and what to do";
template <class Op>
struct lowering;

template <class Op>
concept kernel_of_lanes = Op::kind == op_kind::map && !requires { Op::converts; };

/// Elementwise ops: their own kernel expressions, run on lanes that write.
template <kernel_of_lanes Op>
struct lowering<Op> {
  static value write(writer& w, const lowering_call& f) {
    const auto in = [&](int k) { return lane(w, w.to(f.in(k), f.out().dims)); };
    const lane first = in(0);
    if constexpr (requires { Op::kernel(first, first, first); })
      return Op::kernel(first, in(1), in(2)).v;
    else if constexpr (requires { Op::kernel(first, first); }) return Op::kernel(first, in(1)).v;
    else return Op::kernel(first).v;
  }
};

/// The identity of a reduction, as an element.
template <class Op>
value identity(writer& w, element of) {
  switch (of) {
    case element::i32: return w.constant(Op::template identity<std::int32_t>, of);
    case element::i64: return w.constant(Op::template identity<std::int64_t>, of);
    case element::ui8: return w.constant(Op::template identity<std::uint8_t>, of);
    default: return w.constant(Op::template identity<double>, of);
  }
}

/// Reductions, by their own combine function.
template <class Op>
  requires(Op::kind == op_kind::reduce)
struct lowering<Op> {
  static value write(writer& w, const lowering_call& f) {
    const value& x = f.in(0);
    return w.reduce(
        x, identity<Op>(w, x.type.of), f.attributes<Op>().axes,
        [&](const value& a, const value& b) { return Op::combine(lane(w, a), lane(w, b)).v; });
  }
};

/// Ops that only change the shape of their input, or its meaning for gradients.
template <class Op>
  requires(Op::kind == op_kind::alias)
struct lowering<Op> {
  static value write(writer& w, const lowering_call& f) { return w.reshape(f.in(0), f.out().dims); }
};

}  // namespace xla::detail::hlo
