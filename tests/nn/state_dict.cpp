// SPDX-License-Identifier: Apache-2.0
#include "xla/nn/state_dict.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "support/modes.hpp"
#include "xla/nn/batch_norm.hpp"
#include "xla/nn/containers.hpp"
#include "xla/nn/dropout.hpp"
#include "xla/nn/embedding.hpp"
#include "xla/nn/linear.hpp"
#include "xla/op/derived/elementwise.hpp"
#include "xla/optim/adamw.hpp"
#include "xla/optim/average.hpp"
#include "xla/optim/sgd.hpp"

namespace nn = xla::nn;
using test::numbers;
using xla::StateDict;

namespace {

struct Model {
  nn::Linear in{3, 4};
  nn::BatchNorm1d norm{4};
  nn::Sequential<nn::Linear, nn::Dropout> out{nn::Linear{4, 2}, nn::Dropout{0.5}};
  std::array<nn::LinearNoBias, 2> extra{nn::LinearNoBias{2, 2}, nn::LinearNoBias{2, 2}};
  constexpr auto operator()(const xla::Tensor<float, 2>& x) const {
    return extra[1](extra[0](out(norm(in(x)))));
  }
  XLA_MODULE(in, norm, out, extra)
};

/// Every element type, no axes, and no elements.
struct Odd {
  xla::Buffer<double, 0> d{xla::Buffer<double, 0>::like(xla::Tensor<double, 0>(0.0))};
  xla::Buffer<std::int32_t, 1> i{{3}};
  xla::Buffer<std::uint8_t, 2> u{{2, 2}};
  xla::Buffer<bool, 1> b{{3}};
  xla::Buffer<float, 3> none{{2, 0, 3}};
  xla::Buffer<float, 6> deep{{1, 2, 1, 2, 1, 1}};
  xla::Buffer<float, 1> unknown;
  XLA_MODULE(d, i, u, b, none, deep, unknown)
};

/// PyTorch's word_language_model with --tied, but for the layers between.
struct Words {
  nn::Embedding encoder{10, 4};
  nn::TiedLinear decoder{4, 10};
  constexpr auto operator()(const xla::Tensor<std::int64_t, 1>& i) const {
    return decoder(encoder(i), encoder.weight);
  }
  XLA_MODULE(encoder, decoder)
  XLA_TIED({"decoder.weight", "encoder.weight"})
};
struct Pair {
  std::array<Words, 2> each;
  XLA_MODULE(each)
};

/// What PyTorch's programs say, which ties nothing here.
struct Assigned {
  nn::Embedding encoder{10, 4};
  nn::Linear decoder{4, 10};
  constexpr Assigned() { decoder.weight = encoder.weight; }
  XLA_MODULE(encoder, decoder)
};
struct CopiedInto {
  nn::Embedding encoder{10, 4};
  nn::Linear decoder{4, 10};
  constexpr CopiedInto() { decoder.weight.copy_(encoder.weight); }
  XLA_MODULE(encoder, decoder)
};
/// A whole module is copied, as a target network is.
struct Target {
  nn::Sequential<nn::Linear, nn::Linear> online{nn::Linear{3, 4}, nn::Linear{4, 2}};
  nn::Sequential<nn::Linear, nn::Linear> target{nn::Linear{3, 4}, nn::Linear{4, 2}};
  constexpr Target() { target = online; }
  XLA_MODULE(online, target)
};

std::vector<std::string> names(const StateDict& dict) {
  std::vector<std::string> out;
  for (const auto& array : dict) out.push_back(array.name);
  return out;
}
xla::NamedArray& at(StateDict& dict, const std::string& name) {
  for (auto& array : dict)
    if (array.name == name) return array;
  throw xla::runtime_error("no " + name);
}

/// What an error says when a state does not fit; the model must be as it was.
template <class X>
std::string refusal(X& x, const StateDict& dict, bool strict = true) {
  const auto before = xla::state_dict(x);
  std::string said = "accepted";
  try {
    xla::load_state_dict(x, dict, strict);
  } catch (const xla::error& e) {
    said = e.what();
  }
  CHECK(xla::state_dict(x) == before);
  return said;
}

constexpr auto step_fn = [](auto& model, auto& x, auto& optimizer) {
  optimizer.zero_grad();
  auto loss = sum(model(x) * model(x));
  loss.backward();
  optimizer.step();
  return loss;
};

}  // namespace

TEST_CASE("a module's state has PyTorch's names, buffers too, and goes into another module") {
  const xla::eager_mode_guard eager;
  xla::manual_seed(1);
  Model a, b;
  a(numbers<float>({7, 3}));
  const auto dict = xla::state_dict(a);
  CHECK(names(dict) == std::vector<std::string>{"in.weight", "in.bias", "norm.weight", "norm.bias",
                                                "norm.running_mean", "norm.running_var",
                                                "norm.num_batches_tracked", "out.0.weight",
                                                "out.0.bias", "extra.0.weight", "extra.1.weight"});
  CHECK(dict[0].sizes == test::sizes_t{4, 3});
  CHECK(dict[6].type == xla::dtype::int64);
  CHECK(xla::state_dict(b) != dict);
  CHECK(xla::load_state_dict(b, dict).empty());
  CHECK(xla::state_dict(b) == dict);
  const Model& c = b;
  CHECK(xla::state_dict(c) == dict);
}

TEST_CASE("every element type and rank is written and read") {
  const xla::eager_mode_guard eager;
  Odd a, b;
  a.d.fill_(0.1);
  a.i.copy_(xla::tensor<std::int32_t>({-1, 2, 3}));
  a.u.fill_(255);
  a.b.copy_(xla::tensor<bool>({true, false, true}));
  a.deep.fill_(-0.f);
  auto dict = xla::state_dict(a);
  CHECK(dict.size() == 6);
  CHECK(xla::load_state_dict(b, dict).empty());
  CHECK(xla::state_dict(b) == dict);
  at(dict, "b").bytes = {2, 0, 255};
  xla::load_state_dict(b, dict);
  CHECK(b.b.to_vector() == std::vector<bool>{true, false, true});
  CHECK(at(dict, "b").bytes != xla::state_dict(b)[3].bytes);
}

TEST_CASE("one error lists all that does not fit, and nothing is touched") {
  const xla::eager_mode_guard eager;
  Model model;
  auto dict = xla::state_dict(model);
  for (auto& array : dict) array.bytes = std::vector<std::uint8_t>(array.bytes.size());
  auto bad = dict;
  at(bad, "in.bias").name = "in.bais";
  at(bad, "norm.bias").name = "norm.shift";
  at(bad, "out.0.weight").sizes = {4, 2};
  at(bad, "extra.1.weight").type = xla::dtype::int32;  // as many bytes
  at(bad, "norm.weight").bytes.edit().pop_back();
  CHECK(refusal(model, bad) ==
        "load_state_dict: the state does not fit; nothing was loaded\n"
        "  missing: in.bias, norm.bias\n"
        "  unexpected: in.bais, norm.shift\n"
        "  does not fit: norm.weight: 15 bytes found for float32[4];\n"
        "    out.0.weight: float32[4, 2] found, float32[2, 4] needed;\n"
        "    extra.1.weight: int32[2, 2] found, float32[2, 2] needed");
  CHECK(refusal(model, bad, false)
            .starts_with("load_state_dict: the state does not fit; nothing was loaded\n"
                         "  does not fit: norm.weight"));
  auto twice = dict;
  twice.push_back(twice[0]);
  CHECK_THAT(refusal(model, twice), test::contains("in.weight: appears twice"));
  CHECK_THAT(refusal(model, {}), test::contains("missing: in.weight, in.bias"));
}

TEST_CASE("numbers of another type are rounded to that of the place, if they are of a kind") {
  const xla::eager_mode_guard eager;
  struct Numbers {
    xla::Buffer<double, 1> d{{2}};
    xla::Buffer<float, 1> f{{2}};
    xla::Buffer<std::uint8_t, 1> u{{2}};
    xla::Buffer<std::int64_t, 1> i{{2}};
    XLA_MODULE(d, f, u, i)
  };
  struct Others {
    xla::Buffer<float, 1> d{{2}};
    xla::Buffer<double, 1> f{{2}};
    xla::Buffer<std::int32_t, 1> u{{2}};
    xla::Buffer<std::uint8_t, 1> i{{2}};
    XLA_MODULE(d, f, u, i)
  };
  struct Halves {
    xla::Buffer<xla::bfloat16, 1> f{{2}};
    XLA_MODULE(f)
  };
  Numbers a;
  a.d.copy_(xla::tensor<double>({0.1, -1e300}));
  a.f.copy_(xla::tensor<float>({0.1f, -2.f}));
  a.u.copy_(xla::tensor<std::uint8_t>({0, 255}));
  a.i.copy_(xla::tensor<std::int64_t>({7, 256}));
  Others b;
  CHECK_THAT(refusal(b, xla::state_dict(a)),
             test::contains("does not fit: i: int64[2] found, uint8[2] needed"));
  a.i.copy_(xla::tensor<std::int64_t>({7, 128}));
  CHECK(xla::load_state_dict(b, xla::state_dict(a)).empty());
  CHECK(b.d.to_vector() == std::vector<float>{0.1f, -std::numeric_limits<float>::infinity()});
  CHECK(b.f.to_vector() == std::vector<double>{double{0.1f}, -2});
  CHECK(b.u.to_vector() == std::vector<std::int32_t>{0, 255});
  CHECK(b.i.to_vector() == std::vector<std::uint8_t>{7, 128});
  Halves h;
  xla::load_state_dict(h, xla::state_dict(b), false);
  CHECK(static_cast<float>(h.f.to_vector()[0]) == static_cast<float>(xla::bfloat16(0.1f)));
  xla::load_state_dict(b, xla::state_dict(h), false);
  CHECK(b.f.to_vector()[0] == static_cast<double>(static_cast<float>(xla::bfloat16(0.1f))));
}

TEST_CASE("not strict, what fits is loaded and the rest is reported") {
  const xla::eager_mode_guard eager;
  Model model;
  auto dict = xla::state_dict(model);
  for (auto& array : dict) array.bytes = std::vector<std::uint8_t>(array.bytes.size());
  at(dict, "in.bias").name = "in.bais";
  const auto bias = model.in.bias.to_vector();
  const auto report = xla::load_state_dict(model, dict, false);
  CHECK(report.missing_keys == std::vector<std::string>{"in.bias"});
  CHECK(report.unexpected_keys == std::vector<std::string>{"in.bais"});
  CHECK_FALSE(report.empty());
  CHECK(model.in.bias.to_vector() == bias);
  CHECK(model.in.weight.to_vector() == std::vector<float>(12, 0));
}

TEST_CASE("an optimizer's state: step count, tensors by parameter, hyper-parameters") {
  const xla::eager_mode_guard eager;
  Model model;
  auto x = numbers<float>({7, 3});
  xla::optim::AdamW a{model, {.lr = 0.1}};
  step_fn(model, x, a);
  step_fn(model, x, a);
  auto dict = xla::state_dict(a);
  CHECK(names(dict) == std::vector<std::string>{"step",
                                                "in.weight.0",
                                                "in.weight.1",
                                                "in.bias.0",
                                                "in.bias.1",
                                                "norm.weight.0",
                                                "norm.weight.1",
                                                "norm.bias.0",
                                                "norm.bias.1",
                                                "out.0.weight.0",
                                                "out.0.weight.1",
                                                "out.0.bias.0",
                                                "out.0.bias.1",
                                                "extra.0.weight.0",
                                                "extra.0.weight.1",
                                                "extra.1.weight.0",
                                                "extra.1.weight.1",
                                                "options.lr",
                                                "options.beta1",
                                                "options.beta2",
                                                "options.eps",
                                                "options.weight_decay"});
  float steps = 0;
  std::memcpy(&steps, dict[0].bytes.data(), 4);
  CHECK(steps == 2);
  xla::optim::AdamW b{model};
  xla::load_state_dict(b, dict);
  CHECK(b.options.lr.value() == 0.1);
  CHECK(xla::state_dict(b) == dict);
  auto rounded = dict;
  const float lr = 0.3f;
  at(rounded, "options.lr").type = xla::dtype::float32;
  auto& four = at(rounded, "options.lr").bytes.edit();
  four.resize(sizeof lr);
  std::memcpy(four.data(), &lr, sizeof lr);
  xla::load_state_dict(b, rounded);
  CHECK(b.options.lr.value() == double{lr});
  at(dict, "in.bias.1").sizes = {2, 2};
  CHECK_THAT(refusal(b, dict), test::contains("in.bias.1: float32[2, 2] found, float32[4] needed"));
  xla::optim::SGD other{model};
  CHECK_THAT(refusal(other, dict), test::contains("missing: options.momentum"));

  xla::optim::ExponentialMovingAverage average{model};
  CHECK(xla::state_dict(average).back().name == "options.use_buffers");
  xla::optim::SGD head{xla::part<&Model::out>(model)};
  CHECK(names(xla::state_dict(head))[1] == "0.weight.0");
}

TEST_CASE("the next step uses loaded values, in every mode") {
  auto x = numbers<float>({7, 3});
  auto run = [&](auto step) {
    xla::manual_seed(3);
    Model model;
    xla::optim::AdamW optimizer{model, {.lr = 0.1}};
    step(model, x, optimizer);
    const auto values = xla::state_dict(model), moments = xla::state_dict(optimizer);
    const auto rng = xla::get_rng_state();
    const float want = step(model, x, optimizer).item();
    step(model, x, optimizer);
    xla::load_state_dict(model, values);
    xla::load_state_dict(optimizer, moments);
    xla::set_rng_state(rng);
    CHECK(xla::state_dict(model) == values);
    CHECK(step(model, x, optimizer).item() == want);
    return want;
  };
  const float traced = run(step_fn);
  const xla::eager_mode_guard eager;
  CHECK(run(step_fn) == traced);
  auto compiled = xla::compile(step_fn);
  CHECK(run([&](auto&... a) { return compiled(a...); }) == traced);
}

TEST_CASE("a tied weight is one parameter, in every mode, and survives copies and moves") {
  const auto step = [](auto& model, auto& i, auto& optimizer) {
    optimizer.zero_grad();
    auto loss = mean(square(model(i) - 1.f));
    loss.backward();
    optimizer.step();
    return loss;
  };
  const xla::eager_mode_guard guard;
  auto i = xla::tensor<std::int64_t>({1, 7, 7, 0, 3});
  const auto weight = numbers<float>({10, 4}, 1);
  const auto bias = numbers<float>({10}, 2);
  const auto train = [&](auto run) {
    Words first;
    first.encoder.weight.copy_(weight);
    first.decoder.bias.copy_(bias);
    Words copy = first;
    Words model = std::move(copy);
    xla::optim::AdamW optimizer{model, {.lr = 0.1}};
    test::snapshot s;
    for (int k = 0; k < 3; ++k) s.add(run(model, i, optimizer));
    model = Words(model);
    s.add(run(model, i, optimizer));
    CHECK(names(xla::state_dict(model)) ==
          std::vector<std::string>{"encoder.weight", "decoder.bias"});
    CHECK(first.encoder.weight.to_vector() == weight.to_vector());
    s.add(model);
    optimizer.visit_state([&](auto& state, auto) { s.add(state); });
    return s;
  };
  CHECK(xla::count_parameters<Words>() == 2);
  const auto eager = train(step);
  auto compiled = xla::compile(step);
  CHECK(train([&](auto&... a) { return compiled(a...); }).difference(eager) == "");
  xla::eager_mode(false);
  CHECK(train(step).difference(eager) == "");

  // The gradient is the sum of both uses'.
  auto table = test::parameter(weight), matrix = test::parameter(weight);
  mean(square(linear(embedding(i, table), matrix, bias) - 1.f)).backward();
  Words model;
  model.encoder.weight.copy_(weight);
  model.decoder.bias.copy_(bias);
  mean(square(model(i) - 1.f)).backward();
  test::check_equal(model.encoder.weight.grad(), {10, 4},
                    (table.grad() + matrix.grad()).to_vector(), 1e-6);
}

TEST_CASE("a tied weight is read by either name, or by both with one value") {
  const xla::eager_mode_guard eager;
  Pair model, source;
  const StateDict once = xla::state_dict(source);
  const std::string name = "each.1.encoder.weight", alias = "each.1.decoder.weight";
  auto twice = once;
  twice.push_back(at(twice, name));
  twice.back().name = alias;
  CHECK(xla::load_state_dict(model, twice).empty());
  CHECK(xla::state_dict(model) == once);

  auto by_alias = once;
  at(by_alias, name).name = alias;
  Pair other;
  CHECK(xla::load_state_dict(other, by_alias).empty());
  CHECK(xla::state_dict(other) == once);

  at(twice, alias).bytes.edit()[2] ^= 1;
  CHECK_THAT(refusal(model, twice),
             test::contains(alias + ": has other values than " + name));
  CHECK_THAT(refusal(model, twice, false), test::contains("has other values than"));
  auto neither = by_alias;
  at(neither, alias).name = "each.2.decoder.weight";
  CHECK_THAT(refusal(model, neither), test::contains("missing: " + name) &&
                                          test::contains("unexpected: each.2.decoder.weight"));
}

TEST_CASE("a parameter that was assigned another of its model is reported by the optimizer") {
  for (const bool eager : {true, false}) {
    const xla::eager_mode_guard mode(eager);
    Assigned tied;
    CHECK_THROWS_WITH((xla::optim::SGD{tied, {.lr = 0.1}}),
                      test::contains("decoder.weight was assigned encoder.weight") &&
                          test::contains("nn::TiedLinear"));
    Assigned moved = std::move(tied);
    CHECK_THROWS_AS((xla::optim::AdamW{moved, {}}), xla::error);
    moved = Assigned();
    CHECK_THROWS_AS((xla::optim::AdamW{moved, {}}), xla::error);
    CopiedInto apart;
    CHECK_NOTHROW(xla::optim::SGD{apart, {.lr = 0.1}});
    Target target;
    CHECK_NOTHROW(xla::optim::SGD{target, {.lr = 0.1}});
    Words words, best;
    words = best;
    CHECK_NOTHROW(xla::optim::SGD{words, {.lr = 0.1}});
    nn::Linear a{2, 2}, b{2, 2};
    a.weight = b.weight;
    CHECK_NOTHROW(xla::optim::SGD{a, {.lr = 0.1}});
  }
}
