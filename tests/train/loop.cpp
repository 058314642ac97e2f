// SPDX-License-Identifier: Apache-2.0
#include "xla/train/loop.hpp"

#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/mlp.hpp"
#include "xla/data/loader.hpp"

namespace {

namespace training = xla::training;
using test::count_of;
using test::mode;
using numbers = std::vector<double>;

std::int64_t samples_of(const char* metric) {
  const auto m = xla::metric_data(metric);
  return m ? m->total_samples : 0;
}

auto dataset(std::int64_t n) {
  const test::batch all(n);
  return xla::data::TensorDataset{all.data, all.target};
}

// The line of a training goes there.
struct sink {
  std::FILE* file = std::tmpfile();
  ~sink() { std::fclose(file); }
  std::string text() const {
    std::string out(static_cast<std::size_t>(std::ftell(file)), ' ');
    std::rewind(file);
    out.resize(std::fread(out.data(), 1, out.size(), file));
    return out;
  }
};

// What a training with this step leaves behind, and its losses.
template <class Step>
test::snapshot trained(Step step, training::run_mode how, numbers& losses) {
  xla::manual_seed(42);
  test::Mlp model;
  xla::nn::CrossEntropyLoss loss_fn;
  xla::optim::SGD optimizer{model, {.momentum = 0.9}};
  xla::data::DataLoader loader{dataset(50), {.batch_size = 16, .shuffle = true, .prefetch = 2}};
  const auto report =
      training::fit(model, step, loader,
                 {.epochs = 3,
                  .mode = how,
                  .log_every = 5,
                  .show = false,
                  .validate = [&] { return static_cast<double>(xla::sum(model.fc2.bias).item()); },
                  .schedule = [&](const auto& at) { optimizer.options.lr = 0.1 * (1 - at.part); }},
                 loss_fn, optimizer);
  CHECK(report.step == 12);
  CHECK(report.epoch == 3);
  CHECK(report.end == training::ending::completed);
  losses = report.losses.value;
  losses.insert(losses.end(), report.validations.value.begin(), report.validations.value.end());
  return test::state_of(model, optimizer);
}

// A step without tensors: the loss is that of a table, by the number of the call.
struct Scripted {
  numbers losses;
  std::size_t at = 0;
  double operator()(Scripted&, double) { return losses[std::min(at++, losses.size() - 1)]; }
};

training::report run(Scripted step, std::vector<double> loader, training::options how) {
  how.show = false;
  return training::fit(step, step, loader, how);
}

}  // namespace

TEST_CASE("a training has the same losses and parameters in every mode") {
  numbers eager, traced, compiled;
  const auto state = trained(test::step_fn, training::run_mode::eager, eager);
  CHECK(trained(test::step_fn, training::run_mode::traced, traced).difference(state) == "");
  CHECK(trained(xla::compile(test::step_fn), training::run_mode::current, compiled)
            .difference(state) == "");
  CHECK(traced == eager);
  CHECK(compiled == eager);
  CHECK(eager.size() == 1 + 3 + 3);  // read at steps 1, 4, 8, 12, before each validation
  CHECK(eager[3] < eager[0]);
}

TEST_CASE("a traced training is one graph a step, and reads losses only where it logs") {
  const xla::eager_mode_guard traced{false};
  xla::manual_seed(1);
  test::Mlp model;
  xla::nn::CrossEntropyLoss loss_fn;
  xla::optim::SGD optimizer{model, {.lr = 0.1}};
  xla::data::DataLoader loader{dataset(44), {.batch_size = 11}};
  xla::sync(true);
  xla::clear_all();
  std::vector<std::int64_t> read_at;
  const auto report =
      training::fit(model, test::step_fn, loader,
                 {.epochs = 6,
                  .log_every = 8,
                  .show = false,
                  .log = [&](const training::moment& at) { read_at.push_back(at.step); }},
                 loss_fn, optimizer);
  CHECK(report.step == 24);
  CHECK(samples_of("ExecuteTime") == 24);
  CHECK(count_of("UncachedCompile") <= 2);
  CHECK(count_of("UncachedCompile") + count_of("CachedCompile") == 24);
  CHECK(count_of("MarkStep") == 48);  // at entry and exit
  CHECK(read_at == std::vector<std::int64_t>{1, 9, 17, 24});
  CHECK(report.loss == report.losses.value.back());
}

TEST_CASE("a training goes on after the steps done before, and prints what is asked for") {
  const xla::eager_mode_guard eager;
  xla::manual_seed(1);
  test::Mlp model;
  xla::nn::CrossEntropyLoss loss_fn;
  xla::optim::SGD optimizer{model, {.lr = 0.1}};
  xla::data::DataLoader loader{dataset(44), {.batch_size = 11}};
  const sink out;
  std::vector<double> parts;
  training::options how;
  how.steps = 20;
  how.first_step = 14;
  how.log_every = 3;
  how.line = {.unit = "rows", .plain_seconds = 1e9, .stream = out.file};
  how.schedule = [&](const training::moment& at) { parts.push_back(at.part); };
  how.log_line = [](const training::moment& at) {
    CHECK(at.rate > 0);
    return "after " + std::to_string(at.step);
  };
  const auto report = training::fit(model, test::step_fn, loader, how, loss_fn, optimizer);
  CHECK(report.step == 20);
  CHECK(report.losses.step == numbers{15, 18, 20});
  REQUIRE(parts.size() == 6);
  CHECK(parts[1] == 0.75);
  const auto text = out.text();
  CHECK(text.find("after 15\n") < text.find("after 18\n"));
  CHECK(text.find("after 18\n") < text.find("20/20"));

  how.first_step = 20;
  CHECK(training::fit(model, test::step_fn, loader, how, loss_fn, optimizer).losses.step.empty());
}

TEST_CASE("a compiled training has one signature and executes no eager op") {
  const xla::eager_mode_guard eager;
  test::Mlp model;
  xla::nn::CrossEntropyLoss loss_fn;
  xla::optim::SGD optimizer{model, {.lr = 0.1}};
  std::vector<test::batch> batches;
  for (std::uint64_t i = 0; i < 4; ++i) batches.emplace_back(8, i);
  std::vector<std::tuple<xla::Tensor<float, 2>, xla::Tensor<std::int64_t, 1>>> loader;
  for (auto& b : batches) loader.emplace_back(b.data, b.target);
  auto step = xla::compile(test::step_fn);
  xla::clear_all();
  const auto report =
      training::fit(model, step, loader, {.steps = 10, .show = false}, loss_fn, optimizer);
  CHECK(report.step == 10);
  CHECK(report.epoch == 2);
  CHECK(samples_of("ExecuteTime") == 10);
  CHECK(count_of("UncachedCompile") == 1);
  CHECK(samples_of("EagerOpExecuteTime") == 0);
}

TEST_CASE("epochs, steps and seconds: what is reached first ends the training") {
  const std::vector<double> three(3);
  CHECK(run({{1}}, three, {}).step == 3);
  CHECK(run({{1}}, three, {.epochs = 4}).step == 12);
  CHECK(run({{1}}, three, {.steps = 7}).step == 7);
  CHECK(run({{1}}, three, {.epochs = 2, .steps = 7}).step == 6);
  CHECK(run({{1}}, three, {.epochs = 3, .steps = 7}).epoch == 2);
  CHECK(run({{1}}, three, {.steps = 6}).epoch == 2);
  const auto timed = run({{1}}, three, {.seconds = 0.02});
  CHECK(timed.step > 1);
  CHECK(timed.seconds >= 0.02);
  CHECK(timed.part == 1);
  CHECK_THROWS_WITH(run({{1}}, {}, {.epochs = 2}), "fit: the loader gave no batch");
  CHECK_THROWS_AS(run({{1}}, three, {.log_every = 0}), xla::error);
}

TEST_CASE("the loss is the mean since the reading before") {
  const auto report = run({{1, 2, 3, 4, 5, 6, 7}}, std::vector<double>(7), {.log_every = 3});
  CHECK(report.losses.step == numbers{1, 4, 7});
  CHECK(report.losses.value == numbers{1, 3, 6});
  CHECK(report.loss == 6);
}

TEST_CASE("validation, best value and checkpoints") {
  const std::vector<double> ten(10);
  numbers given{5, 3, 4, 2}, saved;
  std::size_t next = 0;
  const auto report = run({{1}}, ten,
                          {.steps = 12,
                           .validate = [&] { return given[next++]; },
                           .validate_every = 4,
                           .checkpoint =
                               [&](const training::moment& at) {
                                 CHECK(at.validation == at.best);
                                 saved.push_back(static_cast<double>(at.step));
                               }});
  CHECK(report.validations.step == numbers{4, 8, 12});
  CHECK(report.validations.value == numbers{5, 3, 4});
  CHECK(report.best == 3);
  CHECK(report.best_step == 8);
  CHECK(report.validation == 4);
  CHECK(saved == numbers{4, 8});

  next = 0;
  const auto ends = run({{1}}, ten,
                        {.epochs = 2,
                         .steps = 15,
                         .validate = [&] { return given[next++]; },
                         .higher_is_better = true});
  CHECK(ends.validations.step == numbers{10, 15});
  CHECK(ends.best == 5);
  CHECK(ends.best_step == 10);

  saved.clear();
  const auto save = [&](const training::moment& at) {
    saved.push_back(static_cast<double>(at.step));
  };
  run({{1}}, ten, {.steps = 25, .checkpoint = save});
  CHECK(saved == numbers{10, 20});
  saved.clear();
  run({{1}}, ten, {.steps = 25, .checkpoint = save, .checkpoint_every = 7});
  CHECK(saved == numbers{7, 14, 21});
}

TEST_CASE("an epoch ends with its validation, then its callback") {
  std::vector<xla::training::moment> seen;
  const auto report = run({{1}}, {0, 0},
                          {.epochs = 3,
                           .validate = [] { return 2.0; },
                           .after_epoch = [&](const training::moment& at) { seen.push_back(at); }});
  REQUIRE(seen.size() == 3);
  CHECK(seen[0].validation == 2);
  CHECK(seen[0].epoch == 1);
  CHECK(seen[2].step == 6);
  CHECK(report.part == 1);
}

TEST_CASE("early stop waits for this many validations without gain") {
  const numbers values{4, 3, 2.95, 3.1, 2.99, 1};
  std::size_t next = 0;
  const auto report = run(
      {{1}}, {0},
      {.epochs = 100, .validate = [&] { return values[next++]; }, .patience = 3, .min_delta = 0.1});
  CHECK(report.stopped_early());
  CHECK(report.step == 5);
  CHECK(report.best == 3);
  next = 0;
  CHECK(run({{1}}, {0}, {.epochs = 6, .validate = [&] { return values[next++]; }, .patience = 3})
            .best == 1);  // 2.95 is a gain now
}

TEST_CASE("a loss that is not finite, a callback and an interrupt end the training") {
  const std::vector<double> many(100);
  const auto diverged = run({{1, 1, NAN, 1}}, many, {.log_every = 2});
  CHECK(diverged.end == training::ending::diverged);
  CHECK(diverged.step == 3);
  const auto stopped =
      run({{1}}, many, {.after_step = [](const training::moment& at) { return at.step < 5; }});
  CHECK(stopped.end == training::ending::stopped);
  CHECK(stopped.step == 5);
  const auto interrupted = run({{1}}, many, {.schedule = [](const training::moment& at) {
                                 if (at.step == 3) std::raise(SIGINT);
                               }});
  CHECK(interrupted.end == training::ending::interrupted);
  CHECK(interrupted.step == 4);
}

namespace {

struct Flagged {
  xla::TrainingFlag training;
  XLA_MODULE(training)
};

}  // namespace

TEST_CASE("the model trains, evaluates for validation, and is as it was at the end") {
  Flagged model;
  model.eval();
  std::vector<double> loader(4);
  const auto step = [](auto& m, double) { return m.is_training() ? 1.0 : 2.0; };
  const auto validate = [&] { return model.is_training() ? 1.0 : 0.0; };
  const auto report =
      training::fit(model, step, loader, {.epochs = 2, .show = false, .validate = validate});
  CHECK(report.losses.value == numbers(report.losses.value.size(), 1.0));
  CHECK(report.validations.value == numbers{0, 0});
  CHECK_FALSE(model.is_training());
}

TEST_CASE("exceptions in a step are rethrown, with the modes restored") {
  const xla::eager_mode_guard eager;
  Flagged model;
  model.eval();
  auto x = xla::tensor<float>({1, 2});
  std::vector<double> loader(4);
  const auto step = [&](auto&, double) -> xla::Tensor<float, 0> {
    x += 1.f;
    if (!xla::is_eager_mode()) throw std::runtime_error("in traced mode");
    return xla::sum(x);
  };
  CHECK_THROWS_WITH(
      training::fit(model, step, loader, {.mode = training::run_mode::traced, .show = false}),
      "in traced mode");
  CHECK(xla::is_eager_mode());
  CHECK_FALSE(model.is_training());
  CHECK(x.to_vector() == std::vector<float>{2, 3});
  CHECK_THROWS_WITH(
      training::fit(
          model, step, loader,
          {.show = false, .validate = []() -> double { throw std::runtime_error("no data"); }}),
      "no data");
  CHECK_FALSE(model.is_training());
}

TEST_CASE("a step may return more than its loss, and a batch may be one tensor") {
  int model = 0;
  std::vector<xla::Tensor<float, 2>> loader{xla::ones<float>({5, 2}), xla::ones<float>({3, 2})};
  const sink out;
  const auto step = [](auto&, auto& data, float scale) {
    return std::tuple(xla::mean(data) * scale, xla::sum(data));
  };
  const float scale = 3;
  const auto report = training::fit(model, step, loader,
                                 {.epochs = 2,
                                  .log_every = 1,
                                  .line = {.unit = "rows", .stream = out.file, .terminal = false},
                                  .validate = [] { return 0.25; },
                                  .validation_name = "error"},
                                 scale);
  CHECK(report.losses.value == numbers{3, 3, 3, 3});
  const auto text = out.text();
  INFO(text);
  CHECK(text.starts_with("1/4  25%  loss 3  epoch 1"));
  CHECK(text.find("4/4 100%  loss 3  epoch 2  error 0.25  ") != std::string::npos);
  CHECK(text.find(" rows/s  took 0:00\n") != std::string::npos);
}
