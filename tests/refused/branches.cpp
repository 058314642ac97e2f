// error: cond: one branch returns a tensor of shape \(2,\), the other one of shape \(4,\): both must return the same shapes
// error: cond: a branch draws random numbers: draw them outside, because later ones would depend on the branch that is taken
// error: cond: a branch writes, but all that cond\(\) is given is constant: pass it a tensor of the function, or let one decide
// error: cond: replicas exchange in a branch, which some of them may not take: exchange outside of it
// error: while_loop: replicas exchange in the body, and each may run a different number of steps
// error: while_loop: the body draws random numbers, and how many is unknown until it has run: give the most steps in max_steps, or draw before the loop
// error: xla::while_loop has no gradient, because the number of its steps is unknown until it has run: use xla::scan
// error: xla: a value made in the body of a loop or a branch of cond\(\) is used outside of it: return it
#include <xla/loop.hpp>
#include <xla/xla.hpp>

void shapes(xla::Tensor<float, 1> x) {
  auto g = xla::compile([](auto& a) {
    return xla::cond(
        xla::sum(a) > 0, [&] { return xla::zeros<float>({2}) * xla::sum(a); },
        [&] { return xla::ones<float>({4}) * xla::sum(a); });
  });
  g(x);
}

void draw(xla::Tensor<float, 1> x) {
  auto g = xla::compile([](auto& a) {
    return xla::cond(
        xla::sum(a) > 0, [&] { return a + xla::rand_like(a); }, [&] { return a; });
  });
  g(x);
}

void write(xla::Tensor<float, 1> x, xla::Buffer<float, 1> seen) {
  auto g = xla::compile([](auto& a, auto& b) {
    return a + xla::cond(
                   xla::tensor(true),
                   [&] {
                     b.copy_(a);
                     return b * 2;
                   },
                   [&] { return a * 3; });
  });
  g(x, seen);
}

void exchange(xla::Tensor<float, 1> x) {
  auto g = xla::compile([](auto& a) {
    return xla::cond(
        xla::sum(a) > 0, [&] { return xla::all_reduce(a); },
        [&] { return a; });
  });
  g(x);
}

void exchange_while(xla::Tensor<float, 1> x) {
  auto g = xla::compile([](auto& a) {
    return xla::while_loop(
        [](const auto& c) { return xla::sum(c) < 9; },
        [](const auto& c) { return xla::all_reduce(c + 1); }, a);
  });
  g(x);
}

void draw_while(xla::Tensor<float, 1> x) {
  auto g = xla::compile([](auto& a) {
    return xla::while_loop([](const auto& c) { return xla::sum(c) < 9; },
                           [](const auto& c) { return c + xla::rand_like(c); }, a);
  });
  g(x);
}

void gradient(xla::Parameter<float, 1> w) {
  auto g = xla::compile([](auto& p) {
    const auto last = xla::while_loop([](const auto& c) { return xla::sum(c) > 1; },
                                      [&](const auto& c) { return c * p; }, p * 2);
    xla::sum(last).backward();
    return last;
  });
  g(w);
}

void leak(xla::Tensor<float, 1> x) {
  auto g = xla::compile([](auto& a) {
    xla::Tensor<float, 1> made = xla::zeros_like(a);
    const auto y = xla::cond(
        xla::sum(a) > 0,
        [&] {
          made = a * 2;
          return made + 1;
        },
        [&] { return a; });
    return y + made;
  });
  g(x);
}
