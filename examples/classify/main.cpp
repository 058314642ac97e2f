// SPDX-License-Identifier: Apache-2.0
// Says what pictures show, by a network with weights of PyTorch's or of this library.
#include <CLI/CLI.hpp>

#include <cstdio>
#include <exception>
#include <map>
#include <string>
#include <vector>

#include "options.hpp"

// MODEL(name) for each model that the program was built with.
#define MODEL(name) struct name;
XLA_EXAMPLE_ENTRIES
#undef MODEL

namespace {

#define MODEL(name) {#name, classify<name>},
const std::map<std::string, bool (*)(const Options&)> entries{XLA_EXAMPLE_ENTRIES};
#undef MODEL

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const auto& [name, run] : entries) all.push_back(name);
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  CLI::App app{"Says what pictures show."};
  app.option_defaults()->take_last();
  const CLI::Range size(std::int64_t{0}, std::int64_t{1} << 14), count(1, 1 << 20);
  o.model = entries.contains("resnet18") ? "resnet18" : entries.begin()->first;
  app.add_option("--model", o.model)->check(CLI::IsMember(names()))->capture_default_str();
  app.add_option("--weights", o.weights,
                 "A state_dict in safetensors, or a folder of Hugging Face's with one")
      ->required()
      ->check(CLI::ExistingPath);
  app.add_option("--labels", o.labels, "The classes' names, one a line")->check(CLI::ExistingFile);
  app.add_option("--mode", o.mode)
      ->check(CLI::IsMember({"compiled", "traced", "eager"}))
      ->capture_default_str();
  app.add_option("--size", o.size, "Height and width for the model; 0: the model's")->check(size);
  app.add_option("--resize", o.resize, "Shorter side that pictures get before; 0: 8/7 of the size")
      ->check(size);
  app.add_option("--top", o.top, "Labels of each picture")->check(count)->capture_default_str();
  app.add_option("--repeat", o.repeat, "Times that each is classified, for the median latency")
      ->check(count)
      ->capture_default_str();
  app.add_option("--threads", o.threads, "0: as many as there are processors")
      ->check(CLI::Range(0, 1024));
  app.add_option("pictures", o.pictures, "PNG and JPEG files")->required()->take_all();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 1;
  }
  try {
    return entries.at(o.model)(o) ? 0 : 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "classify: %s\n", e.what());
    return 1;
  }
}
