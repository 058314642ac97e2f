// SPDX-License-Identifier: Apache-2.0
#pragma once

// Random numbers in StableHLO: Philox in integers, so that XLA draws the same numbers. table.hpp
// lists the lowerings.

#include <numbers>

#include "xla/ext/stablehlo/gather_scatter.hpp"
#include "xla/ext/stablehlo/lowering.hpp"
#include "xla/kernel/random/philox.hpp"
#include "xla/op/integers.hpp"
#include "xla/op/random.hpp"

namespace xla::detail::hlo {

/// The library's generator, kernel/random/philox.hpp, in integers: it gives the same words.
class philox {
 public:
  philox(writer& w, const lowering_call& f, std::size_t element_size)
      : w_(w), n_(count(f.out().dims)), out_(f.out()), each_(philox_elements(element_size)) {
    const extent blocks = (n_ + each_ - 1) / each_;
    blocks_ = {1, {blocks}};
    const value counter =
        w.map("add", w.iota(element::ui64, blocks_, 0), w.to(f.offset(w), blocks_));
    const value key = w.to(f.seed(w), blocks_);
    word_[0] = low(counter);
    word_[1] = high(counter);
    word_[2] = word_[3] = w.constant(0, element::ui32, blocks_);
    value key0 = low(key), key1 = high(key);
    for (int round = 0; round < 10; ++round) {
      step(key0, key1);
      key0 = w.map("add", key0, number(0x9E3779B9u, key0));
      key1 = w.map("add", key1, number(0xBB67AE85u, key1));
    }
  }

  const value& word(int i) const { return word_[i]; }
  /// Two words as one of 64 bits.
  value word64(int high) const {
    const value upper = shifted("shift_left", wide(word_[high]), 32);
    return w_.map("or", upper, wide(word_[high + 1]));
  }
  /// The words of all blocks in order, as many as are drawn, in their shape.
  value interleaved(const list<value>& made) const {
    list<value> columns;
    for (const value& v : made) columns.push_back(w_.reshape(v, {2, {blocks_[0], 1}}));
    const value all = w_.reshape(w_.concat(columns, 1), {1, {blocks_[0] * each_}});
    return w_.reshape(w_.slice(all, {1, {0}}, {1, {n_}}, {1, {1}}), out_.dims);
  }
  value number(std::uint64_t n, const value& like) const {
    return w_.constant(n, like.type.of, like.type.dims);
  }
  value shifted(std::string_view how, const value& v, int bits) const {
    return w_.map(how, v, number(static_cast<std::uint64_t>(bits), v));
  }
  value wide(const value& v) const { return w_.convert(v, element::ui64); }
  value low(const value& v) const { return w_.convert(v, element::ui32); }
  value high(const value& v) const { return low(shifted("shift_right_logical", v, 32)); }
  /// The upper half of a product of 128 bits.
  value multiply_high(const value& x, const value& y) const {
    const auto upper = [&](const value& v) { return shifted("shift_right_logical", v, 32); };
    const auto lower = [&](const value& v) { return w_.map("and", v, number(0xFFFFFFFFu, v)); };
    const auto times = [&](const value& a, const value& b) { return w_.map("multiply", a, b); };
    const auto plus = [&](const value& a, const value& b) { return w_.map("add", a, b); };
    const value first = times(lower(x), lower(y));
    const value middle = plus(times(upper(x), lower(y)), upper(first));
    const value other = plus(times(lower(x), upper(y)), lower(middle));
    return plus(plus(times(upper(x), upper(y)), upper(middle)), upper(other));
  }
  /// Uniform in [0, 1): a float of a word, a double of two.
  value uniform(int first) const {
    if (out_.of == element::f64)
      return scaled(w_.convert(shifted("shift_right_logical", word64(first), 11), element::f64),
                    0x1p-53);
    return scaled(w_.convert(shifted("shift_right_logical", word_[first], 8), element::f32),
                  0x1p-24);
  }
  value scaled(const value& v, double by) const {
    return w_.map("multiply", v, w_.constant(by, v.type.of, v.type.dims));
  }

 private:
  void step(const value& key0, const value& key1) {
    const value p = w_.map("multiply", wide(word_[0]), wide_number(0xD2511F53u));
    const value q = w_.map("multiply", wide(word_[2]), wide_number(0xCD9E8D57u));
    word_[0] = w_.map("xor", w_.map("xor", high(q), word_[1]), key0);
    word_[1] = low(q);
    word_[2] = w_.map("xor", w_.map("xor", high(p), word_[3]), key1);
    word_[3] = low(p);
  }
  value wide_number(std::uint64_t n) const { return w_.constant(n, element::ui64, blocks_); }

  writer& w_;
  std::int64_t n_;
  tensor_type out_;
  std::int64_t each_;
  shape blocks_;
  value word_[4];
};

template <>
struct lowering<op::uniform> {
  static value write(writer& w, const lowering_call& f) {
    const tensor_type out = f.out();
    if (count(out.dims) == 0) return zeros(w, out);
    const bool wide = out.of == element::f64;
    const philox words(w, f, wide ? 8 : 4);
    list<value> made;
    for (int i = 0; i < 4; i += wide ? 2 : 1) made.push_back(words.uniform(i));
    return words.interleaved(made);
  }
};

/// Box-Muller as in kernel/random/philox.hpp; for float the angle's quadrant is found exactly.
template <>
struct lowering<op::normal> {
  static value write(writer& w, const lowering_call& f) {
    const tensor_type out = f.out();
    if (count(out.dims) == 0) return zeros(w, out);
    const bool wide = out.of == element::f64;
    const philox words(w, f, wide ? 8 : 4);
    list<value> made;
    if (wide) double_pair(w, words, made);
    else
      for (int i = 0; i < 4; i += 2) float_pair(w, words, i, made);
    return words.interleaved(made);
  }

 private:
  static void double_pair(writer& w, const philox& words, list<value>& made) {
    const lane u(w, words.uniform(0)), angle(w, words.scaled(words.uniform(2), 2 * pi));
    const lane radius = (u.like(-2) * (u + u.like(0x1p-53)).log()).sqrt();
    made.push_back((radius * angle.cos()).v);
    made.push_back((radius * angle.sin()).v);
  }
  static void float_pair(writer& w, const philox& words, int first, list<value>& made) {
    const value half = words.shifted("shift_right_logical", words.word(first), 1);
    const lane whole(w, w.convert(half, element::f32));
    const lane u = (whole + whole.like(0.5)) * whole.like(0x1p-31);
    const lane radius = (u.like(-2) * u.log()).sqrt();
    const lane turns(w, words.word(first + 1));
    const lane quadrant(
        w, words.shifted("shift_right_logical", (turns + turns.like(0x20000000)).v, 30));
    const lane rest = turns - lane(w, words.shifted("shift_left", quadrant.v, 30));
    const value signed_rest = w.op("bitcast_convert", {rest.v}, {element::i32, rest.v.type.dims});
    const lane angle(w, words.scaled(w.convert(signed_rest, element::f32), 2 * pi * 0x1p-32));
    const lane swap = bit(w, quadrant, 1), s = angle.sin(), c = angle.cos();
    const lane sine = swap.select(c, s), cosine = swap.select(s, c);
    const lane down = bit(w, quadrant, 2), left = bit(w, quadrant + quadrant.like(1), 2);
    made.push_back((radius * left.select(-cosine, cosine)).v);
    made.push_back((radius * down.select(-sine, sine)).v);
  }
  static lane bit(writer& w, const lane& of, double which) {
    return lane(w, w.map("and", of.v, of.like(which).v)) != of.like(0);
  }
  static constexpr double pi = std::numbers::pi;
};

template <>
struct lowering<op::integers> {
  static value write(writer& w, const lowering_call& f) {
    const tensor_type out = f.out();
    if (count(out.dims) == 0) return zeros(w, out);
    const philox words(w, f, 8);
    const value low = as(w, f.in(0), element::ui64);
    const value range = w.map("subtract", as(w, f.in(1), element::ui64), low);
    list<value> made;
    for (int i = 0; i < 4; i += 2) {
      const value word = words.word64(i);
      const value part = words.multiply_high(word, w.to(range, word.type.dims));
      made.push_back(as(w, w.map("add", w.to(low, word.type.dims), part), element::i64));
    }
    return words.interleaved(made);
  }

 private:
  static value as(writer& w, const value& v, element of) {
    return w.op("bitcast_convert", {v}, {of, v.type.dims});
  }
};

/// The Fisher-Yates shuffle from the last element to the second, as in kernel/random/philox.hpp.
template <>
struct lowering<op::permutation> {
  static value write(writer& w, const lowering_call& f) {
    const tensor_type out = f.out();
    const value indices = w.iota(element::i64, out.dims, 0);
    if (count(out.dims) < 2) return indices;
    const philox words(w, f, 8);
    const value random = words.interleaved(list_of({words.word64(0), words.word64(2)}));
    const value up_to = w.map("add", w.iota(element::ui64, out.dims, 0), words.number(1, random));
    const value others = w.convert(words.multiply_high(random, up_to), element::i64);
    const value last = w.constant(out.dims[0] - 1, element::i64);
    const list<tensor_type> types = list_of({last.type, out});
    const std::string more = w.region(types, [&](const list<value>& a) {
      return list_of({w.compare("GT", a[0], zeros(w, a[0].type))});
    });
    const std::string swap = w.region(types, [&](const list<value>& a) {
      const value here = at(w, a[1], a[0]);
      const value other = w.reshape(at(w, others, a[0]), {});
      const value there = at(w, a[1], other);
      value all = w.op("dynamic_update_slice", {a[1], there, a[0]}, a[1].type);
      all = w.op("dynamic_update_slice", {all, here, other}, all.type);
      return list_of({w.map("subtract", a[0], w.constant(1, element::i64)), all});
    });
    return w.ops("while", list_of({last, indices}), types, {}, more + ", " + swap)[1];
  }

 private:
  static value at(writer& w, const value& from, const value& index) {
    return w.op("dynamic_slice", {from, index}, {from.type.of, {1, {1}}},
                numbers("slice_sizes", {1, {1}}));
  }
};

}  // namespace xla::detail::hlo
