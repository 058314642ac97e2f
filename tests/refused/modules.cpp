// Models and optimizers that would lose parameters, or could have none.
// error: Forgetful: XLA_MODULE leaves out [0-9]+ bytes: name every member there, .* Named: a
// error: Derived: XLA_MODULE leaves out [0-9]+ bytes: .* a base by XLA_DERIVED_MODULE
// error: Inheriting: XLA_MODULE leaves out [0-9]+ bytes: .* Named: a b
// error: Switched: XLA_MODULE leaves out 8 bytes: name every member there, .* Named: a
// error: model.layers: a container whose size is known only at run time cannot be part of a model: use std::array
// error: model.layer: std::optional
// error: model.layer: a pointer
// error: model.name: text
// error: the model: Undescribed: the members of this struct are not described: write XLA_MODULE
// error: Hidden: the members of this struct are not described: .* where it is public
// error: Forward cannot be called: give it constexpr auto operator\(\)
// error: an optimizer cannot be copied, as the copy would train the same model
// error: xla::nn::CrossEntropyLoss: has no options; nn::SmoothCrossEntropyLoss takes ignore_index
// error: write SGD.model, ..lr = 0.1..: the model itself, and the options by name
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <xla/xla.hpp>
namespace nn = xla::nn;

struct Forgetful {
  nn::Linear a{8, 4}, b{4, 2};
  XLA_MODULE(a)
};
struct Base {
  nn::Linear a{8, 4}, b{4, 2};
  XLA_MODULE(a, b)
};
struct Derived : Base {
  nn::Linear c{4, 2};
  XLA_MODULE(c)
};
struct Inheriting : Base {
  nn::Linear c{4, 2};
};
struct Switched {
  nn::Linear a{8, 4};
  bool residual = false;
  XLA_MODULE(a)
};
struct Deep {
  std::vector<nn::Linear> layers;
  XLA_MODULE(layers)
};
struct Maybe {
  std::optional<nn::Linear> layer;
  XLA_MODULE(layer)
};
struct Elsewhere {
  std::unique_ptr<nn::Linear> layer;
  XLA_MODULE(layer)
};
struct Named {
  nn::Linear a{8, 4};
  std::string name;
  XLA_MODULE(a, name)
};
struct Undescribed {
  nn::Linear a{8, 4};
};
class Hidden {
  nn::Linear a{8, 4};
  XLA_MODULE(a)
};
struct Forward {
  nn::Linear a{8, 4};
  constexpr auto forward(const xla::Tensor<float, 2>& x) const { return a(x); }
  XLA_MODULE(a)
};
struct Trainer {
  Base model;
  xla::optim::SGD<Base> optimizer{model, {.lr = 0.1}};
};

template <class Model>
void train() {
  Model model;
  xla::optim::SGD<Model> optimizer(model);
}
template void train<Forgetful>();
template void train<Derived>();
template void train<Inheriting>();
template void train<Switched>();
template void train<Deep>();
template void train<Maybe>();
template void train<Elsewhere>();
template void train<Named>();
template void train<Undescribed>();

void hidden(Hidden& m) {
  xla::compile([](auto&) { return 1; })(m);
}
void forward(Forward& m, xla::Tensor<float, 2> x) { xla::compile(m)(x); }
Trainer copied(const Trainer& t) { return t; }
void by_position(Base& m) { xla::optim::SGD optimizer{m, 0.1}; }

void options_of_the_plain_loss() { nn::CrossEntropyLoss loss_fn{{.ignore_index = 0}}; }
