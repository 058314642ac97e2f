// SPDX-License-Identifier: Apache-2.0
#include "xla/nn/transformer.hpp"

#include "support/gradient.hpp"
#include "support/modes.hpp"
#include "support/moments.hpp"
#include "support/stored.hpp"
#include "xla/nn/loss.hpp"
#include "xla/nn/state_dict.hpp"
#include "xla/optim/adamw.hpp"

namespace nn = xla::nn;
using test::check_equal;
using test::numbers;

namespace {

using Layer = nn::TransformerEncoderLayer<nn::TransformerEncoderLayerConfig{
    .d_model = 12, .nhead = 3, .dim_feedforward = 20, .batch_first = true}>;
using Encoder = nn::TransformerEncoder<Layer, 2, nn::LayerNorm>;

Encoder make_encoder() { return Encoder(Layer(0.25), nn::LayerNorm(12)); }

}  // namespace

TEST_CASE("a transformer trains the same in every mode, with dropout, padding and added numbers") {
  const auto step = [](auto& model, auto& x, auto& target, auto& padding, auto& mask,
                       auto& optimizer) {
    optimizer.zero_grad();
    const auto y = model(x, {.mask = mask, .src_key_padding_mask = padding, .is_causal = true});
    auto loss = mse_loss(y, target);
    loss.backward();
    optimizer.step();
    return loss;
  };
  const auto train = [](auto run) {
    xla::manual_seed(5);
    Encoder model = make_encoder();
    xla::optim::AdamW optimizer{model, {.lr = 0.01}};
    test::snapshot s;
    std::vector<float> losses;
    for (int i = 0; i < 8; ++i) {
      const std::int64_t batch = i % 3 == 1 ? 1 : 3, length = i % 3 == 2 ? 1 : 7;
      const auto x = numbers<float>({batch, length, 12}, 1);
      const auto padding = numbers<float>({batch, length}, 3) > 1;
      const auto mask = numbers<float>({length, length}, 4);
      const auto loss = run(model, x, x / 4, padding, mask, optimizer);
      losses.push_back(loss.item());
      s.add(loss);
    }
    CHECK(losses[6] < losses[0]);
    s.add(model);
    return s;
  };
  const xla::eager_mode_guard guard;
  const auto eager = train([&](auto&&... a) { return step(a...); });
  auto compiled = xla::compile(step);
  CHECK(train([&](auto&&... a) { return compiled(a...); }).difference(eager) == "");
  xla::eager_mode(false);
  CHECK(train([&](auto&&... a) { return step(a...); }).difference(eager) == "");
}

TEST_CASE("attention to other features is the same in every mode, with and without its weights") {
  using Attention = nn::MultiheadAttention<nn::MultiheadAttentionConfig{.embed_dim = 6,
                                                                        .num_heads = 2,
                                                                        .add_bias_kv = true,
                                                                        .add_zero_attn = true,
                                                                        .kdim = 5,
                                                                        .vdim = 3}>;
  const auto attend = [](auto& model, auto& q, auto& k, auto& v, auto& padding, auto& each) {
    const auto [y, w] = model.with_weights(q, k, v, {.key_padding_mask = padding});
    const auto z = model(q, k, v, {.attn_mask = each, .is_causal = true});
    sum(y * y + z).backward();
    return std::tuple(y, w, z);
  };
  xla::manual_seed(1);
  const Attention model;
  for (const auto& [queries, keys, batch] :
       {std::array<std::int64_t, 3>{3, 4, 2}, {1, 1, 1}, {5, 0, 2}, {4, 2, 0}})
    test::check_modes(attend, model, numbers<float>({queries, batch, 6}, 1),
                      numbers<float>({keys, batch, 5}, 2), numbers<float>({keys, batch, 3}, 3),
                      numbers<float>({batch, keys}, 4) > 2,
                      numbers<float>({2 * batch, queries, keys}, 5));
}

TEST_CASE("self-attention projects once, to what queries, keys and values give by themselves") {
  const xla::eager_mode_guard eager;
  xla::manual_seed(3);
  const auto check = [](const auto& model) {
    const auto x = numbers<float>({4, 3, 12}, 1);
    check_equal(model(x), model(x, x, x), 1e-5);
    check_equal(model(x, {.is_causal = true}), model(x, x, x, {.is_causal = true}), 1e-5);
    const auto one = numbers<float>({5, 12}, 2);
    check_equal(model(one), model(one, one, one), 1e-5);
  };
  check(nn::MultiheadAttention<12, 3>{});
  check(nn::MultiheadAttention<nn::MultiheadAttentionConfig{.embed_dim = 12,
                                                            .num_heads = 2,
                                                            .bias = false,
                                                            .add_bias_kv = true,
                                                            .add_zero_attn = true,
                                                            .batch_first = true}>{});
}

TEST_CASE("attention that numbers are added to: every mode, gradients of both orders") {
  const auto all = [](auto& q, auto& k, auto& v, auto& mask, auto& pairs) {
    auto y = scaled_dot_product_attention(q, k, v, mask, {.causal = true});
    auto w = attention_weights(q, k, pairs);
    sum(y * y).backward();
    return std::tuple(y, w, attention_weights(q, k));
  };
  for (std::int64_t n : {7, 1, 20})
    test::check_modes(all, test::parameter(numbers<float>({2, 4, n, 6}, 1)),
                      test::parameter(numbers<float>({2, 2, n, 6}, 2)),
                      test::parameter(numbers<float>({2, 2, n, 6}, 3)),
                      test::parameter(numbers<float>({2, 4, n, n}, 4)),
                      numbers<float>({n, n}, 5) > 3);
  const auto q = numbers<double>({1, 2, 3, 2}, 1), k = numbers<double>({1, 2, 4, 2}, 2),
             v = numbers<double>({1, 2, 4, 2}, 3);
  test::check_gradient(
      [](auto& a, auto& b, auto& c, auto& m) { return scaled_dot_product_attention(a, b, c, m); },
      q, k, v, numbers<double>({3, 4}, 4));
  test::check_gradient(
      [](auto& a, auto& b, auto& c, auto& m) {
        const auto y = scaled_dot_product_attention(a, b, c, m);
        const auto [da, db, dc, dm] =
            grad(sum(y * y), std::tie(a, b, c, m), {.create_graph = true});
        return xla::cat({flatten(da), flatten(db), flatten(dc), flatten(dm)});
      },
      q, k, v, numbers<double>({3, 4}, 4));
}

TEST_CASE("attention begins with PyTorch's bounds") {
  const xla::eager_mode_guard eager;
  xla::manual_seed(1);
  const nn::MultiheadAttention<64, 2> one;
  test::check_uniform(one.in_proj_weight, std::sqrt(6.0 / (4 * 64)));
  test::check_uniform(one.out_proj.weight, 1 / std::sqrt(64.0));
  CHECK(max(abs(one.in_proj_bias)).item() == 0);
  CHECK(max(abs(one.out_proj.bias)).item() == 0);
  const nn::MultiheadAttention<nn::MultiheadAttentionConfig{
      .embed_dim = 500, .num_heads = 2, .add_bias_kv = true, .kdim = 20}>
      three;
  test::check_uniform(three.q_proj_weight, std::sqrt(6.0 / 1000));
  test::check_uniform(three.k_proj_weight, std::sqrt(6.0 / 520));
  CHECK(test::moments_of(three.bias_k).std == Approx(1 / std::sqrt(500.0)).epsilon(0.15));
  CHECK(test::moments_of(three.bias_v).std == Approx(1 / std::sqrt(500.0)).epsilon(0.15));
}

TEST_CASE("a query that attends to nothing gets zeros, also with masks of numbers") {
  const xla::eager_mode_guard eager;
  const auto q = numbers<float>({1, 1, 2, 3}, 1), v = numbers<float>({1, 1, 2, 3}, 2);
  constexpr float hidden = -std::numeric_limits<float>::infinity();
  const auto mask = xla::tensor<float>({{hidden, hidden}, {0, hidden}});
  check_equal(scaled_dot_product_attention(q, q, v, mask), {1, 1, 2, 3},
              std::vector<float>{0, 0, 0, v.data()[0], v.data()[1], v.data()[2]});
  check_equal(attention_weights(q, q, mask), {1, 1, 2, 2}, std::vector<float>{0, 0, 1, 0});
  nn::MultiheadAttention<4, 2> attention;
  const auto x = numbers<float>({3, 2, 4});
  const auto [y, w] =
      attention.with_weights(x, x, x, {.key_padding_mask = xla::ones<bool>({2, 3})});
  check_equal(y, zeros_like(y));  // the bias of the result starts at 0
  check_equal(w, xla::zeros<float>({2, 3, 3}));
}

TEST_CASE("dropout of a transformer is as given, and there while training alone") {
  const xla::eager_mode_guard eager;
  Layer layer(0);
  const auto x = numbers<float>({2, 5, 12});
  const auto y = layer(x);
  layer.eval();
  check_equal(layer(x), y, 1e-6);
  layer.train();
  layer.dropout1.p = layer.self_attn.dropout.p = 0.5;
  CHECK(max(abs(layer(x) - y)).item() > 0.01f);
  CHECK_THROWS_WITH(Layer(1.5), test::contains("from 0 to 1"));
  CHECK(static_cast<double>(nn::TransformerEncoderLayer<4, 2>().dropout2.p.value()) == 0.1);
}

TEST_CASE("a transformer has PyTorch's names, and layers that are copies of one or differ") {
  const xla::eager_mode_guard eager;
  std::string names;
  const Encoder model = make_encoder(), drawn;
  for (const auto& a : xla::state_dict(model))
    if (a.name.starts_with("layers.1") || a.name.starts_with("norm")) names += a.name + ' ';
  CHECK(names ==
        "layers.1.self_attn.in_proj_weight layers.1.self_attn.in_proj_bias "
        "layers.1.self_attn.out_proj.weight layers.1.self_attn.out_proj.bias "
        "layers.1.linear1.weight layers.1.linear1.bias layers.1.linear2.weight "
        "layers.1.linear2.bias layers.1.norm1.weight layers.1.norm1.bias layers.1.norm2.weight "
        "layers.1.norm2.bias norm.weight norm.bias ");
  check_equal(model.layers[0].linear1.weight, model.layers[1].linear1.weight);
  CHECK(max(abs(drawn.layers[0].linear1.weight - drawn.layers[1].linear1.weight)).item() > 0);
}

TEST_CASE("arguments that do not match a transformer are errors") {
  const xla::eager_mode_guard eager;
  const nn::MultiheadAttention<8, 2> attention;
  const auto x = numbers<float>({3, 2, 8});
  CHECK_THROWS_WITH(
      attention(x, x, numbers<float>({4, 2, 8})),
      test::contains("nn::MultiheadAttention: values for keys") && test::contains("(4, 2, 8)"));
  CHECK_THROWS_AS(attention(x, x, numbers<float>({3, 2, 6})), xla::shape_error);
  CHECK_THROWS_AS(attention(x, x, x, {.attn_mask = xla::ones<bool>({3, 4})}), xla::shape_error);
  CHECK_THROWS_AS(attention(x, x, x, {.key_padding_mask = xla::ones<bool>({3, 2})}),
                  xla::shape_error);
  CHECK_THROWS_WITH(attention(x, x, x, {.attn_mask = xla::ones<bool>({2, 3, 3})}),
                    test::contains("nn::MultiheadAttention: attn_mask for batch x heads") &&
                        test::contains("(2, 3, 3), whose axis 0 has to be 4"));
}
