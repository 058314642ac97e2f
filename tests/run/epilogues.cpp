// SPDX-License-Identifier: Apache-2.0
// What follows a convolution runs on its result while that is in the cache, with the same bits.
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "support/modes.hpp"
#include "support/plans.hpp"
#include "support/threads.hpp"
#include "xla/models/mobilenet_v2.hpp"
#include "xla/run/execute/register_epilogue.hpp"
#include "xla/run/profile.hpp"
#include "xla/xla.hpp"

using test::numbers;
using test::parameter;

namespace {

using threads = test::restore_threads;
using images = xla::Tensor<float, 4>;

/// Every mode has the bits of eager mode, on one thread and on several.
template <class F>
void check_all(F f, const auto&... x) {
  const test::snapshot eager = test::run_mode<test::mode::eager>(f, x...);
  for (int n : {1, 3}) {
    const threads some(n);
    CAPTURE(n);
    CHECK(test::run_mode<test::mode::traced>(f, x...).difference(eager) == "");
    CHECK(test::run_mode<test::mode::compiled>(f, x...).difference(eager) == "");
  }
}

template <std::int64_t Stride, std::int64_t Padding, std::int64_t Groups>
constexpr auto convolve = [](auto& x, auto& w, auto& b) {
  return xla::relu(xla::conv2d(x, w, b, {.stride = Stride, .padding = Padding, .groups = Groups}));
};
template <std::int64_t Stride, std::int64_t Padding, std::int64_t Groups>
void check_convolution(const xla::Size (&x)[4], const xla::Size (&w)[4]) {
  check_all(convolve<Stride, Padding, Groups>, numbers<float>(x, 1), numbers<float>(w, 2),
            numbers<float>({w[0]}, 3));
}

/// A block of an image network.
struct Block {
  xla::nn::Conv2d<3, 1, 1> conv1{32, 32}, conv2{32, 32};
  xla::nn::BatchNorm2d bn1{32}, bn2{32};
  constexpr auto operator()(const images& x) const {
    return xla::relu(bn2(conv2(xla::relu(bn1(conv1(x))))) + x);
  }
  XLA_MODULE(conv1, conv2, bn1, bn2)
};
struct Blocks {
  Block a, b;
  constexpr auto operator()(const images& x) const { return b(a(x)); }
  XLA_MODULE(a, b)
};

std::vector<std::string> names(const xla::Profile& p, const std::string& kind) {
  std::vector<std::string> found;
  for (const xla::ProfileStep& s : p.steps())
    if (s.kind == kind) found.push_back(s.name);
  return found;
}

}  // namespace

TEST_CASE("bias and activation on the result of a convolution of any shape") {
  check_convolution<1, 1, 1>({2, 16, 30, 30}, {48, 16, 3, 3});  // Winograd's algorithm
  check_convolution<1, 1, 1>({3, 5, 7, 9}, {7, 5, 3, 3});
  check_convolution<1, 1, 1>({1, 300, 6, 6}, {33, 300, 3, 3});  // sums in several blocks
  check_convolution<1, 1, 1>({1, 3, 5, 5}, {1, 3, 3, 3});       // one channel
  check_convolution<1, 1, 1>({0, 4, 5, 5}, {6, 4, 3, 3});
  check_convolution<1, 1, 1>({1, 4, 1, 1}, {400, 4, 3, 3});
  check_convolution<2, 0, 1>({2, 12, 9, 11}, {20, 12, 3, 3});
  check_convolution<1, 0, 1>({2, 24, 17, 19}, {70, 24, 1, 1});
  check_convolution<1, 0, 1>({1, 24, 2, 2}, {350, 24, 1, 1});
}
TEST_CASE("no kernel notifies tiles of images in the user's layout") {
  const test::traced_without layouts("-layouts");
  check_convolution<1, 1, 1>({1, 3, 60, 60}, {1, 3, 3, 3});
  check_convolution<1, 1, 1>({1, 3, 9, 9}, {16, 3, 3, 3});
}
TEST_CASE("bias and activation on the result of a convolution in groups") {
  check_convolution<1, 1, 24>({2, 24, 11, 14}, {24, 1, 3, 3});
  check_convolution<1, 1, 24>({2, 24, 6, 5}, {48, 1, 3, 3});
  check_convolution<1, 1, 8>({2, 32, 9, 9}, {32, 4, 3, 3});
  check_convolution<1, 1, 2>({2, 48, 9, 8}, {40, 24, 3, 3});
}
TEST_CASE("maps after a transposed convolution and after a convolution of sequences") {
  check_all([](auto& x, auto& w, auto& b) { return xla::relu(xla::conv_transpose2d(x, w, b)); },
            numbers<float>({2, 6, 7, 5}, 1), numbers<float>({6, 18, 3, 3}, 2),
            numbers<float>({18}, 3));
  check_all([](auto& x, auto& w,
               auto& b) { return xla::relu(xla::conv_transpose2d(x, w, b, {.stride = 2})); },
            numbers<float>({2, 6, 7, 5}, 1), numbers<float>({6, 18, 3, 3}, 2),
            numbers<float>({18}, 3));
  check_all([](auto& x, auto& w, auto& b) { return xla::gelu(xla::conv1d(x, w, b)) * 2; },
            numbers<double>({3, 6, 40}, 1), numbers<double>({18, 6, 5}, 2),
            numbers<double>({18}, 3));
}

TEST_CASE("other readers of a convolution's input and result") {
  const auto x = numbers<float>({2, 20, 12, 13}, 1), w = numbers<float>({20, 20, 3, 3}, 2);
  // The input is read for the last time by both.
  check_all(
      [](auto& x, auto& w) {
        const auto h = xla::tanh(x);
        return xla::sigmoid(xla::conv2d(h, w, {.padding = 1}) + h);
      },
      x, w);
  // The result is returned as well.
  check_all(
      [](auto& x, auto& w) {
        const auto y = xla::conv2d(x, w, {.padding = 1});
        return std::tuple(xla::relu(y), y);
      },
      x, w);
  // Others read it, before and after.
  check_all(
      [](auto& x, auto& w) {
        const auto y = xla::conv2d(x, w, {.padding = 1});
        return std::tuple(xla::relu(y - xla::mean(y)), xla::softmax(y, 1));
      },
      x, w);
  // Two convolutions, and a value per image.
  check_all(
      [](auto& x, auto& w) {
        const auto each = xla::mean(x, {1, 2, 3}, xla::keepdim);
        return xla::relu(xla::conv2d(x, w, {.padding = 1}) +
                         xla::conv2d(x, w + 1, {.padding = 1}) * each);
      },
      x, w);
}

TEST_CASE("a state that a convolution reads while it gets a new value") {
  const auto x = parameter(numbers<float>({3, 24, 1, 1}, 1));
  check_all(
      [](auto& x, auto& w) {
        x.copy_(xla::relu(xla::conv2d(x.detach(), w)));
        return xla::sum(x);
      },
      x, numbers<float>({24, 24, 1, 1}, 2));
}

TEST_CASE("a block of an image network in training") {
  const auto learn = [](auto& model, auto& x) {
    const auto loss = xla::mean(xla::square(model(x)));
    loss.backward();
    return loss;
  };
  check_all(learn, Block{}, numbers<float>({2, 32, 9, 7}, 1));
}

TEST_CASE("two blocks of an image network are four steps") {
  const xla::eager_mode_guard eager;
  Blocks model;
  model.eval();
  const auto x = numbers<float>({2, 32, 16, 16}, 1);
  const images want = model(x);
  auto fused = xla::compile(model);
  auto apart = xla::compile<xla::tags::without<"epilogues">>(model);
  for (int n : {1, 3}) {
    const threads some(n);
    CHECK(fused(x).to_vector() == want.to_vector());
    CHECK(apart(x).to_vector() == want.to_vector());
  }
  const xla::Profile p = xla::profile(fused, x), q = xla::profile(apart, x);
  const auto products = names(p, "product");
  REQUIRE(products.size() == 4);
  for (const std::string& s : products) CHECK_THAT(s, test::contains(" + map add center_scale"));
  CHECK(names(p, "map").size() + 4 == names(q, "map").size());
  CHECK(p.steps().size() + 4 == q.steps().size());
  // Each writes one image and no other.
  const double image = 4.0 * 2 * 32 * 16 * 16;
  for (const xla::ProfileStep& s : p.steps())
    if (s.kind == "product") CHECK(s.bytes_written == image);
  CHECK(p.functions.front().arena_bytes == q.functions.front().arena_bytes);
}

TEST_CASE("a traced graph runs what follows a convolution on its result") {
  const xla::eager_mode_guard lazy(false);
  const auto x = numbers<float>({2, 16, 12, 12}, 1), w = numbers<float>({16, 16, 3, 3}, 2);
  const xla::Profile p = xla::profile([&] {
    const auto y = xla::relu(xla::conv2d(x, w, {.padding = 1}) * 2);
    xla::sync();
    return y;
  });
  const auto products = names(p, "product");
  REQUIRE(products.size() == 1);
  CHECK_THAT(products[0], test::contains("+ map mul relu"));
}

namespace {

/// Counts the pairs of a convolution and maps of plans, and those that run in registers: it runs
/// them on memory of its own.
struct epilogue_counts {
  int pairs = 0, in_registers = 0;
  void operator()(const xla::detail::plan& p) {
    for (const xla::detail::step_group& g : p.groups)
      if (g.slices == xla::detail::step_group::parts && g.last == g.first + 1)
        add(p, p.steps[g.first], p.steps[g.last]);
  }

 private:
  void add(const xla::detail::plan& p, const xla::detail::ready_step& made,
           const xla::detail::ready_step& maps) {
    ++pairs;
    // Values at one place of the arena share memory, as a map in place does.
    std::map<std::pair<bool, std::int64_t>, std::vector<float>> memory;
    const auto pointers = [&](const xla::detail::ready_step& s) {
      std::vector<void*> all;
      for (int k = 0; k < s.operands; ++k) {
        const int v = p.base[p.operands[s.first_operand + k]];
        const auto& at = p.placements[v];
        const bool arena = at.where == xla::detail::storage::arena;
        auto& data = memory[{arena, arena ? at.offset : v}];
        data.resize(std::max(data.size(), static_cast<std::size_t>(p.bytes(v)) / sizeof(float)), 1);
        all.push_back(data.data());
      }
      return all;
    };
    pointers(made);
    pointers(maps);  // now all have their sizes
    if constexpr (xla::detail::has_known_regions)
      in_registers += xla::detail::run_in_registers(p, made, pointers(made).data(),
                                                    p.operand_shapes.begin() + made.first_shape,
                                                    nullptr, maps, pointers(maps).data());
  }
};

template <class F, class... Inputs>
epilogue_counts count_epilogues(F& f, const Inputs&... x) {
  epilogue_counts counts;
  auto compiled = xla::compile(f);
  compiled(x...);
  const test::on_each_plan look(std::ref(counts));
  compiled(x...);
  return counts;
}

}  // namespace

TEST_CASE("maps after convolutions that run in registers, with the bits of eager mode") {
  const bool has = xla::detail::has_known_regions;  // only xla::runtime has such kernels
  const xla::eager_mode_guard eager;
  SECTION("an inverted residual: batch norms, relu6 and a shortcut") {
    xla::models::InvertedResidual<32, 32, 1, 6> model;
    model.eval();
    for (const xla::Size size : {14, 7}) {
      const auto x = numbers<float>({1, 32, size, size}, 1);
      const epilogue_counts counts = count_epilogues(model, x);
      CHECK(counts.pairs == 3);
      CHECK(counts.in_registers == (has ? 3 : 0));
      auto compiled = xla::compile(model);
      for (int n : {1, 3}) {
        const threads some(n);
        for (int call = 0; call < 3; ++call)  // weights are packed from the second one on
          CHECK(compiled(x).to_vector() == model(x).to_vector());
      }
    }
  }
  SECTION("an operand that images of a batch share is not one per element") {
    const auto place = [](const images& x, const images& w, const auto& at) {
      return xla::relu(xla::conv2d(x, w) + at);
    };
    const auto x = numbers<float>({3, 16, 5, 4}, 1), w = numbers<float>({32, 16, 1, 1}, 2);
    const auto shared = numbers<float>({32, 5, 4}, 3);
    const auto own = numbers<float>({3, 32, 5, 4}, 4);
    CHECK(count_epilogues(place, x, w, shared).in_registers == 0);
    CHECK(count_epilogues(place, x, w, own).in_registers == (has ? 1 : 0));
    auto compiled = xla::compile(place);
    CHECK(compiled(x, w, shared).to_vector() == place(x, w, shared).to_vector());
    CHECK(compiled(x, w, own).to_vector() == place(x, w, own).to_vector());
  }
  SECTION("other maps are not chains of theirs") {
    const auto gelu = [](const images& x, const images& w) { return xla::gelu(xla::conv2d(x, w)); };
    const auto twice = [](const images& x, const images& w) {
      const auto y = xla::conv2d(x, w);
      return y + xla::relu(y);
    };
    const auto x = numbers<float>({1, 16, 12, 12}, 1), w = numbers<float>({32, 16, 1, 1}, 2);
    for (const epilogue_counts counts :
         {count_epilogues(gelu, x, w), count_epilogues(twice, x, w)}) {
      CHECK(counts.pairs == 1);
      CHECK(counts.in_registers == 0);
    }
  }
}
