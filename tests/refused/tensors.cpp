// Tensors of another type than is taken.
// error: a tensor of std::int32_t with 1 axis was given where std::int64_t with 1 axis is taken; convert it: xla::cast<std::int64_t>\(x\)
// error: the target is class numbers of std::int64_t, or probabilities of the logits. element type; convert it
// error: a floating-point target has the probability of each class
// error: class numbers have the logits. axes without that of the classes
// error: a tensor of float with 3 axes was given where float with 2 axes is taken; xla::squeeze, xla::flatten
// error: a tensor of float with 1 axis was given where float with 2 axes is taken; xla::unsqueeze\(x, 0\) adds an axis
// error: a tensor of double with 2 axes was given where float with 2 axes is taken; convert it: xla::cast<float>\(x\)
// error: a tensor of float with 0 axes was given where float with 1 axis is taken
// error: a tensor is called as if it were a model: are the arguments in the order
// error: xla: backward\(\) of a tensor of float with 2 axes: grad can be implicitly created only for scalar outputs. write xla::mean\(loss\).backward\(\), xla::sum\(loss\).backward\(\)
#include <xla/xla.hpp>

struct Net {
  xla::nn::Linear a{8, 3};
  constexpr auto operator()(xla::Tensor<float, 2> x) const { return a(x); }
  XLA_MODULE(a)
};

void labels(Net& m, xla::Tensor<float, 2> x, xla::Tensor<int, 1> y) {
  xla::cross_entropy(m(x), y);
}
void labels(Net& m, xla::Tensor<float, 2> x, xla::Tensor<float, 1> y) {
  xla::cross_entropy(m(x), y);
}
void labels(Net& m, xla::Tensor<float, 2> x, xla::Tensor<std::int64_t, 2> y) {
  xla::cross_entropy(m(x), y);
}
void index(xla::Tensor<float, 2> x, xla::Tensor<int, 1> i) { xla::index_select(x, 0, i); }
void images(Net& m, xla::Tensor<float, 3> x) { m(x); }
void sample(Net& m, xla::Tensor<float, 1> x) { m(x); }
void doubles(Net& m, xla::Tensor<double, 2> x) { m(x); }
void broadcast_in_place(xla::Tensor<float, 2> x, xla::Tensor<float, 1> y) { x += y; }
xla::Tensor<float, 1> result(xla::Tensor<float, 2> x) { return xla::sum(x); }
void backward(xla::Tensor<float, 2> x) { x.backward(); }
void order(xla::Tensor<float, 2> x, Net& m) { x(m); }
