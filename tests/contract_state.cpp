// SPDX-License-Identifier: Apache-2.0
// Rules of meaning: values, cells, gradients of parameters.
#include "support/mlp.hpp"
#include "xla/xla.hpp"

using test::batch;
using test::check_equal;
using test::check_modes;
using test::Mlp;
using test::numbers;

TEST_CASE("in-place forms leave copies and snapshots as they were") {
  auto forms = [](auto& w, auto& g) {
    auto old = w;
    auto snapshot = w.detach();
    w += g;
    auto second = w;
    w *= 2;
    w -= 1;
    w /= g;
    second.fill_(3);
    auto third = second;
    third.copy_(old);
    third.zero_();
    return std::tuple(old, snapshot, w + 0, second, third);
  };
  check_modes(forms, numbers<float>({7, 13}, 1), numbers<float>({7, 13}, 2));
  check_modes(forms, xla::Parameter<float, 1>::like(numbers<float>({33})), numbers<float>({33}, 2));
  const xla::eager_mode_guard eager;
  auto w = xla::tensor<float>({1, 2});
  auto old = w;
  w += xla::tensor<float>({10, 20});
  check_equal(old, {2}, std::vector<float>{1, 2});
  check_equal(w, {2}, std::vector<float>{11, 22});
  CHECK_THROWS_AS(w += xla::tensor<float>({1, 2, 3}), xla::shape_error);
  CHECK_THROWS_AS(w.copy_(xla::tensor<float>({1})), xla::shape_error);
  check_equal(w, {2}, std::vector<float>{11, 22});
}

TEST_CASE("an argument that a compiled step writes is written for the caller only") {
  const xla::eager_mode_guard eager;
  auto step = xla::compile([](auto& x, auto& y) { x += y; });
  auto x = xla::tensor<float>({1, 2}), y = xla::tensor<float>({10, 20});
  auto old = x;
  step(x, y);
  step(x, y);
  check_equal(x, {2}, std::vector<float>{21, 42});
  check_equal(old, {2}, std::vector<float>{1, 2});
}

TEST_CASE(
    "what a compiled function changes it takes once, and says so before anything is touched") {
  const xla::eager_mode_guard eager;
  Mlp model;
  batch b(4);
  auto two_states = [](auto& left, auto& right, auto& v) {
    auto loss = sum(left(v) * right(v));
    loss.backward();
    return loss;
  };
  auto train = xla::compile(two_states);
  const auto before = test::state_of(model);
  CHECK_THROWS_WITH(train(model, model, b.data),
                    test::contains("argument 1.fc1.weight is the same as argument 0.fc1.weight"));
  CHECK(test::state_of(model).difference(before) == "");
  Mlp copy = model;
  train(model, copy, b.data);
  train(model, copy, b.data);
  CHECK(model.fc1.weight.grad().defined());

  auto into = xla::compile([](auto& parameter, auto& m, auto& optimizer) {
    optimizer.step();
    return sum(parameter) + sum(m.weight);
  });
  xla::nn::Linear layer{2, 1};
  xla::optim::SGD sgd{layer, {.lr = 0.1}};
  CHECK_THROWS_WITH(into(layer.weight, layer, sgd),
                    test::contains("argument 1.weight is the same as argument 0,"));
  xla::Tensor<float, 2>& place = layer.weight;
  CHECK_THROWS_WITH(into(place, layer, sgd), test::contains("argument 1.weight"));
  xla::Tensor<float, 2> value = layer.weight;
  into(value, layer, sgd);

  auto add = xla::compile([](auto& a, auto& c) { a += c; });
  auto t = xla::tensor<float>({1, 2});
  CHECK_THROWS_WITH(add(t, t), test::contains("argument 1 is the same as argument 0"));
  check_equal(t, {2}, std::vector<float>{1, 2});
  std::tuple pair{t, t};
  auto within = xla::compile([](auto& p, auto& c) { std::get<1>(p) += c; });
  CHECK_THROWS_WITH(within(pair, std::get<1>(pair)),
                    test::contains("argument 1 is the same as argument 0.1"));
  within(pair, std::get<0>(pair));
  check_equal(std::get<1>(pair), {2}, std::vector<float>{2, 4});
}

TEST_CASE("an argument that is only read may be passed twice, and a result may be an argument") {
  const xla::eager_mode_guard eager;
  auto both = xla::compile([](auto& x, auto& y) { return std::tuple(x, x * y); });
  auto t = xla::tensor<float>({1, 2});
  for (int i = 0; i < 2; ++i) {
    const auto [same, square] = both(t, t);
    check_equal(same, {2}, t.to_vector());
    check_equal(square, {2}, (t * t).to_vector());
    std::tie(t, std::ignore) = both(t, t);
  }
  Mlp model;
  batch b(4);
  auto predict = xla::compile([](auto& l, auto& r, auto& v) { return l(v) - r(v); });
  CHECK(sum(abs(predict(model, model, b.data))).item() == 0);
}

TEST_CASE("the result of a compiled function requires a gradient where an eager value would") {
  const xla::eager_mode_guard eager;
  Mlp model;
  batch b(4);
  auto p = test::parameter(numbers<float>({5}));
  auto predict = xla::compile(model);
  auto scores = predict(b.data);
  CHECK(scores.requires_grad());
  sum(scores.detach() * p).backward();
  xla::for_each_parameter(model, [](auto& w) { CHECK_FALSE(w.grad().defined()); });
  check_equal(p.grad(), {5}, sum(model(b.data).detach(), {0}).to_vector(), 1e-5);
  CHECK_FALSE(xla::no_grad([&] { return predict(b.data); }).requires_grad());
  xla::for_each_parameter(model, [](auto& w) { w.requires_grad_(false); });
  CHECK_FALSE(predict(b.data).requires_grad());
  xla::for_each_parameter(model, [](auto& w) { w.requires_grad_(); });

  xla::nn::CrossEntropyLoss loss_fn;
  xla::optim::SGD optimizer{model, {.lr = 0.1}};
  auto step = xla::compile(test::step_fn);
  CHECK_FALSE(step(model, b.data, b.target, loss_fn, optimizer).requires_grad());
  const auto before = test::state_of(model);
  b.data.requires_grad_();
  auto made = b.data * 2;
  CHECK_THROWS_WITH(step(model, made, b.target, loss_fn, optimizer),
                    test::contains("argument 1 is computed from tensors that require a gradient"));
  CHECK(test::state_of(model).difference(before) == "");
  auto data = b.data.detach();
  step(model, data, b.target, loss_fn, optimizer);
  CHECK(predict(b.data).requires_grad());
}

TEST_CASE("a parameter passed as a plain tensor stays the model's when it is written") {
  const xla::eager_mode_guard eager;
  xla::nn::Linear layer{2, 1};
  auto fill = xla::compile([](auto& w) { w = w * 0 + 3; });
  xla::Tensor<float, 2>& place = layer.weight;
  fill(place);
  check_equal(layer.weight, {1, 2}, std::vector<float>{3, 3});
  CHECK(layer.weight.requires_grad());
  sum(layer(xla::ones<float>({1, 2}))).backward();
  CHECK(layer.weight.grad().defined());
}

TEST_CASE("values that are held survive later steps, whatever the mode") {
  const xla::eager_mode_guard guard;
  for (const bool eager : {true, false}) {
    xla::eager_mode(eager);
    Mlp model;
    xla::nn::CrossEntropyLoss loss_fn;
    xla::optim::SGD optimizer{model, {.lr = 0.1, .momentum = 0.9}};
    auto step = xla::compile(test::step_fn);
    batch b(16);
    auto loss = step(model, b.data, b.target, loss_fn, optimizer);
    auto old = model.fc1.weight.detach();
    xla::Tensor<float, 2> copied = model.fc2.weight;
    auto gradient = model.fc1.weight.grad();
    const auto values = old.to_vector(), copies = copied.to_vector(),
               gradients = gradient.to_vector();
    const float first = loss.item();
    for (int i = 0; i < 3; ++i) {
      step(model, b.data, b.target, loss_fn, optimizer);
      test::step_fn(model, b.data, b.target, loss_fn, optimizer);
      if (!eager) xla::sync();
    }
    CHECK(old.to_vector() == values);
    CHECK(copied.to_vector() == copies);
    CHECK(gradient.to_vector() == gradients);
    CHECK(loss.item() == first);
    CHECK(model.fc1.weight.to_vector() != values);
  }
}

TEST_CASE("copying a module copies its cells") {
  const xla::eager_mode_guard eager;
  Mlp model;
  Mlp copy = model;
  const auto before = test::state_of(copy);
  CHECK(test::state_of(model).difference(before) == "");
  xla::optim::SGD optimizer{model, {.lr = 0.1}};
  xla::nn::CrossEntropyLoss loss_fn;
  batch b(16);
  test::step_fn(model, b.data, b.target, loss_fn, optimizer);
  CHECK(test::state_of(copy).difference(before) == "");
  CHECK(test::state_of(model).difference(before) != "");
  copy = model;
  model.fc1.bias.zero_();
  CHECK(sum(abs(copy.fc1.bias)).item() > 0);
  Mlp moved = std::move(copy);
  CHECK(moved.fc1.weight.sizes() == test::sizes_t{33, 17});
}

namespace {

constexpr auto accumulate = [](auto& model, auto& data, auto& target, auto& loss_fn) {
  auto loss = loss_fn(model(data), target) / 4;
  loss.backward();
  return loss;
};
constexpr auto apply = [](auto& model, auto& optimizer) {
  optimizer.step();
  optimizer.zero_grad();
  return sum(model.fc1.weight);
};

template <test::mode M>
test::snapshot accumulated() {
  const xla::eager_mode_guard guard(M == test::mode::eager);
  xla::manual_seed(5);
  Mlp model;
  xla::nn::CrossEntropyLoss loss_fn;
  xla::optim::SGD optimizer{model, {.lr = 0.1, .momentum = 0.9}};
  auto add = xla::compile(accumulate);
  auto step = xla::compile(apply);
  for (std::uint64_t turn = 0; turn < 3; ++turn) {
    for (std::uint64_t i = 0; i < 4; ++i) {
      batch b(8, turn * 4 + i);
      if constexpr (M == test::mode::compiled) add(model, b.data, b.target, loss_fn);
      else accumulate(model, b.data, b.target, loss_fn);
    }
    if constexpr (M == test::mode::compiled) step(model, optimizer);
    else apply(model, optimizer);
    CHECK_FALSE(model.fc1.weight.grad().defined());
  }
  if constexpr (M == test::mode::traced) xla::sync();
  return test::state_of(model, optimizer);
}

}  // namespace

TEST_CASE("gradients accumulate over calls, the same in every mode") {
  const auto eager = accumulated<test::mode::eager>();
  CHECK(accumulated<test::mode::traced>().difference(eager) == "");
  CHECK(accumulated<test::mode::compiled>().difference(eager) == "");
}

TEST_CASE("gradients add up in one order, whatever operand the compiler evaluates first") {
  auto step = [](auto& p) {
    auto loss = sum(exp(p) * 0.3 +
                    (tanh(p) * 0.7 + (relu(p) * 1.1 + (p * p * 0.13 + sqrt(p * p + 1)))));
    loss.backward();
    return loss;
  };
  const xla::eager_mode_guard eager;
  auto p = xla::Parameter<float, 2>::like(numbers<float>({7, 13}));
  p.copy_(numbers<float>({7, 13}));
  check_modes(step, p);
}

TEST_CASE("four small batches add up to a large one") {
  const xla::eager_mode_guard eager;
  Mlp model;
  Mlp copy = model;
  xla::nn::CrossEntropyLoss loss_fn;
  batch all(32);
  auto add = xla::compile(accumulate);
  for (int i = 0; i < 4; ++i) {
    auto data = xla::from_blob(all.data.data() + i * 8 * 17, {8, 17});
    auto target = xla::from_blob(all.target.data() + i * 8, {8});
    add(model, data, target, loss_fn);
  }
  loss_fn(copy(all.data), all.target).backward();
  check_equal(model.fc1.weight.grad(), {33, 17}, copy.fc1.weight.grad().to_vector(), 1e-6);
  check_equal(model.fc2.bias.grad(), {5}, copy.fc2.bias.grad().to_vector(), 1e-6);
}

TEST_CASE("parameters that a loss does not reach keep no gradient and are not updated") {
  auto step = [](auto& model, auto& data, auto& optimizer) {
    optimizer.zero_grad();
    auto loss = sum(model.fc1(data) * model.fc1(data));
    loss.backward();
    optimizer.step();
    return loss;
  };
  auto train = [&](auto run) {
    xla::manual_seed(5);
    Mlp model;
    xla::optim::SGD optimizer{model, {.lr = 1e-4, .momentum = 0.5, .weight_decay = 0.5}};
    batch b(8);
    const auto before = model.fc2.weight.to_vector();
    for (int i = 0; i < 3; ++i) run(model, b.data, optimizer);
    CHECK(model.fc2.weight.to_vector() == before);
    CHECK_FALSE(model.fc2.weight.grad().defined());
    CHECK(model.fc1.weight.grad().defined());
    return test::state_of(model, optimizer);
  };
  const xla::eager_mode_guard guard;
  const auto eager = train(step);
  auto compiled = xla::compile(step);
  CHECK(train([&](auto&... a) { compiled(a...); }).difference(eager) == "");
  xla::eager_mode(false);
  CHECK(train(step).difference(eager) == "");
}

TEST_CASE("a second backward through the same values is refused; detach and zero_grad cut") {
  const xla::eager_mode_guard eager;
  auto p = xla::Parameter<float, 1>::like(xla::zeros<float>({2}));
  p.copy_(xla::tensor<float>({1, 2}));
  auto loss = sum(p * p);
  loss.backward();
  check_equal(p.grad(), {2}, std::vector<float>{2, 4});
  CHECK_THROWS_AS(loss.backward(), xla::error);
  sum(p * p.detach()).backward();
  check_equal(p.grad(), {2}, std::vector<float>{3, 6});
  p.zero_grad();
  CHECK_FALSE(p.grad().defined());
  CHECK_THROWS_AS(sum(p.detach() * 2).backward(), xla::error);
  auto x = xla::tensor<float>({3, 4});
  x.requires_grad_();
  sum(x * x * p.detach()).backward();
  check_equal(x.grad(), {2}, std::vector<float>{6, 16});
}

namespace {

struct Scaled {
  xla::nn::Linear in{4, 3};
  xla::Parameter<float, 0> temperature{1.5f}, shift;
  xla::Parameter<float, 2> mix = xla::full({3, 3}, 0.25f);
  xla::Buffer<bool, 1> shown = xla::tensor<bool>({true, true, true});
  xla::Buffer<std::int64_t, 0> calls = 3;
  xla::Buffer<double, 3> spare{{2, 1, 2}};
  constexpr auto operator()(const xla::Tensor<float, 2>& x) const {
    calls.copy_(calls + 1);
    return where(shown, matmul(in(x), mix) * temperature + shift, 0);
  }
  XLA_MODULE(in, temperature, shift, mix, shown, calls, spare)
};

}  // namespace

TEST_CASE("parameters and buffers of any rank and type begin with a number or a tensor") {
  auto step = [](auto& model, auto& x, auto& optimizer) {
    optimizer.zero_grad();
    auto loss = mean(model(x));
    loss.backward();
    optimizer.step();
    return loss;
  };
  const xla::eager_mode_guard guard;
  auto x = numbers<float>({5, 4}, 1);
  auto train = [&](auto run) {
    xla::manual_seed(1);
    Scaled model;
    CHECK(model.temperature.item() == 1.5f);
    CHECK(model.shift.item() == 0);
    xla::optim::AdamW optimizer{model, {.lr = 0.1, .weight_decay = 0}};
    for (int i = 0; i < 3; ++i) run(model, x, optimizer);
    CHECK(model.shift.item() == Approx(-0.3));
    CHECK(model.calls.item() == 6);
    test::snapshot s;
    s.add(model);
    return s;
  };
  const auto eager = train(step);
  auto compiled = xla::compile(step);
  CHECK(train([&](auto&... a) { compiled(a...); }).difference(eager) == "");
  xla::eager_mode(false);
  CHECK(train(step).difference(eager) == "");
}

TEST_CASE("buffers have names as parameters do") {
  const xla::eager_mode_guard eager;
  const Scaled model;
  std::vector<std::string> parameters, buffers;
  xla::named_parameters(model, [&](const auto& name, auto&) { parameters.push_back(name); });
  xla::named_buffers(model, [&](const auto& name, auto& b) {
    buffers.push_back(name + std::to_string(std::int64_t(b.numel())));
  });
  CHECK(parameters ==
        std::vector<std::string>{"in.weight", "in.bias", "temperature", "shift", "mix"});
  CHECK(buffers == std::vector<std::string>{"shown3", "calls1", "spare4"});
  int count = 0;
  xla::for_each_buffer(model, [&](auto&) { ++count; });
  CHECK(count == 3);
}

TEST_CASE("a parameter that is made of a tensor is a leaf of its own") {
  const xla::eager_mode_guard guard;
  for (const bool eager : {true, false}) {
    xla::eager_mode(eager);
    auto x = numbers<double>({3}, 1);
    x.requires_grad_();
    xla::Parameter<double, 1> p = x * 2, later;
    CHECK_FALSE(later.defined());
    later = p.detach() + 1;
    sum(p * later).backward();
    check_equal(p.grad(), later);
    check_equal(later.grad(), p);
    CHECK_FALSE(x.grad().defined());
    const auto old = p.detach();
    p = old + 1;  // writes: the gradient stays
    check_equal(p, old + 1);
    check_equal(later, old + 1);
    check_equal(p.grad(), later);
    CHECK_THROWS_AS((p = numbers<double>({4}, 1)), xla::shape_error);
  }
}
