// Invalid custom ops and gradients.
// error: backward returns as many gradients as forward has inputs
// error: backward returns for each input a gradient of the same element type and rank
// error: backward takes the tuple of what is saved, and then the gradient of each result
// error: its functions hold no state
// error: the arguments are tensors
// error: forward cannot be called with these arguments
// error: write XLA_ELEMENTWISE_OP\(type\). below the op's definition
// error: the op's kernel takes another number of inputs
#include <xla/xla.hpp>

struct twice : xla::op::map {
  static constexpr auto name = "own_twice";
  static constexpr auto kernel(auto x) { return x + x; }
};
struct thrice : twice {
  static constexpr auto name = "own_thrice";
};
XLA_ELEMENTWISE_OP(twice);

using Tensor = xla::Tensor<float, 2>;
constexpr auto product = [](const auto& a, const auto& b) { return a * b; };
constexpr auto one = [](const auto&, const auto& g) { return g; };

void count(Tensor x) { xla::custom_gradient(product, one)(x, x); }
void rank(Tensor x) {
  xla::custom_gradient([](const auto& a) { return a * 2; },
                       [](const auto&, const auto& g) { return xla::sum(g); })(x);
}
void arguments(Tensor x) {
  xla::custom_gradient([](const auto& a) { return std::tuple(a, a); }, one)(x);
}
void state(float scale) {
  xla::custom_gradient([scale](const auto& a) { return a * scale; }, one);
}
void number(Tensor x) { xla::custom_gradient(product, one)(x, 2); }
void inputs(Tensor x) { xla::custom_gradient(product, one)(x); }
void unknown(Tensor x) { xla::elementwise<thrice>(x); }
void arity(Tensor x) { xla::elementwise<twice>(x, x); }
