// SPDX-License-Identifier: Apache-2.0
#include "xla/ext/checkpoint.hpp"

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "support/modes.hpp"
#include "xla/nn/batch_norm.hpp"
#include "xla/nn/dropout.hpp"
#include "xla/nn/linear.hpp"
#include "xla/op/reduce.hpp"
#include "xla/op/relu.hpp"
#include "xla/optim/adamw.hpp"
#include "xla/optim/average.hpp"
#include "xla/optim/schedule.hpp"

namespace nn = xla::nn;
using xla::ext::load_checkpoint;
using xla::ext::save_checkpoint;

namespace {

struct Model {
  nn::Linear in{5, 16};
  nn::BatchNorm1d norm{16};
  nn::Dropout dropout{0.3};
  nn::Linear out{16, 3};
  constexpr auto operator()(const xla::Tensor<float, 2>& x) const {
    return out(dropout(xla::relu(norm(in(x)))));
  }
  XLA_MODULE(in, norm, dropout, out)
};

constexpr auto step_fn = [](auto& model, auto& x, auto& optimizer, auto& average) {
  optimizer.zero_grad();
  const auto y = model(x);
  auto loss = sum(y * y);
  loss.backward();
  optimizer.step();
  average.update();
  return loss;
};

/// One training run: a model, what updates it, and the data that it is at.
struct Run {
  Model model;
  xla::optim::AdamW<Model> optimizer{model, {.lr = 0.05, .weight_decay = 0.1}};
  xla::optim::ExponentialMovingAverage<Model> average{model, {.decay = 0.9, .use_buffers = true}};
  xla::optim::CosineAnnealingLR<xla::optim::AdamW<Model>> schedule{optimizer, {.T_max = 7}};
  xla::optim::ReduceLROnPlateau<xla::optim::AdamW<Model>> plateau{
      optimizer, {.factor = 0.7, .patience = 1, .cooldown = 2}};
  double position = 0;

  template <class Step>
  std::vector<float> train(Step& step, int n) {
    std::vector<float> losses;
    for (int i = 0; i < n; ++i) {
      auto x = test::numbers<float>({8, 5}, static_cast<std::uint64_t>(position++));
      losses.push_back(step(model, x, optimizer, average).item());
      schedule.step();
      plateau.step(losses.back());
    }
    return losses;
  }
};

struct file {
  std::string path;
  explicit file(const char* name)
      : path((std::filesystem::temp_directory_path() / name).string()) {}
  ~file() { std::filesystem::remove(path); }
};

template <class Step>
std::vector<float> check_resumed(Step step) {
  const file f{"xla_test_checkpoint.safetensors"};
  xla::manual_seed(11);
  Run a;
  a.train(step, 10);
  save_checkpoint(f.path, {{"step", 10}, {"position", a.position}, {"loss", 0.1}}, a.model,
                  a.optimizer, a.average, a.schedule, a.plateau);
  const auto want = a.train(step, 10);

  xla::manual_seed(12345);
  Run b;
  b.train(step, 3);
  const auto numbers =
      load_checkpoint(f.path, b.model, b.optimizer, b.average, b.schedule, b.plateau);
  CHECK(b.schedule.last_epoch() == 10);
  CHECK(numbers == xla::ext::CheckpointNumbers{{"step", 10}, {"position", 10}, {"loss", 0.1}});
  b.position = numbers.at("position");
  CHECK(b.train(step, 10) == want);
  CHECK(xla::state_dict(b.model) == xla::state_dict(a.model));
  CHECK(xla::state_dict(b.optimizer) == xla::state_dict(a.optimizer));
  CHECK(xla::state_dict(b.average) == xla::state_dict(a.average));
  CHECK(xla::state_dict(b.schedule) == xla::state_dict(a.schedule));
  CHECK(xla::state_dict(b.plateau) == xla::state_dict(a.plateau));
  CHECK(b.schedule.last_epoch() == 20);
  return want;
}

}  // namespace

TEST_CASE("training goes on from a checkpoint bit for bit, in every mode") {
  const auto traced = check_resumed(step_fn);
  const xla::eager_mode_guard eager;
  CHECK(check_resumed(step_fn) == traced);
  CHECK(check_resumed(xla::compile(step_fn)) == traced);
}

TEST_CASE("a checkpoint's file has the model's own names, and gives a model alone") {
  const xla::eager_mode_guard eager;
  const file f{"xla_test_checkpoint_names.safetensors"};
  Run a, b;
  save_checkpoint(f.path, {}, a.model, a.optimizer);
  const auto content = xla::ext::read_safetensors(f.path);
  auto has = [&](const std::string& name) {
    return std::any_of(content.tensors.begin(), content.tensors.end(),
                       [&](const auto& t) { return t.name == name; });
  };
  CHECK(has("in.weight"));
  CHECK(has("norm.running_var"));
  CHECK(has("@optimizer.0.in.weight.1"));
  CHECK(has("@optimizer.0.step"));
  CHECK(has("@optimizer.0.options.lr"));
  CHECK(xla::load_state_dict(b.model, content.tensors, false).missing_keys.empty());
  CHECK(xla::state_dict(b.model) == xla::state_dict(a.model));
  save_checkpoint(f.path, {}, a.model, b.model);
  CHECK(load_checkpoint(f.path, b.model, a.model).empty());
}

TEST_CASE("a checkpoint that does not fit, or is damaged, changes nothing") {
  const xla::eager_mode_guard eager;
  const file f{"xla_test_checkpoint_bad.safetensors"};
  Run run;
  const auto before = xla::state_dict(run.model);
  auto refusal = [&] {
    std::string said = "accepted";
    xla::manual_seed(99);
    try {
      load_checkpoint(f.path, run.model, run.optimizer);
    } catch (const xla::io_error& e) {
      said = e.what();
    }
    CHECK(xla::state_dict(run.model) == before);
    CHECK(xla::get_rng_state() == xla::rng_state{99, 0});
    return said;
  };
  CHECK_THAT(refusal(), test::contains("cannot open '" + f.path + "'"));

  Run other;
  save_checkpoint(f.path, {{"step", 1}}, other.model);
  CHECK_THAT(refusal(), test::contains("'" + f.path + "': the state does not fit"));
  CHECK_THAT(refusal(), test::contains("missing: @optimizer.0.step"));
  save_checkpoint(f.path, {{"step", 1}}, other.model, other.optimizer, other.average);
  CHECK_THAT(refusal(), test::contains("unexpected: @optimizer.1."));
  CHECK_THAT(refusal(), test::contains("@optimizer.1.options.decay"));

  save_checkpoint(f.path, {{"step", 1}}, other.model, other.optimizer);
  const auto good = xla::ext::read_safetensors(f.path);
  for (const std::string text : {"", "1x", " 1", "-1", "1.5", "18446744073709551616"}) {
    auto bad = good;
    bad.metadata["rng.seed"] = text;
    xla::ext::write_safetensors(f.path, bad);
    CHECK_THAT(refusal(), test::contains("its metadata 'rng.seed' is '" + text + "'"));
  }
  auto bad = good;
  bad.metadata["number.step"] = "one";
  xla::ext::write_safetensors(f.path, bad);
  CHECK_THAT(refusal(), test::contains("'number.step' is 'one', expected a number"));
  bad = good;
  bad.metadata.erase("rng.offset");
  xla::ext::write_safetensors(f.path, bad);
  CHECK_THAT(refusal(), test::contains("it lacks the random number generator's state"));

  bad = good;
  bad.metadata["number.step"] = "2";
  xla::ext::write_safetensors(f.path, bad);
  CHECK_THAT(refusal(), test::contains("is damaged: its checksum does not match"));
  bad.metadata.erase("checksum");
  xla::ext::write_safetensors(f.path, bad);
  CHECK_THAT(refusal(), test::contains("it lacks its checksum"));

  auto bytes = xla::ext::to_safetensors(good);
  bytes.resize(bytes.size() - 1);
  xla::io::write_file(f.path, bytes);
  CHECK_THAT(refusal(), test::contains("is not a safetensors file that can be read"));
}

TEST_CASE("a flipped bit anywhere in a checkpoint is found") {
  const xla::eager_mode_guard eager;
  const file f{"xla_test_checkpoint_bit.safetensors"};
  nn::Linear model{2, 1};
  save_checkpoint(f.path, {{"step", 1}}, model);
  const auto good = xla::io::read_file(f.path);
  const auto before = xla::state_dict(model);
  int accepted = 0;
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    auto bytes = good;
    bytes[bit / 8] = static_cast<std::uint8_t>(bytes[bit / 8] ^ 1u << bit % 8);
    xla::io::write_file(f.path, bytes);
    try {
      load_checkpoint(f.path, model);
      ++accepted;
    } catch (const xla::io_error&) {}
    if (xla::state_dict(model) != before) FAIL("bit " << bit << " changed the model");
  }
  CHECK(accepted == 0);
  xla::io::write_file(f.path, good);
  CHECK(load_checkpoint(f.path, model) == xla::ext::CheckpointNumbers{{"step", 1}});
}

TEST_CASE("the checksum is CRC-32") {
  const auto sum = [](const std::string& text) {
    xla::ext::detail::crc32 c;
    c.add({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
    return c.value();
  };
  CHECK(sum("123456789") == 0xCBF43926);  // the catalogue's check value
  CHECK(sum("") == 0);
  CHECK(sum("The quick brown fox jumps over the lazy dog") == 0x414FA339);
}

TEST_CASE("every schedule goes on from its numbers") {
  const xla::eager_mode_guard eager;
  namespace optim = xla::optim;
  auto check = [](auto make) {
    Run a, b;
    auto from = make(a.optimizer), to = make(b.optimizer);
    const auto go = [](auto& schedule, int n) {
      for (int i = 0; i < n; ++i) schedule.step();
    };
    go(from, 5);
    const auto optimizer = xla::state_dict(a.optimizer), schedule = xla::state_dict(from);
    go(to, 2);
    xla::load_state_dict(b.optimizer, optimizer);
    xla::load_state_dict(to, schedule);
    for (int i = 0; i < 5; ++i) {
      go(from, 1);
      go(to, 1);
      CHECK(to.last_lr() == from.last_lr());
      CHECK(to.last_epoch() == from.last_epoch());
    }
  };
  check([](auto& o) { return optim::LambdaLR(o, [](int t) { return 1.0 / (1 + t * t); }); });
  check([](auto& o) { return optim::StepLR(o, {.step_size = 3}); });
  check([](auto& o) { return optim::MultiStepLR(o, {.milestones = {2, 6, 6, 9}}); });
  check([](auto& o) { return optim::ExponentialLR(o, {.gamma = 0.7}); });
  check([](auto& o) { return optim::CosineAnnealingLR(o, {.T_max = 4}); });
  check([](auto& o) { return optim::LinearLR(o, {.total_iters = 8}); });
  check([](auto& o) { return optim::OneCycleLR(o, {.max_lr = 1, .total_steps = 12}); });
  Run run;
  auto numbers = xla::state_dict(run.plateau);
  CHECK(numbers.size() == 5);
  CHECK(numbers[0].name == "last_epoch");
  numbers[0].bytes.edit().back() = 1;
  CHECK_THROWS_WITH(xla::load_state_dict(run.plateau, numbers),
                    test::contains("last_epoch: 72057594037927936 is out of range"));
}
