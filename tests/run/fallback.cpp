// SPDX-License-Identifier: Apache-2.0
#include <Eigen/Core>

#include "catch.hpp"
#include "support/gradient.hpp"
#include "support/memory_spaces.hpp"
#include "support/modes.hpp"
#include "xla/io/npy.hpp"
#include "xla/xla.hpp"

using test::backend_elements;
using test::backend_memory;
using test::check_equal;
using test::laid_out;
using test::ordered_memory;
using xla::detail::layout;
using names = std::vector<std::string>;

namespace {

std::int64_t graphs() {
  const auto m = xla::metric_data("ExecuteTime");
  return m ? m->total_samples : 0;
}

void start(bool eager) {
  xla::sync(true);
  xla::eager_mode(eager);
  xla::clear_all();
}

}  // namespace

TEST_CASE("nonzero lists the places of what is not 0") {
  const xla::eager_mode_guard guard;
  for (bool eager : {true, false}) {
    start(eager);
    const float nan = std::nanf("");
    const auto x = xla::tensor<float>({{0, 1, -0.f}, {nan, 0, -2}});
    check_equal(nonzero(x), {3, 2}, std::vector<std::int64_t>{0, 1, 1, 0, 1, 2});
    check_equal(nonzero(xla::tensor<int>({0, 3, 0, 4})), {2, 1}, std::vector<std::int64_t>{1, 3});
    check_equal(nonzero(xla::zeros({7, 13})), {0, 2}, {});
    check_equal(nonzero(xla::zeros({0, 3, 2})), {0, 3}, {});
    check_equal(nonzero(xla::tensor(true)), {1, 0}, {});
    const auto all = test::numbers<bool>({3, 5, 7});
    const auto places = nonzero(all).to_vector();
    std::vector<std::int64_t> flat, want;
    for (std::size_t i = 0; i < places.size(); i += 3)
      flat.push_back((places[i] * 5 + places[i + 1]) * 7 + places[i + 2]);
    for (std::int64_t i = 0; i < 105; ++i)
      if (all.data()[i]) want.push_back(i);
    CHECK(flat == want);
  }
}

TEST_CASE("masked_select takes what a mask holds; both broadcast") {
  const xla::eager_mode_guard guard;
  for (bool eager : {true, false}) {
    start(eager);
    const auto x = xla::tensor<float>({{1, 2, 3}, {4, 5, 6}});
    check_equal(masked_select(x, x > 2), {4}, std::vector<float>{3, 4, 5, 6});
    check_equal(masked_select(x, xla::tensor<int>({1, 0, 1}) > 0), {4},
                std::vector<float>{1, 3, 4, 6});
    check_equal(masked_select(xla::tensor<int>({7, 8, 9}), x > 2), {4},
                std::vector<int>{9, 7, 8, 9});
    check_equal(masked_select(x, x > 9), {0}, {});
    check_equal(masked_select(xla::zeros({0, 3}), xla::zeros({0, 3}) > 0), {0}, {});
    CHECK_THROWS_AS(masked_select(x, xla::tensor<int>({1, 0}) > 0), xla::shape_error);
  }
}

TEST_CASE("the gradient of masked_select") {
  test::check_gradient([](auto& x) { return masked_select(x * x, x > 0); },
                       test::numbers<double>({3, 5}));
}

TEST_CASE("functions whose sizes depend on elements run the graph and count as a fallback") {
  const xla::eager_mode_guard traced(false);
  start(false);
  auto x = xla::tensor<float>({1, 0, 3});
  const auto y = x * 2;
  CHECK(graphs() == 0);
  CHECK(xla::executed_fallback_ops().empty());
  CHECK(nonzero(y).sizes() == test::sizes_t{2, 1});
  CHECK(graphs() == 1);
  CHECK(xla::executed_fallback_ops() == names{"fallback::nonzero"});
  CHECK(sum(y).item() == 8);
  CHECK(masked_select(y, y > 0).sizes() == test::sizes_t{2});
  CHECK(nonzero(y).sizes() == test::sizes_t{2, 1});
  CHECK(xla::executed_fallback_ops() ==
        names{"fallback::item", "fallback::masked_select", "fallback::nonzero"});
  CHECK(xla::counter_value("fallback::nonzero") == 2);
  CHECK(xla::short_metrics_report().find("Counter: fallback::masked_select\n  Value: 1") !=
        std::string::npos);
}

TEST_CASE("a layout says which axis is where") {
  const layout usual, nhwc{0, 2, 3, 1}, turned{5, 3, 4, 0, 1, 2};
  CHECK(usual.is_row_major());
  CHECK(layout{0, 1, 2}.is_row_major());
  CHECK_FALSE(nhwc.is_row_major());
  CHECK(layout{0, 2, 3, 1} == nhwc);
  CHECK_FALSE(layout{0, 3, 2, 1} == nhwc);
  for (int place = 0; place < 6; ++place) {
    CHECK(usual.axis(place) == place);
    CHECK(turned.axis(place) == std::array{5, 3, 4, 0, 1, 2}[static_cast<std::size_t>(place)]);
  }
  CHECK(print_layout(nhwc, 4).view() == "{1,3,2,0}");
  CHECK(print_layout(usual, 2).view() == "{1,0}");
  xla::detail::shape s;
  for (int size : {2, 3, 5, 7}) s.push(size);
  std::int64_t strides[6];
  find_strides(s, nhwc, strides);
  CHECK(std::vector(strides, strides + 4) == std::vector<std::int64_t>{105, 1, 21, 3});
  CHECK(in_memory(s, nhwc)[3] == 3);
}

TEST_CASE("every reader finds elements wherever and in whichever order they are") {
  const xla::eager_mode_guard eager;
  const auto x = test::numbers<float>({3, 5, 2});
  const auto m = test::numbers<double>({4, 3});
  const auto text = [](const auto& t) {
    std::ostringstream out;
    out << t;
    return out.str();
  };
  for (const auto* place : {&ordered_memory, &backend_memory}) {
    for (const layout order : {layout{}, layout{2, 0, 1}, layout{1, 2, 0}, layout{0, 2, 1}}) {
      CHECK(laid_out(x, order, *place).to_vector() == x.to_vector());
      CHECK(laid_out(x, order, *place).data()[17] == x.data()[17]);
      CHECK(laid_out(x > 0, order, *place).to_vector() == (x > 0).to_vector());
      CHECK(text(laid_out(x, order, *place)) == text(x));
    }
    const layout turned{1, 0};
    CHECK(xla::io::to_npy(laid_out(m, turned, *place)) == xla::io::to_npy(m));
    CHECK(xla::as_eigen(laid_out(m, turned, *place)).isApprox(xla::as_eigen(m), 0));
    CHECK(laid_out(xla::tensor(2.5), {}, *place).item() == 2.5);
    CHECK(laid_out(xla::zeros({0, 3}), turned, *place).to_vector().empty());
    CHECK(masked_select(laid_out(m, turned, *place), laid_out(m > 0, turned, *place)).to_vector() ==
          masked_select(m, m > 0).to_vector());
  }
  CHECK(backend_elements::living == 0);
}

TEST_CASE("a model's values may be elsewhere when they are saved") {
  const xla::eager_mode_guard eager;
  xla::nn::Linear layer{3, 4}, other{3, 4};
  const auto w = test::numbers<float>({4, 3});
  layer.weight.copy_(laid_out(w, {1, 0}, backend_memory));
  xla::load_state_dict(other, xla::state_dict(layer));
  CHECK(other.weight.to_vector() == w.to_vector());
}

TEST_CASE("elements of a backend are copied once, and are not written") {
  const bool is_eager = GENERATE(true, false);
  const xla::eager_mode_guard mode(is_eager);
  backend_elements::copied = 0;
  {
    const auto x = test::numbers<float>({3, 4});
    auto y = laid_out(x, {1, 0}, backend_memory);
    const auto same = y.detach();
    backend_elements::broken = true;
    CHECK_THROWS_WITH((y + y).to_vector(), test::contains("the backend is gone"));
    backend_elements::broken = false;
    CHECK(backend_elements::copied == 0);
    const auto z = (y * y).to_vector();
    CHECK(z == (x * x).to_vector());
    CHECK((y.data() == same.data()) == is_eager);  // traced, a result has memory of its own
    CHECK(flatten(y).to_vector() == x.to_vector());
    CHECK(reshape(same, {2, 6}).to_vector() == x.to_vector());
    CHECK(backend_elements::copied == 1);
    y += 1;
    y[0] = 0;
    CHECK(y.to_vector()[4] == x.to_vector()[4] + 1);
    CHECK(same.to_vector() == x.to_vector());
    const auto wrong = laid_out(xla::tensor<std::int64_t>({{9}}), {}, backend_memory);
    CHECK_THROWS_AS(gather(x, 1, wrong).to_vector(), xla::index_error);
    CHECK(backend_elements::copied == 2);
  }
  xla::sync(true);
  CHECK(backend_elements::living == 0);
}

TEST_CASE("a graph that cannot get what it reads is pending until it can") {
  const xla::eager_mode_guard traced(false);
  {
    const auto away = laid_out(test::numbers<float>({3}), {}, backend_memory);
    xla::Buffer<float, 1> state{xla::zeros<float>({3})};
    xla::sync(true);
    const auto total = away + away;
    state += 1;
    backend_elements::broken = true;
    for (int again = 0; again < 2; ++again) {
      CHECK_THROWS_WITH(xla::sync(), test::contains("the backend is gone"));
      state += 1;
    }
    backend_elements::broken = false;
    xla::sync();
    CHECK(state.to_vector() == std::vector<float>(3, 3));
    CHECK(total.to_vector() == (away * 2).to_vector());
  }
  xla::sync(true);
  CHECK(backend_elements::living == 0);
}

TEST_CASE("arguments, state and gradients may be anywhere, in every mode") {
  const xla::eager_mode_guard eager;
  const auto step = [](auto& w, auto& x, auto& i) {
    const auto h = matmul(tanh(x), w) + gather(x, 1, i);
    (sum(h * h) * 0.01).backward();
    x += 0.5;
    w -= w.grad() * 0.125;
    return std::tuple(h, softmax(h), reshape(x, {-1}));
  };
  const auto x = test::numbers<float>({5, 4}), w = test::numbers<float>({4, 5}, 1) * 0.25;
  const auto i = test::numbers<std::int64_t>({5, 5}) * 0 + 2;
  const auto start = [&](const auto& value, const auto& gradient) {
    auto p = xla::Parameter<float, 2>::like(w);
    p.copy_(value);
    p.set_grad(gradient);
    return p;
  };
  const auto want = test::run_mode<test::mode::eager>(step, start(w, w), x, i);
  for (const auto* place : {&ordered_memory, &backend_memory}) {
    const auto p = start(laid_out(w, {1, 0}, *place), laid_out(w, {1, 0}, *place));
    const auto y = laid_out(x, {1, 0}, *place);
    const auto k = laid_out(i, {1, 0}, *place);
    CHECK(test::run_mode<test::mode::eager>(step, p, y, k).difference(want) == "");
    CHECK(test::run_mode<test::mode::traced>(step, p, y, k).difference(want) == "");
    CHECK(test::run_mode<test::mode::compiled>(step, p, y, k).difference(want) == "");
  }
}
