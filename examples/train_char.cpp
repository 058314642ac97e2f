// SPDX-License-Identifier: Apache-2.0
// Trains a model that tells the next character of a text from the characters before it, then lets
// it write.
#include <CLI/CLI.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <string>
#include <vector>

#include <xla/io/svg.hpp>
#include <xla/train/loop.hpp>
#include <xla/xla.hpp>

#include "char_text.hpp"

namespace nn = xla::nn;

namespace {

/// From (batch, Window) characters to logits of the next one: (batch, vocabulary).
template <std::int64_t Window, std::int64_t Width, std::int64_t Hidden1, std::int64_t Hidden2>
struct CharModel {
  static constexpr std::int64_t window = Window;
  nn::Embedding embedding{vocabulary, Width};
  nn::Linear hidden1{Window * Width, Hidden1}, hidden2{Hidden1, Hidden2};
  nn::Linear out{Hidden2, vocabulary};

  constexpr auto operator()(xla::Tensor<std::int64_t, 2> text) const {
    auto x = xla::flatten<1>(embedding(text));
    x = xla::relu(hidden1(x));
    x = xla::relu(hidden2(x));
    return out(x);
  }
  XLA_MODULE(embedding, hidden1, hidden2, out)
};
using Model = CharModel<32, 16, 512, 256>;

constexpr auto step_fn = [](auto& model, auto& data, auto& target, auto& loss_fn, auto& optimizer) {
  optimizer.zero_grad();
  auto logits = model(data);
  auto loss = loss_fn(logits, target);
  loss.backward();
  optimizer.step();
  return loss;
};

constexpr auto evaluate_fn = [](auto& model, auto& data, auto& target, auto& loss_fn) {
  return loss_fn(model(data), target);
};

struct Options {
  std::vector<std::string> text;
  std::int64_t steps = 0;  // with neither, 30 seconds
  double seconds = 0;
  std::int64_t batch = 256;
  double lr = 4e-3;
  std::uint64_t seed = 42;
  std::string mode = "compiled";
  std::string prompt = "/// The ";
  std::size_t length = 600;
  double temperature = 0.8;
  std::string curve = "train_char.svg";
};

/// Trains for options.steps or options.seconds, whichever is given and ends first. The learning
/// rate falls to a tenth on the way: it is an input of the step, so changing it compiles nothing.
template <class Step, class Evaluate>
xla::train::report train(const Options& options, const CharText& text, Model& model, Step& step,
                         Evaluate& evaluate) {
  nn::CrossEntropyLoss loss_fn;
  xla::optim::AdamW optimizer{model, {.lr = options.lr}};
  auto [held_out, held_out_next] = text.held_out(2048);
  xla::data::DataLoader loader{text.training(),
                               {.batch_size = options.batch,
                                .shuffle = true,
                                .seed = options.seed,
                                .drop_last = true,
                                .prefetch = 2}};
  return xla::train::fit(
      model, step, loader,
      {.steps = options.steps,
       .seconds = options.seconds,
       .line = {.unit = "chars"},
       .validate =
           [&] {
             const auto loss = evaluate(model, held_out, held_out_next, loss_fn);
             return static_cast<double>(loss.item());
           },
       .validate_every = 100,
       .schedule =
           [&](const auto& at) { optimizer.options.lr = options.lr * (1 - 0.9 * at.part); }},
      loss_fn, optimizer);
}

/// A character from the logits of the next one: the likeliest for temperature 0, above it by chance
/// `random` in [0, 1). Control characters but the end of a line and a tab are never chosen.
char choose(const std::vector<float>& logits, double temperature, double random) {
  std::vector<double> weights(logits.size(), 0);
  const auto allowed = [](std::size_t c) { return c == '\n' || c == '\t' || (c >= 32 && c < 127); };
  std::size_t best = '\n';
  for (std::size_t c = 0; c < logits.size(); ++c)
    if (allowed(c) && logits[c] > logits[best]) best = c;
  if (temperature <= 0) return static_cast<char>(best);
  double sum = 0;
  for (std::size_t c = 0; c < logits.size(); ++c)
    if (allowed(c))
      sum += weights[c] = std::exp(static_cast<double>(logits[c] - logits[best]) / temperature);
  random *= sum;
  for (std::size_t c = 0; c < logits.size(); ++c)
    if (weights[c] > 0 && (random -= weights[c]) < 0) return static_cast<char>(c);
  return static_cast<char>(best);
}

/// The prompt and what the model writes after it.
template <class Predict>
std::string write_text(const Options& options, const CharText& text, Predict& predict) {
  std::string out = options.prompt;
  for (std::size_t i = 0; i < options.length; ++i) {
    auto window = text.last_window(out);
    const auto logits = predict(window).to_vector();
    const auto words = xla::philox4x32(std::uint64_t{i}, ~options.seed);
    out += choose(logits, options.temperature, xla::uniform01(words[0], words[1]));
  }
  return out;
}

void save_curve(const std::string& path, const xla::train::report& report) {
  const auto series = [](const char* label, const xla::train::curve& curve) {
    return xla::io::chart_series{.label = label, .x = curve.step, .y = curve.value};
  };
  std::ofstream file(path);
  file << xla::io::to_svg(
      {.title = "Next character: loss",
       .x_label = "step",
       .y_label = "loss (nats per character)",
       .series = {series("training", report.losses), series("validation", report.validations)}});
  if (!file.flush()) throw xla::io_error("cannot write '" + path + "'");
}

template <class Step, class Evaluate, class Predict>
void run(const Options& options, Model& model, Step step, Evaluate evaluate, Predict predict) {
  const CharText text(read_texts(options.text), Model::window);
  std::printf("%zu characters of text, a model of %lld parameters, %s mode, %d threads\n",
              text.size(), static_cast<long long>(xla::parameter_count(model)),
              options.mode.c_str(), xla::num_threads());
  const auto report = train(options, text, model, step, evaluate);
  const auto trained = static_cast<double>(report.step * options.batch);
  std::printf(
      "\n%s%lld steps in %.1f s, %.0f characters/s; loss %.3f (from %.3f), validation %.3f "
      "nats per character\n",
      report.end == xla::train::ending::interrupted ? "interrupted: " : "",
      static_cast<long long>(report.step), report.seconds, trained / report.seconds, report.loss,
      report.losses.value.front(), report.validation);
  std::printf("\n--- sample at temperature %g\n%s\n---\n\n", options.temperature,
              write_text(options, text, predict).c_str());
  std::fputs(xla::metrics_report().c_str(), stdout);
  if (options.curve.empty()) return;
  save_curve(options.curve, report);
  std::printf("\nloss curve: %s\n", options.curve.c_str());
}

void run(const Options& options) {
  xla::eager_mode(options.mode != "traced");
  xla::manual_seed(options.seed);
  Model model;
  if (options.mode == "compiled") {
    run(options, model, xla::compile(step_fn, {.name = "char_step"}),
        xla::compile(evaluate_fn, {.name = "char_loss"}),
        xla::compile(model, {.name = "char_logits"}));
    return;
  }
  run(options, model, step_fn, evaluate_fn, [&](auto& window) { return model(window); });
}

void describe(CLI::App& app, Options& options) {
  app.add_option("--text", options.text,
                 "Files to learn, or folders of headers and Markdown files\n"
                 "(default: this library's README and headers)");
  app.add_option("--steps", options.steps, "Train for so many steps")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40));
  app.add_option("--seconds", options.seconds, "Train for a time; default: 30, if no --steps")
      ->check(CLI::Range(1e-3, 1e9));
  app.add_option("--batch", options.batch, "Windows per step")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--lr", options.lr, "Learning rate at the start")
      ->check(CLI::Range(0.0, 1e9))
      ->capture_default_str();
  app.add_option("--seed", options.seed)->capture_default_str();
  app.add_option("--mode", options.mode)
      ->check(CLI::IsMember({"compiled", "traced", "eager"}))
      ->capture_default_str();
  app.add_option("--prompt", options.prompt, "What the sample starts with")->capture_default_str();
  app.add_option("--length", options.length, "Characters to write")->capture_default_str();
  app.add_option("--temperature", options.temperature, "0 writes the likeliest characters")
      ->check(CLI::Range(0.0, 1e9))
      ->capture_default_str();
  app.add_option("--curve", options.curve, "File for the loss curve; empty for none")
      ->capture_default_str();
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Trains a model of the next character on a text, then lets it write."};
  describe(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 1;
  }
  if (options.text.empty())
    options.text = {XLA_EXAMPLE_TEXT_DIR "/README.md", XLA_EXAMPLE_TEXT_DIR "/include"};
  if (options.steps == 0 && options.seconds == 0) options.seconds = 30;
  try {
    run(options);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "train_char: %s\n", e.what());
    return 1;
  }
}
