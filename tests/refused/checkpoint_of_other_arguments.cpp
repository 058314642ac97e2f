// error: xla::checkpoint: the function cannot be called with these arguments
#include <xla/xla.hpp>

int main() {
  xla::nn::Linear layer{2, 2};
  auto x = xla::randn<float>({2, 2});
  auto y = xla::checkpoint(layer, x, 3);
}
