// SPDX-License-Identifier: Apache-2.0
// Attention and layers of transformers; the cases are those of attention.py.
#include "support/pytorch.hpp"
#include "xla/nn/transformer.hpp"
#include "xla/xla.hpp"

using test::check_pytorch;
namespace nn = xla::nn;

namespace {

constexpr double tolerance = 1e-5;
constexpr float inf = std::numeric_limits<float>::infinity();

/// From -1 to 1.
template <std::size_t N>
auto numbers(const xla::Size (&sizes)[N], std::uint64_t seed) {
  return test::numbers<float>(sizes, seed) / 4;
}
template <std::size_t N>
auto input(const xla::Size (&sizes)[N], std::uint64_t seed) {
  auto p = xla::Parameter<float, static_cast<int>(N)>::like(numbers(sizes, seed));
  p.copy_(numbers(sizes, seed));
  return p;
}
template <int R>
xla::Tensor<float, R> numbers_like(const xla::Tensor<float, R>& t, std::uint64_t seed) {
  xla::Size sizes[R];
  for (int i = 0; i < R; ++i) sizes[i] = t.size(i);
  return numbers(sizes, seed);
}

/// A quarter of a mask, but never the first key.
template <std::size_t N>
auto some_hidden(const xla::Size (&sizes)[N], std::uint64_t seed) {
  const auto first = xla::arange<float>(sizes[N - 1]) == 0;
  return test::numbers<bool>(sizes, seed) && test::numbers<bool>(sizes, seed + 1) && !first;
}

/// Parameter number n gets numbers of seed n + 1.
void fill(auto& module) {
  std::uint64_t seed = 0;
  xla::named_parameters(module, [&](const auto&, auto& p) { p.copy_(numbers_like(p, ++seed)); });
}

/// y and the gradients of all that it was made of.
template <int R>
void check_gradients(const std::string& name, const auto& module, const xla::Tensor<float, R>& y,
                     const auto&... inputs) {
  sum(y * numbers_like(y, 99)).backward();
  check_pytorch(name, y, tolerance);
  int i = 0;
  (check_pytorch(name + "/in" + std::to_string(i++), inputs.grad(), tolerance), ...);
  xla::named_parameters(module, [&](const std::string& part, auto& p) {
    check_pytorch(name + "/" + part, p.grad(), tolerance);
  });
}

using options = xla::nn::MultiheadAttentionOptions<float>;

template <bool Average = true>
void attention(const std::string& label, auto module, const auto& q, const auto& k, const auto& v,
               const options& o = {}) {
  const std::string name = "attention/" + label;
  fill(module);
  check_gradients(name, module, module(q, k, v, o), q, k, v);
  const auto [y, weights] = module.template with_weights<Average>(q, k, v, o);
  check_pytorch(name, y, tolerance);
  check_pytorch(name + "/weights", weights, tolerance);
}

template <std::size_t N>
void self_attention(const std::string& label, auto module, const xla::Size (&sizes)[N],
                    const options& o = {}) {
  const auto x = input(sizes, 100);
  fill(module);
  check_gradients("attention/" + label, module, module(x, x, x, o), x);
  check_pytorch("attention/" + label + "/weights", module.with_weights(x, x, x, o).second,
                tolerance);
}

template <std::size_t N>
void layer(const std::string& label, auto module, const xla::Size (&sizes)[N],
           const nn::TransformerEncoderLayerOptions<float>& o = {}) {
  const auto x = input(sizes, 100);
  fill(module);
  check_gradients("transformer/" + label, module, module(x, o), x);
}

}  // namespace

TEST_CASE("multi-head attention, against PyTorch") {
  const xla::eager_mode_guard eager;
  using config = nn::MultiheadAttentionConfig;
  using plain = nn::MultiheadAttention<8, 2>;
  const auto q = [] { return input({3, 2, 8}, 100); };
  const auto k = [] { return input({5, 2, 8}, 101); };
  const auto v = [] { return input({5, 2, 8}, 102); };
  attention("plain", plain(), q(), k(), v());
  self_attention("self", plain(), {4, 3, 8});
  attention("batch_first",
            nn::MultiheadAttention<config{
                .embed_dim = 8, .num_heads = 2, .bias = false, .batch_first = true}>(),
            input({2, 3, 8}, 100), input({2, 5, 8}, 101), input({2, 5, 8}, 102));
  attention("other_features",
            nn::MultiheadAttention<config{.embed_dim = 8, .num_heads = 2, .kdim = 6, .vdim = 4}>(),
            q(), input({5, 2, 6}, 101), input({5, 2, 4}, 102));
  attention(
      "other_values",
      nn::MultiheadAttention<config{.embed_dim = 8, .num_heads = 2, .bias = false, .vdim = 3}>(),
      q(), k(), input({5, 2, 3}, 102));

  using more = nn::MultiheadAttention<config{
      .embed_dim = 8, .num_heads = 2, .add_bias_kv = true, .add_zero_attn = true}>;
  attention("more_keys", more(), q(), input({4, 2, 8}, 101), input({4, 2, 8}, 102),
            {.key_padding_mask = some_hidden({2, 4}, 7), .attn_mask = some_hidden({3, 4}, 5)});
  attention("more_causal",
            nn::MultiheadAttention<config{
                .embed_dim = 8, .num_heads = 2, .add_bias_kv = true, .batch_first = true}>(),
            input({2, 3, 8}, 100), input({2, 4, 8}, 101), input({2, 4, 8}, 102),
            {.is_causal = true});
  attention("zero_added",
            nn::MultiheadAttention<config{.embed_dim = 8, .num_heads = 2, .add_zero_attn = true}>(),
            q(), input({4, 2, 8}, 101), input({4, 2, 8}, 102), {.attn_mask = numbers({3, 4}, 9)});

  attention("pairs", plain(), q(), k(), v(), {.attn_mask = some_hidden({3, 5}, 5)});
  attention<false>("pairs_of_heads", plain(), q(), k(), v(),
                   {.attn_mask = some_hidden({4, 3, 5}, 5)});
  attention("added", plain(), q(), k(), v(),
            {.key_padding_mask = numbers({2, 5}, 6), .attn_mask = numbers({3, 5}, 5)});
  const options mixed{.key_padding_mask = some_hidden({2, 5}, 6),
                      .attn_mask = numbers({4, 3, 5}, 5)};
  attention("added_by_heads", plain(), q(), k(), v(), mixed);
  self_attention(
      "causal",
      nn::MultiheadAttention<config{.embed_dim = 8, .num_heads = 2, .batch_first = true}>(),
      {2, 4, 8}, {.is_causal = true});
  self_attention("one", nn::MultiheadAttention<1, 1>(), {1, 1, 1});
  attention("odd", nn::MultiheadAttention<15, 3>(), input({7, 1, 15}, 100), input({9, 1, 15}, 101),
            input({9, 1, 15}, 102));
}

TEST_CASE("multi-head attention without a batch, against PyTorch") {
  const xla::eager_mode_guard eager;
  nn::MultiheadAttention<8, 2> module;
  const auto q = input({3, 8}, 100), k = input({5, 8}, 101), v = input({5, 8}, 102);
  const options o{.key_padding_mask = some_hidden({5}, 7), .attn_mask = some_hidden({3, 5}, 5)};
  fill(module);
  check_gradients("attention/no_batch", module, module(q, k, v, o), q, k, v);
  const auto w = module.with_weights(unsqueeze(q, 1), unsqueeze(k, 1), unsqueeze(v, 1), o).second;
  check_pytorch("attention/no_batch/weights", squeeze<0>(w), tolerance);
}

TEST_CASE("attention with numbers added to its scores, against PyTorch") {
  const auto q = numbers({2, 4, 3, 6}, 0), k = numbers({2, 4, 5, 6}, 1),
             v = numbers({2, 4, 5, 7}, 2);
  const auto f = [](const auto& q, const auto& k, const auto& v, const auto& mask) {
    return scaled_dot_product_attention(q, k, v, mask);
  };
  const xla::eager_mode_guard eager;
  xla::Tensor<float, 2> pairs = numbers({3, 5}, 3);
  pairs.index(1, 2) = -inf;
  pairs.index(0, 0) = -inf;
  check_pytorch("attention/added/pairs", tolerance, f, q, k, v, pairs);
  xla::Tensor<float, 4> each = numbers({2, 1, 3, 5}, 4);
  each.index(0, 0, 1, xla::Slice{0, 4}) = -inf;
  check_pytorch("attention/added/each", tolerance, f, q, k, v, each);
}

TEST_CASE("attention with a scale, shared heads and masks that broadcast, against PyTorch") {
  const auto q = numbers({2, 4, 3, 2}, 0), k = numbers({2, 4, 5, 2}, 1),
             v = numbers({2, 4, 5, 3}, 2);
  const auto check = [&](const std::string& name, auto f) {
    check_pytorch("attention/" + name, tolerance, f, q, k, v);
  };
  check("scale/small",
        [](const auto&... x) { return scaled_dot_product_attention(x..., {.scale = 0.3}); });
  check("scale/negative",
        [](const auto&... x) { return scaled_dot_product_attention(x..., {.scale = -0.8}); });
  check_pytorch(
      "attention/shared_heads", tolerance,
      [](const auto&... x) {
        return scaled_dot_product_attention(x...,
                                            {.causal = true, .scale = 1.1, .enable_gqa = true});
      },
      q, narrow(k, 1, 0, 2), narrow(v, 1, 0, 2));
  const auto masks = [&]<std::size_t N>(const std::string& name, const xla::Size(&sizes)[N]) {
    const auto shown = !some_hidden(sizes, 20);
    check("mask/shown/" + name,
          [&](const auto&... x) { return scaled_dot_product_attention(x..., shown); });
    check_pytorch(
        "attention/mask/added/" + name, tolerance,
        [](const auto&... x) { return scaled_dot_product_attention(x...); }, q, k, v,
        numbers(sizes, 21));
  };
  masks("pairs", {3, 5});
  masks("heads", {4, 3, 5});
  masks("ones", {1, 1, 3, 5});
  masks("texts", {2, 1, 1, 5});
}

TEST_CASE("layers of transformers, against PyTorch") {
  const xla::eager_mode_guard eager;
  using config = nn::TransformerEncoderLayerConfig;
  using plain = nn::TransformerEncoderLayer<8, 2, 12, false>;
  layer("plain", plain(), {5, 2, 8});
  layer("norm_first",
        nn::TransformerEncoderLayer<config{.d_model = 8,
                                           .nhead = 2,
                                           .dim_feedforward = 12,
                                           .dropout = false,
                                           .activation = nn::TransformerActivation::gelu,
                                           .batch_first = true,
                                           .norm_first = true}>(),
        {2, 5, 8}, {.src_key_padding_mask = some_hidden({2, 5}, 7)});
  layer("no_bias",
        nn::TransformerEncoderLayer<config{
            .d_model = 8, .nhead = 2, .dim_feedforward = 12, .dropout = false, .bias = false}>(),
        {5, 2, 8},
        {.src_mask = some_hidden({5, 5}, 5), .src_key_padding_mask = some_hidden({2, 5}, 7)});
  layer("no_batch", plain(), {4, 8}, {.src_mask = numbers({4, 4}, 5)});
  layer("causal",
        nn::TransformerEncoderLayer<config{.d_model = 8,
                                           .nhead = 2,
                                           .dim_feedforward = 12,
                                           .dropout = false,
                                           .batch_first = true}>(),
        {2, 5, 8}, {.is_causal = true});
  layer("one", nn::TransformerEncoderLayer<2, 1, 12, false>(), {1, 1, 2});
}

TEST_CASE("a transformer learns as PyTorch's does") {
  using encoder_layer = nn::TransformerEncoderLayer<nn::TransformerEncoderLayerConfig{
      .d_model = 8, .nhead = 2, .dim_feedforward = 12, .dropout = false, .batch_first = true}>;
  const xla::eager_mode_guard eager;
  nn::TransformerEncoder<encoder_layer, 2, nn::LayerNorm> model{encoder_layer(), nn::LayerNorm(8)};
  fill(model);
  xla::optim::SGD optimizer{model, {.lr = 0.05, .momentum = 0.9}};
  const auto x = numbers({3, 5, 8}, 100), target = numbers({3, 5, 8}, 101);
  const auto padding = some_hidden({3, 5}, 102);
  std::vector<float> losses;
  for (int i = 0; i < 5; ++i) {
    optimizer.zero_grad();
    const auto loss = xla::mse_loss(model(x, {.src_key_padding_mask = padding}), target);
    loss.backward();
    optimizer.step();
    losses.push_back(loss.item());
  }
  check_pytorch("transformer/losses", xla::from_blob(losses.data(), {5}), tolerance);
  xla::named_parameters(model, [&](const std::string& name, auto& p) {
    check_pytorch("transformer/trained/" + name, p, tolerance);
  });
}
