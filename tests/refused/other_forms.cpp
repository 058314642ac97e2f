// Forms taken from habit.
// error: xla: the element types of the tensors, .+ and .+, differ; convert one: xla::cast<.+>\(x\)
// error: xla: the element types of the tensors, .+ and .+, differ; convert one: xla::cast<.+>\(x\)
// error: xla::sum: write axes in braces: xla::sum\(x, {1}\)
// error: xla::var: write axes in braces: xla::var\(x, {1}\)
// error: xla::reshape: write sizes in braces: xla::reshape\(x, {2, -1}\)
// error: xla::expand: write sizes in braces
// error: xla::permute: write the order in braces: xla::permute\(x, {1, 0}\)
// error: xla::squeeze: the axis is in the type: xla::squeeze<1>\(x\)
// error: xla::flatten: the first axis is in the type: xla::flatten<1>\(x\)
// error: xla::chunk: how many is in the type: xla::chunk<2>\(x, axis\)
// error: xla::einsum: the text is in the type: xla::einsum<.*ij,jk->ik.*>\(a, b\)
// error: xla::gather: write gather\(x, axis, index\)
// error: xla::embedding: the index comes first, of std::int64_t
// error: xla: no tensor has shape\(\): write x.sizes\(\) or x.size\(axis\)
// error: xla: no tensor has tolist\(\): write x.to_vector\(\)
// error: xla: x.index. takes an index of std::int64_t. convert it
// error: xla: x.t\(\) is of a matrix
// error: xla: assigning to a part of a const tensor.* for x.mask. = v write x = xla::where\(mask, v, x\)
#include <xla/xla.hpp>

using Matrix = xla::Tensor<float, 2>;
using Doubles = xla::Tensor<double, 2>;
using Index = xla::Tensor<std::int64_t, 2>;

void types(Matrix x, Doubles d) { xla::matmul(x, d); }
void types_of_loss(Matrix x, Doubles d) { xla::nn::MSELoss{}(x, d); }
void types_of_layer(xla::nn::Linear& layer, Doubles d) { Matrix y = layer(d); }
void types_of_three(Matrix x, Doubles d) { xla::where(x > 0, x, d); }
void bare_axis(Matrix x) { xla::sum(x, 1); }
void bare_axis_of_method(Matrix x) { x.sum(1); }
void shape(Matrix x) { x.shape(); }
void tolist(Matrix x) { x.tolist(); }
void float_index(Matrix x, xla::Tensor<float, 1> i) { x[i]; }
void transposed(xla::Tensor<float, 3> x) { x.t(); }
void masked(Matrix x) { x[x > 0] = 1.f; }
void bare_axis_and_more(Matrix x) { xla::var(x, 1, xla::keepdim); }
void bare_sizes(Matrix x) { xla::reshape(x, 2, x.size(0)); }
void bare_expand(Matrix x) { xla::expand(x, 2, -1); }
void bare_order(Matrix x) { xla::permute(x, 1, 0); }
void squeeze(Matrix x) { xla::squeeze(x, 1); }
void flatten(Matrix x) { xla::flatten(x, 1); }
void chunk(Matrix x) { xla::chunk(x, 2, 1); }
void text(Matrix x) { xla::einsum("ij,jk->ik", x, x); }
void order(Matrix x, Index i) { xla::gather(x, i, 1); }
void order_of_embedding(Matrix weight, Index i) { xla::embedding(weight, i); }
