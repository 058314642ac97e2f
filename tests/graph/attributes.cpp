// SPDX-License-Identifier: Apache-2.0
// Attributes of ops, by those of a convolution, which has many.
#include <cstring>

#include "catch.hpp"
#include "xla/op/table.hpp"
#include "xla/transform/print.hpp"

namespace xla::op {
struct unlisted {
  static constexpr auto name = "unlisted";
  static constexpr op_kind kind = op_kind::library;
  static constexpr shape shape_of(const shape_rule& r) { return r.in[0]; }
};
}  // namespace xla::op

namespace {

using namespace xla::detail;
using xla::op::convolution;
using attributes = convolution::attributes;

constexpr attributes some{{2, 3}, {1, 2, 3, 4000}, {36, 5}, 512, true};
/// some with one of its eleven numbers changed.
constexpr attributes changed(int which) {
  attributes a = some;
  if (which < 2) a.stride[which] = 7;
  else if (which < 6) a.padding[which - 2] = 7;
  else if (which < 8) a.dilation[which - 6] = 7;
  else if (which == 8) a.groups = 65536;
  else if (which == 9) a.channels_last = false;
  else a.precision = precision::bfloat16;
  return a;
}
constexpr int numbers = 11;

constexpr bool same(const attributes& a, const attributes& b) {
  bool all =
      a.groups == b.groups && a.channels_last == b.channels_last && a.precision == b.precision;
  for (int i = 0; i < 2; ++i) all &= a.stride[i] == b.stride[i] && a.dilation[i] == b.dilation[i];
  for (int i = 0; i < 4; ++i) all &= a.padding[i] == b.padding[i];
  return all;
}
constexpr packed_attributes packed(const attributes& a, size_table* table = nullptr) {
  return with<convolution>(a, size_scope{table, "conv2d"}).attr;
}
constexpr bool comes_back(const attributes& a) {
  node n;
  n.attr = packed(a);
  return same(n.attributes<convolution>(), a);
}
constexpr bool all_told_apart() {
  for (int i = 0; i < numbers; ++i)
    for (int k = 0; k < i; ++k) {
      const auto a = packed(changed(i)), b = packed(changed(k));
      if (a == b || a.hash() == b.hash() || a == packed(some)) return false;
    }
  return packed(some) == packed(some) && packed(some).hash() == packed(some).hash();
}
constexpr bool all_come_back() {
  for (int i = 0; i < numbers; ++i)
    if (!comes_back(changed(i))) return false;
  return comes_back(some) && comes_back({}) &&
         comes_back({{255, 255}, {4095, 4095, 4095, 4095}, {255, 255}, 65536, true});
}
/// What a capture says of them.
constexpr text reason(const attributes& a) {
  size_table table;
  packed(a, &table);
  return table.refused.why;
}

// In constant evaluation.
static_assert(all_come_back());
static_assert(all_told_apart());
static_assert(reason(some).empty());
static_assert(reason({.stride = {1, 256}}).view() ==
              "conv2d: stride is 256, and has to be from 1 to 255");
static_assert(unpack<attributes>({}).stride[0] == 1);
static_assert(!always_fit<attributes> && always_fit<xla::op::slice::attributes>);

template <class Attributes>
std::string printed(const Attributes& a) {
  return print_attributes(fields_of<Attributes>, pack_fields(a));
}

}  // namespace

TEST_CASE("attributes of a convolution: there and back, distinguished, refused out of range") {
  CHECK(all_come_back());
  CHECK(all_told_apart());
  CHECK_THROWS_WITH(packed({.stride = {0, 1}}),
                    test::contains("conv2d: stride is 0, and has to be from 1 to 255"));
  CHECK_THROWS_WITH(packed({.padding = {0, 0, -1, 0}}), test::contains("padding is -1"));
  CHECK_THROWS_WITH(packed({.groups = 65537}), test::contains("groups is 65537"));
  CHECK(reason({.dilation = {1, 1000}}).view() ==
        "conv2d: dilation is 1000, and has to be from 1 to 255");
}

TEST_CASE("attributes are printed by name") {
  namespace op = xla::op;
  CHECK(printed(some) ==
        " stride (2, 3) padding (1, 2, 3, 4000) dilation (36, 5) groups 512 channels_last");
  CHECK(printed(op::sum::attributes{axis_set::one(0)}) == " over {0}");
  CHECK(printed(op::sum::attributes{axis_set::range(1, 4)}) == " over {1, 2, 3}");
  CHECK(printed(op::matmul::attributes{}).empty());
  CHECK(printed(op::matmul::attributes{.transpose_a = true}) == " transpose_a");
  CHECK(printed(op::matmul::attributes{.precision = precision::bfloat16}) == " precision bfloat16");
  CHECK(printed(op::slice::attributes{2, -3, 5}) == " axis 2 step -3 start 5");
  CHECK(printed(op::slice::attributes{0, 1, symbol_extent(4)}) == " axis 0 step 1 start s4");
  CHECK(printed(op::input::attributes{3, true}) == " slot 3 gradient");
  CHECK(printed(op::detach::attributes{}).empty());
  CHECK(printed(op::embedding::attributes{}) == " padding_idx -1");
  axis_order order;
  for (int axis : {5, 0, 4, 1, 3, 2}) order.push(axis);
  CHECK(printed(op::permute::attributes{order}) == " order (5, 0, 4, 1, 3, 2)");
  CHECK(printed(op::permute::attributes{order.inverse()}) == " order (1, 3, 5, 4, 2, 0)");
}

namespace {

template <class Op>
struct kind_of {
  static constexpr op_kind value = Op::kind;
};

}  // namespace

TEST_CASE("a table over all ops has those that compute and those that are built in") {
  constexpr auto& kinds = op_table<kind_of>;
  CHECK(std::size(kinds.rows) == static_cast<std::size_t>(all_ops::size));
  CHECK(computing_ops::size < all_ops::size);
  CHECK(*kinds.find(builtin<xla::op::detach>) == op_kind::alias);
  CHECK(*kinds.find(info_of<xla::op::sum, double, double, op_parts::facts>) == op_kind::reduce);
  CHECK(kinds.find(info_of<xla::op::unlisted, float, float, op_parts::facts>) == nullptr);
}
