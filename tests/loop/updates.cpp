// SPDX-License-Identifier: Apache-2.0
// An optimizer's update of a block's parameters runs between the steps of the loop that makes their
// gradients, where it may: the bits are those of updates after the loop, and of blocks one by one.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>

#include "support/modes.hpp"
#include "xla/loop.hpp"
#include "xla/loop/scan_layers.hpp"
#include "xla/xla.hpp"

using test::numbers;
namespace optim = xla::optim;

namespace {

constexpr std::int64_t side = 24;

struct layer {
  xla::Parameter<float, 2> weight{{side, side}};
  xla::Parameter<float, 1> bias{{side}};
  constexpr auto operator()(const xla::Tensor<float, 2>& x) const {
    return x + xla::tanh(matmul(x, weight) + bias);
  }
  /// Reads the bias of another block, too.
  constexpr auto operator()(const xla::Tensor<float, 2>& x,
                            const xla::Tensor<float, 1>& other) const {
    return x + xla::tanh(matmul(x * other, weight) + bias);
  }
  XLA_MODULE(weight, bias)
};
template <std::size_t Blocks>
struct network_of {
  xla::Parameter<float, 1> in{{side}};
  std::array<layer, Blocks> blocks;
  XLA_MODULE(in, blocks)
};
using network = network_of<3>;

constexpr auto plain = [](auto& model, auto& x, auto& optimizer) {
  optimizer.zero_grad();
  const auto loss = sum(xla::square(xla::scan_layers(model.blocks, x * model.in)));
  loss.backward();
  optimizer.step();
  return loss;
};
/// The norm of all gradients is known after the loop.
constexpr auto clipped = [](auto& model, auto& x, auto& optimizer) {
  optimizer.zero_grad();
  const auto loss = sum(xla::square(xla::scan_layers(model.blocks, x * model.in)));
  loss.backward();
  optim::clip_grad_norm_(model, 1);
  optimizer.step();
  return loss;
};
/// Gradients add to those of earlier steps, and the step returns some, and a new parameter.
constexpr auto adding = [](auto& model, auto& x, auto& optimizer) {
  const auto loss = sum(xla::square(xla::scan_layers(model.blocks, x * model.in)));
  loss.backward();
  optimizer.step();
  return std::tuple(loss, model.blocks[1].weight.grad() * 2, sum(model.blocks[2].bias.detach()));
};
/// All blocks read the last one's bias, which therefore stays as it is until the loop has ended.
constexpr auto reading_another = [](auto& model, auto& x, auto& optimizer) {
  optimizer.zero_grad();
  const auto y = xla::scan_layers(model.blocks, x * model.in, model.blocks[2].bias.detach());
  const auto loss = sum(xla::square(y));
  loss.backward();
  optimizer.step();
  return loss;
};

constexpr auto adamw = [](auto& model) { return optim::AdamW{model, {.lr = 0.01}}; };
constexpr auto momentum = [](auto& model) {
  return optim::SGD{model, {.lr = 0.01, .momentum = 0.9}};
};

network make_network() {
  network model;
  unsigned seed = 0;
  xla::for_each_parameter(model, [&]<class P>(P& p) {
    if constexpr (P::rank == 2) p.copy_(numbers<float>({side, side}, ++seed) * 0.2f);
    else p.copy_(numbers<float>({side}, ++seed));
  });
  return model;
}
/// What steps leave behind; freezes: in some of them parameters are frozen.
template <class Make>
test::snapshot train(auto&& step, const Make& make, bool freezes = true) {
  network model = make_network();
  auto optimizer = make(model);
  test::snapshot all;
  for (unsigned i = 0; i < 5; ++i) {
    model.blocks[1].bias.requires_grad_(!freezes || i != 2);
    for (auto& b : model.blocks) b.weight.requires_grad_(!freezes || i != 3);
    auto x = numbers<float>({6, side}, 20 + i);
    all.add(step(model, x, optimizer));
    all.add(model);
    optimizer.visit_state([&](auto& kept, const auto&) { all.add(kept); });
  }
  return all;
}

/// How many regions run between the steps of a loop.
template <class Step, class Make>
std::ptrdiff_t count_joined(Step& step, const Make& make) {
  network model = make_network();
  auto optimizer = make(model);
  auto x = numbers<float>({6, side}, 1);
  const std::string text = step.graph(xla::Stage::planned, model, x, optimizer);
  std::ptrdiff_t n = 0;
  for (auto at = text.find("\nstep "); at != text.npos; at = text.find("\nstep ", at + 1)) {
    const std::string line = text.substr(at + 1, text.find('\n', at + 1) - at - 1);
    n += line.find(" group 0: map") != line.npos;
  }
  return n;
}

class on_threads {
 public:
  explicit on_threads(int n) : before_(xla::num_threads()) { xla::set_num_threads(n); }
  ~on_threads() { xla::set_num_threads(before_); }
  on_threads(const on_threads&) = delete;

 private:
  int before_;
};

template <class F, class Make>
std::ptrdiff_t joined(const F& f, const Make& make, bool freezes = true) {
  const xla::eager_mode_guard eager;
  const on_threads one(1);
  auto with = xla::compile<xla::tags::verified>(f);
  auto without = xla::compile<xla::tags::without<"updates">>(f);
  const auto expected = train(f, make, freezes);
  CHECK(train(with, make, freezes).difference(expected) == "");
  CHECK(train(without, make, freezes).difference(expected) == "");
  CHECK(count_joined(without, make) == 0);
  return count_joined(with, make);
}

/// Bytes that a call takes for itself.
template <std::size_t Blocks, class F>
std::int64_t arena_of(const F& f) {
  const xla::eager_mode_guard eager;
  const on_threads one(1);
  network_of<Blocks> model;
  auto optimizer = adamw(model);
  auto x = numbers<float>({6, side}, 1);
  return xla::compile(f).memory_analysis(model, x, optimizer).arena;
}

}  // namespace

TEST_CASE("what a loop keeps for gradients is in the memory of gradients that come later") {
  constexpr std::int64_t kept = 6 * side * 4;  // of one block
  CHECK(arena_of<6>(plain) < arena_of<3>(plain) + kept);
  CHECK(arena_of<6>(clipped) > arena_of<3>(clipped) + kept);
}

TEST_CASE("updates run between the steps of the loop that makes their gradients") {
  CHECK(joined(plain, adamw) == 6);
  CHECK(joined(plain, momentum) == 6);
}

TEST_CASE("updates that wait for all gradients run after the loop") {
  CHECK(joined(clipped, adamw) == 0);
}

TEST_CASE("an update waits if other steps of the loop read the parameter") {
  CHECK(joined(reading_another, adamw) == 5);
}

TEST_CASE("gradients of several steps, which are read after the update") {
  CHECK(joined(adding, momentum, false) == 6);
}

TEST_CASE("traced steps, and small updates on several threads") {
  {
    const on_threads one(1);
    const auto expected = [] {
      const xla::eager_mode_guard eager;
      return train(plain, adamw);
    }();
    CHECK(train(plain, adamw).difference(expected) == "");
  }
  const xla::eager_mode_guard eager;
  const on_threads two(2);
  auto step = xla::compile(plain);
  CHECK(count_joined(step, adamw) == 0);
  CHECK(train(step, adamw).difference(train(plain, adamw)) == "");
}
