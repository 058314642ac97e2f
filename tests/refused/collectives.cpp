// What replicas exchange, refused where the compiler knows.
// error: backward: all_reduce has a gradient of a sum and of a mean alone; detach\(\) what it takes the maximum
// error: backward: reduce_scatter has a gradient of a sum and of a mean alone
// error: all_reduce: integers have no mean; convert them first
// error: all_reduce: .*avg.* is none of sum, mean, max, min, product
// error: broadcast: replicas count from 0 on: there is no -1
// error: collective_permute: pairs \{from, to\} name each replica once as sender and once as receiver
// error: xla: bools are not reduced over replicas: cast<std::int64_t>\(x\), then max
// error: xla::all_gather: a tensor without axes; unsqueeze\(x, 0\) first
// error: xla::reduce_scatter: a tensor without axes cannot be divided
// error: xla::all_to_all: a tensor without axes cannot be divided
// error: mark_sharding: marks arguments of the compiled function, before they are changed
// error: mark_sharding: the mesh has no axis .*rows
// error: mark_sharding: axis 0 of \(9, 4\) cannot be divided into 2 equal parts
// error: mark_sharding: .*data.* shards two axes of a tensor of shape
#include <xla/parallel.hpp>
#include <xla/xla.hpp>

using Vector = xla::Tensor<float, 1>;

void largest(Vector& x) {
  xla::compile([](auto& x) { sum(all_reduce(x, "max")).backward(); })(x);
}
void product(Vector& x) {
  xla::compile([](auto& x) {
    sum(reduce_scatter(x, 0, xla::reduce_type::product)).backward();
  })(x);
}
void mean(xla::Tensor<int, 1>& x) {
  xla::compile([](auto& x) { return all_reduce(x, xla::reduce_type::mean); })(x);
}
void name(Vector& x) {
  xla::compile([](auto& x) { return all_reduce(x, "avg"); })(x);
}
void root(Vector& x) {
  xla::compile([](auto& x) { return broadcast(x, -1); })(x);
}
void pairs(Vector& x) {
  xla::compile([](auto& x) { return collective_permute(x, {{0, 1}, {0, 2}}); })(x);
}
auto truths(const xla::Tensor<bool, 1>& x) { return all_reduce(x); }
auto gathered(const xla::Tensor<float, 0>& x) { return all_gather(x); }
auto scattered(const xla::Tensor<float, 0>& x) { return reduce_scatter(x); }
auto exchanged(const xla::Tensor<float, 0>& x) { return all_to_all(x, 0, 0); }

constexpr xla::Mesh mesh{{2}, {"data"}};
using Matrix = xla::Tensor<float, 2>;
struct Layer {
  xla::nn::Linear fc{4, 9};
  XLA_MODULE(fc)
};
void changed(Vector& x) {
  xla::compile([](auto& x) {
    auto y = x + 1;
    xla::mark_sharding(y, mesh, {"data"});
    return y;
  })(x);
}
void unknown(Vector& x) {
  xla::compile([](auto& x) { xla::mark_sharding(x, mesh, {"rows"}); })(x);
}
void uneven(Layer& m) {
  xla::compile([](auto& m) { xla::mark_sharding(m.fc.weight, mesh, {"data", {}}); })(m);
}
void twice(Matrix& x) {
  xla::compile([](auto& x) { xla::mark_sharding(x, mesh, {"data", "data"}); })(x);
}
