// error: xla::optim::group: no parameter of the model is in it
#include <xla/xla.hpp>

void f(xla::nn::Linear& model) {
  auto which = [](std::string_view name, int) { return name == "weigth"; };
  auto change = [](auto& options) { options.weight_decay = 0; };
  xla::optim::SGD optimizer{model, {.lr = 0.1}, xla::optim::group(which, change)};
  optimizer.step();
}
