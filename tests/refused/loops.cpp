// error: scan: a carry of shape \(2,\) became one of shape \(4,\): each step hands on what it was given, in the same shape
// error: xla: what the body of a loop or a branch of cond\(\) makes is used outside of it: return it
// error: scan: the body writes a parameter, a buffer or a tensor from outside: hand it on as a carry
// error: scan: the body writes a gradient: call backward\(\) outside of it
// error: scan: the body draws random numbers: draw them before it, for all steps, and pass them as xs
// error: scan: checkpoint_every is -3; it is 0, or a number of steps
#include <xla/loop.hpp>
#include <xla/xla.hpp>

void shapes(xla::Tensor<float, 2> xs) {
  auto g = xla::compile([](auto& all) {
    return xla::scan([](auto& c, auto& x) { return std::pair(xla::cat({c, c}), x); },
                     xla::zeros<float>({2}), all)
        .first;
  });
  g(xs);
}

void leak(xla::Tensor<float, 2> xs) {
  auto g = xla::compile([](auto& all) {
    xla::Tensor<float, 1> last = xla::zeros<float>({2});
    const auto body = [&](auto& c, auto& x) {
      last = c * 2;
      return std::pair(c + x, x);
    };
    const auto [c, ys] = xla::scan(body, xla::zeros<float>({2}), all);
    return last + c;
  });
  g(xs);
}

void write(xla::Tensor<float, 2> xs, xla::Buffer<float, 1> seen) {
  auto g = xla::compile([](auto& all, auto& b) {
    const auto body = [&](auto& c, auto& x) {
      b.copy_(x);
      return std::pair(c + x, x);
    };
    return xla::scan(body, xla::zeros<float>({2}), all).first;
  });
  g(xs, seen);
}

void gradient(xla::Tensor<float, 2> xs, xla::Parameter<float, 1> w) {
  auto g = xla::compile([](auto& all, auto& p) {
    const auto body = [&](auto& c, auto& x) {
      sum(p * p).backward();
      return std::pair(c + x, x);
    };
    return xla::scan(body, xla::zeros<float>({2}), all).first;
  });
  g(xs, w);
}

void draw(xla::Tensor<float, 2> xs) {
  auto g = xla::compile([](auto& all) {
    return xla::scan([](auto& c, auto& x) { return std::pair(c + xla::rand_like(x), x); },
                     xla::zeros<float>({2}), all)
        .first;
  });
  g(xs);
}

void policy(xla::Tensor<float, 2> xs) {
  auto g = xla::compile([](auto& all) {
    return xla::scan([](auto& c, auto& x) { return std::pair(c + x, x); }, xla::zeros<float>({2}),
                     all, {.checkpoint_every = -3})
        .first;
  });
  g(xs);
}
