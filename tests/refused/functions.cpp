// What compile() does not take.
// error: write xla::compile<train_step>\(\) for a function train_step, which has to be constexpr
// error: the function has captures or data; pass what it uses as arguments
// error: give the module itself, xla::compile\(\*model\)
// error: give the module itself; its operator\(\) is compiled
// error: give the function, not its result
// error: give a step function that takes the optimizer as an argument
// error: give a module that lives longer than the compiled function
// error: options are written by name: {.name = "step"}
// error: xla::tags::without: no pass is called .*shar.*there are simplify
// error: xla::compile: the result.1: xla::Size: a compiled function returns tensors: return the tensor and read its number outside, loss.item\(\). sizes too, x.size\(0\)
// error: xla::compile: the result: int: a compiled function returns tensors
#include <xla/xla.hpp>

using Tensor = xla::Tensor<float, 2>;
using Linear = xla::nn::Linear;
constexpr Tensor twice(const Tensor& x) { return x * 2; }

void function() { xla::compile(twice); }
void closure(float scale) {
  xla::compile([scale](auto& x) { return x * scale; });
}
void pointer(Linear* m) { xla::compile(m); }
void member() { xla::compile(&Linear::train); }
void result(Tensor x) { xla::compile(twice(x)); }
void optimizer(xla::optim::SGD<Linear>& o) { xla::compile(o); }
void temporary() { xla::compile(Linear{8, 4}); }
void options() {
  xla::compile([](auto& x) { return x; }, "step");
}
void size(Tensor& x) {
  xla::compile([](auto& x) { return std::pair(xla::sum(x), x.size(0)); })(x);
}
void number(Tensor& x) {
  xla::compile([](auto&) { return 1; })(x);
}
void passes() {
  xla::compile<xla::tags::without<"shar">>([](auto& x) { return x; });
}
