// SPDX-License-Identifier: Apache-2.0
#include "xla/tensor/methods.hpp"

#include "support/gradient.hpp"
#include "support/mlp.hpp"
#include "support/modes.hpp"
#include "xla/xla.hpp"

using test::check_equal;
using test::check_modes;
using test::contains;
using test::numbers;

namespace {
void check_same(const auto& method, const auto& function) {
  CHECK(method.sizes() == function.sizes());
  CHECK(method.to_vector() == function.to_vector());
}
}  // namespace

TEST_CASE("methods are the functions of their names") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({3, 4}), y = numbers<float>({3, 4}, 2);
  check_same(x.sum(), sum(x));
  check_same(x.sum({1}), sum(x, {1}));
  check_same(x.mean({0}, xla::keepdim), mean(x, {0}, xla::keepdim));
  check_same(x.max(), max(x));
  check_same(x.max({-1}), max(x, {-1}));
  check_same(x.max(y), max(x, y));
  check_same(x.min({0, 1}), min(x, {0, 1}));
  check_same(x.var({1}), var(x, {1}));
  check_same(x.relu(), relu(x));
  check_same(x.pow(2), pow(x, 2));
  check_same(x.abs().log().exp(), exp(log(abs(x))));
  check_same(x.clamp(-0.5f, 0.5f), clamp(x, -0.5f, 0.5f));
  check_same(x.matmul(y.t()), matmul(x, transpose(y)));
  check_same(x.reshape({2, -1}), reshape(x, {2, -1}));
  check_same(x.view({x.size(1), 3}), reshape(x, {4, 3}));
  check_same(x.flatten(), flatten(x));
  check_same(x.unsqueeze(0).expand({2, -1, -1}), expand(unsqueeze(x, 0), {2, -1, -1}));
  check_same(x.permute({1, 0}), permute(x, {1, 0}));
  check_same(x.transpose(0, 1), transpose(x, 0, 1));
  check_same(x.repeat({2, 1}), repeat(x, {2, 1}));
  check_same(x.flip({0}), flip(x, {0}));
  check_same(x.softmax(0), softmax(x, 0));
  check_same(x.argmax(1), argmax(x, 1));
  check_same(x.cumsum(1), cumsum(x, 1));
  check_same(x.masked_fill(x > 0, 1.f), masked_fill(x, x > 0, 1.f));
  check_same((x > 0).any(), any(x > 0));
  check_same(x[1].sum(), sum(x[1]));
}

TEST_CASE("methods in every mode, with gradients") {
  auto loss = [](auto& x, auto& y) {
    auto z = x.matmul(y.t()).relu().mean({1}).pow(2).sum();
    z.backward();
    return std::tuple(z, x.grad(), x.reshape({-1}).max(), y.abs().sqrt().sum({0}, xla::keepdim));
  };
  auto x = test::parameter(numbers<float>({5, 3}));
  check_modes(loss, x, numbers<float>({2, 3}, 1));
  auto one = test::parameter(numbers<float>({1, 1}));
  check_modes(loss, one, numbers<float>({1, 1}, 1));
}

TEST_CASE("x[mask] and x[index] choose elements and slices") {
  const xla::eager_mode_guard eager;
  const auto x = xla::tensor<float>({{1, -2, 3}, {-4, 5, -6}});
  check_equal(x[x > 0], {3}, std::vector<float>{1, 3, 5});
  check_equal(x.index(x > 9), {0}, std::vector<float>{});
  check_equal(x[xla::tensor<bool>({false, true})], {1, 3}, std::vector<float>{-4, 5, -6});
  const auto rows = xla::tensor<std::int64_t>({1, 0, 1});
  check_equal(x[rows], {3, 3}, std::vector<float>{-4, 5, -6, 1, -2, 3, -4, 5, -6});
  auto v = xla::tensor<float>({7, 8});
  check_equal(v.index(rows), {3}, std::vector<float>{8, 7, 8});
  check_equal(v[v > 7], {1}, std::vector<float>{8});
  check_modes([](auto& x, auto& rows) { return x[rows] * 2; }, x, rows);
  CHECK_THROWS_WITH(x[xla::tensor<bool>({true, true, true})],
                    contains("operator[]: a mask of shape (3,) for a tensor of shape (2, 3)"));
  CHECK_THROWS_AS(x[xla::tensor<bool>({{true, true}, {true, true}})], xla::shape_error);
  CHECK_THROWS_AS(x[xla::tensor<std::int64_t>({2})], xla::index_error);
}

TEST_CASE("grad of a module is of its parameters, in the order of their names") {
  auto gradients = [](auto& model, auto& x) {
    const auto loss = [&] { return mean(square(model(x))); };
    const auto tied = xla::grad(loss(), std::tie(model.fc1.weight, model.fc2.bias));
    return std::tuple(xla::grad(loss(), model), tied);
  };
  test::Mlp model;
  const auto x = numbers<float>({6, model.fc1.weight.size(1)});
  check_modes(gradients, model, x);
  const xla::eager_mode_guard eager;
  const auto [all, tied] = gradients(model, x);
  mean(square(model(x))).backward();
  std::vector<std::vector<float>> collected;
  xla::for_each_parameter(model, [&](auto& p) { collected.push_back(p.grad().to_vector()); });
  std::vector<std::vector<float>> given;
  std::apply([&](const auto&... g) { (given.push_back(g.to_vector()), ...); }, all);
  CHECK(given == collected);
  CHECK(given.size() == 4);
  CHECK(std::get<1>(tied).to_vector() == given[3]);
}
