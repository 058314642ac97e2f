// SPDX-License-Identifier: Apache-2.0
// Recurrent layers and cells against PyTorch's, in every mode, with sequences of different lengths.
#include "xla/nn/recurrent.hpp"

#include "data/recurrent.inc"
#include "support/backends.hpp"
#include "support/gradient.hpp"
#include "support/modes.hpp"
#include "support/stored.hpp"
#include "xla/nn/linear.hpp"
#include "xla/nn/state_dict.hpp"
#include "xla/optim/adam.hpp"

namespace nn = xla::nn;
using Catch::Matchers::Contains;
using test::numbers;

namespace {

constexpr int time_steps = 4, batch = 3, in = 3, hidden = 4;

template <class Layer>
Layer made() {
  Layer layer;
  std::uint64_t seed = 10;
  xla::for_each_parameter(layer, [&](auto& p) {
    const auto s = p.dims();
    if constexpr (std::remove_cvref_t<decltype(p)>::rank == 1)
      p.copy_(numbers<float>({s[0]}, seed++) / 8);
    else p.copy_(numbers<float>({s[0], s[1]}, seed++) / 8);
  });
  return layer;
}

/// Every tensor of a result, in order.
void each(const auto& result, const auto& f) {
  if constexpr (requires { result.first; }) {
    each(result.first, f);
    each(result.second, f);
  } else {
    f(result);
  }
}

/// The results against the first of `want`, then the gradients of inputs and of the parameters.
void check(const std::vector<std::vector<double>>& want, auto& module, const auto& result,
           const auto&... inputs) {
  std::size_t at = 0;
  const auto same = [&](const auto& t) {
    INFO("tensor " << at);
    test::check_stored(t, want.at(at++), 1e-5);
  };
  xla::Tensor<float, 0> loss = xla::sum(xla::zeros<float>({1}));
  each(result, [&](const auto& t) {
    same(t);
    loss = loss + test::weighted_sum(t);
  });
  loss.backward();
  (same(inputs.grad()), ...);
  xla::for_each_parameter(module, [&](auto& p) { same(p.grad()); });
  CHECK(at == want.size());
}

/// Numbers that require gradients.
template <std::size_t N>
auto input(const xla::Size (&sizes)[N], std::uint64_t seed, float divisor = 4) {
  auto x = numbers<float>(sizes, seed) / divisor;
  x = x.detach();
  x.requires_grad_();
  return x;
}
auto sequence() { return input({time_steps, batch, in}, 1, 1); }
auto lengths() { return xla::tensor<std::int64_t>({2, 4, 1}); }

using Rnn = nn::RNN<nn::RNNConfig{
    .input_size = in, .hidden_size = hidden, .num_layers = 2, .bidirectional = true}>;
using Relu = nn::RNN<nn::RNNConfig{.input_size = in,
                                   .hidden_size = hidden,
                                   .nonlinearity = nn::RNNNonlinearity::relu,
                                   .bias = false}>;
using Lstm = nn::LSTM<nn::LSTMConfig{
    .input_size = in, .hidden_size = hidden, .num_layers = 2, .bidirectional = true}>;
using Projected = nn::LSTM<nn::LSTMConfig{.input_size = in, .hidden_size = hidden, .proj_size = 2}>;
using Gru = nn::GRU<nn::GRUConfig{
    .input_size = in, .hidden_size = hidden, .num_layers = 2, .bidirectional = true}>;
using ShortGru =
    nn::GRU<nn::GRUConfig{.input_size = in, .hidden_size = hidden, .bidirectional = true}>;

/// Layers for batches of sequences of different lengths, while training with dropout.
struct Tagger {
  nn::LSTM<nn::LSTMConfig{.input_size = in,
                          .hidden_size = hidden,
                          .num_layers = 2,
                          .batch_first = true,
                          .dropout = true,
                          .bidirectional = true}>
      lstm{0.25};
  nn::GRU<2 * hidden, hidden> gru;
  nn::Linear head{hidden, 2};
  constexpr auto operator()(const auto& x, const auto& n) const {
    const auto [y, last] = lstm(nn::pack_padded_sequence(x, n, true));
    return std::pair(head(nn::pad_packed_sequence(gru(y).first, true).first), last.second);
  }
  XLA_MODULE(lstm, gru, head)
};

}  // namespace

TEST_CASE("recurrent layers are PyTorch's, and so are their gradients") {
  const xla::eager_mode_guard eager;
  const auto x = sequence();
  SECTION("rnn") {
    auto layer = made<Rnn>();
    const auto h = input({4, batch, hidden}, 2);
    check(reference::rnn, layer, layer(x, h), x, h);
  }
  SECTION("rnn_relu") {
    auto layer = made<Relu>();
    check(reference::rnn_relu, layer, layer(x), x);
  }
  SECTION("lstm") {
    auto layer = made<Lstm>();
    const auto h = input({4, batch, hidden}, 2), c = input({4, batch, hidden}, 3);
    check(reference::lstm, layer, layer(x, {h, c}), x, h, c);
  }
  SECTION("lstm_proj") {
    auto layer = made<Projected>();
    const auto h = input({1, batch, 2}, 2), c = input({1, batch, hidden}, 3);
    check(reference::lstm_proj, layer, layer(x, {h, c}), x, h, c);
  }
  SECTION("gru") {
    auto layer = made<Gru>();
    const auto h = input({4, batch, hidden}, 2);
    check(reference::gru, layer, layer(x, h), x, h);
  }
}

TEST_CASE("packed sequences are PyTorch's: outputs, last states and gradients") {
  const xla::eager_mode_guard eager;
  const auto x = sequence();
  const auto unpacked = [](const auto& result) {
    return std::pair(nn::pad_packed_sequence(result.first).first, result.second);
  };
  SECTION("lstm") {
    auto layer = made<Lstm>();
    const auto h = input({4, batch, hidden}, 2), c = input({4, batch, hidden}, 3);
    const auto result = layer(nn::pack_padded_sequence(x, lengths()), {h, c});
    check(reference::lstm_packed, layer, unpacked(result), x, h, c);
  }
  SECTION("gru") {
    auto layer = made<ShortGru>();
    const auto h = input({2, batch, hidden}, 2);
    const auto result = layer(nn::pack_padded_sequence(x, lengths()), h);
    check(reference::gru_packed, layer, unpacked(result), x, h);
  }
  SECTION("padding is what the caller asks for, and what was there is not read") {
    const auto seen = nn::PackedSequence<float>{x, lengths()}.mask();
    const auto padded = where(seen, x.detach(), std::numeric_limits<float>::quiet_NaN());
    const auto packed = nn::pack_padded_sequence(padded, lengths());
    test::check_equal(packed.data, where(seen, x.detach(), 0));
    const auto [y, n] = nn::pad_packed_sequence(packed, true, -1.0f);
    test::check_equal(y, transpose(where(seen, x.detach(), -1), 0, 1));
    test::check_equal(n, lengths());
  }
}

TEST_CASE("recurrent cells are PyTorch's, and a layer is a loop over its cell") {
  const xla::eager_mode_guard eager;
  const auto x = input({batch, in}, 1, 1);
  const auto h = input({batch, hidden}, 2), c = input({batch, hidden}, 3);
  const auto filled = [](auto cell) {
    std::uint64_t seed = 10;
    cell.weight_ih.copy_(numbers<float>({cell.weight_ih.size(0), in}, seed++) / 8);
    cell.weight_hh.copy_(numbers<float>({cell.weight_hh.size(0), hidden}, seed++) / 8);
    cell.bias_ih.copy_(numbers<float>({cell.bias_ih.size(0)}, seed++) / 8);
    cell.bias_hh.copy_(numbers<float>({cell.bias_hh.size(0)}, seed++) / 8);
    return cell;
  };
  SECTION("rnn") {
    auto cell = filled(nn::RNNCell{in, hidden});
    check(reference::rnn_cell, cell, cell(x, h), x, h);
  }
  SECTION("lstm") {
    auto cell = filled(nn::LSTMCell{in, hidden});
    check(reference::lstm_cell, cell, cell(x, {h, c}), x, h, c);
  }
  SECTION("gru") {
    auto cell = filled(nn::GRUCell{in, hidden});
    check(reference::gru_cell, cell, cell(x, h), x, h);
    auto layer = made<nn::GRU<in, hidden>>();
    const auto xs = sequence();
    auto [ys, last] = layer(xs);
    auto state = cell(select(xs, 0, 0));
    test::check_equal(select(ys, 0, 0), state, 1e-6);
    for (int i = 1; i < time_steps; ++i) state = cell(select(xs, 0, i), state);
    test::check_equal(select(last, 0, 0), state, 1e-6);
  }
}

TEST_CASE("a recurrent network trains the same in every mode, with dropout and ragged batches") {
  const auto step = [](auto& model, auto& x, auto& n, auto& optimizer) {
    optimizer.zero_grad();
    const auto [y, c] = model(x, n);
    auto loss = xla::mean(y * y) + xla::mean(c);
    loss.backward();
    optimizer.step();
    return loss;
  };
  const auto train = [](auto run) {
    xla::manual_seed(5);
    Tagger model;
    xla::optim::Adam optimizer{model, {.lr = 0.01}};
    test::snapshot s;
    for (int steps : {4, 1, 7, 4}) {  // known at run time only
      const auto x = numbers<float>({3, steps, in}, 1);
      const auto n = xla::tensor<std::int64_t>({1, steps, steps / 2});
      s.add(run(model, x, n, optimizer));
    }
    s.add(model);
    return s;
  };
  const xla::eager_mode_guard guard;
  const auto eager = train([&](auto&&... a) { return step(a...); });
  auto compiled = xla::compile(step);
  CHECK(train([&](auto&&... a) { return compiled(a...); }).difference(eager) == "");
  {
    INFO("interpreted");
    const test::on_backend op_by_op("interpreter");
    CHECK(train([&](auto&&... a) { return compiled(a...); }).difference(eager) == "");
  }
  xla::eager_mode(false);
  CHECK(train([&](auto&&... a) { return step(a...); }).difference(eager) == "");
}

TEST_CASE("a sequence without the axis of a batch, and one batch_first, are the same sequences") {
  const xla::eager_mode_guard eager;
  auto layer = made<Lstm>();
  const auto x = sequence().detach();
  const auto [y, last] = layer(x);
  const auto [one, ends] = layer(select(x, 1, 2));
  test::check_equal(one, select(y, 1, 2), 1e-6);
  test::check_equal(ends.second, select(last.second, 1, 2), 1e-6);

  nn::GRU<nn::GRUConfig{.input_size = in, .hidden_size = hidden, .batch_first = true}> by_batch;
  nn::GRU<in, hidden> by_time;
  for (std::size_t k = 0; k < by_time.cells.size(); ++k) by_time.cells[k] = by_batch.cells[k];
  const auto [rows, end] = by_batch(transpose(x, 0, 1));
  test::check_equal(transpose(rows, 0, 1), by_time(x).first, 0);
  test::check_equal(end, by_time(x).second, 0);
}

TEST_CASE("files have the parameters of recurrent layers by PyTorch's names") {
  nn::LSTM<nn::LSTMConfig{.input_size = in,
                          .hidden_size = hidden,
                          .num_layers = 11,
                          .bidirectional = true,
                          .proj_size = 2}>
      lstm;
  std::vector<std::string> names;
  xla::named_parameters(lstm, [&](const std::string& name, auto&) { names.push_back(name); });
  REQUIRE(names.size() == 110);
  CHECK(std::vector<std::string>(names.begin(), names.begin() + 6) ==
        std::vector<std::string>{"weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0",
                                 "weight_hr_l0", "weight_ih_l0_reverse"});
  CHECK(names.back() == "weight_hr_l10_reverse");
  std::vector<std::string> few;
  Relu relu;
  xla::named_parameters(relu, [&](const std::string& name, auto&) { few.push_back(name); });
  CHECK(few == std::vector<std::string>{"weight_ih_l0", "weight_hh_l0"});
}

TEST_CASE("sequences and states of other sizes are refused") {
  const xla::eager_mode_guard eager;
  nn::LSTM<in, hidden> lstm;
  CHECK_THROWS_AS(lstm(xla::ones<float>({4, 2, in + 1})), xla::shape_error);
  const auto wrong = xla::zeros<float>({1, 3, hidden});
  CHECK_THROWS_AS(lstm(xla::ones<float>({4, 2, in}), {wrong, wrong}), xla::shape_error);
  CHECK_THROWS_WITH(
      nn::pack_padded_sequence(xla::ones<float>({4, 3, in}), xla::tensor<std::int64_t>({4, 5, 1})),
      Contains("nn::pack_padded_sequence: lengths: index 5 at position 1 is outside [0, 5)"));
  CHECK_THROWS_WITH(nn::pack_padded_sequence(xla::ones<float>({4, 2, in}), lengths()),
                    Contains("nn::pack_padded_sequence: lengths"));
}
