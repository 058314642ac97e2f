// SPDX-License-Identifier: Apache-2.0
// A compiled function without one of the passes.
#include <tuple>
#include <utility>

#include "catch.hpp"
#include "support/modes.hpp"
#include "xla/loop.hpp"
#include "xla/xla.hpp"

namespace {

/// Something for every pass to do.
constexpr auto work_for_all = [](auto& w, auto& x) {
  auto noise = xla::rand_like(x);                             // late
  auto unread = xla::cumsum(x, 0);                            // dead
  auto h = xla::gelu(xla::matmul(x, xla::transpose(w)) * 1);  // simplify, recompute
  auto y = xla::softmax(xla::matmul(h, w));                   // rows
  xla::sum(y * y + xla::exp(h) * xla::exp(h)).backward();     // share, fuse
  return xla::matmul(y, y) + noise;
};

constexpr auto work_on_images = [](auto& w, auto& x) {
  auto y = xla::relu(xla::conv2d(xla::reshape(x, {1, 4, 3, 3}), xla::reshape(w, {9, 4, 1, 1})));
  xla::sum(y * y).backward();
  return xla::exp(y);
};

constexpr auto work_in_steps = [](auto& w, auto& x) {
  const auto xs = xla::reshape(x, {2, 3, 6});
  const auto step = [&](const auto& h, const auto& of) {
    const auto next = xla::tanh(h + xla::matmul(of, w));
    return std::pair(next, std::tuple<>());
  };
  return xla::scan(step, xla::select(xs, 0, 0), xs).first;
};

template <xla::detail::pass_name Name>
void check_without(auto work) {
  INFO("without " << Name.view());
  const xla::eager_mode_guard eager;
  const auto w = test::parameter(test::numbers<float>({6, 6}, 1));
  const auto x = test::numbers<float>({6, 6}, 2);
  constexpr xla::Passes one_less = xla::tags::verified & xla::tags::without<Name>;
  const auto want = test::run_mode<test::mode::eager>(work, w, x);
  const auto got = test::run_mode<test::mode::compiled, one_less>(work, w, x);
  CHECK(got.difference(want) == "");
  auto whole = xla::compile(work);
  auto less = xla::compile<one_less>(work);
  CHECK(less.graph("lowered", w, x) != whole.graph("lowered", w, x));
  CHECK(less.graph("captured", w, x) == whole.graph("captured", w, x));
}

template <std::size_t I>
constexpr auto name_of_pass = [] {
  char chars[xla::detail::pass_labels[I].name.size() + 1] = {};
  xla::detail::pass_labels[I].name.copy(chars, sizeof chars);
  return xla::detail::pass_name(chars);
}();
template <std::size_t I>
void check_without_pass() {
  constexpr xla::detail::pass_label label = xla::detail::pass_labels[I];
  constexpr auto name = name_of_pass<I>;
  if constexpr (label.is != xla::detail::pass_label::kind::optional) return;
  else if constexpr (label.name == "bfloat16_storage")
    check_without<name>(xla::autocast(work_for_all));
  else if constexpr (label.name == "batch_products") check_without<name>(work_in_steps);
  else if constexpr (label.name == "layouts") check_without<name>(work_on_images);
  else check_without<name>(work_for_all);
}

}  // namespace

TEST_CASE("a compiled function does without any one pass: another program, the same bits") {
  []<std::size_t... I>(std::index_sequence<I...>) {
    (check_without_pass<I>(), ...);
  }(std::make_index_sequence<std::size(xla::detail::pass_labels)>{});
}
