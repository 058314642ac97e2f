// Calls of a compiled function with what it cannot take. Each is refused by one error.
// error: the function takes 4 arguments, 3 were given: pass all that it uses
// error: the function takes 4 arguments, 5 were given
// error: argument 1 is a temporary, and the function takes it by auto&: give it a name first
// error: some arguments are temporaries, and the function takes them by auto&
// error: argument 0: a pointer: pass what it points to, \*p
// error: argument 1: a pointer: pass what it points to, \*p
// error: argument 1: std::optional: whether it holds a value is known only at run time
// error: argument 1: a container whose size is known only at run time .*pass tensors one by one
// error: argument 1: text: a graph has none
// error: argument 2: text: a graph has none
// error: argument 1: an array of C: use std::array
// error: argument 0: a reference wrapper: pass the object itself
// error: argument 1: Batch: the members of this struct are not described: write XLA_MODULE\(member, \.\.\.\)
// error: argument 0, Sized: every argument needs a default constructor, from which its structure is known
// error: argument 1: the model of this optimizer is not among the arguments; pass it
// error: argument 1: a compiled module cannot be an argument; pass the module itself
// error: .next: a pointer
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <xla/xla.hpp>
namespace nn = xla::nn;

struct Net {
  nn::Linear a{8, 3};
  constexpr auto operator()(xla::Tensor<float, 2> x) const { return a(x); }
  XLA_MODULE(a)
};
struct Sized {
  nn::Linear a;
  explicit Sized(int width) : a(8, width) {}
  XLA_MODULE(a)
};
struct Batch {
  xla::Tensor<float, 2> x;
  xla::Tensor<std::int64_t, 1> y;
};
struct Chain {
  Chain* next;
  XLA_MODULE(next)
};
using Tensor = xla::Tensor<float, 2>;
using SGD = xla::optim::SGD<Net>;

constexpr auto body = [](auto& model, auto& x, auto&, auto& optimizer) {
  auto loss = xla::mean(model(x));
  loss.backward();
  optimizer.step();
  return loss;
};

void forgotten(Net& m, Tensor x) { xla::compile(body)(m, x, x); }
void too_many(Net& m, Tensor x, SGD& o) { xla::compile(body)(m, x, x, o, o); }
void temporary(Net& m, Tensor x, SGD& o) { xla::compile(body)(m, xla::ones_like(x), x, o); }
void temporaries(Net& m, Tensor x, SGD& o) {
  xla::compile(body)(m, xla::ones_like(x), xla::ones_like(x), o);
}
void pointer(Net& m, Tensor x, SGD& o) { xla::compile(body)(&m, x, x, o); }
void shared(Net& m, SGD& o) {
  auto x = std::make_shared<Tensor>();
  xla::compile(body)(m, x, x, o);
}
void optional(Net& m, SGD& o) {
  std::optional<Tensor> x;
  xla::compile(body)(m, x, x, o);
}
void vector(Net& m, SGD& o) {
  std::vector<Tensor> x;
  xla::compile(body)(m, x, x, o);
}
void string(Net& m, SGD& o) {
  std::string x;
  xla::compile(body)(m, x, x, o);
}
void literal(Net& m, Tensor x, SGD& o) { xla::compile(body)(m, x, "mean", o); }
void array(Net& m, SGD& o) {
  Tensor x[2];
  xla::compile(body)(m, x, x, o);
}
void wrapped(Net& m, Tensor x, SGD& o) { xla::compile(body)(std::ref(m), x, x, o); }
void batch(Net& m, Batch x, SGD& o) { xla::compile(body)(m, x, x, o); }
void sized(Sized& m, Tensor x) {
  xla::compile([](auto& m, auto& x) { return m.a(x); })(m, x);
}
void other_model(Tensor x, SGD& o) {
  xla::compile([](auto& x, auto& o) { return o.step(), x; })(x, o);
}
void compiled(Net& m, Tensor x) {
  auto predict = xla::compile(m);
  xla::compile([](auto& x, auto& f) { return f(x); })(x, predict);
}
void chain(Chain& c) {
  xla::compile([](auto& c) { return 1; })(c);
}
