// SPDX-License-Identifier: Apache-2.0
// Convolutions in a row that run image by image give the bits of whole batches.
#include <string>
#include <tuple>

#include "catch.hpp"
#include "support/modes.hpp"
#include "support/threads.hpp"
#include "xla/run/profile.hpp"
#include "xla/xla.hpp"

using test::numbers;

namespace {

using threads = test::restore_threads;
template <class T>
using images = xla::Tensor<T, 4>;

/// Two inverted residuals, and 3x3 convolutions, parts, joins and a pool in between. What is read
/// after them, or returned, is there for all images. One map has two convolutions' results, another
/// an image's mean.
constexpr auto residuals = [](const auto& x, const auto& expand, const auto& depthwise,
                              const auto& project, const auto& mix, const auto& bias) {
  const auto block = [&](const auto& in) {
    const auto wide = xla::relu6(xla::conv2d(in, expand, bias));
    const auto deep = xla::conv2d(wide, depthwise, {.padding = 1, .groups = 64});
    const auto [left, right] = xla::chunk<2>(deep, 1);
    return xla::conv2d(xla::cat({xla::tanh(right), left}, 1) + wide, project);
  };
  const auto a = block(x) + x * xla::mean(x, {1, 2, 3}, xla::keepdim);
  const auto b =
      xla::relu(xla::conv2d(a, mix, {.padding = 1}) + xla::conv2d(x, mix, {.padding = 1}));
  const auto c = block(xla::max_pool2d(b, 3, {.stride = 1, .padding = 1})) * 0.5 + a;
  return std::tuple(c, xla::sum(a, {2, 3}), xla::softmax(b, 1));
};

template <class T>
struct weights {
  images<T> expand = numbers<T>({64, 16, 1, 1}, 1) * 0.25, depthwise = numbers<T>({64, 1, 3, 3}, 2),
            project = numbers<T>({16, 64, 1, 1}, 3) * 0.125,
            mix = numbers<T>({16, 16, 3, 3}, 4) * 0.25;
  xla::Tensor<T, 1> bias = numbers<T>({64}, 5);
};

/// Every mode has the bits of eager mode, which computes whole batches, on one thread and more.
template <class T>
void check_all(const auto& f, const xla::Size (&size)[4]) {
  const auto x = numbers<T>(size, 7);
  const weights<T> w;
  const auto run = [&]<test::mode Mode> {
    return test::run_mode<Mode>(f, x, w.expand, w.depthwise, w.project, w.mix, w.bias);
  };
  const test::snapshot eager = run.template operator()<test::mode::eager>();
  for (const int n : {1, 2}) {
    const threads some(n);
    CAPTURE(n, size[0], size[2]);
    CHECK(run.template operator()<test::mode::traced>().difference(eager) == "");
    CHECK(run.template operator()<test::mode::compiled>().difference(eager) == "");
  }
}

/// What the profile says of the group of images; "" if there is none.
std::string group_of(auto& f, const auto&... x) {
  const xla::Profile p = xla::profile(f, x...);
  for (const xla::ProfileStep& s : p.steps())
    if (s.name.find("images, each through") != s.name.npos) return s.name;
  return "";
}

}  // namespace

TEST_CASE("convolutions image by image give the bits of the batch") {
  check_all<float>(residuals, {4, 16, 24, 26});
  check_all<float>(residuals, {3, 16, 31, 29});  // not on two threads
  check_all<float>(residuals, {5, 16, 8, 9});
  check_all<float>(residuals, {0, 16, 9, 9});
  check_all<double>(residuals, {2, 16, 33, 24});
}

TEST_CASE("which convolutions run image by image") {
  const weights<float> w;
  auto compiled = xla::compile(residuals);
  const auto group = [&](const xla::Size(&size)[4]) {
    return group_of(compiled, numbers<float>(size, 7), w.expand, w.depthwise, w.project, w.mix,
                    w.bias);
  };
  {
    const threads one(1);
    CHECK(group({8, 16, 28, 28}) == "8 images, each through 24 steps");
    CHECK(group({1, 16, 28, 28}) == "");
    CHECK(group({8, 16, 5, 5}) == "");  // all in the cache
  }
  const threads two(2);
  CHECK(group({8, 16, 28, 28}) == "8 images, each through 24 steps");
  CHECK(group({3, 16, 31, 31}) == "");  // one thread would wait
}

TEST_CASE("what lies between the steps of a group is there for one image of each thread") {
  const weights<float> w;
  const auto memory_of = [&](auto compiled) {
    const threads one(1);
    const auto x = numbers<float>({8, 16, 28, 28}, 7);
    return xla::profile(compiled, x, w.expand, w.depthwise, w.project, w.mix, w.bias)
        .functions.front()
        .arena_bytes;
  };
  const auto grouped = memory_of(xla::compile(residuals));
  const auto apart = memory_of(xla::compile<xla::tags::without<"epilogues">>(residuals));
  const std::int64_t wide = std::int64_t{8} * 28 * 28 * 64 * 4;
  CHECK(grouped < apart - wide);
}

TEST_CASE("convolutions that learn are computed for the whole batch") {
  const auto learn = [](auto& x, auto& expand, auto& project) {
    const auto y = xla::conv2d(xla::relu(xla::conv2d(x, expand)), project);
    const auto loss = xla::mean(y * y);
    loss.backward();
    return loss;
  };
  const auto x = numbers<float>({4, 16, 24, 24}, 7);
  const auto expand = test::parameter(numbers<float>({64, 16, 1, 1}, 1) * 0.25),
             project = test::parameter(numbers<float>({16, 64, 1, 1}, 3) * 0.125);
  const test::snapshot eager = test::run_mode<test::mode::eager>(learn, x, expand, project);
  CHECK(test::run_mode<test::mode::compiled>(learn, x, expand, project).difference(eager) == "");
}
