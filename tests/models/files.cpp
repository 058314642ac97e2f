// SPDX-License-Identifier: Apache-2.0
// Models that come from safetensors files, and go there.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "support/decoder.hpp"
#include "support/models.hpp"
#include "support/small_bert.hpp"
#include "support/small_gpt2.hpp"
#include "xla/ext/safetensors.hpp"
#include "xla/models/bert.hpp"
#include "xla/models/mnasnet.hpp"
#include "xla/models/resnet.hpp"
#include "xla/models/vit.hpp"

namespace models = xla::models;
using xla::ext::FloatFormat;

namespace {

using Bert = models::BertForSequenceClassification<test::small_bert(), 3>;
using Vit = models::VisionTransformer<models::VisionTransformerConfig{.image_size = 12,
                                                                      .patch_size = 4,
                                                                      .num_layers = 2,
                                                                      .num_heads = 2,
                                                                      .hidden_dim = 16,
                                                                      .mlp_dim = 24,
                                                                      .num_classes = 10}>;
using Mnas = models::MNASNet<models::MNASNetConfig{
    .alpha = 0.25, .blocks = {1, 1, 1, 1, 1, 1}, .num_classes = 10}>;

/// A state as a file of that format has it.
xla::StateDict rounded(const xla::StateDict& state, FloatFormat format) {
  return xla::ext::parse_safetensors(xla::ext::to_safetensors({state, {}}, "f", format), "f")
      .tensors;
}
/// The same values by the same names, in whatever order.
void check_same(const xla::StateDict& got, const xla::StateDict& want) {
  REQUIRE(got.size() == want.size());
  for (const auto& array : want) {
    INFO(array.name);
    const auto same = std::find(got.begin(), got.end(), array);
    CHECK(same != got.end());
  }
}
xla::StateDict data_file(const std::string& name) {
  return xla::ext::read_safetensors(std::string(XLA_TEST_DATA "/data/") + name).tensors;
}

}  // namespace

TEST_CASE("files of Hugging Face's BERT and torchvision's vision transformer load, in 16 bits") {
  const xla::eager_mode_guard eager;
  Bert bert, want_bert;
  test::fill(want_bert);
  CHECK(xla::load_state_dict(bert, data_file("bert_bfloat16.safetensors")).empty());
  check_same(xla::state_dict(bert), rounded(xla::state_dict(want_bert), FloatFormat::bfloat16));

  Vit vit, want_vit;
  test::fill(want_vit);
  const auto file = data_file("vit_float16.safetensors");
  CHECK_THROWS_WITH(xla::load_state_dict(vit, file), test::contains("missing: cls_token"));
  CHECK(xla::load_state_dict(vit, models::vit_from_torchvision(file)).empty());
  check_same(xla::state_dict(vit), rounded(xla::state_dict(want_vit), FloatFormat::float16));
  vit.eval();
  test::check_pytorch("models/vit/logits", vit(test::image_batch({2, 3, 12, 12}).images), 2e-3);
}

TEST_CASE("files of Hugging Face's vision transformer load, as its modules' states do") {
  const xla::eager_mode_guard eager;
  Vit vit, want_vit;
  test::fill(want_vit);
  for (const std::string name : {"vit_files_names", "vit_modules_names"}) {
    INFO(name);
    const auto file = data_file(name + ".safetensors");
    CHECK(xla::load_state_dict(vit, models::vit_from_hugging_face(file)).empty());
    check_same(xla::state_dict(vit), rounded(xla::state_dict(want_vit), FloatFormat::bfloat16));
  }
}

TEST_CASE("a model with running statistics is written, and comes back in every format") {
  const xla::eager_mode_guard eager;
  const auto path = (std::filesystem::temp_directory_path() / "xla_test_model").string();
  Mnas model;
  auto x = test::numbers<float>({2, 3, 32, 32});
  model(x);  // one batch, for the statistics
  model.eval();
  for (const auto format : {FloatFormat::float32, FloatFormat::bfloat16, FloatFormat::float16}) {
    xla::ext::write_safetensors(path, {xla::state_dict(model), {{"format", "pt"}}}, format);
    Mnas other;
    CHECK(xla::load_state_dict(other, xla::ext::read_safetensors(path).tensors).empty());
    std::filesystem::remove(path);
    const auto state = xla::state_dict(other);
    check_same(state, rounded(xla::state_dict(model), format));
    CHECK(std::any_of(state.begin(), state.end(), [](const auto& array) {
      return array.name.ends_with("num_batches_tracked") && array.type == xla::dtype::int64 &&
             array.bytes == xla::io::Bytes{1, 0, 0, 0, 0, 0, 0, 0};
    }));
    other.eval();
    test::check_equal(other(x), model(x), format == FloatFormat::float32 ? 0 : 0.05);
  }
}

TEST_CASE("a model of bfloat16 is written in half the bytes and comes back bit for bit") {
  static constexpr auto config = [] {
    auto c = test::tiny_gpt;
    c.element = xla::dtype::bfloat16;
    return c;
  }();
  using Model = xla::nn::Decoder<config>;
  using xla::ext::BFloat16;
  const xla::eager_mode_guard eager;
  const auto path = (std::filesystem::temp_directory_path() / "xla_test_bfloat16").string();
  xla::manual_seed(7);
  Model model;
  model.eval();
  const auto state = xla::state_dict(model);
  std::size_t bytes = 0;
  for (const auto& array : state) {
    CHECK(array.type == xla::dtype::bfloat16);
    bytes += array.bytes.size();
  }
  xla::ext::write_safetensors(path, {state, {{"format", "pt"}}});
  CHECK(std::filesystem::file_size(path) < bytes * 3 / 2);
  auto tokens = test::text_batch(2, 6, 0, 0);
  const auto logits = [&](Model& m) { return xla::cast<float>(m(tokens)).to_vector(); };
  for (const auto as : {BFloat16::kept, BFloat16::widened}) {
    const auto file = xla::ext::read_safetensors(path, as).tensors;
    for (const auto& array : file)
      CHECK((array.type == xla::dtype::bfloat16) == (as == BFloat16::kept));
    Model other;
    other.eval();
    CHECK(logits(other) != logits(model));
    CHECK(xla::load_state_dict(other, file).empty());
    check_same(xla::state_dict(other), state);
    CHECK(logits(other) == logits(model));
  }
  std::filesystem::remove(path);
}

namespace {

template <class T, int R>
xla::NamedArray array_of(const std::string& name, const xla::Tensor<T, R>& x) {
  const auto values = x.to_vector();
  std::vector<std::uint8_t> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return {name, xla::dtype_of<T>, x.sizes(), std::move(bytes)};
}

/// A folder <name> with what a model with the numbers of fill() has and answers.
template <class Model>
void write_answered(const std::string& name, const auto& input, auto&& way) {
  const auto folder = std::filesystem::path(std::getenv("XLA_TEST_FILES")) / name;
  std::filesystem::create_directories(folder);
  Model model;
  test::fill(model);
  model.eval();
  xla::ext::write_safetensors((folder / "model.safetensors").string(),
                              {way(xla::state_dict(model)), {{"format", "pt"}}});
  xla::ext::write_safetensors((folder / "answers.safetensors").string(),
                              {{array_of("input", input), array_of("logits", model(input))}, {}});
}

}  // namespace

TEST_CASE("files for tests/reference/files_load.py", "[.files]") {
  const xla::eager_mode_guard eager;
  const auto same = [](xla::StateDict state) { return state; };
  const auto tokens = xla::arange(18) % 27 + 1;
  write_answered<models::ResNet18<10>>("resnet18", test::numbers<float>({2, 3, 48, 48}), same);
  write_answered<Bert>("bert", reshape(tokens, {3, 6}), same);
  write_answered<xla::nn::Decoder<test::small_gpt2>>("gpt2", reshape(tokens, {3, 6}),
                                                     models::gpt2_to_hugging_face<>);
  const auto images = test::numbers<float>({2, 3, 12, 12});
  write_answered<Vit>("vit_torchvision", images, models::vit_to_torchvision);
  write_answered<Vit>("vit_hugging_face", images, models::vit_to_hugging_face<>);
}
