// SPDX-License-Identifier: Apache-2.0
#include <barrier>
#include <stdexcept>
#include <string>

#include "catch.hpp"
#include "support/replicas.hpp"
#include "xla/kernel/simd/bfloat16_support.hpp"
#include "xla/optim/zero_redundancy.hpp"
#include "xla/parallel/check_replicas.hpp"
#include "xla/parallel/launch.hpp"
#include "xla/parallel/optimizer_step.hpp"
#include "xla/xla.hpp"

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

TEST_CASE("a replica that runs another program is reported") {
  const std::string why = "replica 1 of 3: runs another program than replica 0" + end;
  CHECK(said_by(sum, sum) == "");
  CHECK(said_by(sum, other_sum) == why);
  CHECK(said_by(gather, other_gather) == why);
  // A traced graph is what is recorded until somebody reads: it is compared by what it exchanges.
  CHECK(said_by(sum, sum, true) == "");
  CHECK(said_by(sum, gather, true) ==
        "replica 1 of 3: is at all_gather of 20 float32, and replica 0 at all_reduce (sum) of 1 "
        "float32" +
            end);
}

namespace {

/// Two layers of the same sizes.
struct Branches {
  XLA_MODULE(left, right)
  xla::nn::Linear left{3, 3}, right{3, 3};
};

/// Two steps of training; in the second one replica 1 takes the other branch, or both a little.
std::string said_of_branches(bool eager, bool both, const auto& make_optimizer) {
  return said([&](bool other) {
    const xla::eager_mode_guard mode(eager);
    Branches model;
    auto optimizer = make_optimizer(model);
    const auto x = xla::ones<float>({4, 3});
    for (const bool left : {false, other}) {
      optimizer.zero_grad();
      auto loss = xla::sum(left ? model.left(x) : model.right(x));
      if (both) xla::for_each_parameter(model, [&](auto& p) { loss = loss + 0 * xla::sum(p); });
      loss.backward();
      xla::optimizer_step(optimizer);
    }
  });
}

}  // namespace

TEST_CASE("replicas with gradients of different parameters are reported, with what mends it") {
  const auto sgd = [](auto& model) { return xla::optim::SGD{model, {.lr = 0.1}}; };
  const auto shared = [&](auto& model) { return xla::optim::ZeroRedundancy{sgd(model)}; };
  const std::string mend =
      end +
      ": a parameter that the loss of one of them does not depend on has no gradient there; add 0 "
      "* sum(p) of it to the loss";
  const std::string sum = "all_reduce (mean) of 3 float32, the gradient of parameter ",
                    part = "reduce_scatter (mean) of 1 float32, the gradient of parameter ";
  for (const bool eager : {true, false}) {
    CHECK(said_of_branches(eager, true, sgd) == "");
    CHECK(said_of_branches(eager, false, sgd) ==
          "replica 1 of 3: is at " + sum + "1, and replica 0 at " + sum + "3" + mend);
    CHECK(said_of_branches(eager, false, shared) ==
          "replica 1 of 3: is at " + part + "1, and replica 0 at " + part + "3" + mend);
  }
}

TEST_CASE("a replica with other sizes or element types is reported") {
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

TEST_CASE("a replica with other passes or another seed is reported") {
  CHECK(said([&](bool other) {
          auto x = xla::ones<float>({4, 5});
          if (other) xla::compile<xla::tags::without<"share">>(sum)(x);
          else xla::compile(sum)(x);
        }) ==
        "replica 1 of 3: has other passes or options than replica 0, or is compiled for another "
        "instruction set" +
            end);
  CHECK(said([&](bool other) {
          xla::manual_seed(other ? 5 : 4);
          auto x = xla::ones<float>({4, 5});
          xla::compile(sum)(x);
        }) == "replica 1 of 3: has another seed of random numbers than replica 0" + end);
  // What is traced may run before another seed is set, or afterwards.
  CHECK(said([&](bool other) {
          const xla::eager_mode_guard traced(false);
          xla::manual_seed(4);
          auto x = xla::rand<float>({4, 5});
          const auto s = sum(x);
          if (other) s.item();
          xla::manual_seed(5);
          s.item();
        }) == "");
}

TEST_CASE("a replica whose products at bfloat16 use another algorithm is reported, and no other") {
  constexpr auto product = [](auto& x) {
    return xla::all_reduce(xla::sum(xla::matmul(x, xla::transpose(x))));
  };
  auto& way = xla::kernel::detail::algorithm_of_process<>();
  const auto usual = way.load();
  const auto with_two_ways = [&](auto body) {
    std::barrier<> all(3);
    return said([&](bool other) {
      auto x = xla::ones<float>({4, 5});
      auto step = xla::compile(body);
      for (const bool now : {true, false}) {  // a plan knows the way of the moment
        if (now == other) {
          way = other ? xla::kernel::bfloat16_algorithm::fma : xla::kernel::bfloat16_algorithm::dot;
          step.memory_analysis(x);
        }
        all.arrive_and_wait();
      }
      way = usual;
      step(x);
    });
  };
  CHECK(with_two_ways(product) == "");
  CHECK(with_two_ways(xla::autocast(product)) ==
        "replica 1 of 3: has other passes or options than replica 0, or is compiled for another "
        "instruction set" +
            end);
}

TEST_CASE("check_replicas() skips the state that a ZeroRedundancy has distributed") {
  CHECK(said([](bool other) {
          const xla::eager_mode_guard mode(true);
          xla::nn::Linear model{3, 2};
          xla::for_each_parameter(model, [](auto& p) { p.fill_(0.5f); });
          xla::optim::ZeroRedundancy optimizer{xla::optim::AdamW{model, {.lr = 0.1}}};
          auto x = xla::ones<float>({4, 3}) * xla::arange<float>(3);
          xla::sum(xla::square(model(x))).backward();
          optimizer.step();
          xla::check_replicas(model, optimizer);
          if (other) model.bias.fill_(2);
          xla::check_replicas(optimizer, model);
        }) == "check_replicas: bias of replica 1 has other bits than that of replica 0");
}

TEST_CASE("check_replicas() names what differs") {
  const auto checked = [](const auto& change) {
    return said([&](bool other) {
      const xla::eager_mode_guard mode(true);
      struct {
        XLA_MODULE(fc1, norm)
        xla::nn::Linear fc1{3, 2};
        xla::nn::BatchNorm1d norm{2};
      } model;
      xla::for_each_parameter(model, [](auto& p) { p.fill_(0.5f); });
      xla::optim::SGD optimizer{model, {.lr = 0.1, .momentum = 0.9}};
      auto x = xla::ones<float>({4, 3});
      xla::sum(model.norm(model.fc1(x))).backward();
      optimizer.step();
      if (other) change(model, optimizer);
      xla::check_replicas(model, optimizer);
    });
  };
  CHECK(checked([](auto&, auto&) {}) == "");
  CHECK(checked([](auto& m, auto&) { m.norm.running_mean.fill_(7); }) == "");  // its own
  CHECK(checked([](auto& m, auto&) {
          m.fc1.weight.copy_(xla::ones<float>({2, 3}));
        }) == "check_replicas: fc1.weight of replica 1 has other bits than that of replica 0");
  CHECK(checked([](auto&, auto& o) {
          o.visit_state([](auto& s, const xla::tree_path& path) {
            if constexpr (requires { s.fill_(3); })
              if (path.str() == "fc1.bias.0") s.fill_(3);
          });
        }) ==
        "check_replicas: optimizer fc1.bias.0 of replica 1 has other bits than that of replica 0");
}

TEST_CASE("the error of a nested world names the replica of the outer one") {
  if (xla::device_count() < 4) xla::set_device_count(4);
  const auto all = xla::devices();
  const auto inner = [](std::size_t place) {
    if (place == 0) throw std::invalid_argument("no picture");
    xla::all_reduce(xla::ones<float>({2}).to(xla::device())).to_vector();
  };
  try {
    xla::parallel::on_devices({all[0], all[1]}, [&](std::size_t place) {
      if (place == 1) xla::parallel::on_devices({all[2], all[3]}, inner);
      xla::all_reduce(xla::ones<float>({2}).to(xla::device())).to_vector();
    });
    FAIL("on_devices did not throw");
  } catch (const xla::replica_error& e) {
    CHECK(e.ordinal() == 1);
    CHECK(std::string(e.what()) == "replica 1 of 2: replica 0 of 2: no picture");
  }
}
