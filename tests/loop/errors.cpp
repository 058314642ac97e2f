// SPDX-License-Identifier: Apache-2.0
// What an error in the body of a loop says: the loops around it with the lines that call them, the
// innermost first, and of elements the step.
#include <string>
#include <tuple>
#include <utility>

#include "support/modes.hpp"
#include "xla/functions.hpp"
#include "xla/loop.hpp"
#include "xla/xla.hpp"

using test::contains;
using test::numbers;

namespace {

template <class F, class... X>
std::string said_by(F& f, X&... x) {
  try {
    f(x...);
  } catch (const xla::error& e) {
    return e.what();
  }
  return "";
}
std::string at(int line) { return " (errors.cpp:" + std::to_string(line) + ")"; }

template <class F, class Check, class... X>
void in_eager_and_compiled(const F& f, const Check& check, X... x) {
  const xla::eager_mode_guard eager;
  check(said_by(f, x...));
  auto compiled = xla::compile(f);
  check(said_by(compiled, x...));
}
template <class F, class Check, class... X>
void in_all(const F& f, const Check& check, X... x) {
  in_eager_and_compiled(f, check, x...);
  const xla::eager_mode_guard traced(false);
  const auto synced = [&](auto&... given) {
    const auto held = f(given...);
    xla::sync();
  };
  check(said_by(synced, x...));
}

constexpr int first = __LINE__;
constexpr auto products = [](auto& xs, auto& w) {
  const auto outer = [&](const auto& c, const auto& x) {
    const auto inner = [&](const auto&, const auto& now) { return matmul(now, w) + now; };
    return std::pair(xla::fori_loop(0, 2, inner, c + x), sum(x));
  };
  return xla::scan(outer, xla::zeros_like(select(xs, 0, 0)), xs).first;
};
constexpr int second = __LINE__;
constexpr auto picks = [](auto& table, auto& index) {
  const auto add = [&](const auto& c, const auto& i) {
    return std::pair(c + index_select(table, 0, i), std::tuple<>());
  };
  const auto turn = [&](const auto&, const auto& c) {
    return xla::scan(add, c, index, {.reverse = true}).first;
  };
  return xla::fori_loop(0, 3, turn, xla::zeros_like(table));
};
constexpr int third = __LINE__;
constexpr auto branch = [](auto& x, auto& index) {
  const auto more = [](const auto& c) { return sum(c) < 100.0f; };
  const auto body = [&](const auto& c) {
    const auto pick = [&] { return c + index_select(x, 0, index); };
    return xla::cond(sum(c) > 0.0f, pick, [&] { return c + 1.0f; });
  };
  return xla::while_loop(more, body, x - 1.0f);
};
constexpr int fourth = __LINE__;
constexpr auto behind = [](auto& xs, auto& w) {
  const auto add = [](const auto& c, const auto& x) { return std::pair(c + x, std::tuple<>()); };
  return matmul(xla::scan(add, xla::zeros_like(select(xs, 0, 0)), xs).first, w);
};

}  // namespace

TEST_CASE("sizes that do not fit in a body name the loops around it") {
  const auto check = [](const std::string& said) {
    CHECK_THAT(said, contains(at(first + 3) + ", in the body of fori_loop" + at(first + 4) +
                              ", in the body of scan" + at(first + 6)));
  };
  in_all(products, check, numbers<float>({3, 4, 4}), numbers<float>({5, 4}));
  in_all(
      products, [](const std::string& said) { CHECK(said == ""); }, numbers<float>({3, 4, 4}),
      numbers<float>({4, 4}));
}

TEST_CASE("sizes that do not fit after a loop are not of its body") {
  const auto check = [](const std::string& said) {
    CHECK_THAT(said, contains(at(fourth + 3)) && !contains("body"));
  };
  in_all(behind, check, numbers<float>({3, 4, 4}), numbers<float>({5, 4}));
}

TEST_CASE("an index that is not there names the steps") {
  const auto check = [](const std::string& said) {
    CHECK_THAT(said, contains("index 7 at position 1 is outside [0, 2)") &&
                         contains(at(second + 3) + ", in step 2 of scan" + at(second + 6) +
                                  ", in step 0 of fori_loop" + at(second + 8)));
  };
  in_all(picks, check, numbers<float>({2, 4}), xla::tensor<std::int64_t>({{0, 1}, {1, 0}, {0, 7}}));
}

TEST_CASE("an index that is not there names the branch") {
  const auto check = [](const std::string& said) {
    CHECK_THAT(said, contains(at(third + 4) + ", in a branch of cond" + at(third + 5) +
                              ", in step 1 of while_loop" + at(third + 7)));
  };
  in_all(branch, check, xla::ones<float>({2, 4}), xla::tensor<std::int64_t>({0, 7}));
}
