// error: the members of this struct are not described|a container whose size is known only at run time cannot be part of a model
#include <memory>

#include <xla/xla.hpp>

struct Node {
  xla::nn::Linear layer;
  std::unique_ptr<Node> next;
  XLA_MODULE(layer, next)
};

void f(Node& node) { xla::optim::SGD optimizer{node, {.lr = 0.1}}; }
