// SPDX-License-Identifier: Apache-2.0
#include <Eigen/Core>

#include "support/modes.hpp"
#include "support/threads.hpp"
#include "xla/xla.hpp"

namespace {

std::int64_t samples(const char* name) {
  const auto m = xla::metric_data(name);
  return m ? m->total_samples : 0;
}

}  // namespace

TEST_CASE("eager: an op is compiled at first sight and executed each time") {
  const xla::eager_mode_guard eager;
  const auto x = xla::rand<float>({3, 41});
  xla::clear_all();
  const auto a = xla::exp(x);
  CHECK(samples("EagerOpCompileTime") == 1);
  CHECK(samples("EagerOpExecuteTime") == 1);
  const auto b = xla::exp(x);
  CHECK(samples("EagerOpCompileTime") == 1);
  CHECK(samples("EagerOpExecuteTime") == 2);
  CHECK(xla::counter_value("xla::exp") == 2);
  CHECK(samples("ExecuteTime") == 0);
}

TEST_CASE("eager: an in-place op executes once") {
  const xla::eager_mode_guard eager;
  auto x = xla::ones<float>({5});
  const auto y = xla::ones<float>({5});
  xla::clear_all();
  x += y;
  CHECK(samples("EagerOpExecuteTime") == 1);
}

TEST_CASE("the mode guard restores the mode when something throws") {
  const bool before = xla::is_eager_mode();
  CHECK_THROWS([&] {
    const xla::eager_mode_guard other(!before);
    CHECK(xla::is_eager_mode() == !before);
    throw std::runtime_error("stop");
  }());
  CHECK(xla::is_eager_mode() == before);
}

TEST_CASE("the generator's state can be saved and restored") {
  const xla::eager_mode_guard eager;
  xla::manual_seed(7);
  const auto first = xla::randn<float>({9}).to_vector();
  const auto state = xla::get_rng_state();
  const auto second = xla::randn<float>({9}).to_vector();
  CHECK(first != second);
  xla::set_rng_state(state);
  CHECK(xla::randn<float>({9}).to_vector() == second);
  xla::manual_seed(7);
  CHECK(xla::randn<float>({9}).to_vector() == first);
}

TEST_CASE("devices") {
  CHECK(xla::device().str() == "xla:0");
  {
    const test::restore_threads three(3);
    CHECK(xla::device_count() == 1);
    CHECK(xla::num_threads() == 3);
  }
  CHECK(xla::get_xla_supported_devices() == std::vector<std::string>{"xla:0"});
  CHECK_THROWS_AS(xla::device(1), xla::error);
  CHECK_THROWS_AS(xla::device(-1), xla::error);

  const xla::eager_mode_guard eager;
  const auto device = xla::device();
  xla::manual_seed(3);
  const auto plain = xla::randn<float>({4, 2});
  xla::manual_seed(3);
  const auto x = xla::randn<float>({4, 2}, device);
  CHECK(x.to_vector() == plain.to_vector());
  CHECK(x.device() == device);
  CHECK(x.to(device).data() == x.data());
  for (const bool is_eager : {true, false}) {
    const xla::eager_mode_guard as_told(is_eager);
    CHECK(xla::arange<float>(2).to(device).to_vector() == std::vector<float>{0, 1});
  }
  CHECK_THROWS_WITH(x.to(xla::Device{7}),
                    test::contains("to: there is no device 7; there is device 0"));
  CHECK_THROWS_WITH(xla::zeros<float>({2}, xla::Device{-1}), test::contains("zeros: "));
  CHECK(xla::full<float>({2}, 3, device).to_vector() == std::vector<float>{3, 3});
  CHECK(xla::arange(2, device).to_vector() == std::vector<std::int64_t>{0, 1});
  CHECK(xla::eye(2, device).to_vector() == std::vector<float>{1, 0, 0, 1});
  CHECK(xla::linspace<double>(0, 1, 3, device).to_vector() == std::vector<double>{0, .5, 1});
  CHECK(xla::randint(2, 3, {2}, device).to_vector() == std::vector<std::int64_t>{2, 2});

  xla::nn::Linear layer{2, 3};
  CHECK(&layer.to(device) == &layer);
  CHECK_THROWS_AS(layer.to(xla::Device{1}), xla::error);
}

TEST_CASE("a compiled body makes tensors on the device of its arguments") {
  const auto noise = [](auto& x) {
    const auto device = x.device();
    const auto a = xla::randn<float>({3}, device);
    const auto b = xla::rand<float>({3}, device);
    const auto c = xla::randint(0, 9, {2, 3}, device);
    return (x.to(device) + a * b) * xla::ones<float>({2, 3}, device) + xla::cast<float>(c);
  };
  test::check_modes(noise, xla::tensor<float>({{1, 2, 3}, {4, 5, 6}}));
}

TEST_CASE("Eigen matrices go in and out") {
  const xla::eager_mode_guard eager;
  Eigen::MatrixXf m(2, 3);
  m << 1, 2, 3, 4, 5, 6;
  auto t = xla::from_eigen(m * 2);
  CHECK(t.to_vector() == std::vector<float>{2, 4, 6, 8, 10, 12});
  const auto view = xla::as_eigen(t);
  t += 1.f;
  CHECK(view(1, 0) == 8);
  CHECK(xla::as_eigen(t).sum() == 48);
}

TEST_CASE("no_grad records nothing") {
  const xla::eager_mode_guard eager;
  auto w = xla::ones<float>({3});
  w.requires_grad_();
  const auto y = xla::no_grad([&] { return w * 2.f; });
  CHECK_FALSE(y.requires_grad());
  CHECK((w * 2.f).requires_grad());
  CHECK_THROWS_AS(xla::sum(y).backward(), xla::error);
}
