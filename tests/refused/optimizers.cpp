// error: xla::optim::Muon: updates matrices alone
// error: xla::optim::ZeroRedundancy: cannot distribute this optimizer
// error: a list has schedules whose step.. takes nothing
// error: xla::optim: step\(lr\) takes one learning rate for all parameters, or one for those
// error: a learning-rate schedule steps between calls; for a loop of training steps pass
#include <xla/optim/adafactor.hpp>
#include <xla/optim/muon.hpp>
#include <xla/optim/zero_redundancy.hpp>
#include <xla/xla.hpp>

namespace optim = xla::optim;

void train(xla::nn::Linear& layer) {
  optim::Muon with_bias{layer, {.lr = 0.1}};
  optim::ZeroRedundancy parts{optim::Adafactor{layer, {.lr = 0.1}}};
  optim::SGD sgd{layer, {.lr = 0.1}};
  optim::ChainedScheduler both{sgd, std::tuple{optim::ReduceLROnPlateau{sgd}}};
  const auto is_bias = [](std::string_view, int rank) { return rank < 2; };
  optim::SGD grouped{layer, {.lr = 0.1}, optim::group(is_bias, [](auto& o) { o.lr = 1; })};
  grouped.step(std::array{xla::tensor(0.1f)});
  optim::StepLR schedule{sgd, {.step_size = 1}};
  xla::compile([](auto&, auto& s) { s.step(); })(layer, schedule);
}
