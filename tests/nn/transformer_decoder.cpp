// SPDX-License-Identifier: Apache-2.0
// A transformer's decoder and nn::Transformer against PyTorch's, in every mode.
#include "xla/nn/transformer_decoder.hpp"

#include "data/transformer.inc"
#include "support/gradient.hpp"
#include "support/modes.hpp"
#include "support/moments.hpp"
#include "xla/nn/loss.hpp"
#include "xla/nn/state_dict.hpp"
#include "xla/optim/adamw.hpp"

namespace nn = xla::nn;
using test::numbers;

namespace {

constexpr int source = 3, target = 2, batch = 2, features = 4, heads = 2, inner = 3;

/// Numbers that require gradients.
auto sequence(int length, std::uint64_t seed, bool batch_first = false) {
  auto x = batch_first ? numbers<double>({batch, length, features}, seed)
                       : numbers<double>({length, batch, features}, seed);
  x.requires_grad_();
  return x;
}

/// True for some, but for no sequence's first.
template <class T>
xla::Tensor<bool, 2> padding(const xla::Size& rows, const xla::Size& length, std::uint64_t seed) {
  return logical_and(numbers<T>({rows, length}, seed) > 0, xla::arange(length) > 0);
}

template <class Module>
Module filled(Module module) {
  std::uint64_t seed = 10;
  xla::for_each_parameter(module, [&](auto& p) {
    const auto s = p.dims();
    if constexpr (std::remove_cvref_t<decltype(p)>::rank == 1)
      p.copy_(numbers<double>({s[0]}, seed++) / 4);
    else p.copy_(numbers<double>({s[0], s[1]}, seed++) / 4);
  });
  return module;
}

/// The result, then the gradients of inputs and parameters.
void check(const std::vector<std::vector<double>>& want, auto& module, const auto& y,
           const auto&... inputs) {
  std::size_t at = 0;
  const auto same = [&](const auto& t) {
    INFO("tensor " << at);
    test::check_elements(t.data(), t.numel(), want.at(at++), 1e-6, 1);
  };
  same(y);
  test::weighted_sum(y).backward();
  (same(inputs.grad()), ...);
  xla::for_each_parameter(module, [&](auto& p) { same(p.grad()); });
  CHECK(at == want.size());
}

constexpr nn::TransformerDecoderLayerConfig shape{
    .d_model = features, .nhead = heads, .dim_feedforward = inner};
constexpr nn::TransformerDecoderLayerConfig first{
    .d_model = features, .nhead = heads, .dim_feedforward = inner, .norm_first = true};
constexpr nn::TransformerDecoderLayerConfig unbiased{.d_model = features,
                                                     .nhead = heads,
                                                     .dim_feedforward = inner,
                                                     .activation = nn::TransformerActivation::gelu,
                                                     .batch_first = true,
                                                     .norm_first = true,
                                                     .bias = false};
using Layer = nn::BasicTransformerDecoderLayer<double, shape>;
using First = nn::BasicTransformerDecoderLayer<double, first>;
using Unbiased = nn::BasicTransformerDecoderLayer<double, unbiased>;
using Decoder = nn::TransformerDecoder<First, 2, nn::BasicLayerNorm<double>>;
constexpr nn::TransformerConfig model_shape{.d_model = features,
                                            .nhead = heads,
                                            .num_encoder_layers = 1,
                                            .num_decoder_layers = 1,
                                            .dim_feedforward = inner,
                                            .batch_first = true};
using Model = nn::BasicTransformer<double, model_shape>;
using Small = nn::Transformer<nn::TransformerConfig{.d_model = 8,
                                                    .nhead = 2,
                                                    .num_encoder_layers = 1,
                                                    .num_decoder_layers = 2,
                                                    .dim_feedforward = 12,
                                                    .batch_first = true}>;

}  // namespace

TEST_CASE("a transformer's decoder is PyTorch's, and so are its gradients") {
  const xla::eager_mode_guard eager;
  const auto tgt = sequence(target, 1), memory = sequence(source, 2);
  const auto unseen = padding<double>(batch, source, 5);
  SECTION("with masks of every kind") {
    auto layer = filled(Layer(0, 1e-3));
    const auto y = layer(
        tgt, memory,
        {.tgt_mask = numbers<double>({target, target}, 3),
         .memory_mask = numbers<double>({batch * heads, target, source}, 4),
         .tgt_key_padding_mask = xla::tensor<std::int64_t>({{0, 0}, {0, 1}}) == std::int64_t{1},
         .memory_key_padding_mask = unseen});
    check(reference::decoder_layer, layer, y, tgt, memory);
  }
  SECTION("normalized first, without biases, the batch first") {
    auto layer = filled(Unbiased(0));
    const auto x = sequence(target, 1, true), z = sequence(source, 2, true);
    check(reference::decoder_layer_first, layer, layer(x, z, {.tgt_is_causal = true}), x, z);
  }
  SECTION("of several layers and a norm") {
    auto decoder = filled(Decoder(First(0), nn::BasicLayerNorm<double>(features)));
    const auto y = decoder(tgt, memory, {.memory_key_padding_mask = unseen});
    check(reference::decoder, decoder, y, tgt, memory);
  }
  SECTION("after an encoder") {
    auto model = filled(Model(0));
    const auto x = sequence(source, 1, true), z = sequence(target, 2, true);
    const auto y = model(x, z,
                         {.tgt_mask = Model::generate_square_subsequent_mask(target),
                          .src_key_padding_mask = unseen,
                          .memory_key_padding_mask = unseen});
    check(reference::transformer, model, y, x, z);
  }
}

TEST_CASE("a transformer of two sequences trains the same in every mode, with dropout") {
  const auto step = [](auto& model, auto& src, auto& tgt, auto& unseen, auto& optimizer) {
    optimizer.zero_grad();
    const auto y = model(src, tgt,
                         {.tgt_mask = Small::generate_square_subsequent_mask(tgt.size(1)),
                          .src_key_padding_mask = unseen,
                          .memory_key_padding_mask = unseen});
    auto loss = mse_loss(y, tgt / 4);
    loss.backward();
    optimizer.step();
    return loss;
  };
  const auto train = [](auto run) {
    xla::manual_seed(5);
    Small model(0.25);
    xla::optim::AdamW optimizer{model, {.lr = 0.01}};
    test::snapshot s;
    for (int i = 0; i < 4; ++i) {
      const std::int64_t rows = i == 1 ? 1 : 3, from = i == 2 ? 1 : 5, to = i == 3 ? 1 : 4;
      s.add(run(model, numbers<float>({rows, from, 8}, 1), numbers<float>({rows, to, 8}, 2),
                padding<float>(rows, from, 3), optimizer));
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

TEST_CASE("sequences without the axis of a batch, and masks that say the same") {
  const xla::eager_mode_guard eager;
  xla::manual_seed(1);
  Small model;
  model.eval();
  const auto src = numbers<float>({2, 5, 8}, 1), tgt = numbers<float>({2, 4, 8}, 2);
  const auto y = model(src, tgt, {.tgt_is_causal = true});
  const auto one = model(select(src, 0, 1), select(tgt, 0, 1), {.tgt_is_causal = true});
  test::check_equal(one, select(y, 0, 1), 1e-5);
  const auto mask = Small::generate_square_subsequent_mask(4);
  test::check_equal(model(src, tgt, {.tgt_mask = mask}), y, 1e-5);
  test::check_equal(model(src, tgt, {.tgt_mask = mask < 0}), y, 1e-5);
  // What is after a position has no part in it.
  const auto begun = model(src, narrow(tgt, 1, 0, 2), {.tgt_is_causal = true});
  test::check_equal(begun, narrow(y, 1, 0, 2), 1e-5);
}

TEST_CASE("a transformer has PyTorch's names and initialisation") {
  const xla::eager_mode_guard eager;
  xla::manual_seed(1);
  const nn::Transformer<nn::TransformerConfig{.d_model = 64,
                                              .nhead = 4,
                                              .num_encoder_layers = 1,
                                              .num_decoder_layers = 2,
                                              .dim_feedforward = 32}>
      model;
  std::string names;
  for (const auto& a : xla::state_dict(model))
    if (a.name.starts_with("decoder.layers.1") || a.name.ends_with("r.norm.weight"))
      names += a.name + ' ';
  const std::string at = "decoder.layers.1.";
  std::string want = "encoder.norm.weight ";
  for (const char* const name :
       {"self_attn.in_proj_weight", "self_attn.in_proj_bias", "self_attn.out_proj.weight",
        "self_attn.out_proj.bias", "multihead_attn.in_proj_weight", "multihead_attn.in_proj_bias",
        "multihead_attn.out_proj.weight", "multihead_attn.out_proj.bias", "linear1.weight",
        "linear1.bias", "linear2.weight", "linear2.bias", "norm1.weight", "norm1.bias",
        "norm2.weight", "norm2.bias", "norm3.weight", "norm3.bias"})
    want += at + name + ' ';
  CHECK(names == want + "decoder.norm.weight ");
  test::check_uniform(model.decoder.layers[0].linear1.weight, std::sqrt(6.0 / 96));
  test::check_uniform(model.encoder.layers[0].self_attn.out_proj.weight, std::sqrt(6.0 / 128));
  CHECK(max(abs(model.decoder.layers[0].linear1.weight - model.decoder.layers[1].linear1.weight))
            .item() > 0);
  CHECK(static_cast<double>(model.decoder.layers[1].dropout3.p.value()) == 0.1);
}

TEST_CASE("arguments that do not match a transformer decoder are refused") {
  const xla::eager_mode_guard eager;
  const Small model;
  const auto x = numbers<float>({2, 3, 8});
  CHECK_THROWS_AS(model(x, numbers<float>({3, 3, 8})), xla::shape_error);
  CHECK_THROWS_AS(model(x, numbers<float>({2, 3, 6})), xla::shape_error);
  CHECK_THROWS_AS(model(x, x, {.memory_mask = xla::ones<bool>({4, 3})}), xla::shape_error);
  CHECK_THROWS_AS(model(x, x, {.memory_key_padding_mask = xla::ones<bool>({2, 2})}),
                  xla::shape_error);
  CHECK_THROWS_WITH(Small(1.5), test::contains("from 0 to 1"));
}
