// SPDX-License-Identifier: Apache-2.0
// Trains a network on a folder of class folders of pictures, from the beginning or from weights.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "../image_models.hpp"
#include "options.hpp"

namespace {

// MODEL(name) for each model that the program was built with.
#define MODEL(name) {#name, run<name>},
const std::map<std::string, void (*)(const Options&)> entries{XLA_EXAMPLE_ENTRIES};
#undef MODEL

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const auto& [name, run] : entries) all.push_back(name);
  return all;
}

void describe_data(CLI::App& app, Options& o) {
  const CLI::Range size(std::int64_t{0}, std::int64_t{1} << 14), count(1, 1 << 12);
  const char* const group = "Pictures";
  app.add_option("pictures", o.pictures,
                 "Folder with a folder of PNG and JPEG files for each class")
      ->required()
      ->check(CLI::ExistingDirectory);
  app.add_option("--held-out", o.held_out,
                 "Such a folder to be asked (default: a share of the first)")
      ->check(CLI::ExistingDirectory)
      ->group(group);
  app.add_option("--share", o.share, "This share")
      ->check(CLI::Range(0.01, 0.99))
      ->capture_default_str()
      ->group(group);
  app.add_option("--size", o.size, "Height and width for the model; 0: the model's")
      ->check(size)
      ->group(group);
  app.add_option("--resize", o.resize,
                 "Shorter side that pictures get before they are cut; 0: fits")
      ->check(size)
      ->group(group);
  app.add_option("--augment", o.augment,
                 "resized: random windows, resized; moved: windows near the middle; none")
      ->check(CLI::IsMember({"resized", "moved", "none"}))
      ->capture_default_str()
      ->group(group);
  app.add_flag("--flip,!--no-flip", o.flip, "Mirror every other picture")->group(group);
  app.add_option("--unreadable", o.unreadable, "What a damaged picture does to the run")
      ->check(CLI::IsMember({"stop", "skip"}))
      ->capture_default_str()
      ->group(group);
  app.add_option("--threads", o.threads, "That read pictures; 0: as many as there are processors")
      ->check(CLI::Range(0, 1024))
      ->group(group);
  app.add_option("--ahead", o.ahead, "Batches read ahead")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str()
      ->group(group);
}

void describe_training(CLI::App& app, Options& o) {
  const CLI::Range positive(1e-12, 1e9), any(0.0, 1e9), part(0.0, 1.0);
  const CLI::Range count(std::int64_t{1}, std::int64_t{1} << 40);
  const char* const group = "Training";
  app.add_option("--weights", o.weights,
                 "Safetensors to begin with, or a folder of Hugging Face's with them")
      ->check(CLI::ExistingPath)
      ->group(group);
  app.add_flag("--freeze", o.freeze, "Train the last layer alone")->group(group);
  app.add_option("--epochs", o.epochs)->check(count)->capture_default_str()->group(group);
  app.add_option("--batch", o.batch)->check(count)->capture_default_str()->group(group);
  app.add_option("--lr", o.lr, "Highest learning rate of AdamW (default: the model's)")
      ->check(positive)
      ->group(group);
  app.add_option("--min-lr", o.min_lr, "The rate at the end, as a part of the highest")
      ->check(part)
      ->capture_default_str()
      ->group(group);
  app.add_option("--warmup", o.warmup, "The part of all steps on which the rate rises")
      ->check(part)
      ->capture_default_str()
      ->group(group);
  app.add_option("--weight-decay", o.weight_decay)->check(any)->capture_default_str()->group(group);
  app.add_option("--seed", o.seed)
      ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{1} << 53))
      ->capture_default_str()
      ->group(group);
}

void describe_results(CLI::App& app, Options& o) {
  const CLI::Range count(std::int64_t{1}, std::int64_t{1} << 40);
  const char* const group = "Results";
  app.add_option("--log-every", o.log_every, "Steps between lines")
      ->check(count)
      ->capture_default_str()
      ->group(group);
  app.add_option("--curves", o.curves, "Curves go to <this>_loss.svg and <this>_accuracy.svg")
      ->capture_default_str()
      ->group(group);
  app.add_option("--output", o.output, "Safetensors for the weights of the best accuracy")
      ->group(group);
  app.add_option("--checkpoint", o.checkpoint, "File to write")->group(group);
  app.add_option("--save-every", o.save_every, "Steps between writings (default: an epoch)")
      ->check(count)
      ->group(group);
  app.add_option("--resume", o.resume, "Checkpoint to go on from, to the same losses")
      ->check(CLI::ExistingFile)
      ->group(group);
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  CLI::App app{"Trains a network on a folder of class folders of pictures."};
  app.option_defaults()->take_last();
  o.model = entries.contains("resnet18") ? "resnet18" : entries.begin()->first;
  app.add_option("--model", o.model)->check(CLI::IsMember(names()))->capture_default_str();
  app.add_option("--mode", o.mode)
      ->check(CLI::IsMember({"compiled", "traced", "eager"}))
      ->capture_default_str();
  describe_data(app, o);
  describe_training(app, o);
  describe_results(app, o);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 1;
  }
  if (o.threads == 0)
    o.threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  try {
    entries.at(o.model)(o);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "train_images: %s\n", e.what());
    return 1;
  }
}
