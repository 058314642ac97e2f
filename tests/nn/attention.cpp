// SPDX-License-Identifier: Apache-2.0
#include "xla/nn/attention.hpp"

#include "support/modes.hpp"
#include "xla/op/abs.hpp"
#include "xla/op/derived/repeat.hpp"

namespace nn = xla::nn;
using test::check_equal;
using test::numbers;

namespace {

/// Every row of a matrix times its transpose, by plain loops in double.
std::vector<double> project(const std::vector<double>& x, const xla::Parameter<float, 2>& w) {
  const auto out = static_cast<std::size_t>(std::int64_t(w.size(0)));
  const auto in = static_cast<std::size_t>(std::int64_t(w.size(1)));
  std::vector<double> y;
  for (std::size_t r = 0; r < x.size(); r += in)
    for (std::size_t o = 0; o < out; ++o) {
      double total = 0;
      for (std::size_t i = 0; i < in; ++i) total += x[r + i] * double(w.data()[o * in + i]);
      y.push_back(total);
    }
  return y;
}

std::vector<double> doubles(const auto& x) {
  const auto v = x.to_vector();
  return {v.begin(), v.end()};
}
std::vector<float> floats(const std::vector<double>& v) { return {v.begin(), v.end()}; }

}  // namespace

TEST_CASE("attention of one sequence against plain loops") {
  const xla::eager_mode_guard eager;
  const nn::Attention<6, 3, 1> attention;
  const auto x = numbers<float>({1, 5, 6});
  const auto rows = doubles(x);
  const auto q = project(rows, attention.q_proj.weight), k = project(rows, attention.k_proj.weight),
             v = project(rows, attention.v_proj.weight);
  std::vector<double> y(30, 0);
  for (std::size_t i = 0; i < 5; ++i)
    for (std::size_t h = 0; h < 3; ++h) {
      double weight[5], total = 0;
      for (std::size_t j = 0; j <= i; ++j) {
        const double* a = &q[i * 6 + h * 2];
        weight[j] = std::exp((a[0] * k[j * 2] + a[1] * k[j * 2 + 1]) / std::sqrt(2.0));
        total += weight[j];
      }
      for (std::size_t j = 0; j <= i; ++j)
        for (std::size_t c = 0; c < 2; ++c)
          y[i * 6 + h * 2 + c] += weight[j] / total * v[j * 2 + c];
    }
  check_equal(attention(x, {.causal = true}), {1, 5, 6},
              floats(project(y, attention.o_proj.weight)), 1e-5);
}

TEST_CASE("heads that share keys are heads with the keys repeated") {
  const xla::eager_mode_guard eager;
  const nn::Attention<24, 6, 2, nn::LinearNoBias, 10000> shared;
  nn::Attention<24, 6, 6, nn::LinearNoBias, 10000> repeated;
  auto repeat = [](const xla::Parameter<float, 2>& w) {
    return reshape(expand(reshape(w, {2, 1, 4, 24}), {2, 3, 4, 24}), {24, 24}).detach();
  };
  repeated.q_proj = shared.q_proj;
  repeated.o_proj = shared.o_proj;
  repeated.k_proj.weight.copy_(repeat(shared.k_proj.weight));
  repeated.v_proj.weight.copy_(repeat(shared.v_proj.weight));
  const auto x = numbers<float>({2, 7, 24});
  check_equal(shared(x, {.causal = true}), repeated(x, {.causal = true}), 1e-5);
  check_equal(shared(x), repeated(x), 1e-5);
}

TEST_CASE("without positions full attention does not know the order, with them it does") {
  const xla::eager_mode_guard eager;
  const nn::Attention<8, 2, 2> plain;
  nn::Attention<8, 2, 2, nn::LinearNoBias, 100> rotary;
  rotary.q_proj = plain.q_proj;
  rotary.k_proj = plain.k_proj;
  rotary.v_proj = plain.v_proj;
  rotary.o_proj = plain.o_proj;
  const auto x = numbers<float>({1, 5, 8});
  check_equal(plain(flip(x, {1})), flip(plain(x), {1}), 1e-5);
  CHECK(max(abs(rotary(flip(x, {1})) - flip(rotary(x), {1}))).item() > 1e-3f);
}

TEST_CASE("feed-forward layers, names of their parameters") {
  const xla::eager_mode_guard eager;
  const nn::SwiGLU<6, 10> gated;
  const nn::FeedForward<6, 10> plain;
  const auto x = numbers<float>({2, 3, 6});
  auto gate = project(doubles(x), gated.gate_proj.weight);
  const auto up = project(doubles(x), gated.up_proj.weight);
  for (std::size_t i = 0; i < gate.size(); ++i) gate[i] *= up[i] / (1 + std::exp(-gate[i]));
  check_equal(gated(x), {2, 3, 6}, floats(project(gate, gated.down_proj.weight)), 1e-5);

  auto h = project(doubles(x), plain.up_proj.weight);
  for (std::size_t i = 0; i < h.size(); ++i) {
    h[i] += double(plain.up_proj.bias.data()[i % 10]);
    h[i] *= (1 + std::erf(h[i] / std::sqrt(2.0))) / 2;
  }
  auto y = project(h, plain.down_proj.weight);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] += double(plain.down_proj.bias.data()[i % 6]);
  check_equal(plain(x), {2, 3, 6}, floats(y), 1e-5);

  std::string names;
  xla::named_parameters(gated, [&](const std::string& n, auto&) { names += n + ' '; });
  CHECK(names == "gate_proj.weight up_proj.weight down_proj.weight ");
}
