// error: xla::optim::ZeroRedundancy: give it an optimizer
#include <xla/optim/zero_redundancy.hpp>
#include <xla/xla.hpp>

struct Net {
  xla::nn::Linear layer{2, 2};
  XLA_MODULE(layer)
};

void share(Net& net) { xla::optim::ZeroRedundancy shared{net}; }
