// SPDX-License-Identifier: Apache-2.0
// Writes on from a prompt with a GPT-2 or a Llama in a folder as Hugging Face has them.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <xla/ext/decoder_config.hpp>
#ifdef XLA_HAS_SENTENCEPIECE
#include <xla/ext/sentencepiece.hpp>
#endif
#include <xla/ext/tokenizer.hpp>
#include <xla/io/text.hpp>

#include "configurations.hpp"

namespace {

/// A decoder that this program was built with.
struct Entry {
  const char* name;
  void (*run)(const Options&, const xla::ext::Tokenizer&);
};
#define DECODER(name) {#name, run<decoders::name>},
constexpr Entry entries[] = {XLA_EXAMPLE_DECODERS};
#undef DECODER

/// The decoder with a name that a file describes, or a sentence about the one that is most like it.
const decoders::Known& decoder_of(const std::string& folder) {
  const auto file = xla::ext::read_decoder_config(folder);
  const decoders::Known* closest = nullptr;
  std::string least;
  for (const auto& one : decoders::known) {
    const auto difference = xla::ext::decoder_difference(file, one.config);
    if (difference.empty()) return one;
    if (!closest || std::count(difference.begin(), difference.end(), ',') <
                        std::count(least.begin(), least.end(), ',')) {
      closest = &one;
      least = difference;
    }
  }
  throw xla::runtime_error("'" + folder + "/config.json' describes no decoder that has a name; " +
                           closest->name + " is most like it, but it has " + least +
                           ". Give it a name in examples/generate/configurations.hpp");
}

/// The program's part for it.
const Entry& entry_of(const std::string& folder) {
  const std::string name = decoder_of(folder).name;
  std::string all;
  for (const auto& entry : entries) {
    if (entry.name == name) return entry;
    all += std::string(entry.name) + ";";
  }
  throw xla::runtime_error("'" + folder + "' is a " + name +
                           ", and this program was built without: cmake -DXLA_EXAMPLE_DECODERS='" +
                           all + name + "'");
}

/// The tokens that end a text: a number, or a list of them.
std::vector<std::int64_t> ends_of(const std::string& folder) {
  for (const char* file : {"/generation_config.json", "/config.json"}) {
    if (!std::filesystem::exists(folder + file)) continue;
    const auto all = nlohmann::json::parse(xla::io::read_text(folder + file), nullptr, false);
    if (!all.is_object() || !all.contains("eos_token_id")) continue;
    const auto& ends = all["eos_token_id"];
    std::vector<std::int64_t> out;
    for (const auto& end : ends.is_array() ? ends : nlohmann::json::array({ends}))
      if (end.is_number_integer()) out.push_back(end.get<std::int64_t>());
    return out;
  }
  return {};
}

void describe(CLI::App& app, Options& o) {
  const CLI::Range count(std::int64_t{0}, std::int64_t{1} << 40);
  app.add_option("folder", o.folder, "config.json, weights in safetensors and the tokenizer")
      ->required()
      ->check(CLI::ExistingDirectory);
  app.add_option("--tokenizer", o.tokenizer, "Another folder with the tokenizer")
      ->check(CLI::ExistingDirectory);
  app.add_option("--prompt", o.prompt)->capture_default_str();
  app.add_option("--length", o.length, "Tokens to write at most")
      ->check(count)
      ->capture_default_str();
  app.add_option("--temperature", o.temperature, "0 writes the likeliest tokens")
      ->check(CLI::Range(0.0, 1e9))
      ->capture_default_str();
  app.add_option("--top-k", o.top_k, "Choose among the k most probable; 0: all")
      ->check(count)
      ->capture_default_str();
  app.add_option("--top-p", o.top_p, "Choose among those that together are so probable; 1: all")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_option("--seed", o.seed)
      ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{1} << 53))
      ->capture_default_str();
  app.add_option("--threads", o.threads, "0: all")->check(CLI::Range(0, 1024));
  app.add_flag("--numbers", o.numbers, "Write the numbers of tokens instead of their text");
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Writes on from a prompt with a GPT-2 or a Llama."};
  describe(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 1;
  }
  try {
    const auto& entry = entry_of(options.folder);
    options.ends = ends_of(options.folder);
    std::fprintf(stderr, "%s: ", entry.name);
    const auto& from = options.tokenizer.empty() ? options.folder : options.tokenizer;
    entry.run(options, xla::ext::Tokenizer::from_folder(from));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "generate: %s\n", e.what());
    return 1;
  }
}
