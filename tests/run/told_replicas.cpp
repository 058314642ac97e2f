// SPDX-License-Identifier: Apache-2.0
#include <stdexcept>
#include <string>

#include <xla/xla.hpp>

#include "catch.hpp"
#include "support/replicas.hpp"

namespace {

/// What ends a world of three in which replica 1 alone does as `other` says.
template <class Body>
std::string said(const Body& body) {
  try {
    test::replicate(3, [&](int ordinal) { body(ordinal == 1); });
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}

constexpr auto sum = [](auto& x) { return xla::all_reduce(xla::sum(x * x)); };
constexpr auto other_sum = [](auto& x) { return xla::all_reduce(xla::sum(x * 2)); };
constexpr auto gather = [](auto& x) { return xla::all_gather(x + 1, 0); };
constexpr auto other_gather = [](auto& x) { return xla::all_gather(x * 2, 0); };

template <class F, class Other>
std::string said_by(F f, Other g, bool traced = false) {
  return said([&](bool other) {
    const xla::eager_mode_guard mode(!traced);
    auto x = xla::ones<float>({4, 5});
    const auto run = [&](auto body) {
      if (traced) body(x).to_vector();
      else xla::compile(body)(x);
    };
    run(f);  // the same everywhere
    if (other) run(g);
    else run(f);
  });
}

const std::string end = "; all replicas have to do the same";

}  // namespace

TEST_CASE("a replica that runs another program is told") {
  const std::string why = "replica 1 of 3: runs another program than replica 0" + end;
  for (const bool traced : {false, true}) {
    CHECK(said_by(sum, sum, traced) == "");
    CHECK(said_by(sum, other_sum, traced) == why);
    CHECK(said_by(gather, other_gather, traced) == why);
  }
}

TEST_CASE("a replica with other sizes or element types is told") {
  const std::string why = "replica 1 of 3: has other sizes or element types than replica 0" + end;
  CHECK(said([&](bool other) {
          auto x = xla::ones<float>({other ? 6 : 4, 5});  // of whose sum the size is the same
          xla::compile(sum)(x);
        }) == why);
  CHECK(said([&](bool other) {
          if (other) {
            auto x = xla::ones<double>({4, 5});
            xla::compile(sum)(x);
          } else {
            auto x = xla::ones<float>({4, 5});
            xla::compile(sum)(x);
          }
        }) == why);
}

TEST_CASE("a replica with other passes or another seed is told") {
  CHECK(said([&](bool other) {
          auto x = xla::ones<float>({4, 5});
          if (other) xla::compile<xla::without<"share">>(sum)(x);
          else xla::compile(sum)(x);
        }) ==
        "replica 1 of 3: has other passes or options than replica 0, or is compiled for other "
        "vector registers" +
            end);
  CHECK(said([&](bool other) {
          xla::manual_seed(other ? 5 : 4);
          auto x = xla::ones<float>({4, 5});
          xla::compile(sum)(x);
        }) == "replica 1 of 3: has another seed of random numbers than replica 0" + end);
}
