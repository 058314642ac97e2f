// SPDX-License-Identifier: Apache-2.0
// A loop over blocks is the blocks called one after the other: the same bits, gradients in the
// same parameters, in every mode; blocks that differ are each its own, or refused.
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "support/modes.hpp"
#include "xla/functions.hpp"
#include "xla/loop/scan_layers.hpp"
#include "xla/nn/batch_norm.hpp"
#include "xla/nn/containers.hpp"
#include "xla/nn/dropout.hpp"
#include "xla/nn/linear.hpp"
#include "xla/nn/normalization.hpp"
#include "xla/op/functional_copy.hpp"
#include "xla/optim/adamw.hpp"
#include "xla/optim/clip.hpp"
#include "xla/optim/sgd.hpp"
#include "xla/run/profile.hpp"
#include "xla/run/state/metrics.hpp"
#include "xla/run/trace/checkpoint.hpp"

using test::contains;
using test::numbers;
using Matrix = xla::Tensor<float, 2>;

namespace {

struct block {
  xla::nn::LayerNorm norm{6};
  xla::nn::Linear up{6, 10}, down{10, 6};
  constexpr Matrix operator()(const Matrix& x) const { return x + down(xla::gelu(up(norm(x)))); }
  XLA_MODULE(norm, up, down)
};

/// How the blocks of a model are called.
enum class as { steps, loop, checkpoints, pairs_of_checkpoints };

template <as Way, class Blocks, class X, class... More>
constexpr auto through(const Blocks& blocks, const X& x, const More&... more) {
  if constexpr (Way == as::loop) {
    return xla::scan_layers(blocks, x, more...);
  } else if constexpr (Way == as::checkpoints) {
    return xla::scan_layers(blocks, x, more..., {.checkpoint_every = 1});
  } else if constexpr (Way == as::pairs_of_checkpoints) {
    return xla::scan_layers(blocks, x, more..., {.checkpoint_every = 2});
  } else {
    X y = x;
    for (const auto& one : blocks) y = one(y, more...);
    return y;
  }
}

template <class Block, int N>
struct network {
  xla::nn::Linear in{4, 6};
  std::array<Block, N> blocks;
  xla::nn::Linear out{6, 2};
  XLA_MODULE(in, blocks, out)
};

template <as Way>
struct loss_of {
  constexpr auto operator()(auto& model, auto& x) const {
    const Matrix h = through<Way>(model.blocks, model.in(x));
    auto loss = xla::mean(xla::square(model.out(h)));
    loss.backward();
    return std::tuple(loss, h);
  }
};

/// The loop in every mode, and block by block in eager mode: the same bits.
template <class F, class G, class... X>
void check_against(const F& loop, const G& steps, const X&... x) {
  test::check_modes(loop, x...);
  INFO("the loop against the blocks one by one");
  const auto a = test::run_as_told(test::mode::eager, loop, x...),
             b = test::run_as_told(test::mode::eager, steps, x...);
  CHECK(a.difference(b) == "");
}
template <as Way, class Model, class... X>
void check_way(const Model& model, const X&... x) {
  check_against(loss_of<Way>(), loss_of<as::steps>(), model, x...);
}

}  // namespace

TEST_CASE("blocks in a loop are blocks one after the other, with every gradient") {
  xla::manual_seed(1);
  check_way<as::loop>(network<block, 1>(), numbers<float>({3, 4}));
  check_way<as::loop>(network<block, 3>(), test::parameter(numbers<float>({5, 4})));
}

TEST_CASE("checkpoints of blocks change no bit") {
  xla::manual_seed(2);
  const network<block, 3> model;
  const auto x = test::parameter(numbers<float>({5, 4}));
  check_way<as::checkpoints>(model, x);
  check_way<as::pairs_of_checkpoints>(model, x);
  constexpr auto inside = [](auto& m, auto& v) {
    const auto again = [](const Matrix& h, const auto& one) { return xla::checkpoint(one, h); };
    Matrix h = m.in(v);
    for (const auto& one : m.blocks) h = again(h, one);
    auto loss = sum(h * h);
    loss.backward();
    return loss;
  };
  constexpr auto loop = [](auto& m, auto& v) {
    const Matrix h = xla::scan_layers(m.blocks, m.in(v), {.checkpoint_every = 1});
    auto loss = sum(h * h);
    loss.backward();
    return loss;
  };
  check_against(loop, inside, model, x);
}

TEST_CASE("no blocks") {
  constexpr auto none = [](auto& x) {
    const std::array<block, 0> blocks;
    const xla::nn::Sequential<> nothing;
    return xla::scan_layers(nothing, xla::scan_layers(blocks, x)) + 1;
  };
  test::check_modes(none, numbers<float>({2, 6}));
}

TEST_CASE("containers of blocks") {
  struct model {
    xla::nn::ModuleArray<block, 3> array;
    xla::nn::Sequential<block, block> row;
    XLA_MODULE(array, row)
  };
  constexpr auto loop = [](auto& m, auto& x) {
    auto y = xla::scan_layers(m.row, xla::scan_layers(m.array, x));
    sum(y * y).backward();
    return y;
  };
  constexpr auto steps = [](auto& m, auto& x) {
    auto y = m.row(m.array(x));
    sum(y * y).backward();
    return y;
  };
  xla::manual_seed(3);
  check_against(loop, steps, model(), numbers<float>({3, 6}));
}

namespace {

/// What several steps leave in a model and its optimizer.
template <class Model, class Make, class Step>
test::snapshot trained(const Model& start, const Make& make, Step&& step) {
  xla::manual_seed(11);
  Model model = start;
  auto opt = make(model);
  test::snapshot s;
  for (int i = 0; i < 4; ++i) {
    auto x = numbers<float>({6, 4}, static_cast<unsigned>(i));
    s.add(step(model, opt, x));
  }
  s.add(model);
  opt.visit_state([&](auto& kept, const auto&) { s.add(kept); });
  s.add(xla::rand<float>({3}));
  return s;
}

template <as Way>
struct training {
  constexpr auto operator()(auto& model, auto& opt, auto& x) const {
    opt.zero_grad();
    auto loss = xla::mean(xla::square(model.out(through<Way>(model.blocks, model.in(x))) - 1));
    loss.backward();
    xla::optim::clip_grad_norm_(model, 0.5f);
    opt.step();
    return loss.detach();
  }
};

template <as Way, class Model, class Make>
void check_training(const Model& start, const Make& make) {
  const auto run = [&](bool eager, auto&& f) {
    const xla::eager_mode_guard mode(eager);
    return trained(start, make, f);
  };
  const auto expected = run(true, training<as::steps>());
  CHECK(run(true, training<Way>()).difference(expected) == "");
  CHECK(run(false, training<Way>()).difference(expected) == "");
  auto compiled = xla::compile(training<Way>());
  const auto got = test::run_again([&] { return run(false, compiled); });
  CHECK(got.difference(expected) == "");
}

constexpr auto momentum = [](auto& model) {
  return xla::optim::SGD{model, {.lr = 0.05f, .momentum = 0.9f, .nesterov = true}};
};
constexpr auto adamw = [](auto& model) { return xla::optim::AdamW{model, {.lr = 0.02f}}; };

struct noisy {
  xla::nn::Linear first{6, 6};
  xla::nn::BatchNorm1d norm{6};
  xla::nn::Dropout drop{0.25};
  constexpr Matrix operator()(const Matrix& x) const { return x + drop(xla::relu(norm(first(x)))); }
  XLA_MODULE(first, norm, drop)
};

}  // namespace

TEST_CASE("steps of SGD and AdamW after it") {
  xla::manual_seed(4);
  const network<block, 3> model;
  check_training<as::loop>(model, momentum);
  check_training<as::loop>(model, adamw);
  check_training<as::checkpoints>(model, adamw);
}

TEST_CASE("frozen blocks, and frozen parameters of one") {
  xla::manual_seed(5);
  const auto freeze = [](auto& part) {
    xla::for_each_parameter(part, [](auto& p) { p.requires_grad_(false); });
  };
  network<block, 3> model;
  freeze(model.blocks[1].norm);
  freeze(model.blocks[2]);
  check_training<as::loop>(model, momentum);
  check_training<as::checkpoints>(model, adamw);
  network<block, 3> all;
  freeze(all.blocks);
  check_training<as::loop>(all, adamw);
}

TEST_CASE("dropout draws for each block, and running statistics are each block's own") {
  xla::manual_seed(6);
  network<noisy, 3> model;
  check_training<as::loop>(model, adamw);
  struct dropped {
    xla::nn::Dropout drop{0.5};
    constexpr auto operator()(const Matrix& x) const {
      const Matrix y = drop(xla::ones_like(x));
      return std::pair(x + y, y);
    }
    XLA_MODULE(drop)
  };
  struct layers {
    std::array<dropped, 4> blocks;
    XLA_MODULE(blocks)
  };
  layers all;
  auto x = numbers<float>({4, 6});
  all.train();
  constexpr auto step = [](auto& m, auto& v) {
    m.train();
    return xla::scan_layers(m.blocks, v).second;
  };
  const auto ys = xla::compile(step)(all, x);
  for (int i = 1; i < 4; ++i) CHECK(select(ys, 0, 0).to_vector() != select(ys, 0, i).to_vector());
  test::check_modes(step, all, x);
}

TEST_CASE("blocks in evaluation read their statistics, and write nothing") {
  xla::manual_seed(7);
  network<noisy, 3> model;
  model.blocks[1].norm.running_mean.copy_(numbers<float>({6}, 3));
  model.blocks[2].norm.running_var.copy_(xla::full<float>({6}, 2.0f));
  constexpr auto loop = [](auto& m, auto& x) {
    m.eval();
    return m.out(xla::scan_layers(m.blocks, m.in(x)));
  };
  constexpr auto steps = [](auto& m, auto& x) {
    m.eval();
    return m.out(through<as::steps>(m.blocks, m.in(x)));
  };
  check_against(loop, steps, model, numbers<float>({3, 4}));
  auto f = xla::compile(loop);
  auto x = numbers<float>({3, 4});
  CHECK_THAT(f.graph(xla::Stage::lowered, model, x), !contains("steps("));
}

TEST_CASE("hyper-parameters and tensors that are no parameters are each block's own") {
  struct scaled {
    xla::Scalar by = 0.5;
    xla::Tensor<float, 1> shift;
    xla::Parameter<float, 0> gain;
    xla::nn::Dropout drop{0.5};
    constexpr Matrix operator()(const Matrix& x) const {
      return drop(x * by + shift) * xla::exp(gain);
    }
    XLA_MODULE(by, shift, gain, drop)
  };
  struct layers {
    std::array<scaled, 3> blocks;
    XLA_MODULE(blocks)
  };
  layers model;
  for (int i = 0; i < 3; ++i) {
    auto& one = model.blocks[static_cast<std::size_t>(i)];
    one.by = 1.0 / 3 + i;
    one.shift = numbers<float>({6}, static_cast<unsigned>(i));
    one.gain.copy_(xla::tensor(0.25f * static_cast<float>(i)));
    one.drop.p = 0.125 * (i + 1);
  }
  constexpr auto loop = [](auto& m, auto& x) {
    auto y = xla::scan_layers(m.blocks, x);
    sum(y * y).backward();
    return y;
  };
  constexpr auto steps = [](auto& m, auto& x) {
    auto y = through<as::steps>(m.blocks, x);
    sum(y * y).backward();
    return y;
  };
  const auto x = numbers<float>({4, 6});
  check_against(loop, steps, model, x);
  for (auto& one : model.blocks) one.by = 0.1;  // of all the same
  check_against(loop, steps, model, x);
}

namespace {

/// A sum of all that a block has seen.
struct memory {
  xla::Buffer<float, 2> seen{{3, 6}};
  xla::Buffer<std::int64_t, 0> times;
  XLA_MODULE(seen, times)
};
struct remembers {
  xla::nn::Linear linear{6, 6};
  template <class Seen>
  constexpr auto operator()(const Matrix& x, const Matrix& mask, const xla::nn::LayerNorm& norm,
                            const Seen& seen) const {
    const Matrix y = linear(norm(x)) * mask;
    seen.seen.copy_(seen.seen + y.detach());
    seen.times.copy_(seen.times + 1);
    return std::pair(x + y * seen.seen, std::tuple(y, sum(y)));
  }
  XLA_MODULE(linear)
};
struct with_memory {
  std::array<remembers, 3> blocks;
  xla::nn::LayerNorm norm{6};
  std::array<memory, 3> cache;
  XLA_MODULE(blocks, norm, cache)
};

}  // namespace

TEST_CASE("masks, modules that all blocks share, a cache for each, and what each block keeps") {
  constexpr auto loop = [](auto& m, auto& x, auto& mask) {
    const auto [last, kept] = xla::scan_layers(m.blocks, x, mask, m.norm, xla::per_layer(m.cache));
    auto loss = sum(last * last) + mean(std::get<0>(kept)) + sum(std::get<1>(kept));
    loss.backward();
    return std::tuple(last, std::get<0>(kept), std::get<1>(kept));
  };
  constexpr auto steps = [](auto& m, auto& x, auto& mask) {
    Matrix last = x;
    std::array<Matrix, 3> all;
    std::array<xla::Tensor<float, 0>, 3> sums;
    for (std::size_t i = 0; i < 3; ++i) {
      const auto made = m.blocks[i](last, mask, m.norm, m.cache[i]);
      last = made.first;
      all[i] = std::get<0>(made.second);
      sums[i] = std::get<1>(made.second);
    }
    const auto kept = xla::stack(all);
    const auto of = xla::stack(sums);
    auto loss = sum(last * last) + mean(kept) + sum(of);
    loss.backward();
    return std::tuple(last, kept, of);
  };
  xla::manual_seed(8);
  const with_memory model;
  const auto x = numbers<float>({3, 6}), mask = numbers<float>({3, 6}, 5);
  test::check_modes(loop, model, x, mask);
  const auto a = test::run_as_told(test::mode::eager, loop, model, x, mask);
  const auto b = test::run_as_told(test::mode::eager, steps, model, x, mask);
  CHECK(a.difference(b) == "");
}

TEST_CASE("blocks of bfloat16, and trees as what goes through them") {
  struct halved {
    xla::nn::BasicLinear<xla::bfloat16> linear{6, 6};
    constexpr auto operator()(const std::tuple<xla::Tensor<xla::bfloat16, 2>, Matrix>& x) const {
      const auto y = tanh(linear(std::get<0>(x)));
      return std::tuple(y, std::get<1>(x) * 0.5f + xla::cast<float>(y));
    }
    XLA_MODULE(linear)
  };
  struct layers {
    std::array<halved, 3> blocks;
    XLA_MODULE(blocks)
  };
  constexpr auto loop = [](auto& m, auto& x) {
    const auto y = xla::scan_layers(m.blocks, std::tuple(xla::cast<xla::bfloat16>(x), x));
    sum(std::get<1>(y)).backward();
    return std::get<1>(y);
  };
  xla::manual_seed(9);
  test::check_modes(loop, layers(), numbers<float>({3, 6}));
}

TEST_CASE("traced mode records one block, whatever their number") {
  struct counted {
    xla::nn::Linear linear{6, 6};
    int* calls() const {
      static int n = 0;
      return &n;
    }
    Matrix operator()(const Matrix& x) const {
      ++*calls();
      return tanh(linear(x));
    }
    XLA_MODULE(linear)
  };
  const std::array<counted, 20> blocks;
  const xla::eager_mode_guard traced(false);
  auto y = xla::scan_layers(blocks, numbers<float>({3, 6}));
  sum(y).backward();
  xla::sync();
  CHECK(*blocks[0].calls() == 2);  // the second time as gradients flow through its carry
  CHECK(blocks[19].linear.weight.grad().defined());
}

namespace {

template <class F, class... X>
std::string said_by(F&& f, X&... x) {
  try {
    f(x...);
  } catch (const xla::error& e) {
    return e.what();
  }
  return "";
}

struct plain {
  double by = 2;
  xla::Parameter<float, 1> w;
  xla::nn::Dropout drop{0.5};
  int name = 0;
  constexpr Matrix operator()(const Matrix& x) const { return drop(x * by + w); }
  XLA_PLAIN(name)
  XLA_MODULE(by, w, drop)
};
struct plain_layers {
  std::array<plain, 3> blocks;
  plain_layers() {
    for (auto& one : blocks) one.w = xla::Parameter<float, 1>(xla::ones<float>({6}));
  }
  XLA_MODULE(blocks)
};

}  // namespace

TEST_CASE("blocks for which one body cannot stand are refused by name") {
  const auto x = numbers<float>({2, 6});
  const auto f = [&](auto& m) { return xla::scan_layers(m.blocks, x).to_vector(); };
  for (bool eager : {true, false}) {
    const xla::eager_mode_guard mode(eager);
    plain_layers model;
    CHECK(said_by(f, model) == "");
    model.blocks[2].by = 3;
    CHECK_THAT(said_by(f, model), contains("scan_layers: blocks 0 and 2 differ in by: "));
    model = plain_layers();
    model.blocks[1].drop.eval();
    CHECK_THAT(said_by(f, model), contains("blocks 0 and 1 differ in drop.training: "));
    model = plain_layers();
    model.blocks[1].name = 1;
    CHECK_THAT(said_by(f, model), contains("blocks 0 and 1 differ: the members in XLA_PLAIN"));
    model = plain_layers();
    model.blocks[1].w = xla::Parameter<float, 1>(xla::ones<float>({1}));
    CHECK_THAT(said_by(f, model), contains("blocks 0 and 1 differ in w: shapes (6,) and (1,)"));
  }
}

namespace {

/// Two products between two layers have no parameters.
struct mixing {
  xla::nn::Linear q{6, 6}, o{6, 6};
  constexpr Matrix operator()(const Matrix& x) const {
    const Matrix y = q(x);
    return o(matmul(matmul(y, transpose(y, 0, 1)), y));
  }
  XLA_MODULE(q, o)
};
struct mixer {
  mixing attn;
  constexpr Matrix operator()(const Matrix& x) const { return x + attn(x); }
  XLA_MODULE(attn)
};
/// What a step learns without an optimizer's rules.
template <as Way>
struct answer_of {
  constexpr auto operator()(auto& model, auto& x) const {
    return model.out(through<Way>(model.blocks, model.in(x)));
  }
};

using names = std::vector<std::string>;

/// The modules of a profile's products in the order in which they run, loops taken apart.
names modules_of_products(const std::vector<xla::ProfileStep>& steps) {
  names all;
  for (const auto& s : steps) {
    if (s.kind == "product") all.push_back(s.module);
    for (auto& inner : modules_of_products(s.body)) all.push_back(std::move(inner));
  }
  return all;
}

}  // namespace

TEST_CASE("a profile names the module of each step, and of a loop's body those of all blocks") {
  const network<mixer, 3> model;
  auto x = numbers<float>({5, 4});
  const auto products = [&](auto f) {
    return modules_of_products(xla::profile(xla::compile(f), model, x).steps());
  };
  CHECK(products(answer_of<as::loop>()) == names{"in", "blocks.0-2.attn.q", "blocks.0-2.attn",
                                                 "blocks.0-2.attn", "blocks.0-2.attn.o", "out"});
  names steps{"in"};
  for (const char* block : {"blocks.0", "blocks.1", "blocks.2"})
    for (const char* part : {".attn.q", ".attn", ".attn", ".attn.o"})
      steps.push_back(std::string(block) + part);
  steps.push_back("out");
  CHECK(products(answer_of<as::steps>()) == steps);

  network<block, 3> trained;
  auto optimizer = momentum(trained);
  const auto profile = xla::profile(xla::compile(training<as::loop>()), trained, optimizer, x);
  names loops, updates;
  for (const auto& s : profile.steps()) (s.kind == "loop" ? loops : updates).push_back(s.module);
  CHECK(loops == names{"blocks.0-2", "blocks.0-2"});
  for (const char* name : {"in", "blocks.0.norm", "blocks.1.up", "blocks.2.down", "out"})
    CHECK(std::find(updates.begin(), updates.end(), name) != updates.end());
  CHECK_THAT(profile.table(), contains(" module ") && contains(" blocks.0-2.norm "));
  CHECK_THAT(profile.to_json(), contains(R"("module":"blocks.0-2.up")"));
  auto product = xla::compile([](auto& a) { return matmul(a, a); });
  CHECK_THAT(xla::profile(product, numbers<float>({4, 4})).table(), !contains("module"));
}

TEST_CASE("a graph prints one block, and the table of what each block has") {
  network<block, 3> model;
  auto x = numbers<float>({5, 4});
  auto f = xla::compile(answer_of<as::loop>());
  const auto lowered = f.graph(xla::Stage::lowered, model, x);
  CHECK_THAT(lowered, contains("trip 3") && contains("= concat("));
  const auto planned = f.graph(xla::Stage::planned, model, x);
  const auto count = [&](const std::string& part) {
    int n = 0;
    for (std::size_t at = planned.find(part); at != std::string::npos;
         at = planned.find(part, at + 1))
      ++n;
    return n;
  };
  CHECK(count(" = matmul(") == 4);
  CHECK(count(" is %") == 7);  // six parameters, and eps
  CHECK(count(": argument 0.blocks.0-2.up.") == 2);
  for (const auto& text : {lowered, planned}) CHECK_THAT(text, contains("function scan_layers"));
  // The body has the numbers of the program: a product reads what the table names.
  const std::size_t named = planned.find(": argument 0.blocks.0-2.up.weight");
  REQUIRE(named != std::string::npos);
  const std::size_t line = planned.rfind('\n', named) + 1, begin = planned.find('%', line);
  const std::string weight = planned.substr(begin, planned.find(' ', begin) - begin);
  CHECK_THAT(planned, contains(", " + weight + ")"));
  CHECK_THAT(lowered, contains(weight + " = step_slice("));
}

TEST_CASE("an index that is not there names the block") {
  struct picks {
    xla::Tensor<std::int64_t, 1> rows = xla::zeros<std::int64_t>({3});
    constexpr Matrix operator()(const Matrix& x) const { return x + index_select(x, 0, rows); }
    XLA_MODULE(rows)
  };
  struct layers {
    std::array<picks, 4> blocks;
    XLA_MODULE(blocks)
  };
  layers model;
  model.blocks[2].rows = xla::tensor<std::int64_t>({0, 7, 1});
  const auto x = numbers<float>({3, 6});
  constexpr auto loop = [](auto& m, auto& v) { return xla::scan_layers(m.blocks, v); };
  const auto check = [&](const auto& call) {
    CHECK_THROWS_WITH(call(), contains("index 7 at position 1 is outside [0, 3)") &&
                                  contains(", in block 2 of scan_layers (scan_layers.cpp:"));
  };
  for (const bool eager : {true, false}) {
    const xla::eager_mode_guard mode(eager);
    check([&] { loop(model, x).to_vector(); });
  }
  auto compiled = xla::compile(loop);
  check([&] { compiled(model, x); });
}

TEST_CASE("metrics count the ops of every block") {
  const network<block, 3> model;
  auto x = numbers<float>({5, 4});
  const test::on_backend op_by_op("interpreter");
  const auto products = [&](auto f) {
    xla::clear_counters();
    f(model, x);
    return xla::counter_value("xla::matmul");
  };
  CHECK(products(xla::compile(answer_of<as::loop>())) == 8);
  CHECK(products(xla::compile(answer_of<as::steps>())) == 8);
}
