// SPDX-License-Identifier: Apache-2.0
// Distributions against PyTorch's, their draws against what they promise, and steps that learn from
// draws. The cases are those of reference/distributions.py.
#include "xla/distributions.hpp"

#include "support/gradient.hpp"
#include "support/modes.hpp"
#include "support/pytorch.hpp"

using test::numbers;
namespace nn = xla::nn;
using namespace xla::distributions;

namespace {

constexpr auto together(const auto&... parts) { return xla::cat({xla::flatten(parts)...}, 0); }
constexpr auto as_numbers(const auto& places) { return xla::cast<float>(places); }

template <class F, class... X>
void check(const std::string& name, double tolerance, F f, const X&... x) {
  test::check_pytorch("distributions/" + name, tolerance, f, x...);
}
void check_value(const std::string& name, const auto& x) {
  test::check_pytorch("distributions/" + name, x, 2e-6);
}

struct inputs {
  xla::Tensor<float, 2> loc = numbers<float>({3, 4});
  xla::Tensor<float, 1> scale = abs(numbers<float>({4}, 1)) + 0.25;
  xla::Tensor<float, 3> value = numbers<float>({2, 3, 4}, 2);
  xla::Tensor<float, 2> share = (numbers<float>({3, 4}, 3) + 4) / 8;
};

constexpr auto all_of_bernoulli(const auto& d, const auto& v) {
  return together(d.log_prob(v), d.entropy(), d.mean(), d.mode(), d.stddev(), d.variance(),
                  d.probs(), d.logits());
}
constexpr auto all_of_categorical(const auto& d, const auto& place) {
  return together(d.log_prob(place), d.entropy(), d.probs(), d.logits(), as_numbers(d.mode()),
                  d.mean(), d.stddev(), d.variance());
}

/// The mean and the variance of draws, along the first axis, are the distribution's within five
/// standard deviations.
template <class D>
void check_moments(const D& d) {
  const int n = 20000;
  const auto x = xla::cast<double>(d.sample({n}));
  const auto mean = xla::cast<double>(d.mean()), variance = xla::cast<double>(d.variance());
  const auto off = abs(xla::mean(x, {0}) - mean) / sqrt(variance / n);
  CHECK(max(off).item() < 5);
  const auto squares = xla::square(x - mean);
  const auto spread = sqrt(xla::var(squares, {0}) / n) + 1e-12;
  CHECK(max(abs(xla::mean(squares, {0}) - variance) / spread).item() < 5);
}

struct Encoder {
  nn::Linear mean{5, 2}, log_scale{5, 2}, decoder{2, 5};
  XLA_MODULE(mean, log_scale, decoder)
};

/// Kingma and Welling (2014).
constexpr auto autoencoder_step = [](auto& model, auto& x, auto& optimizer) {
  optimizer.zero_grad();
  const auto posterior = independent<1>(Normal(model.mean(x), exp(model.log_scale(x))));
  const auto prior = independent<1>(Normal(xla::zeros_like(posterior.mean()), 1));
  const Bernoulli pixels(logits(model.decoder(posterior.rsample())));
  const auto apart = kl_divergence(posterior, prior);
  auto loss = mean(apart - independent<1>(pixels).log_prob(x));
  loss.backward();
  optimizer.step();
  return loss;
};

/// Williams (1992): of three actions the one of the state's number has a reward.
constexpr auto policy_step = [](auto& policy, auto& state, auto& optimizer) {
  optimizer.zero_grad();
  const Categorical action(logits(policy(state)));
  const auto taken = action.sample();
  const auto reward = xla::cast<float>(taken == argmax(state, 1));
  const auto won = mean(action.log_prob(taken) * reward);
  auto loss = -won - mean(action.entropy()) * 0.01;
  loss.backward();
  optimizer.step();
  return std::pair(loss, mean(reward));
};

/// Trains in every mode, to the same bits. The last results of the eager one.
template <class Model, class X, class Step>
auto train_in_every_mode(const Model& start, const X& x, Step step, int steps) {
  decltype(step(std::declval<Model&>(), std::declval<X&>(),
                std::declval<xla::optim::Adam<Model>&>())) last{};
  const auto train = [&](auto run, bool eager) {
    const xla::eager_mode_guard mode(eager);
    Model model = start;
    X input = x;
    xla::optim::Adam optimizer{model, {.lr = 0.05}};
    xla::manual_seed(11);
    for (int i = 0; i < steps; ++i) last = run(model, input, optimizer);
    xla::sync();
    test::snapshot all;
    all.add(model);
    all.add(last);
    return all;
  };
  auto compiled = xla::compile(step);
  const auto as_compiled = train([&](auto&... a) { return compiled(a...); }, false);
  CHECK(as_compiled.difference(train(step, false)) == "");
  CHECK(as_compiled.difference(train(step, true)) == "");
  return last;
}

}  // namespace

TEST_CASE("distributions of one kind are PyTorch's") {
  const xla::eager_mode_guard eager;
  const inputs in;
  check(
      "normal", 5e-6,
      [&](auto& l, auto& s, auto& v) {
        const Normal d(l, s);
        return together(d.log_prob(v), d.entropy(), d.mean(), d.mode(), d.stddev(), d.variance(),
                        d.cdf(v), d.icdf(in.share));
      },
      in.loc, in.scale, in.value);
  check(
      "uniform", 2e-6,
      [&](auto& l, auto& s) {
        const Uniform d(l, l + s);
        return together(d.log_prob(in.value), d.entropy(), d.mean(), d.stddev(), d.variance(),
                        d.cdf(in.value), d.icdf(in.share));
      },
      in.loc, in.scale);
  CHECK(std::isnan(Uniform(0, 1).mode().item()));

  const auto zero_one = xla::cast<float>(in.value > 0);
  check(
      "bernoulli/probs", 5e-6, [&](auto& p) { return all_of_bernoulli(Bernoulli(p), zero_one); },
      in.share);
  check(
      "bernoulli/logits", 2e-5,
      [&](auto& l) { return all_of_bernoulli(Bernoulli(logits(l)), zero_one); }, in.loc * 2);
  check_value("bernoulli/corners",
              all_of_bernoulli(Bernoulli(probs(xla::tensor<float>({0, 1, 0.5}))),
                               xla::tensor<float>({1, 0, 1})));

  const auto place = xla::tensor<std::int64_t>({{2, 0, 3}, {1, 1, 2}});
  check(
      "categorical/probs", 5e-6, [&](auto& p) { return all_of_categorical(Categorical(p), place); },
      in.share);
  check(
      "categorical/logits", 2e-5,
      [&](auto& l) { return all_of_categorical(Categorical(logits(l)), place); }, in.loc * 2);
  check_value("categorical/corners",
              all_of_categorical(Categorical(probs(xla::tensor<float>({0, 2, 0, 0}))), place));
  const auto minus = xla::tensor<float>({0, -std::numeric_limits<float>::infinity(), 1});
  check_value("categorical/minus_infinity", Categorical(logits(minus)).entropy());
  CHECK(Categorical(in.share).num_events() == 4);
}

TEST_CASE("distributions of distributions are PyTorch's") {
  const xla::eager_mode_guard eager;
  const inputs in;
  check(
      "independent", 5e-6,
      [](auto& l, auto& s, auto& v) {
        const auto d = independent<1>(Normal(l, s));
        return together(d.log_prob(v), d.entropy(), d.mean(), d.variance());
      },
      in.loc, in.scale, in.value);
  check(
      "mixture", 5e-6,
      [](auto& w, auto& l, auto& s, auto& v) {
        const MixtureSameFamily d{Categorical(w), Normal(l, s)};
        return together(d.log_prob(v), d.mean(), d.variance(), d.stddev(), d.cdf(v));
      },
      in.share, in.loc, in.scale, numbers<float>({5, 3}, 4));
  check(
      "mixture/events", 5e-6,
      [](auto& w, auto& l, auto& s, auto& v) {
        const MixtureSameFamily d{Categorical(logits(w)), independent<1>(Normal(l, s))};
        return together(d.log_prob(v), d.mean(), d.variance());
      },
      numbers<float>({3}, 5), in.loc, in.scale, numbers<float>({2, 4}, 4));
}

TEST_CASE("divergences are PyTorch's") {
  const xla::eager_mode_guard eager;
  const inputs in;
  const auto l = numbers<float>({3, 1}, 6), s = abs(numbers<float>({3, 4}, 7)) + 0.5;
  check(
      "kl/normal", 5e-6,
      [](auto& a, auto& b, auto& c, auto& d) { return kl_divergence(Normal(a, b), Normal(c, d)); },
      in.loc, in.scale, l, s);
  check(
      "kl/independent", 5e-6,
      [](auto& a, auto& b, auto& c, auto& d) {
        return kl_divergence(independent<1>(Normal(a, b)), independent<1>(Normal(c, d)));
      },
      in.loc, in.scale, l, s);
  const Uniform inner(in.loc, in.loc + in.scale);
  check_value("kl/uniform", kl_divergence(inner, Uniform(in.loc - numbers<float>({3, 4}, 8) - 3,
                                                         in.loc + in.scale + 1)));
  check(
      "kl/uniform_normal", 5e-6,
      [](auto& a, auto& w, auto& m, auto& t) {
        return kl_divergence(Uniform(a, a + w), Normal(m, t));
      },
      in.loc, in.scale, l, s);
  check_value("kl/normal_uniform", kl_divergence(Normal(in.loc, in.scale), inner));
  check(
      "kl/bernoulli", 5e-6,
      [](auto& p, auto& q) { return kl_divergence(Bernoulli(p), Bernoulli(q)); }, in.share,
      (numbers<float>({3, 4}, 9) + 4) / 8);
  const auto corners = xla::tensor<float>({0, 1, 0.5});
  check_value("kl/bernoulli/corners",
              kl_divergence(Bernoulli(unsqueeze(corners, 1)), Bernoulli(corners)));
  check(
      "kl/categorical", 5e-6,
      [](auto& p, auto& q) { return kl_divergence(Categorical(p), Categorical(logits(q))); },
      in.share, in.loc);
  check_value("kl/categorical/corners",
              kl_divergence(Categorical(xla::tensor<float>({{0, 1, 1}, {1, 1, 2}})),
                            Categorical(xla::tensor<float>({{0, 1, 3}, {0, 2, 1}}))));
}

TEST_CASE("distributions are the same in every mode") {
  test::check_modes(
      [](auto& x, auto& shift) {
        const Normal of_tensors(x, exp(shift));
        const Normal of_numbers(0, 1.5);
        const Uniform uniform(shift, 5);
        const Categorical categorical(logits(x)), weights(sigmoid(x));
        const Bernoulli coin(sigmoid(x));
        const MixtureSameFamily mixture(weights, of_tensors);
        const auto events = independent<1>(of_tensors);
        const auto one = events.rsample();
        const auto place = categorical.sample();
        const auto two = uniform.rsample({2});
        const auto density = mixture.log_prob(mean(x, {1}));
        const auto apart = kl_divergence(of_tensors, of_numbers);
        const auto place_density = categorical.log_prob(place);
        const auto uncertain = coin.entropy();
        auto loss =
            sum(one) + sum(two) + sum(density) + sum(apart) + sum(place_density) + sum(uncertain);
        loss.backward();
        const auto draws = of_tensors.sample({2, 3});
        const auto numbers = of_numbers.sample({x.size(0)});
        const auto places = categorical.sample({5});
        const auto few = weights.sample();
        const auto coins = coin.sample({2});
        const auto mixed = mixture.sample({3});
        const auto mixed_once = mixture.sample();
        return std::tuple(loss, one, place, two, draws, numbers, places, few, coins, mixed,
                          mixed_once, mixture.cdf(mean(x, {1})), coin.log_prob(coins),
                          categorical.mode(), of_tensors.icdf(coin.probs()));
      },
      test::parameter(numbers<float>({5, 3})), test::parameter(numbers<float>({3}, 1)));
}

TEST_CASE("gradients of draws and of densities, against differences") {
  const auto loc = numbers<double>({2, 3});
  const auto scale = abs(numbers<double>({3}, 1)) + 0.5;
  test::check_gradient(
      [](auto& l, auto& s) {
        xla::manual_seed(5);
        return xla::cat({Normal(l, s).rsample({2}), Uniform(l, l + s).rsample({2})}, 0);
      },
      loc, scale);
  test::check_gradient(
      [](auto& w, auto& l, auto& s, auto& v) {
        return MixtureSameFamily(Categorical(logits(w)), independent<1>(Normal(l, s))).log_prob(v);
      },
      numbers<double>({2}, 2), loc, scale, numbers<double>({4, 3}, 3));
  const xla::eager_mode_guard eager;
  auto l = test::parameter(loc);
  CHECK_FALSE(Normal(l, scale).sample().requires_grad());
  CHECK_FALSE(Uniform(l, l + scale).sample({2}).requires_grad());
}

TEST_CASE("draws have the mean, the variance and the sizes that they should") {
  const xla::eager_mode_guard eager;
  xla::manual_seed(7);
  const inputs in;
  const Normal normal(in.loc, in.scale);
  check_moments(normal);
  check_moments(Normal(0.5, 2));
  check_moments(Uniform(in.loc, in.loc + in.scale));
  check_moments(Bernoulli(in.share * 0.8 + 0.1));
  check_moments(MixtureSameFamily(Categorical(in.share), normal));
  check_moments(
      MixtureSameFamily(Categorical(probs(xla::tensor<float>({1, 2, 5}))), independent<1>(normal)));
  const auto shares =
      xla::mean(as_numbers(xla::one_hot(Categorical(in.share).sample({20000}), 4)), {0});
  test::check_equal(shares, Categorical(in.share).probs(), 0.02);

  CHECK(normal.sample().sizes() == test::sizes_t{3, 4});
  CHECK(normal.rsample({2, 5}).sizes() == test::sizes_t{2, 5, 3, 4});
  CHECK(Normal(0, 1).sample().sizes() == test::sizes_t{});
  CHECK(Normal(0, 1).sample({0}).sizes() == test::sizes_t{0});
  CHECK(Categorical(in.share[0]).sample().sizes() == test::sizes_t{});
  CHECK(Categorical(in.share).sample({2}).sizes() == test::sizes_t{2, 3});
  CHECK(MixtureSameFamily(Categorical(in.share), normal).sample({2, 1}).sizes() ==
        test::sizes_t{2, 1, 3});
}

TEST_CASE("a variational autoencoder and a policy learn, to the same bits in every mode") {
  const xla::eager_mode_guard guard;
  xla::manual_seed(3);
  const auto picture = xla::cast<float>(numbers<float>({16, 5}) > 0);
  const Encoder encoder;
  const auto first = train_in_every_mode(encoder, picture, autoencoder_step, 1).item();
  CHECK(train_in_every_mode(encoder, picture, autoencoder_step, 60).item() < 0.9f * first);
  const auto state = xla::cast<float>(xla::one_hot(xla::arange(30) % 3, 3));
  CHECK(train_in_every_mode(nn::Linear{3, 3}, state, policy_step, 60).second.item() > 0.85f);
}

TEST_CASE("two tensors broadcast to each other, in every mode") {
  test::check_modes(
      [](auto& x, auto& y, auto& z) {
        const auto column = unsqueeze(y, 1), row = unsqueeze(x, 0);
        const auto both = broadcast_tensors(row, column);
        const auto turned = broadcast_tensors(column, unsqueeze(row, 0));
        const auto with_number = broadcast_tensors(xla::full<float>({1, 2}, 3), z);
        auto loss = sum(both.first * both.second) + sum(turned.first);
        loss.backward();
        return std::tuple(loss, both.first, both.second, turned.second, with_number.first,
                          with_number.second);
      },
      test::parameter(numbers<float>({3})), test::parameter(numbers<float>({4}, 1)),
      numbers<float>({5, 2}));
  const xla::eager_mode_guard eager;
  const auto both = broadcast_tensors(numbers<float>({2, 1, 3}), numbers<double>({4, 1}));
  CHECK(both.first.sizes() == test::sizes_t{2, 4, 3});
  CHECK(both.second.sizes() == test::sizes_t{2, 4, 3});
  test::check_equal(both.first, expand(numbers<float>({2, 1, 3}), {2, 4, 3}));
  CHECK_THROWS_WITH(broadcast_tensors(numbers<float>({2}), numbers<float>({3})),
                    test::contains("broadcast_tensors"));
}

TEST_CASE("distributions refuse parameters that have no meaning, in every mode") {
  const xla::eager_mode_guard guard;
  const auto words =
      test::contains("distributions::Normal: scale -0.5 at position 1 has to be above 0");
  auto x = xla::tensor<float>({1, -0.5, 2});
  auto compiled = xla::compile([](auto& scale) { return Normal(0, scale).sample(); });
  CHECK_THROWS_WITH(compiled(x), words);
  CHECK_THROWS_WITH(Normal(0, x), words);
  CHECK_THROWS_WITH(Normal(0, x * 0), test::contains("scale 0 at position 0"));
  CHECK_THROWS_WITH(Normal(0, x * std::nanf("")), test::contains("scale nan at position 0"));
  CHECK_THROWS_WITH(Normal(x, 0), test::contains("distributions::Normal: scale has to be above 0"));
  CHECK(Normal(0, x, false).stddev().to_vector() == x.to_vector());
  CHECK_THROWS_WITH(Bernoulli(x),
                    test::contains("the probability -0.5 at position 1 has to be from 0 to 1"));
  CHECK_THROWS_WITH(Bernoulli(1.5),
                    test::contains("distributions::Bernoulli: a probability is from 0 to 1"));
  CHECK_THROWS_WITH(Categorical(x),
                    test::contains("the probability -0.5 at position 1 has to be at least 0"));
  CHECK_THROWS_WITH(Categorical(x * 0), test::contains("the sum of probabilities 0 at position 0"));
  CHECK_THROWS_WITH(Uniform(1, x),
                    test::contains("high - low is 0 at position 0 and has to be above 0"));
  CHECK_THROWS_AS(Categorical(xla::ones<float>({3})).log_prob(xla::tensor<std::int64_t>(3)),
                  xla::index_error);
  CHECK_THROWS_AS(Normal(xla::zeros<float>({2}), xla::ones<float>({3})), xla::shape_error);
  xla::eager_mode(false);
  const auto draw = Normal(0, x).sample();
  CHECK_THROWS_WITH(draw.to_vector(), words);
}
