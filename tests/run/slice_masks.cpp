// SPDX-License-Identifier: Apache-2.0
// Masked attention that runs slice by slice, with the same bits in all modes.
#include "catch.hpp"
#include "support/slices.hpp"

using test::numbers;
using test::slices::attention;
using test::slices::check_all;
using test::slices::inputs;

namespace {

template <class B, int M>
constexpr auto masked_attention(const auto& q, const auto& k, const auto& v,
                                const xla::Tensor<B, M>& mask) {
  const xla::AttentionOptions options;
  return xla::detail::attend(
      q, k, v, xla::detail::unknown_caller,
      xla::detail::weigh_masked<float, B, M>{mask, options, xla::detail::unknown_caller});
}

constexpr auto attend_masked = [](auto& q, auto& k, auto& v, auto& mask) {
  auto y = masked_attention(q, k, v, mask);
  xla::sum(xla::tanh(xla::transpose(y, 1, 2))).backward();
  return y;
};
/// present (batch, keys) or shown (heads, queries), with sizes 1 for the rest.
constexpr auto attend_present = [](auto& q, auto& k, auto& v, auto& present) {
  auto mask = xla::unsqueeze(xla::unsqueeze(present, 1), 1);
  return attend_masked(q, k, v, mask);
};
constexpr auto attend_shown = [](auto& q, auto& k, auto& v, auto& shown) {
  auto mask = xla::unsqueeze(xla::unsqueeze(shown, 0), 3);
  return attend_masked(q, k, v, mask);
};
constexpr auto attend_dropping = [](auto& q, auto& k, auto& v) {
  auto y = attention(q, k, v, {.dropout_p = 0.25});
  xla::sum(xla::tanh(xla::transpose(y, 1, 2))).backward();
  return y;
};

}  // namespace

TEST_CASE("masks of every kind, slice by slice") {
  const inputs x(2, 4, 4, 40, 36, 16), shared(2, 4, 2, 40, 36, 16);
  for (const inputs* in : {&x, &shared}) {
    check_all(attend_masked, *in, numbers<float>({40, 36}, 4) > 1.5);
    check_all(attend_masked, *in, numbers<float>({2, 4, 40, 36}, 4) > 1.5);
    check_all(attend_present, *in, numbers<float>({2, 36}, 4) > 1.5);
    check_all(attend_shown, *in, numbers<float>({4, 40}, 4) > 1.5);
  }
}

TEST_CASE("dropped weights are those of eager mode") {
  check_all(attend_dropping, inputs(2, 3, 3, 37, 41, 20));
}
