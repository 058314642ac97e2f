// error: scan: a carry of shape \(2,\) became one of shape \(4,\): each step must keep the shape of every carry
// error: xla: a value made in the body of a loop or a branch of cond\(\) is used outside of it: return it
// error: scan: the body calls requires_grad_\(\): call it before the loop
// error: scan: the body writes a functional_copy\(\): make it in the body
// error: fori_loop: the body writes, but all that the loop starts from is constant: start from a tensor of the function
// error: xla::scan: backward\(\) after a loop whose body writes the parameters that it reads
// error: scan: checkpoint_every is -3; it is 0, or a number of steps
// error: xla: the body of a loop in which replicas exchange cannot run again for its gradients: leave out checkpoint_every
// error: fori_loop: unroll is 0; it is 1, or a number of steps
#include <xla/functions.hpp>
#include <xla/loop.hpp>
#include <xla/op/collectives.hpp>
#include <xla/xla.hpp>

struct Weights {
  xla::Parameter<float, 1> w{{2}};
  XLA_MODULE(w)
};

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

void tell(xla::Tensor<float, 2> xs, xla::Parameter<float, 1> w) {
  auto g = xla::compile([](auto& all, auto& p) {
    const auto body = [&](auto& c, auto& x) {
      p.requires_grad_(false);
      return std::pair(c + x * p, x);
    };
    return xla::scan(body, xla::zeros<float>({2}), all).first;
  });
  g(xs, w);
}

void functional(xla::Tensor<float, 2> xs, Weights w) {
  auto g = xla::compile([](auto& all, auto& m) {
    auto fast = xla::functional_copy(m);
    const auto body = [&](auto& c, auto& x) {
      fast.w.copy_(fast.w * 0.5f);
      return std::pair(c + x * fast.w, x);
    };
    return xla::scan(body, xla::zeros<float>({2}), all).first;
  });
  g(xs, w);
}

void alone(xla::Buffer<float, 1> seen) {
  auto g = xla::compile([](auto& b) {
    const auto body = [&](auto&, auto& c) {
      b.copy_(b + c);
      return c + b;
    };
    return xla::fori_loop(0, 3, body, xla::zeros<float>({2}));
  });
  g(seen);
}

void behind(xla::Tensor<float, 2> xs, xla::Parameter<float, 1> w) {
  auto g = xla::compile([](auto& all, auto& p) {
    const auto body = [&](auto& c, auto& x) {
      const auto next = c + x * p;
      p.copy_(p * 0.5f);
      return std::pair(next, x);
    };
    sum(xla::scan(body, xla::zeros<float>({2}), all).first).backward();
  });
  g(xs, w);
}

void policy(xla::Tensor<float, 2> xs) {
  auto g = xla::compile([](auto& all) {
    return xla::scan([](auto& c, auto& x) { return std::pair(c + x, x); }, xla::zeros<float>({2}),
                     all, {.checkpoint_every = -3})
        .first;
  });
  g(xs);
}

void again(xla::Tensor<float, 2> xs, xla::Parameter<float, 1> w) {
  auto g = xla::compile([](auto& all, auto& p) {
    const auto body = [&](auto& c, auto& x) {
      return std::pair(xla::tanh(xla::all_reduce(c * p) + x), x);
    };
    sum(xla::scan(body, xla::zeros<float>({2}), all, {.checkpoint_every = 2}).first).backward();
  });
  g(xs, w);
}

void unroll(xla::Tensor<float, 1> x) {
  auto g = xla::compile([](auto& v) {
    return xla::fori_loop(0, 4, [](auto&, auto& c) { return c + 1; }, v, {.unroll = 0});
  });
  g(x);
}
