// SPDX-License-Identifier: Apache-2.0
// GPT-2 and Llama from folders as Hugging Face's save_pretrained leaves them, against what it
// computes (tests/reference/gpt2_llama.py).
#include "xla/ext/pretrained.hpp"

#include "support/folder.hpp"
#include "support/models.hpp"
#include "support/small_gpt2.hpp"
#include "xla/loop/scan_layers.hpp"

namespace ext = xla::ext;
namespace models = xla::models;
namespace nn = xla::nn;
using test::contains;
using test::folder;

static_assert(xla::parameter_count<nn::Decoder<models::distilgpt2>>() == 81'912'576);
static_assert(xla::parameter_count<nn::Decoder<models::gpt2>>() == 124'439'808);
static_assert(xla::parameter_count<nn::Decoder<models::gpt2_medium>>() == 354'823'168);
static_assert(xla::parameter_count<nn::Decoder<models::gpt2_large>>() == 774'030'080);
static_assert(xla::parameter_count<nn::Decoder<models::gpt2_xl>>() == 1'557'611'200);
static_assert(xla::parameter_count<nn::Decoder<models::llama_2_7b>>() == 6'738'415'616);
static_assert(xla::parameter_count<nn::Decoder<models::llama_3_1_8b>>() == 8'030'261'248);
static_assert(xla::parameter_count<nn::Decoder<models::llama_3_2_1b>>() == 1'235'814'400);
static_assert(xla::parameter_count<nn::Decoder<models::llama_3_2_3b>>() == 3'212'749'824);
static_assert(xla::parameter_count<nn::Decoder<models::tinyllama_1_1b>>() == 1'100'048'384);
static_assert(xla::parameter_count<nn::Decoder<models::smollm2_135m>>() == 134'515'008);
static_assert(xla::parameter_count<nn::Decoder<models::smollm2_360m>>() == 361'821'120);

namespace {

/// The other network of gpt2_llama.py.
constexpr nn::DecoderConfig small_llama{
    .hidden = 32,
    .layers = 2,
    .heads = 4,
    .kv_heads = 2,
    .intermediate = 24,
    .vocabulary = 29,
    .rotary_theta = 500,
    .rotary_scaling = {.factor = 8, .original_max_position_embeddings = 40}};
constexpr nn::DecoderConfig tied_llama{.hidden = 32,
                                       .layers = 2,
                                       .heads = 4,
                                       .kv_heads = 4,
                                       .intermediate = 24,
                                       .vocabulary = 29,
                                       .rotary_theta = 10000,
                                       .tied_head = true,
                                       .bias = true,
                                       .norm_eps = 1e-5};

std::string config_of(const std::string& name) {
  return xla::io::read_text(XLA_TEST_DATA "/data/" + name + "/config.json");
}

/// The weights of gpt2_llama.py by Hugging Face's names, as its files have them.
xla::StateDict weights_of(const std::string& name) {
  xla::StateDict out;
  for (const auto& line : test::pytorch::instance().states(name)) {
    std::istringstream words(line);
    xla::NamedArray a;
    words >> a.name;
    for (std::int64_t size = 0; words >> size;) a.sizes.push_back(size);
    std::vector<std::uint8_t> bytes(*xla::io::array_bytes(a.type, a.sizes));
    test::fill_array(a, out.size(), bytes);
    a.bytes = std::move(bytes);
    out.push_back(std::move(a));
  }
  return out;
}

xla::Tensor<std::int64_t, 2> some_tokens() {
  std::vector<std::int64_t> v;
  for (std::int64_t i = 0; i < 18; ++i) v.push_back(i * i % 27 + 1);
  return xla::from_blob(v.data(), {2, 9});
}

void check_same(xla::StateDict a, xla::StateDict b) {
  const auto by_name = [](const auto& x, const auto& y) { return x.name < y.name; };
  std::sort(a.begin(), a.end(), by_name);
  std::sort(b.begin(), b.end(), by_name);
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    INFO(a[i].name << " and " << b[i].name);
    CHECK(a[i] == b[i]);
  }
}

/// Logits of the text at once and by way of a cache, in every mode.
template <nn::DecoderConfig C>
void check_decoder(const std::string& name, auto to_hugging_face) {
  INFO(name);
  const xla::eager_mode_guard eager;
  const folder at;
  const auto weights = weights_of(name);
  at.write("config.json", config_of(name));
  at.write_parts(weights);
  CHECK(ext::decoder_difference(ext::read_decoder_config(at.path), C) == "");
  nn::Decoder<C> model;
  models::load(model, at.path);
  const std::string logits = "models/" + name + "/logits";
  auto tokens = some_tokens();
  const auto want = xla::no_grad([&] { return model(tokens); });
  test::check_pytorch(logits, want, 1e-5);

  nn::KeyValueCache<C, 9, 2> cache;
  const auto in_parts = [](auto& decoder, auto& text, auto& seen) {
    decoder.eval();
    const auto first = decoder(narrow(text, 1, 0, 4), seen);
    const auto next = decoder(narrow(text, 1, 4, 1), seen);
    return xla::cat({first, next, decoder(narrow(text, 1, 5, 4), seen)}, 1);
  };
  const auto cached = in_parts(model, tokens, cache);
  test::check_pytorch(logits, cached, 1e-5);
  auto compiled = xla::compile(in_parts);
  for (const char* backend : {"native", "interpreter"}) {
    INFO("backend " << backend);
    const test::on_backend chosen(backend);
    cache.reset();
    test::check_equal(compiled(model, tokens, cache), cached);
  }
  xla::eager_mode(false);
  test::check_equal(xla::no_grad([&] { return model(tokens); }), want);
  xla::eager_mode(true);
  check_same(to_hugging_face(xla::state_dict(model)), weights);
}

/// The same with layers as a loop: the same answers to the text at once and by way of a cache, and
/// its states go back as the files have them.
template <nn::DecoderConfig C>
void check_loop(const std::string& name, auto to_hugging_face) {
  INFO(name);
  static constexpr auto scanned = [] {
    auto c = C;
    c.scan_layers = true;
    return c;
  }();
  const xla::eager_mode_guard eager;
  const folder at;
  const auto weights = weights_of(name);
  at.write("config.json", config_of(name));
  at.write_parts(weights);
  nn::Decoder<scanned> loop;
  nn::Decoder<C> steps;
  CHECK(models::load(loop, at.path).empty());
  CHECK(models::load(steps, at.path).empty());
  const auto tokens = some_tokens();
  const auto answers = [&]<nn::DecoderConfig Of>(const nn::Decoder<Of>& model) {
    nn::KeyValueCache<Of, 9, 2> cache;
    const auto first = model(narrow(tokens, 1, 0, 5), cache);
    return xla::cat(
        {model(tokens), first, unsqueeze(model.next_logits(narrow(tokens, 1, 5, 1), cache), 1)}, 1);
  };
  const auto want = answers(steps);
  test::check_equal(answers(loop), want);
  {
    const xla::eager_mode_guard traced(false);
    test::check_equal(answers(loop), want);
  }
  check_same(to_hugging_face(xla::state_dict(loop)), weights);
}

const auto to_gpt2 = [](auto state) { return models::gpt2_to_hugging_face(std::move(state)); };
const auto to_llama = [](auto state) { return models::llama_to_hugging_face(std::move(state)); };

}  // namespace

TEST_CASE("GPT-2 has Hugging Face's names, sizes and logits; what it learned goes back") {
  check_decoder<test::small_gpt2>("gpt2", to_gpt2);
}

TEST_CASE("Llama has Hugging Face's names, sizes and logits; what it learned goes back") {
  check_decoder<small_llama>("llama", to_llama);
  check_decoder<tied_llama>("llama_tied", to_llama);
}

TEST_CASE("decoders whose layers are a loop have the same files and answers") {
  check_loop<test::small_gpt2>("gpt2", to_gpt2);
  check_loop<small_llama>("llama", to_llama);
}

TEST_CASE("old files have masks, heads and tables of frequencies besides, and other names") {
  const xla::eager_mode_guard eager;
  const folder at;
  at.write("config.json", config_of("gpt2"));
  auto weights = models::part_of(weights_of("gpt2"), "transformer.");
  weights.push_back({"h.0.attn.bias", xla::dtype::uint8, {1, 1, 2, 2}, {1, 0, 1, 1}});
  weights.push_back({"h.0.attn.masked_bias", xla::dtype::float32, {}, {0, 0, 0, 0}});
  auto head = weights[0];
  head.name = "lm_head.weight";
  weights.push_back(head);
  at.write("model.safetensors", weights);
  nn::Decoder<test::small_gpt2> model;
  models::load(model, at.path);
  CHECK(!model.drop.training);
  test::check_pytorch("models/gpt2/logits", model(some_tokens()), 1e-5);

  auto llama = weights_of("llama_tied");
  head = llama[0];
  REQUIRE(head.name == "model.embed_tokens.weight");
  head.name = "lm_head.weight";
  llama.push_back(head);
  llama.push_back({"model.layers.0.self_attn.rotary_emb.inv_freq", xla::dtype::float32, {0}, {}});
  nn::Decoder<tied_llama> tied;
  CHECK(xla::load_state_dict(tied, models::llama_from_hugging_face(llama, true)).empty());
  CHECK_THROWS_WITH(xla::load_state_dict(tied, models::llama_from_hugging_face(llama)),
                    contains("unexpected: lm_head.weight"));
  CHECK_THROWS_WITH(xla::load_state_dict(tied, weights_of("llama_tied")),
                    contains("Hugging Face's Llama: models::llama_from_hugging_face(state)") &&
                        contains("behind 'model.'"));
  CHECK_THROWS_WITH(xla::load_state_dict(model, weights_of("gpt2")),
                    contains("Hugging Face's GPT-2: models::gpt2_from_hugging_face(state) of "
                             "<xla/models/gpt2.hpp>"));
}

TEST_CASE("a tied head is read by either name, and refused where it has other values") {
  const auto check = [](xla::StateDict state, std::string_view name, auto read, auto& model) {
    const auto same = [&](const auto& a) { return a.name == name; };
    auto& embedding = *std::find_if(state.begin(), state.end(), same);
    auto head = embedding;
    head.name = "lm_head.weight";
    auto twice = state, other = state;
    twice.push_back(head);
    head.bytes.edit()[1] ^= 1;
    other.push_back(head);
    CHECK(xla::load_state_dict(model, read(state)).empty());
    const auto want = xla::state_dict(model);
    CHECK(xla::load_state_dict(model, read(twice)).empty());
    embedding.name = "lm_head.weight";
    CHECK(xla::load_state_dict(model, read(state)).empty());
    CHECK(xla::state_dict(model) == want);
    CHECK_THROWS_WITH(read(other), contains("'lm_head.weight' has other values than "
                                            "'embed_tokens.weight', to which the model ties it"));
  };
  const xla::eager_mode_guard eager;
  nn::Decoder<test::small_gpt2> gpt2;
  nn::Decoder<tied_llama> llama;
  check(weights_of("gpt2"), "transformer.wte.weight",
        [](auto s) { return models::gpt2_from_hugging_face(std::move(s)); }, gpt2);
  check(weights_of("llama_tied"), "model.embed_tokens.weight",
        [](auto s) { return models::llama_from_hugging_face(std::move(s), true); }, llama);
}

TEST_CASE("weights in bfloat16 stay so until they are in the model") {
  const xla::eager_mode_guard eager;
  const folder at;
  at.write("config.json", config_of("gpt2"));
  const auto weights = weights_of("gpt2");
  ext::write_safetensors(at.path + "/model.safetensors", {weights, {}}, ext::FloatFormat::bfloat16);
  const auto kept = ext::read_pretrained(at.path, ext::BFloat16::as_stored);
  REQUIRE(kept.size() == weights.size());
  for (const auto& a : kept) {
    CHECK(a.type == xla::dtype::bfloat16);
    CHECK(a.bytes.size() == xla::io::array_bytes(a.type, a.sizes));
  }
  nn::Decoder<test::small_gpt2> model, widened;
  models::load(model, at.path);
  xla::load_state_dict(widened, models::gpt2_from_hugging_face(ext::read_pretrained(at.path)));
  check_same(xla::state_dict(model), xla::state_dict(widened));
}

TEST_CASE("weights that do not fit are named, and nothing is loaded") {
  const xla::eager_mode_guard eager;
  auto weights = weights_of("gpt2");
  for (auto& a : weights) {
    if (a.name.ends_with("h.0.attn.c_attn.weight")) a.sizes = {96, 32};
    if (a.name.ends_with("h.1.attn.c_attn.bias")) a.sizes = {95};
  }
  nn::Decoder<test::small_gpt2> model;
  const auto before = xla::state_dict(model);
  CHECK_THROWS_WITH(
      xla::load_state_dict(model, models::gpt2_from_hugging_face(weights)),
      contains("missing: layers.0.self_attn.q_proj.weight") &&
          contains("unexpected: layers.0.attn.c_attn.weight, layers.1.attn.c_attn.bias"));
  check_same(xla::state_dict(model), before);
  const std::int64_t many = 1LL << 58;
  const xla::NamedArray one{"h.0.mlp.c_proj.weight", xla::dtype::float32, {0, many}, {}};
  const xla::NamedArray packed{"h.0.attn.c_attn.weight", xla::dtype::float32, {0, 3 * many}, {}};
  const auto empty = models::gpt2_from_hugging_face({one, packed});
  REQUIRE(empty.size() == 4);
  for (const auto& a : empty) CHECK(a.sizes == test::sizes_t{many, 0});
  auto fewer = before;
  std::erase_if(fewer, [](const auto& a) { return a.name.ends_with("1.self_attn.k_proj.bias"); });
  CHECK_THROWS_WITH(models::gpt2_to_hugging_face(fewer),
                    contains("there is no 'layers.1.self_attn.k_proj.bias' of the sizes of "
                             "'layers.1.self_attn.q_proj.bias'"));
}

TEST_CASE("configurations of published weights are those of the library") {
  const folder at;
  const auto difference = [&](const std::string& text, const nn::DecoderConfig& compiled) {
    at.write("config.json", text);
    return ext::decoder_difference(ext::read_decoder_config(at.path), compiled);
  };
  const std::string gpt2 = R"({"activation_function": "gelu_new", "layer_norm_epsilon": 1e-05,
      "model_type": "gpt2", "n_ctx": 1024, "n_embd": 768, "n_head": 12, "n_layer": 12,
      "n_positions": 1024, "vocab_size": 50257})";
  CHECK(difference(gpt2, models::gpt2) == "");
  CHECK(difference(gpt2, models::distilgpt2) == "layers 12 instead of 6");
  const std::string llama = R"({"attention_bias": false, "head_dim": 64, "hidden_act": "silu",
      "hidden_size": 2048, "intermediate_size": 8192, "max_position_embeddings": 131072,
      "mlp_bias": false, "model_type": "llama", "num_attention_heads": 32, "num_hidden_layers": 16,
      "num_key_value_heads": 8, "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_scaling":
      {"factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
      "original_max_position_embeddings": 8192, "rope_type": "llama3"}, "rope_theta": 500000.0,
      "tie_word_embeddings": true, "vocab_size": 128256})";
  CHECK(difference(llama, models::llama_3_2_1b) == "");
  auto other = models::llama_3_2_1b;
  other.rotary_scaling.factor = 8;
  other.tied_head = false;
  other.norm_eps = 0;
  other.activation = nn::DecoderActivation::gelu_tanh;
  CHECK(difference(llama, other) ==
        "rotary_scaling 32 (1 to 4 of 8192) instead of 8 (1 to 4 of 8192), tied_head 1 instead of "
        "0, norm_eps 1e-05 instead of 1e-06, activation swiglu instead of gelu_tanh");
  CHECK(difference(gpt2, models::llama_2_7b).find("norm layer instead of rms") !=
        std::string::npos);
  const std::string smol = R"({"hidden_size": 576, "intermediate_size": 1536, "model_type": "llama",
      "num_attention_heads": 9, "num_hidden_layers": 30, "num_key_value_heads": 3, "rms_norm_eps":
      1e-05, "rope_scaling": null, "rope_theta": 100000, "tie_word_embeddings": true, "vocab_size":
      49152})";
  CHECK(difference(smol, models::smollm2_135m) == "");
  auto fraction = smol;
  fraction.replace(fraction.find("100000"), 6, "10000.5");
  CHECK_THAT(difference(fraction, models::smollm2_135m),
             contains("rotary_theta 10000.5 instead of "));
  auto same = models::smollm2_135m;
  same.rotary_theta = 10000.5;
  CHECK(difference(fraction, same) == "");
}

TEST_CASE("configurations and indices that cannot be used are errors that name the place") {
  const folder at;
  const auto refused = [&](const std::string& text) {
    at.write("config.json", text);
    try {
      (void)ext::read_decoder_config(at.path);
    } catch (const xla::io_error& e) {
      return std::string{e.what()};
    }
    return std::string{"taken"};
  };
  CHECK_THAT(refused("[1]"), contains("config.json' is not a JSON object"));
  CHECK_THAT(refused("{\"model_type\": "), contains("config.json' is not a JSON object"));
  CHECK_THAT(refused(R"({"model_type": )" + std::string(1000000, '[')),
             contains("config.json' has values in more than 64 others"));
  CHECK_THAT(refused("{}"), contains("model_type is absent, expected a text"));
  CHECK_THAT(refused(R"({"model_type": "bert"})"), contains("model_type is 'bert', expected"));
  const auto gpt2 = [](const std::string& more) {
    return R"({"model_type": "gpt2", "n_embd": 4, "n_head": 2, "n_layer": 1, "n_positions": 4,
               "vocab_size": 3)" +
           more + "}";
  };
  CHECK(refused(gpt2("")) == "taken");
  const std::string deep(64, '[');
  CHECK(refused(gpt2(R"(, "notes": "\")" + deep + R"(")")) == "taken");
  CHECK_THAT(refused(gpt2(R"(, "notes": "\\", "list": )" + deep + std::string(64, ']'))),
             contains("in more than 64 others"));
  CHECK_THAT(refused(gpt2(R"(, "activation_function": "relu")")), contains("is 'relu', xla::nn"));
  CHECK_THAT(refused(gpt2(R"(, "scale_attn_weights": false)")), contains("without scaling"));
  CHECK_THAT(refused(gpt2(R"(, "n_inner": 2.5)")), contains("n_inner is 2.5, expected a whole"));
  CHECK_THAT(refused(gpt2(R"(, "n_layer": 0)")), contains("n_layer is 0, expected a whole"));
  CHECK_THAT(refused(gpt2(R"(, "n_embd": 2147483648)")), contains("from 1 to 2147483647"));
  CHECK_THAT(refused(gpt2(R"(, "n_embd": 2147483647)")), contains("n_embd is too large"));
  CHECK_THAT(refused(gpt2(R"(, "tie_word_embeddings": 1)")), contains("is 1, expected true"));
  CHECK_THAT(refused(gpt2(R"(, "layer_norm_epsilon": "x")")), contains("is \"x\", expected a nu"));
  const auto llama = [](const std::string& more) {
    return R"({"model_type": "llama", "hidden_size": 8, "num_attention_heads": 2, "vocab_size": 3,
               "num_hidden_layers": 1, "intermediate_size": 4)" +
           more + "}";
  };
  CHECK(refused(llama("")) == "taken");
  CHECK(refused(llama(R"(, "rope_scaling": {"type": "linear", "factor": 2})")) == "taken");
  CHECK_THAT(refused(llama(R"(, "rope_scaling": {"type": "linear", "factor": 0})")),
             contains("factor is not above 0"));
  CHECK_THAT(refused(llama(R"(, "rope_scaling": {"type": "yarn"})")), contains("is 'yarn', xla"));
  CHECK_THAT(refused(llama(R"(, "rope_scaling": 3)")), contains("is 3, expected an object"));
  CHECK_THAT(refused(llama(R"(, "rope_parameters": {"rope_type": "llama3", "factor": 2,
      "low_freq_factor": 4, "high_freq_factor": 4, "original_max_position_embeddings": 8})")),
             contains("low_freq_factor not smaller"));
  CHECK_THAT(refused(llama(R"(, "rope_theta": 0)")),
             contains("rope_theta is 0, expected a number"));
  CHECK_THAT(refused(llama(R"(, "rms_norm_eps": -1)")),
             contains("rms_norm_eps is -1, expected a number above 0"));
  CHECK_THAT(refused(llama(R"(, "rms_norm_eps": 0)")), contains("rms_norm_eps is 0, expected"));
  CHECK_THAT(refused(gpt2(R"(, "layer_norm_epsilon": -1)")), contains("expected a number above 0"));
  for (const auto& model : {llama(R"(, "quantization_config": {"bits": 4})"),
                            gpt2(R"(, "quantization_config": {"quant_method": "gptq"})")})
    CHECK_THAT(refused(model), contains("quantization_config says that the weights are quantized"));
  CHECK(refused(llama(R"(, "quantization_config": null)")) == "taken");
  CHECK_THAT(refused(llama(R"(, "head_dim": 8)")), contains("times head_dim is not hidden_size"));
  CHECK_THAT(refused(llama(R"(, "mlp_bias": true)")), contains("mlp_bias differ"));
  CHECK_THAT(refused(llama(R"(, "hidden_act": "gelu")")), contains("is 'gelu', xla::nn"));

  nn::Decoder<small_llama> model;
  CHECK_THROWS_WITH(models::load(model, at.path + "/none"), contains("cannot open"));
  at.write("config.json", config_of("gpt2"));
  CHECK_THROWS_WITH(models::load(model, at.path),
                    contains("config.json' describes another model than the program has: "
                             "kv_heads 4 instead of 2, intermediate 128 instead of 24"));
  at.write("config.json", config_of("llama"));
  CHECK_THROWS_WITH(models::load(model, at.path),
                    contains("has neither model.safetensors"));
  const auto index = [&](const std::string& map) {
    at.write("model.safetensors.index.json", map);
    return ext::read_pretrained(at.path);
  };
  CHECK_THROWS_WITH(index("{}"), contains("weight_map is empty or absent"));
  CHECK_THROWS_WITH(index(R"({"weight_map": {"a": 3}})"), contains("names no file for 'a'"));
  CHECK_THROWS_WITH(index(R"({"weight_map": {"a": "../b"}})"),
                    contains("is no file in its folder"));
  CHECK_THROWS_WITH(index(R"({"weight_map": {"a": ".."}})"), contains("is no file in its folder"));
  CHECK_THROWS_WITH(index(R"({"weight_map": {"a": "b"}})"), contains("cannot open"));
  at.write("b", xla::StateDict{});
  CHECK_THROWS_WITH(index(R"({"weight_map": {"a": "b"}})"), contains("b' lacks the tensor 'a'"));
}
