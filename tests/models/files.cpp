// SPDX-License-Identifier: Apache-2.0
// Models that come from safetensors files, and go there.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "support/decoder.hpp"
#include "support/folder.hpp"
#include "support/models.hpp"
#include "support/small_bert.hpp"
#include "support/small_gpt2.hpp"
#include "support/small_vit.hpp"
#include "xla/ext/pretrained.hpp"
#include "xla/ext/safetensors.hpp"
#include "xla/io/text.hpp"
#include "xla/loop/scan_layers.hpp"
#include "xla/models/bert.hpp"
#include "xla/models/mnasnet.hpp"
#include "xla/models/resnet.hpp"
#include "xla/models/vit.hpp"
#include "xla/xla.hpp"

namespace models = xla::models;
using test::contains;
using test::folder;
using xla::ext::FloatFormat;
using names_t = std::vector<std::string>;

namespace {

using Bert = models::BertForSequenceClassification<test::small_bert(), 3>;
template <bool Scans>
using VitOf = models::VisionTransformer<[] {
  auto c = test::small_vit();
  c.scan_layers = Scans;
  return c;
}()>;
using Vit = VitOf<false>;
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
  for (const auto as : {BFloat16::as_stored, BFloat16::widened}) {
    const auto file = xla::ext::read_safetensors(path, as).tensors;
    for (const auto& array : file)
      CHECK((array.type == xla::dtype::bfloat16) == (as == BFloat16::as_stored));
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

std::string config_of(const std::string& name) {
  return xla::io::read_text(XLA_TEST_DATA "/data/" + name + "/config.json");
}
std::string replaced(std::string text, const std::string& part, const std::string& other) {
  REQUIRE(text.find(part) != std::string::npos);
  return text.replace(text.find(part), part.size(), other);
}
/// A folder of BERT as Hugging Face has it.
struct bert_folder : folder {
  xla::StateDict file = data_file("bert_bfloat16.safetensors");
  bert_folder() : folder("xla_test_models_files") {
    write("config.json", config_of("bert"));
    write("model.safetensors", file);
  }
  void write_names(auto&& rename) const {
    auto renamed = file;
    for (auto& a : renamed) rename(a.name);
    write("model.safetensors", renamed);
  }
};
template <class Model>
names_t names_of(Model& model, const std::string& prefix = "") {
  names_t out;
  for (const auto& a : xla::state_dict(model)) out.push_back(prefix + a.name);
  return out;
}
names_t sorted(names_t names) {
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

TEST_CASE("models::load reads a folder of BERT by any of its names") {
  const xla::eager_mode_guard eager;
  const bert_folder at;
  Bert want;
  test::fill(want);
  const auto state = rounded(xla::state_dict(want), FloatFormat::bfloat16);
  const auto check_loaded = [&](const std::string& path) {
    Bert bert;
    CHECK(models::load(bert, path).empty());
    check_same(xla::state_dict(bert), state);
  };
  check_loaded(at.path);
  check_loaded(at.path + "/model.safetensors");
  at.write_names([](auto& name) { name.insert(0, "module."); });
  check_loaded(at.path);
  at.write_names([](auto& name) {
    const auto norm = name.find("LayerNorm.weight");
    if (norm != std::string::npos) name.replace(norm, 16, "LayerNorm.gamma");
  });
  check_loaded(at.path);
  auto older = at.file;
  older.push_back({"bert.embeddings.position_ids", xla::dtype::uint8, {1, 2}, {0, 1}});
  at.write("model.safetensors", older);
  check_loaded(at.path);
  std::filesystem::remove(at.path + "/model.safetensors");
  at.write_parts(at.file);
  check_loaded(at.path);
  check_loaded(at.path + "/model.safetensors.index.json");
}

TEST_CASE("models::load of a network without a head, of another head, and of a body alone") {
  const xla::eager_mode_guard eager;
  const bert_folder at;
  const names_t head{"classifier.bias", "classifier.weight"};
  Bert whole;
  models::load(whole, at.path);
  const auto state = xla::state_dict(whole);

  models::BertModel<test::small_bert()> body;
  const auto report = models::load(body, at.path);
  CHECK(report.missing_keys.empty());
  CHECK(sorted(report.unexpected_keys) == head);
  check_same(xla::state_dict(body), models::part_of(state, "bert."));

  models::BertForMaskedLM<test::small_bert()> masked;
  CHECK_THROWS_WITH(models::load(masked, at.path), contains("missing: cls.predictions.bias"));
  const auto of_masked = models::load(masked, at.path, {.strict = false});
  CHECK(of_masked.missing_keys == names_of(masked.cls, "cls."));
  CHECK(sorted(of_masked.unexpected_keys) ==
        names_t{"bert.pooler.dense.bias", "bert.pooler.dense.weight", head[0], head[1]});
  check_same(xla::state_dict(masked.bert.encoder), models::part_of(state, "bert.encoder."));

  at.write("model.safetensors", models::part_of(at.file, "bert."));
  Bert fresh;
  const auto begun = xla::state_dict(fresh.classifier);
  CHECK_THROWS_WITH(models::load(fresh, at.path),
                    contains("missing: classifier.weight, classifier.bias"));
  CHECK(sorted(models::load(fresh, at.path, {.strict = false}).missing_keys) == head);
  check_same(xla::state_dict(fresh.bert), models::part_of(state, "bert."));
  check_same(xla::state_dict(fresh.classifier), begun);
}

TEST_CASE("models::load leaves a head of another size as it begins where it is asked to") {
  const xla::eager_mode_guard eager;
  const bert_folder at;
  models::BertForSequenceClassification<test::small_bert(), 5> five;
  const auto before = xla::state_dict(five);
  CHECK_THROWS_WITH(models::load(five, at.path),
                    contains("classifier.weight: float32[3, 16] found, float32[5, 16] needed"));
  check_same(xla::state_dict(five), before);
  const auto report = models::load(five, at.path, {.ignore_mismatched_sizes = true});
  CHECK(sorted(report.missing_keys) == names_t{"classifier.bias", "classifier.weight"});
  CHECK(report.unexpected_keys.empty());
  check_same(models::part_of(xla::state_dict(five), "classifier."),
             models::part_of(before, "classifier."));
  Bert whole;
  models::load(whole, at.path);
  check_same(xla::state_dict(five.bert), xla::state_dict(whole.bert));

  auto other = at.file[0];
  other.name = "other";
  at.write("model.safetensors", xla::StateDict{other});
  CHECK_THROWS_WITH(models::load(five, at.path, {.strict = false}),
                    contains("has no value of the model's names"));
}

TEST_CASE("models::load compares a folder's config.json with the model's type") {
  const xla::eager_mode_guard eager;
  const bert_folder at;
  static constexpr auto other = [] {
    auto c = test::small_bert();
    c.num_attention_heads = 4;  // of which no weight tells
    c.layer_norm_eps = 1e-5;
    return c;
  }();
  models::BertModel<other> four_heads;
  const auto before = xla::state_dict(four_heads);
  CHECK_THROWS_WITH(models::load(four_heads, at.path),
                    contains("config.json' describes another model than the program has: "
                             "num_attention_heads 2 instead of 4, layer_norm_eps 1e-12 instead "
                             "of 1e-05"));
  check_same(xla::state_dict(four_heads), before);
  CHECK(models::load(four_heads, at.path + "/model.safetensors").missing_keys.empty());

  Bert bert;
  const auto config = config_of("bert");
  const auto refused = [&](const std::string& part, const std::string& changed) {
    at.write("config.json", replaced(config, part, changed));
    try {
      models::load(bert, at.path);
    } catch (const xla::io_error& e) {
      return std::string{e.what()};
    }
    return std::string{"taken"};
  };
  CHECK_THAT(refused("\"gelu\"", "\"relu\""), contains("has: hidden_act relu instead of gelu"));
  CHECK_THAT(refused("\"is_decoder\": false", "\"is_decoder\": true"),
             contains("has: is_decoder true instead of false"));
  CHECK_THAT(refused("\"model_type\": \"bert\"", "\"model_type\": \"roberta\""),
             contains("has: model_type roberta instead of bert"));
  CHECK_THAT(refused("\"vocab_size\": 50", "\"vocab_size\": \"50\""),
             contains("vocab_size is \"50\", expected a number"));
  CHECK_THAT(refused("\"hidden_size\": 16,", ""), contains("hidden_size 768 instead of 16"));
  CHECK(refused("\"model_type\": \"bert\",", "") == "taken");
  std::filesystem::remove(at.path + "/config.json");
  CHECK(models::load(bert, at.path).empty());
  at.write("pytorch_model.bin", std::string{"no zip"});
  CHECK_THROWS_WITH(models::load(bert, at.path + "/pytorch_model.bin"),
                    contains("is no safetensors file; examples/to_safetensors.py makes one"));
}

TEST_CASE("models::load reads a vision transformer by everybody's names") {
  const xla::eager_mode_guard eager;
  Vit want;
  test::fill(want);
  const folder at("xla_test_models_files");
  for (const std::string name : {"vit_float16", "vit_files_names", "vit_modules_names"}) {
    INFO(name);
    const auto path = XLA_TEST_DATA "/data/" + name + ".safetensors";
    Vit vit;
    CHECK(models::load(vit, path).empty());
    const auto format = name == "vit_float16" ? FloatFormat::float16 : FloatFormat::bfloat16;
    check_same(xla::state_dict(vit), rounded(xla::state_dict(want), format));
    test::check_pytorch("models/vit/logits", vit(test::image_batch({2, 3, 12, 12}).images), 2e-2);
  }
  Vit vit;
  at.write("model.safetensors", xla::state_dict(want));
  CHECK(models::load(vit, at.path).empty());
  check_same(xla::state_dict(vit), xla::state_dict(want));
  at.write("config.json", config_of("vit"));
  CHECK(models::load(vit, at.path).empty());
  at.write("config.json", replaced(config_of("vit"), "1e-06", "1e-12"));
  CHECK_THROWS_WITH(models::load(vit, at.path), contains("layer_norm_eps 1e-12 instead of 1e-06"));
  const std::string of_timm = R"({"architecture": "vit_base_patch16_224", "num_classes": 10})";
  at.write("config.json", of_timm);
  CHECK(models::load(vit, at.path).empty());
}

namespace {

/// A file loads into a model whose layers are a loop as into one whose layers are called one by
/// one; it has the same names and answers, and what it writes goes back.
template <class Loop, class Steps>
void check_loaded_loop(const folder& at, const auto&... input) {
  Loop loop;
  Steps steps;
  CHECK(models::load(loop, at.path).empty());
  CHECK(models::load(steps, at.path).empty());
  const auto state = xla::state_dict(steps);
  CHECK(xla::state_dict(loop) == state);
  const auto want = steps(input...);
  test::check_equal(loop(input...), want);
  {
    const xla::eager_mode_guard traced(false);
    test::check_equal(loop(input...), want);
  }
  xla::for_each_parameter(loop, [](auto& p) { p.copy_(p * 0.5f); });
  const folder again("xla_test_models_files_again");
  again.write("model.safetensors", xla::state_dict(loop));
  Steps back;
  CHECK(models::load(back, again.path).empty());
  CHECK(xla::state_dict(back) == xla::state_dict(loop));
  CHECK(xla::state_dict(back) != state);
  again.write("model.safetensors", state);
  CHECK(models::load(loop, again.path).empty());
  test::check_equal(loop(input...), want);
}

}  // namespace

TEST_CASE("models::load of networks whose layers are a loop") {
  const xla::eager_mode_guard eager;
  const bert_folder bert;
  static constexpr auto scanned = [] {
    auto c = test::small_bert();
    c.scan_layers = true;
    return c;
  }();
  check_loaded_loop<models::BertForSequenceClassification<scanned, 3>, Bert>(
      bert, reshape(xla::arange(18) % 27 + 1, {3, 6}));
  const folder vit("xla_test_models_vit");
  vit.write("config.json", config_of("vit"));
  vit.write("model.safetensors", data_file("vit_files_names.safetensors"));
  check_loaded_loop<VitOf<true>, Vit>(vit, test::image_batch({2, 3, 12, 12}).images);
}

TEST_CASE("models::load gives AnyClasses the file's classes, or leaves all as it was") {
  const xla::eager_mode_guard eager;
  const folder at("xla_test_models_files");
  const auto path = at.path + "/mnasnet.safetensors";
  using Any = models::AnyClasses<Mnas>;
  Any four(4);
  at.write("mnasnet.safetensors", xla::state_dict(four));
  Any model;
  CHECK(models::load(model, path).empty());
  CHECK(models::head(model).weight.size(0) == 4);
  CHECK(!std::get<0>(model.classifier.layers).training);
  check_same(xla::state_dict(model), xla::state_dict(four));

  auto damaged = xla::state_dict(four);
  damaged.front().sizes.push_back(1);
  at.write("mnasnet.safetensors", damaged);
  Any ten;
  const auto before = xla::state_dict(ten);
  CHECK_THROWS_WITH(models::load(ten, path), contains("layers.0.weight"));
  check_same(xla::state_dict(ten), before);
  Any six(6);
  at.write("mnasnet.safetensors", xla::state_dict(four));
  CHECK(models::load(six, path, {.ignore_mismatched_sizes = true}).missing_keys.size() == 2);
  CHECK(models::head(six).weight.size(0) == 6);
}

TEST_CASE("load_state_dict says who calls the names so, and what renames them") {
  const xla::eager_mode_guard eager;
  const auto refusal = [](auto&& model, const xla::StateDict& state) {
    try {
      xla::load_state_dict(model, state);
    } catch (const xla::error& e) {
      return std::string{e.what()};
    }
    return std::string{"taken"};
  };
  auto bert = data_file("bert_bfloat16.safetensors");
  CHECK_THAT(refusal(models::BertModel<test::small_bert()>{}, bert),
             contains("the state has the model's names behind 'bert.': models::part_of(state, "
                      "\"bert.\") of <xla/models/names.hpp> takes that part"));
  CHECK_THAT(refusal(Bert{}, models::part_of(bert, "bert.")),
             contains("names of a part of the model: load_state_dict(model.bert, state) loads"));
  bert.push_back(bert[0]);
  bert.back().name = "bert.embeddings.position_ids";
  CHECK_THAT(refusal(Bert{}, bert),
             contains("the names are those of older files of BERT: models::bert_names(state) of "
                      "<xla/models/bert.hpp> gives values the model's names, and "
                      "models::load(model, path) of <xla/ext/pretrained.hpp> loads such files"));
  CHECK_THAT(refusal(Vit{}, data_file("vit_float16.safetensors")),
             contains("torchvision's vision transformer: models::vit_from_torchvision(state)"));
  for (const std::string file : {"vit_files_names", "vit_modules_names"})
    CHECK_THAT(refusal(Vit{}, data_file(file + ".safetensors")),
               contains("Hugging Face's vision transformer: models::vit_from_hugging_face(state)"));
  Vit vit;
  auto state = xla::state_dict(vit);
  state.pop_back();
  CHECK_THAT(refusal(vit, state), !contains("models::"));
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
