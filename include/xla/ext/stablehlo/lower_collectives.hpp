// SPDX-License-Identifier: Apache-2.0
#pragma once

// Exchanges between replicas in StableHLO, such as all_reduce. table.hpp lists the lowerings.

#include "xla/ext/stablehlo/extremum.hpp"
#include "xla/ext/stablehlo/gather_scatter.hpp"
#include "xla/ext/stablehlo/lowering.hpp"
#include "xla/op/collectives.hpp"
#include "xla/op/local_shard.hpp"

namespace xla::detail::hlo {

/// The exchanges of a program that this many replicas run at a time, all in one group.
class replicas {
 public:
  replicas(writer& w, const lowering_call& f) : w_(w), world_(f.program.world) {}

  extent world() const { return world_; }
  std::string group() const {
    std::string out = "replica_groups = dense<[[";
    for (extent i = 0; i < world_; ++i) out += (i ? ", " : "") + std::to_string(i);
    return out + "]]> : tensor<1x" + std::to_string(world_) + "xi64>";
  }
  /// The number of the replica that runs the program.
  value ordinal() const {
    return w_.convert(w_.op("replica_id", {}, {element::ui32, {}}), element::i64);
  }
  value is_me(extent ordinal_of, const shape& dims) const {
    return w_.to(w_.compare("EQ", ordinal(), w_.constant(ordinal_of, element::i64)), dims);
  }
  std::string combining(element of, reduce_type how) const {
    return w_.combining(of, [&](const value& a, const value& b) {
      switch (how) {
        case reduce_type::max: return w_.map("maximum", a, b);
        case reduce_type::min: return w_.map("minimum", a, b);
        case reduce_type::product: return w_.map("multiply", a, b);
        default: return w_.map("add", a, b);
      }
    });
  }
  value divided(const value& sum, reduce_type how) const {
    if (how != reduce_type::mean) return sum;
    return w_.map("multiply", sum,
                  w_.constant(1 / static_cast<double>(world_), sum.type.of, sum.type.dims));
  }
  value reduced(const value& x, reduce_type how) const {
    return divided(w_.op("all_reduce", {x}, x.type, group(), combining(x.type.of, how)), how);
  }
  /// The concatenation of all replicas' tensors along an axis.
  value gathered(const value& x, int axis) const {
    tensor_type out = x.type;
    out.dims[axis] *= world_;
    return w_.op("all_gather", {x}, out, number("all_gather_dim", axis) + ", " + group());
  }
  /// Pads an axis with zeros up to a size.
  value longer(const value& x, int axis, extent size) const {
    const shape none = filled(x.type.dims.rank, 0);
    if (x.type.dims[axis] == size) return x;
    return w_.pad(x, w_.constant(0, x.type.of), none,
                  with_size(none, axis, size - x.type.dims[axis]), none);
  }

 private:
  writer& w_;
  extent world_;
};

template <>
struct lowering<op::all_reduce> {
  static value write(writer& w, const lowering_call& f) {
    const auto a = f.attributes<op::all_reduce>();
    const replicas all(w, f);
    const value sum = all.reduced(f.in(0), a.how);
    if (a.root < 0) return sum;
    return w.select(all.is_me(a.root, sum.type.dims), sum, zeros(w, sum.type));
  }
};

template <>
struct lowering<op::all_gather> {
  static value write(writer& w, const lowering_call& f) {
    const int axis = f.attributes<op::all_gather>().axis;
    const shape dims = f.out().dims;
    const value whole = replicas(w, f).gathered(f.in(0), axis);
    if (whole.type.dims == dims) return whole;
    return w.slice(whole, filled(dims.rank, 0), dims, filled(dims.rank, 1));
  }
};

template <>
struct lowering<op::reduce_scatter> {
  static value write(writer& w, const lowering_call& f) {
    const auto a = f.attributes<op::reduce_scatter>();
    const replicas all(w, f);
    const tensor_type out = f.out();
    const value x = all.longer(f.in(0), a.axis, out.dims[a.axis] * all.world());
    return all.divided(
        w.op("reduce_scatter", {x}, out, number("scatter_dimension", a.axis) + ", " + all.group(),
             all.combining(out.of, a.how)),
        a.how);
  }
};

template <>
struct lowering<op::all_to_all> {
  static value write(writer& w, const lowering_call& f) {
    const auto a = f.attributes<op::all_to_all>();
    const replicas all(w, f);
    return w.op("all_to_all", {f.in(0)}, f.out(),
                number("split_dimension", a.split) + ", " + number("concat_dimension", a.concat) +
                    ", " + number("split_count", all.world()) + ", " + all.group());
  }
};

/// Fills the other replicas' parts with zeros, and adds.
template <>
struct lowering<op::broadcast> {
  static value write(writer& w, const lowering_call& f) {
    const replicas all(w, f);
    const int root = f.attributes<op::broadcast>().root;
    const tensor_type out = f.out();
    if (out.of == element::bf16)  // float32 represents all of its values
      return w.convert(shared(w, all, root, w.convert(f.in(0), element::f32)), out.of);
    return shared(w, all, root, f.in(0));
  }

 private:
  static value shared(writer& w, const replicas& all, int root, const value& in) {
    const tensor_type out = in.type;
    const element bits = whole_numbers(out.of);
    const bool booleans =
        out.of == element::i1;  // a type of one bit, for which no other type has the same size
    const value x =
        booleans ? w.convert(in, bits) : w.op("bitcast_convert", {in}, {bits, out.dims});
    const value mine = w.select(all.is_me(root, out.dims), x, zeros(w, x.type));
    const value sum = all.reduced(mine, reduce_type::sum);
    if (booleans) return w.compare("NE", sum, zeros(w, sum.type));
    return w.op("bitcast_convert", {sum}, out);
  }
  static element whole_numbers(element of) {
    switch (of) {
      case element::f64:
      case element::i64: return element::i64;
      case element::ui8: return element::ui8;
      default: return element::i32;
    }
  }
};

/// The sender and receiver of each message are constants: each replica selects its sender's tensor
/// from those of all.
template <>
struct lowering<op::collective_permute> {
  static value write(writer& w, const lowering_call& f) {
    const replicas all(w, f);
    const value &x = f.in(0), &from = f.in(1), &to = f.in(2);
    const value me = w.to(all.ordinal(), to.type.dims);
    const value mine = w.compare("EQ", to, me);
    const value none = w.constant(-1, element::i64);
    const value sender =
        w.reshape(w.reduce(w.select(mine, from, w.to(none, from.type.dims)), none, axis_set::one(0),
                           [&](const value& a, const value& b) { return w.map("maximum", a, b); }),
                  {});
    const value some = w.compare("GE", sender, w.constant(0, element::i64));
    shape line;
    line.push(1);
    for (int i = 0; i < x.type.dims.rank; ++i) line.push(x.type.dims[i]);
    const value sent = all.gathered(w.reshape(x, line), 0);
    const value at = w.map("maximum", sender, w.constant(0, element::i64));
    const value got = take(w, sent, 0, at);
    return w.select(w.to(some, x.type.dims), got, zeros(w, x.type));
  }
};

template <>
struct lowering<op::local_shard> {
  static value write(writer& w, const lowering_call& f) {
    const int axis = f.attributes<op::local_shard>().axis;
    const replicas all(w, f);
    const tensor_type out = f.out();
    const extent part = out.dims[axis];
    const value x = all.longer(f.in(0), axis, part * all.world());
    list<value> in = list_of({x});
    const value zero = w.constant(0, element::i64);
    const value first = w.map("multiply", all.ordinal(), w.constant(part, element::i64));
    for (int i = 0; i < out.dims.rank; ++i) in.push_back(i == axis ? first : zero);
    return w.op("dynamic_slice", in, out, numbers("slice_sizes", out.dims));
  }
};

}  // namespace xla::detail::hlo
