// SPDX-License-Identifier: Apache-2.0
// Trains a decoder-only transformer on a text and lets it write.
#include <CLI/CLI.hpp>

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#if XLA_HAS_MPI
#include <optional>
#include <xla/ext/mpi.hpp>
#endif

#include "configurations.hpp"
#include "text.hpp"

namespace {

/// A configuration by name, and what it is trained with unless the options say otherwise.
struct Entry {
  const char* name;
  void (*run)(const Options&, const std::string&);
  std::int64_t steps, batch, sequence;
  double lr;
};
constexpr Entry entries[] = {
    {"char", run<char_config>, 2000, 12, 64, 2e-3},
    {"llama", run<llama_config>, 2000, 12, 64, 2e-3},
#ifndef XLA_EXAMPLE_TESTED
    {"small", run<nn::small_decoder>, 100, 4, 128, 1e-4},
    {"seed", run<nn::seed_decoder>, 3, 16, 512, 1e-4},
#endif
};

void run(Options options) {
  const Entry* entry = entries;
  while (options.config != entry->name) ++entry;
  const auto fill = [](auto& option, auto habit) {
    if (option == 0) option = habit;
  };
  fill(options.steps, entry->steps);
  fill(options.batch, entry->batch);
  fill(options.sequence, entry->sequence);
  fill(options.lr, entry->lr);
  if (options.devices > 0) xla::set_device_count(options.devices);
  const auto text = options.zeros ? std::string(1 << 20, '\0') : read_texts(options.text);
  entry->run(options, text);
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const Entry& entry : entries) all.push_back(entry.name);
  return all;
}

void describe(CLI::App& app, Options& o) {
  const auto at_least = [](std::int64_t low) { return CLI::Range(low, std::int64_t{1} << 40); };
  app.option_defaults()->take_last();
  const CLI::Range positive(1e-12, 1e9), any(0.0, 1e9), part(0.0, 1.0);
  app.add_option("--config", o.config, "char (GPT), llama, small, or the seed's decoder")
      ->check(CLI::IsMember(names()))
      ->capture_default_str();
  app.add_option("--mode", o.mode)
      ->check(CLI::IsMember({"compiled", "traced", "eager"}))
      ->capture_default_str();

  app.add_option("--text", o.text,
                 "Files to learn, or folders of headers and Markdown files\n"
                 "(default: this library's README and headers); a tenth is held out")
      ->take_all()
      ->group("Data");
  app.add_flag("--zeros", o.zeros, "Learn zeros, as the seed's benchmark does")->group("Data");
  app.add_option("--batch", o.batch, "Sequences in a batch, of each replica")
      ->check(at_least(1))
      ->group("Data");
  app.add_option("--sequence", o.sequence, "Tokens in a sequence")
      ->check(at_least(1))
      ->group("Data");
  app.add_option("--seed", o.seed)
      ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{1} << 53))
      ->capture_default_str()
      ->group("Data");

  const char* const training = "Training";
  app.add_option("--steps", o.steps)->check(at_least(1))->group(training);
  app.add_option("--accumulate", o.accumulate, "Batches for one update")
      ->check(at_least(1))
      ->capture_default_str()
      ->group(training);
  app.add_flag("--autocast", o.autocast, "Multiply in bfloat16, sum in float32")->group(training);
  app.add_option("--devices", o.devices,
                 "Devices that train together, each on batches of its own with its share of the\n"
                 "processors; 0: XLA_DEVICES, or one")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str()
      ->group(training);
  app.add_option("--lr", o.lr, "Highest learning rate")->check(positive)->group(training);
  app.add_option("--min-lr", o.min_lr, "The rate at the end, as a part of the highest")
      ->check(part)
      ->capture_default_str()
      ->group(training);
  app.add_option("--warmup", o.warmup, "Steps on which the rate rises")
      ->check(at_least(0))
      ->capture_default_str()
      ->group(training);
  app.add_option("--weight-decay", o.weight_decay)
      ->check(any)
      ->capture_default_str()
      ->group(training);
  app.add_option("--beta2", o.beta2)->check(part)->capture_default_str()->group(training);
  app.add_option("--clip", o.clip, "Greatest norm of the gradients; 0: any")
      ->check(any)
      ->capture_default_str()
      ->group(training);

  const char* const report = "Report";
  app.add_option("--log-every", o.log_every, "Steps between lines")
      ->check(at_least(1))
      ->capture_default_str()
      ->group(report);
  app.add_option("--eval-every", o.eval_every, "Steps between validations")
      ->check(at_least(1))
      ->capture_default_str()
      ->group(report);
  app.add_option("--eval-batches", o.eval_batches, "Batches of a validation")
      ->check(at_least(1))
      ->capture_default_str()
      ->group(report);
  app.add_option("--curve", o.curve, "File for the loss curve; empty for none")
      ->capture_default_str()
      ->group(report);

  const char* const checkpoints = "Checkpoints";
  app.add_option("--checkpoint", o.checkpoint, "File to write, in safetensors")->group(checkpoints);
  app.add_option("--save-every", o.save_every, "Steps between writings")
      ->check(at_least(1))
      ->capture_default_str()
      ->group(checkpoints);
  app.add_option("--resume", o.resume, "Checkpoint to go on from, to the same losses")
      ->check(CLI::ExistingFile)
      ->group(checkpoints);

  const char* const sample = "Sample";
  app.add_option("--prompt", o.prompt, "What the sample starts with")->group(sample);
  app.add_option("--length", o.length, "Tokens to write")
      ->check(at_least(0))
      ->capture_default_str()
      ->group(sample);
  app.add_option("--temperature", o.temperature, "0 writes the likeliest tokens")
      ->check(any)
      ->capture_default_str()
      ->group(sample);
  app.add_option("--top-k", o.top_k, "Choose among the k most probable; 0: all")
      ->check(at_least(0))
      ->capture_default_str()
      ->group(sample);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Trains a decoder-only transformer on a text, then lets it write."};
  describe(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 1;
  }
  if (options.text.empty())
    options.text = {XLA_EXAMPLE_TEXT_DIR "/README.md", XLA_EXAMPLE_TEXT_DIR "/include"};
  try {
#if XLA_HAS_MPI
    std::optional<xla::mpi::Environment> ranks;
    if (xla::mpi::launched()) ranks.emplace(argc, argv);
#endif
    run(std::move(options));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "train_decoder: %s\n", e.what());
    return 1;
  }
}
