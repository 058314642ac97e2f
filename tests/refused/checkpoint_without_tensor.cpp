// error: xla::checkpoint: pass the tensors that the function starts from as arguments
#include <xla/xla.hpp>

int main() {
  auto x = xla::randn<float>({2, 2});
  auto y = xla::checkpoint([&] { return tanh(x); });
}
