// SPDX-License-Identifier: Apache-2.0
// PyTorch's word_language_model: trains an LSTM, a GRU or a transformer to predict the next word or
// byte of a text.
#include <CLI/CLI.hpp>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "options.hpp"

namespace {

struct Entry {
  const char* name;
  void (*run)(const Options&);
};
constexpr Entry entries[] = {
    {"LSTM", run_lstm},
#ifndef XLA_EXAMPLE_TESTED
    {"GRU", run_gru},
    {"Transformer", run_transformer},
#endif
};

void describe(CLI::App& app, Options& o) {
  const auto at_least = [](std::int64_t low) { return CLI::Range(low, std::int64_t{1} << 40); };
  app.option_defaults()->always_capture_default();
  app.add_option("--data", o.data,
                 "A text, of which a tenth is held out; or a folder with train.txt, valid.txt and\n"
                 "test.txt; or a folder of Markdown files (default: the pages of these examples)")
      ->check(CLI::ExistingPath);
  app.add_flag("--bytes", o.bytes, "Tokens are bytes, not words");
  std::vector<std::string> names;
  for (const Entry& entry : entries) names.push_back(entry.name);
  app.add_option("--model", o.model)->check(CLI::IsMember(names));
  app.add_flag("--tied", o.tied, "Embedding and output layer share their weight");
  app.add_option("--dropout", o.dropout)->check(CLI::Range(0.0, 1.0));
  app.add_option("--lr", o.lr, "Initial learning rate")->check(CLI::Range(0.0, 1e9));
  app.add_option("--clip", o.clip, "Greatest norm of the gradients")->check(CLI::Range(0.0, 1e9));
  app.add_option("--epochs", o.epochs)->check(at_least(1));
  app.add_option("--steps", o.steps, "End after this number of batches; 0: after the epochs")
      ->check(at_least(0));
  app.add_option("--batch_size", o.batch_size)->check(at_least(1));
  app.add_option("--bptt", o.bptt, "Tokens that gradients go back")->check(at_least(1));
  app.add_option("--seed", o.seed)->check(CLI::Range(std::uint64_t{0}, std::uint64_t{1} << 53));
  app.add_option("--log-interval", o.log_interval, "Batches between lines")->check(at_least(1));
  app.add_option("--weights", o.weights, "Begin with the weights of a safetensors file")
      ->check(CLI::ExistingFile);
  app.add_option("--save", o.save, "File for the weights with the best validation");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Trains an LSTM, a GRU or a transformer on a text"};
  Options options;
  describe(app, options);
  CLI11_PARSE(app, argc, argv);
  if (options.data.empty()) options.data = XLA_EXAMPLE_TEXT_DIR "/examples";
  try {
    for (const Entry& entry : entries)
      if (options.model == entry.name) entry.run(options);
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "language_model: %s\n", e.what());
    return 1;
  }
}
