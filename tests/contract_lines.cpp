// SPDX-License-Identifier: Apache-2.0
// What goes wrong at run time in a named function carries the line that called it.
#include "support/mlp.hpp"
#include "xla/xla.hpp"

using test::contains;
using test::numbers;

namespace {

using index_t = std::int64_t;

std::string at_line(int line) { return "(contract_lines.cpp:" + std::to_string(line) + ")"; }

std::string said_by(auto step) {
  try {
    step();
  } catch (const xla::error& e) {
    return e.what();
  }
  return "nothing was thrown";
}

/// The sentence of a step that fails, in one mode after the other: what it names, and how it ends.
template <class Step, class... A>
void check_says(const std::string& name, const std::string& end, Step step, A... a) {
  const xla::eager_mode_guard guard;
  auto compiled = xla::compile(step);
  const auto eager = said_by([&] { step(a...); });
  const auto specialised = said_by([&] { compiled(a...); });
  xla::eager_mode(false);
  const auto traced = said_by([&] {
    auto kept = step(a...);
    xla::sync();
  });
  for (const std::string& s : {eager, specialised, traced}) {
    INFO(s);
    CHECK(s.find(name) != s.npos);
    CHECK(s.size() > end.size());
    CHECK(s.substr(s.size() - std::min(s.size(), end.size())) == end);
  }
}
template <class Step, class... A>
void check_line(const std::string& name, int line, Step step, A... a) {
  check_says(name, " " + at_line(line), step, a...);
}

xla::Tensor<index_t, 1> places(index_t a, index_t b) { return xla::tensor<index_t>({a, b}); }

struct Wide {
  xla::nn::Linear fc{5, 4};
  constexpr auto operator()(const xla::Tensor<float, 2>& x) const { return xla::relu(fc(x)); }
  XLA_MODULE(fc)
};
constexpr int line_of_fc = __LINE__ - 3;

constexpr auto scores(const xla::Tensor<float, 2>& x, const xla::Tensor<float, 2>& w,
                      xla::caller loc = xla::here()) {
  return xla::matmul(x, w, loc);
}

}  // namespace

TEST_CASE("a wrong size names the line of the call: products") {
  const auto a = numbers<float>({2, 3}), b = numbers<float>({2, 5});
  const auto v = numbers<float>({4});
  const auto c = numbers<float>({2, 2, 3}), d = numbers<float>({2, 4, 5});
  // clang-format off
  check_line("matmul", __LINE__, [](auto& x, auto& y) { return xla::matmul(x, y); }, a, b);
  check_line("matmul", __LINE__, [](auto& x, auto& y) { return matmul(x, y); }, c, d);
  check_line("matmul", __LINE__, [](auto& x, auto& y) { return matmul(x, y); }, a, v);
  check_line("matmul", __LINE__, [](auto& x, auto& y) { return xla::bmm(x, y); }, c, d);
  check_line("matmul", __LINE__, [](auto& x, auto& w) { return linear(x, w); }, a, b);
  check_line("add", __LINE__, [](auto& x, auto& w, auto& z) { return linear(x, w, z); }, a, a, v);
  check_line("matmul", __LINE__, [](auto& x, auto& y) { return scores(x, y); }, a, b);
  // clang-format on
}

TEST_CASE("a wrong size names the line of the call: shapes") {
  const auto a = numbers<float>({2, 3}), b = numbers<float>({2, 5}), c = numbers<float>({4, 5});
  // clang-format off
  check_line("reshape", __LINE__, [](auto& x) { return reshape(x, {3, 5}); }, a);
  check_line("reshape", __LINE__, [](auto& x) { return view(x, {x.size(0), 7}); }, a);
  check_line("expand", __LINE__, [](auto& x) { return expand(x, {4, 3}); }, a);
  check_line("squeeze", __LINE__, [](auto& x) { return xla::squeeze<0>(x); }, a);
  check_line("concat", __LINE__, [](auto& x, auto& y) { return xla::cat({x, y}); }, a, b);
  check_line("concat", __LINE__, [](auto& x, auto& y) { return xla::stack({x, y}); }, a, b);
  check_line("narrow", __LINE__, [](auto& x) { return narrow(x, 1, 2, 4); }, a);
  check_line("select", __LINE__, [](auto& x) { return select(x, 0, 5); }, a);
  check_line("split", __LINE__, [](auto& x) { return split(x, {1, 3}, 1); }, a);
  check_line("einsum", __LINE__, [](auto& x, auto& y) { return xla::einsum<"ij,kj->ik">(x, y); }, a, b);
  check_line("einsum", __LINE__, [](auto& x, auto& y) { return xla::einsum<"ij,kj,kl->il">(x, x, y); }, a, c);
  check_line("topk", __LINE__, [](auto& x) { return topk(x, 4).first; }, a);
  check_line("argmax", __LINE__, [](auto& x) { return argmax(x, 0); }, numbers<float>({0, 3}));
  check_line("where", __LINE__, [](auto& x, auto& y) { return where(x > 0, x, y); }, a, b);
  check_line("maximum", __LINE__, [](auto& x, auto& y) { return xla::maximum(x, y); }, a, c);
  check_line("logical_and", __LINE__, [](auto& x, auto& y) { return logical_and(x > 0, y > 0); }, a, c);
  // clang-format on
}

TEST_CASE("an axis that does not exist names the line of the call") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({2, 3});
  const auto check = [](int line, auto step) {
    CHECK_THROWS_WITH(step(), contains(at_line(line)));
  };
  check(__LINE__, [&] { sum(x, {2}); });
  check(__LINE__, [&] { mean(x, {2}, xla::keepdim); });
  check(__LINE__, [&] { softmax(x, 2); });
  check(__LINE__, [&] { log_softmax(x, -3); });
  check(__LINE__, [&] { var(x, {2}); });
  check(__LINE__, [&] { norm(x, {0, 0}); });
  check(__LINE__, [&] { any(x, {3}); });
  check(__LINE__, [&] { cumsum(x, 2); });
  check(__LINE__, [&] { transpose(x, 0, 2); });
  check(__LINE__, [&] { permute(x, {1, 1}); });
  check(__LINE__, [&] { unsqueeze(x, 4); });
  check(__LINE__, [&] { slice(x, 2); });
  check(__LINE__, [&] { flip(x, {2}); });
  check(__LINE__, [&] { x.size(2); });
  check(__LINE__, [&] { x.item(); });
  check(__LINE__, [&] { roll(x, 1, 2); });
  check(__LINE__, [&] { argsort(x, 2); });
  check(__LINE__, [&] { xla::Tensor<float, 2>(x).copy_(numbers<float>({3, 2})); });
  check(__LINE__, [&] { xla::Parameter<float, 2>({3, 2}).set_grad(x); });
  check(__LINE__, [&] { xla::zeros<float>({2, -3}); });
  check(__LINE__, [&] { xla::randn<float>({-2}); });
}

TEST_CASE("a wrong size names the line of the call: losses and normalization") {
  const auto x = numbers<float>({2, 3}), y = numbers<float>({4, 3});
  const auto two = places(0, 2), four = xla::zeros<index_t>({4});
  const auto v = numbers<float>({4});
  // clang-format off
  check_line("cross_entropy", __LINE__, [](auto& a, auto& b) { return cross_entropy(a, b); }, x, four);
  check_line("nll_loss", __LINE__, [](auto& a, auto& b) { return nll_loss(a, b, xla::reduction::sum); }, x, four);
  check_line("mse_loss", __LINE__, [](auto& a, auto& b) { return mse_loss(a, b); }, x, y);
  check_line("kl_div", __LINE__, [](auto& a, auto& b) { return kl_div(a, b); }, x, y);
  check_line("layer_norm", __LINE__, [](auto& a, auto& w) { return layer_norm(a, w, w); }, x, v);
  check_line("rms_norm", __LINE__, [](auto& a, auto& w) { return rms_norm(a, w); }, x, v);
  check_line("mse_loss", __LINE__, [](auto& a, auto& b) { return xla::nn::MSELoss()(a, b); }, x, y);
  check_line("cross_entropy", __LINE__, [](auto& a, auto& b) { return xla::nn::CrossEntropyLoss()(a, b); }, x, four);
  // clang-format on
}

TEST_CASE("an index out of range names the line of the call") {
  const auto table = numbers<float>({4, 2});
  const auto good = places(0, 3), bad = places(0, 4);
  // clang-format off
  check_line("embedding", __LINE__, [](auto& i, auto& t) { return embedding(i, t); }, bad, table);
  check_line("gather", __LINE__, [](auto& i, auto& t) { return gather(t, 0, unsqueeze(i, 0)); }, bad, table);
  check_line("index_select", __LINE__, [](auto& i, auto& t) { return index_select(t, 0, i); }, bad, table);
  check_line("index_add", __LINE__, [](auto& i, auto& t) { return index_add(t, 0, i, slice(t, 0, 0, 2)); }, bad, table);
  check_line("scatter", __LINE__, [](auto& i, auto& t) { return scatter(t, 0, unsqueeze(i, 0), 1); }, bad, table);
  check_line("index_copy", __LINE__, [](auto& i, auto& t) { return index_copy(t, 0, i, slice(t, 0, 0, 2)); }, bad, table);
  check_line("one_hot", __LINE__, [](auto& i) { return one_hot(i, 4); }, bad);
  check_line("take_along_dim", __LINE__, [](auto& i, auto& t) { return take_along_dim(t, unsqueeze(i, 1), 0); }, bad, table);
  check_line("cross_entropy", __LINE__, [](auto& i, auto& t) { return cross_entropy(slice(t, 0, 0, 2), i); }, places(0, 2), table);
  // clang-format on
}

TEST_CASE("an error in a traced graph of ops from two lines names the right line") {
  const xla::eager_mode_guard guard;
  xla::eager_mode(false);
  const auto table = numbers<float>({4, 2});
  const auto bad = places(0, 4);
  auto run = [](auto x) { return said_by([&] { x.to_vector(); }); };
  const std::string first = run(embedding(bad, table));
  CHECK_THAT(first, contains(at_line(__LINE__ - 1)));
  const std::string second = run(embedding(bad, table));
  CHECK_THAT(second, contains(at_line(__LINE__ - 1)));
}

TEST_CASE("a layer names the line of the model that calls it, never one of the library") {
  const auto x = numbers<float>({2, 3});
  const xla::eager_mode_guard eager;
  Wide model;
  CHECK_THROWS_WITH(model(x), contains(at_line(line_of_fc)));
  auto predict = xla::compile(model);
  CHECK_THROWS_WITH(predict(x), contains(at_line(line_of_fc)));
  const xla::nn::Sequential layers{xla::nn::Linear(5, 4), xla::nn::ReLU()};
  CHECK_THROWS_WITH(layers(x), contains("matmul") && !contains(".hpp") && !contains(".cpp"));
  const auto y = numbers<float>({2, 5});
  CHECK_THROWS_WITH(x + y, contains("add") && !contains(".hpp") && !contains(".cpp"));
}
