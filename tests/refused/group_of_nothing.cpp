// error: xla::optim::group: no parameter of the model is in it
#include <xla/xla.hpp>

void f(xla::nn::Linear& model) {
  xla::optim::SGD optimizer{model, {.lr = 0.1},
                            xla::optim::group([](std::string_view name, int) { return name == "weigth"; },
                                              [](auto& o) { o.weight_decay = 0; })};
  optimizer.step();
}
