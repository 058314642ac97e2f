// error: xla::parallel::DataParallel: deals the batches of a loader out by itself
#include <xla/xla.hpp>
#include <xla/data/distributed_sampler.hpp>
#include <xla/parallel.hpp>

struct Net {
  xla::nn::Linear layer{2, 2};
  XLA_MODULE(layer)
};

void train(const xla::Tensor<float, 2>& images) {
  xla::data::DataLoader loader{
      xla::data::TensorDataset{images}, {}, xla::data::DistributedSampler{}};
  xla::parallel::DataParallel{Net{}}([](auto&, auto&, const auto&, auto&) {}, loader);
}
