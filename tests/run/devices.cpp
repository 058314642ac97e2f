// SPDX-License-Identifier: Apache-2.0
// Several devices of one process, each with threads, random numbers, graphs and executables of its
// own.
#include <sys/wait.h>
#include <unistd.h>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <span>
#include <sstream>
#include <thread>

#include "catch.hpp"
#include "support/mlp.hpp"
#include "support/modes.hpp"
#include "xla/data/loader.hpp"
#include "xla/run/profile.hpp"
#include "xla/run/world/launch.hpp"
#include "xla/xla.hpp"

#if defined(__linux__)
#include <sched.h>
#endif

namespace {

const auto three_devices = [] {
  xla::set_device_count(3);
  return 3;
}();

/// Waits until as many threads as there are devices are here, as an exchange between replicas does;
/// throws where they do not come.
class meeting_place {
 public:
  void meet() {
    const int mine = came_++, all = 3 * (mine / 3 + 1);
    const auto late = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (came_ < all) {
      if (std::chrono::steady_clock::now() > late) throw std::runtime_error("nobody came");
      std::this_thread::yield();
    }
  }

 private:
  std::atomic<int> came_{0};
};
meeting_place everybody;

/// x, when the other devices are in the same op.
struct meeting {
  static constexpr auto name = "meeting";
  static constexpr auto kind = xla::detail::op_kind::library;
  static constexpr xla::detail::shape shape_of(const xla::detail::shape_rule& r) { return r.in[0]; }
};
constexpr xla::Tensor<float, 1> meet(const xla::Tensor<float, 1>& x) {
  return xla::detail::apply<meeting, float, float, 1>(xla::detail::plain, x);
}

/// Calls f(device) on a thread for each device at the same time.
template <class F>
void on_all_devices(F f) {
  std::vector<std::thread> replicas;
  for (const auto& device : xla::devices())
    replicas.emplace_back([&f, device] {
      const xla::device_guard use(device);
      f(device);
    });
  for (auto& r : replicas) r.join();
}

template <class F>
void in_both_modes(F f) {
  for (const bool eager : {true, false}) {
    INFO((eager ? "eager" : "traced"));
    const xla::eager_mode_guard mode(eager);
    f();
  }
}

using numbers = std::vector<float>;

constexpr auto step = [](auto& model, const auto& x, const auto& target, auto& loss_fn, auto& sgd) {
  sgd.zero_grad();
  const auto loss = loss_fn(model(x), target);
  loss.backward();
  sgd.step();
  return loss.detach();
};

struct Noisy {
  xla::nn::Linear first{4, 8};
  xla::nn::Dropout dropout{0.5f};
  xla::nn::BatchNorm1d norm{8};
  xla::nn::Linear second{8, 3};
  XLA_MODULE(first, dropout, norm, second)
  constexpr auto operator()(const xla::Tensor<float, 2>& x) const {
    return second(norm(dropout(xla::relu(first(x)))));
  }
};

/// The losses of a few steps on this thread's device, from weights that are the same on each.
template <class Step>
numbers losses(Step& step) {
  Noisy model;
  xla::for_each_parameter(model, [](auto& p) {
    p.copy_(xla::reshape_as(xla::arange<float>(p.numel()) * 0.01f - 0.1f, p));
  });
  xla::nn::CrossEntropyLoss loss_fn;
  xla::optim::Adam adam{model, {.lr = 0.01f}};
  const auto x = xla::full<float>({6, 4}, 0.25f) + xla::arange<float>(4);
  const auto target = xla::remainder(xla::arange(6), 3);
  numbers all;
  for (int i = 0; i < 4; ++i) {
    all.push_back(step(model, x, target, loss_fn, adam).item());
    xla::sync();
  }
  return all;
}

}  // namespace

XLA_DETAIL_OP_ID(meeting);
template <>
struct xla::detail::kernel_of<meeting, float, float> {
  static void run(const kernel_call& call) {
    everybody.meet();
    std::copy_n(static_cast<const float*>(call.in[0]), count(*call.out_shape),
                static_cast<float*>(call.out));
  }
};

TEST_CASE("a device_guard in a custom gradient ends where it began, on the gradient's device") {
  in_both_modes([] {
    static int inside = -1, behind = -1;
    const auto twice = xla::custom_gradient(
        [](const xla::Tensor<float, 1>& x) {
          const xla::device_guard there(xla::device(1));
          return (x.to(xla::device()) * 2.f).to(xla::device(2));
        },
        [](const auto&, const xla::Tensor<float, 1>& g) {
          xla::Tensor<float, 1> elsewhere;
          {
            const xla::device_guard there(xla::device(1));
            elsewhere = g.to(xla::device()) * 2.f;
            inside = xla::device().index;
          }
          behind = xla::device().index;
          return elsewhere.to(g.device()) + xla::ones<float>({3});
        });
    auto x = test::parameter(xla::full<float>({3}, 5).to(xla::device(2)));
    const auto y = twice(x);
    xla::sum(y * 3.f).backward();
    CHECK(y.to_vector() == numbers(3, 10));
    CHECK(x.grad().to_vector() == numbers(3, 7));
    CHECK(x.grad().device() == xla::device(2));
    CHECK(inside == 1);
    CHECK(behind == 2);
    CHECK(xla::device() == xla::device(0));
  });
}

TEST_CASE("a process has as many devices as it says") {
  REQUIRE(three_devices == 3);
  CHECK(xla::device_count() == 3);
  CHECK(xla::devices().size() == 3);
  CHECK(xla::get_xla_supported_devices() == std::vector<std::string>{"xla:0", "xla:1", "xla:2"});
  CHECK(xla::device(2).str() == "xla:2");
  CHECK(xla::device() == xla::device(0));
  CHECK_THROWS_WITH(xla::device(3), test::contains("device: there is no device 3; there are "
                                                   "devices 0 to 2 (devices.cpp:"));
  CHECK_THROWS_WITH(xla::device(-1), test::contains("there is no device -1"));
  CHECK_THROWS_WITH(xla::device_guard(xla::Device(9)), test::contains("device_guard: there is no"));
  CHECK_THROWS_WITH(xla::set_device_count(0),
                    test::contains("there can be 1 to 256 devices, not 0"));
  CHECK_THROWS_WITH(xla::set_device_count(257), test::contains("not 257"));
  xla::full<float>({2}, 1, xla::device(0)).to(xla::device(2));
  CHECK_THROWS_WITH(xla::set_device_count(2),
                    test::contains("xla:2 has been used, so there cannot be only 2"));
  CHECK(xla::device_count() == 3);
}

TEST_CASE("a thread works on the device that it chooses, and nobody else does") {
  {
    const xla::device_guard use(xla::device(1));
    CHECK(xla::device().index == 1);
    {
      const xla::device_guard inner(xla::device(2));
      CHECK(xla::device().index == 2);
    }
    CHECK(xla::device().index == 1);
    int of_another = -1;
    std::thread([&] { of_another = xla::device().index; }).join();
    CHECK(of_another == 0);
    CHECK_THROWS_AS(([] {
                      const xla::device_guard inner(xla::device(0));
                      throw std::runtime_error("out");
                    }()),
                    std::runtime_error);
    CHECK(xla::device().index == 1);
  }
  CHECK(xla::device().index == 0);
}

TEST_CASE("devices divide the cores") {
  const int before = xla::num_threads();
  std::atomic<int> right = 0;
  on_all_devices([&](const xla::Device& d) {
    right += xla::num_threads() == before;
    xla::set_num_threads(d.index + 2);
    right += xla::num_threads() == d.index + 2;
    const auto x = xla::ones<float>({300, 300});
    right += xla::sum(xla::matmul(x, x)).item() == 300.f * 300 * 300;
    xla::set_num_threads(before);
  });
  CHECK(right == 9);
#if defined(__linux__)
  cpu_set_t all, own, after;
  sched_getaffinity(0, sizeof all, &all);
  {
    const xla::device_guard use(xla::device(1));
    sched_getaffinity(0, sizeof own, &own);
    const int cores = CPU_COUNT(&all);
    CHECK(CPU_COUNT(&own) == (cores < 3 ? cores : 2 * cores / 3 - cores / 3));
  }
  sched_getaffinity(0, sizeof after, &after);
  CHECK(CPU_EQUAL(&all, &after));
#endif
}

TEST_CASE("tensors know their device, and ops run where their operands are") {
  in_both_modes([] {
    const auto there = xla::device(1);
    const auto x = xla::full<float>({2, 3}, 2, there);
    CHECK(x.device() == there);
    std::ostringstream out;
    out << x[0];
    CHECK(out.str() == "tensor([2, 2, 2], device='xla:1')");
    const auto y = xla::exp(x * 3.f - 6.f) + xla::ones<float>({2, 3});
    CHECK(y.device() == there);
    CHECK(xla::sum(y, {0}).to_vector() == numbers{4, 4, 4});
    CHECK(xla::device().index == 0);
    CHECK(xla::rand_like(x).device() == there);
    CHECK(xla::softmax(x).device() == there);
    CHECK(xla::tril(x).to_vector() == numbers{2, 0, 0, 2, 2, 0});
    CHECK(xla::cat({x, y}).device() == there);
    CHECK(xla::nn::CrossEntropyLoss{}(x, xla::full<std::int64_t>({2}, 1, there)).device() == there);
    for (const auto& made :
         {xla::zeros<float>({2}, there), xla::ones<float>({2}, there), xla::rand<float>({2}, there),
          xla::randn<float>({2}, there), xla::linspace<float>(0, 1, 2, there),
          xla::arange<float>(2, there), xla::from_blob(numbers{1, 2}.data(), {2}, there)})
      CHECK(made.device() == there);
    CHECK(xla::randint(0, 3, {2}, there).device() == there);
    CHECK(xla::eye(2, there).device() == there);
    auto z = xla::zeros<float>({2}, there);
    z += 1.f;
    z[0] = 5.f;
    CHECK(z.device() == there);
    CHECK(z.to_vector() == numbers{5, 1});
  });
}

TEST_CASE("an op of two devices is refused by name") {
  in_both_modes([] {
    const auto x = xla::full<float>({2, 3}, 2, xla::device(1));
    const auto y = xla::full<float>({3, 2}, 2, xla::device(2));
    CHECK_THROWS_WITH(
        xla::matmul(x, y),
        test::contains(
            "matmul: a tensor of shape (2, 3) is on xla:1 and one of shape (3, 2) on xla:2; bring "
            "all to one device: x.to(device)"));
    const auto here = xla::full<float>({2, 3}, 2, xla::device(0));
    CHECK_THROWS_WITH(x + here, test::contains("add: "));
    CHECK_THROWS_WITH(here * x, test::contains("mul: "));
    CHECK_THROWS_WITH(xla::cat({here, here, here, x}), test::contains("xla:1"));
    auto changed = here;
    CHECK_THROWS_WITH(changed += x, test::contains("add: "));
    CHECK(changed.to_vector() == numbers(6, 2));
    // What is made of numbers alone is at home everywhere.
    CHECK((x + xla::ones<float>({2, 3})).to_vector() == numbers(6, 3));
    CHECK((x * xla::tensor(2.f) + xla::arange<float>(3)).device().index == 1);
  });
  auto compiled = xla::compile([](const auto& x, const auto& y) { return x + y; });
  const auto x = xla::full<float>({2}, 2, xla::device(1));
  const auto y = xla::full<float>({2}, 2, xla::device(2));
  CHECK_THROWS_WITH(compiled(x, y),
                    test::contains("xla::compile: argument 0 is on xla:1 and argument 1 on xla:2; "
                                   "bring all to one device: x.to(device)"));
  CHECK(compiled(x, xla::ones<float>({2})).device().index == 1);
  CHECK(compiled(xla::ones<float>({2}), y).to_vector() == numbers{3, 3});
}

TEST_CASE("tensors and modules move to other devices, and gradients come back") {
  in_both_modes([] {
    auto w = xla::full<float>({3}, 2, xla::device(0)).requires_grad_();
    const auto there = (w * w).to(xla::device(1));
    CHECK(there.device().index == 1);
    const auto back = (there * xla::full<float>({3}, 5, xla::device(1))).to(xla::device(2));
    CHECK(back.to_vector() == numbers(3, 20));
    xla::sum(back).backward();
    CHECK(w.grad().device().index == 0);
    CHECK(w.grad().to_vector() == numbers(3, 20));
    CHECK(w.to(xla::device(0)).data() == w.data());

    xla::nn::Linear layer{3, 2};
    const auto weights = layer.weight.to_vector();
    const auto x = xla::full<float>({1, 3}, 1, xla::device(0));
    xla::sum(layer(x)).backward();
    CHECK(&layer.to(xla::device(1)) == &layer);
    CHECK(layer.weight.device().index == 1);
    CHECK(layer.weight.grad().device().index == 1);
    CHECK(layer.weight.grad().to_vector() == numbers(6, 1));
    CHECK(layer.weight.to_vector() == weights);
    CHECK_THROWS_WITH(layer(x), test::contains("matmul: "));
    xla::optim::Adam adam{layer, {.lr = 0.5f}};
    adam.zero_grad();
    xla::sum(layer(x.to(xla::device(1)))).backward();
    adam.step();
    CHECK(std::abs(layer.weight.to_vector()[0] - (weights[0] - 0.5f)) < 1e-4f);
    // What is written into a parameter goes where that is.
    layer.bias.copy_(xla::full<float>({2}, 7, xla::device(2)));
    CHECK(layer.bias.device().index == 1);
    CHECK(layer.bias.to_vector() == numbers{7, 7});
    layer.bias.set_grad(xla::full<float>({2}, 1, xla::device(0)));
    CHECK(layer.bias.grad().device().index == 1);
    xla::nn::Linear other = layer;
    CHECK(other.weight.device().index == 1);
    xla::nn::Linear home{3, 2};
    home = layer;
    CHECK(home.weight.device().index == 0);
    CHECK(home.bias.to_vector() == numbers{7, 7});
    xla::sync();
  });
}

TEST_CASE("devices wait for each other in the middle of one function, in each mode") {
  auto compiled = xla::compile([](auto& sum, const auto& x) { sum += meet(x * 2.f); });
  for (const char* mode : {"compiled", "eager", "traced"}) {
    INFO(mode);
    std::atomic<int> right = 0;
    on_all_devices([&](const xla::Device& d) {
      const xla::eager_mode_guard guard(mode != std::string("traced"));
      auto sum = xla::zeros<float>({5}, d);
      const auto x = xla::full<float>({5}, d.index + 1, d);
      for (int i = 0; i < 50; ++i) {
        if (mode == std::string("compiled")) compiled(sum, x);
        else sum += meet(x * 2.f);
        if (i % 7 == 0) xla::sync();
      }
      right += sum.to_vector() == numbers(5, 100.f * static_cast<float>(d.index + 1));
    });
    CHECK(right == 3);
  }
}

TEST_CASE("graphs of all devices read at once what another thread has recorded") {
  const xla::eager_mode_guard traced(false);
  for (int i = 0; i < 30; ++i) {
    const auto shared = xla::arange<float>(300) * 2.f;  // made of numbers alone, and pending
    std::atomic<int> right = 0;
    on_all_devices([&](const xla::Device& d) {
      const xla::eager_mode_guard guard(false);
      const auto x = xla::ones<float>({300}, d);
      auto sum = x + shared;
      for (int k = 0; k < 5; ++k) {
        sum = sum + shared;
        xla::sync();
      }
      right += xla::sum(sum).item() == 300.f + 6 * 299 * 300;
    });
    CHECK(right == 3);
  }
}

TEST_CASE("a graph goes from device to device without waiting, and nothing is written too early") {
  const xla::eager_mode_guard traced(false);
  constexpr std::int64_t n = 100000;  // too much work to run at once
  xla::Buffer<float, 1> here{{n}}, there{{n}};
  struct {
    xla::Buffer<float, 1>& b;
    XLA_MODULE(b)
  } second{there};
  second.to(xla::device(1));
  REQUIRE(there.device().index == 1);
  for (int i = 1; i <= 60; ++i) {
    here.copy_(here.detach() + 1.f);
    there.copy_(there.detach() + here.detach().to(xla::device(1)));
    here.copy_(here.detach() + 1.f);
    xla::sync();
  }
  // The sum of 2 * i - 1.
  CHECK(there.to_vector() == numbers(n, 3600));
  CHECK(here.to_vector() == numbers(n, 120));
}

TEST_CASE("a compiled function runs on the device of its arguments, one plan for each") {
  const xla::eager_mode_guard eager;
  auto square = xla::compile([](const auto& x) { return x * x + xla::arange<float>(x.size(0)); });
  for (int call = 0; call < 2; ++call)
    for (const auto& d : xla::devices()) {
      const auto compiled = xla::counter_value("UncachedCompile").value_or(0);
      const auto y = square(xla::full<float>({4}, 2, d));
      CHECK(y.device() == d);
      CHECK(y.to_vector() == numbers{4, 5, 6, 7});
      CHECK(xla::counter_value("UncachedCompile").value_or(0) - compiled == (call == 0));
    }
  auto x = xla::full<float>({4}, 3, xla::device(1)).requires_grad_();
  auto cube = xla::compile([](const auto& v) { return xla::sum(v * v * v); });
  cube(x).backward();
  CHECK(x.grad().device().index == 1);
  CHECK(x.grad().to_vector() == numbers(4, 27));
  Noisy model;
  model.to(xla::device(2));
  CHECK_THROWS_WITH(xla::compile([](auto& m, const auto& in) { return m(in); })(
                        model, xla::full<float>({2, 4}, 1, xla::device(0))),
                    test::contains("argument 0.first.weight is on xla:2 and argument 1 on xla:0"));
}

TEST_CASE("each device draws random numbers of its own, which one seed restarts") {
  in_both_modes([] {
    std::vector<numbers> first(3), again(3);
    const auto draw = [](std::vector<numbers>& to) {
      on_all_devices([&](const xla::Device& d) {
        to[static_cast<std::size_t>(d.index)] = xla::rand<float>({100}).to_vector();
      });
    };
    xla::manual_seed(7);
    draw(first);
    draw(again);
    CHECK(first != again);
    xla::manual_seed(7);
    draw(again);
    CHECK(first == again);
    CHECK(first[0] != first[1]);
    CHECK(first[1] != first[2]);
    xla::manual_seed(7);
    CHECK(xla::rand<float>({100}).to_vector() == first[0]);
    CHECK(xla::rand<float>({100}, xla::device(2)).to_vector() == first[2]);
    CHECK(xla::rand_like(xla::ones<float>({100}, xla::device(1))).to_vector() == first[1]);
    // All are at the same number, and one is set alone.
    const auto state = xla::get_rng_state();
    CHECK(state.seed == 7);
    std::atomic<int> right = 0;
    on_all_devices([&](const xla::Device& d) {
      right += xla::get_rng_state() == state;
      if (d.index == 1) xla::manual_seed(7);
      const bool restarted = xla::rand<float>({100}).to_vector() == first[1];
      right += restarted == (d.index == 1);
      xla::set_rng_state(state);
    });
    CHECK(right == 6);
  });
}

TEST_CASE("a replica has the same numbers among others as alone, in each mode") {
  auto compiled = xla::compile(step);
  const auto run = [&](bool with_compiled) {
    return with_compiled ? losses(compiled) : losses(step);
  };
  for (const bool with_compiled : {true, false})
    in_both_modes([&] {
      std::vector<numbers> alone(3), together(3);
      xla::manual_seed(3);
      for (const auto& d : xla::devices()) {
        const xla::device_guard use(d);
        alone[static_cast<std::size_t>(d.index)] = run(with_compiled);
      }
      xla::manual_seed(3);
      on_all_devices([&](const xla::Device& d) {
        together[static_cast<std::size_t>(d.index)] = run(with_compiled);
      });
      CHECK(alone == together);
      CHECK(alone[0] != alone[1]);  // the masks of dropout
    });
}

TEST_CASE("a prefetching loader makes its batches on the device of its user") {
  const xla::device_guard use(xla::device(1));
  struct {
    std::int64_t size() const { return 8; }
    auto batch(std::span<const std::int64_t> samples) const {
      return xla::full<float>({static_cast<std::int64_t>(samples.size())}, 1, xla::device());
    }
  } const dataset;
  xla::data::DataLoader loader{dataset, {.batch_size = 4, .prefetch = 2}};
  for (const auto& batch : loader) CHECK(batch.device().index == 1);
}

TEST_CASE("a profile shows what each device ran") {
  auto f = xla::compile([](auto& sum, const auto& x) { sum += meet(x); }, {.name = "meets"});
  const auto all = [&] {
    on_all_devices([&](const xla::Device& d) {
      const xla::eager_mode_guard eager;
      auto sum = xla::zeros<float>({5}, d);
      f(sum, xla::ones<float>({5}, d));
    });
  };
  const xla::Profile p = xla::profile(all);
  CHECK(p.functions.size() == 3);
  for (const auto& function : p.functions) CHECK(function.name == "meets");
}

TEST_CASE("a replica forks while others wait for it") {
  const auto world = xla::detail::open_world(3);
  auto compiled = xla::compile([](auto& sum, const auto& x) { sum += meet(x); });
  for (const bool in_call : {true, false}) {
    std::atomic<int> right = 0;
    on_all_devices([&](const xla::Device& d) {
      const xla::eager_mode_guard mode(in_call);
      auto& device = xla::detail::device_of(d.index);
      device.replica = &world->at(d.index);
      auto sum = xla::zeros<float>({5}, d);
      const auto x = xla::ones<float>({5}, d);
      if (d.index == 1) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the others are in the call
        const pid_t child = fork();
        if (child == 0) _exit(0);
        int status = 1;
        waitpid(child, &status, 0);
        right += status == 0;
      }
      if (in_call) compiled(sum, x);
      else sum += meet(x);
      right += sum.to_vector() == numbers(5, 1);
      device.replica = nullptr;
    });
    CHECK(right == 4);
  }
}

TEST_CASE("a child process computes on every device") {
  const auto all = [] {
    std::atomic<int> right = 0;
    on_all_devices([&](const xla::Device& d) {
      for (const bool eager : {true, false}) {
        const xla::eager_mode_guard mode(eager);
        const auto x = xla::ones<float>({200, 200}, d);
        right += xla::sum(xla::matmul(x, x)).item() == 8e6f;
      }
    });
    return right == 6;
  };
  REQUIRE(all());
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    std::_Exit(all() ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}
