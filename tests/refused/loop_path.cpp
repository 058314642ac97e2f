// error: matmul: cannot multiply \(2, 3\) by \(2, 3\): inner sizes 3 and 2 differ \(loop_path.cpp:12\), in the body of fori_loop \(loop_path.cpp:13\), in the body of scan \(loop_path.cpp:16\)
// error: cannot multiply .* \(loop_path.cpp:25\), in a branch of cond \(loop_path.cpp:25\), in the body of while_loop \(loop_path.cpp:28\)
// error: scan: a carry of shape \(2,\) became one of shape \(4,\): each .* \(loop_path.cpp:38\), in the body of gradient_accumulation \(loop_path.cpp:40\)
#include <xla/functions.hpp>
#include <xla/loop.hpp>
#include <xla/xla.hpp>

void nested(xla::Tensor<float, 2> xs) {
  auto g = xla::compile([](auto& all) {
    const auto outer = [&](auto& c, auto& x) {
      const xla::Tensor<float, 2> w = xla::zeros<float>({2, 3}) * sum(x);
      const auto inner = [&](auto&, auto& now) { return now + matmul(w, w); };
      return std::pair(xla::fori_loop(0, 3, inner, c), x);
    };
    const xla::Tensor<float, 2> first = xla::zeros<float>({2, 3});
    return xla::scan(outer, first, all).first;
  });
  g(xs);
}

void branch(xla::Tensor<float, 2> x) {
  auto g = xla::compile([](auto& a) {
    const auto body = [&](const auto& c) {
      const xla::Tensor<float, 2> w = xla::zeros<float>({2, 3}) * sum(c);
      return xla::cond(sum(c) > 0, [&] { return c * matmul(w, w); }, [&] { return c; });
    };
    const auto more = [](const auto& c) { return sum(c) < 9; };
    return xla::while_loop(more, body, a);
  });
  g(x);
}

void carry(xla::Tensor<float, 2> xs, xla::nn::Linear model) {
  auto g = xla::compile([](auto& all, auto& m) {
    const auto step = [&](const auto& x) {
      const xla::Tensor<float, 1> first = xla::zeros<float>({2}) * sum(x);
      const auto body = [](const auto& c, const auto& y) { return std::pair(xla::cat({c, c}), y); };
      return sum(xla::scan(body, first, x).first);
    };
    return xla::gradient_accumulation(step, std::tuple(all), m);
  });
  g(xs, model);
}
