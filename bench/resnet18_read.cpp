// SPDX-License-Identifier: Apache-2.0
// resnet18_read <compiled|traced|fused|eager> <threads>: answers `run N` with the time of reading N
// images, one after another, and the sum of the absolute logits of the last.

#include <cmath>
#include <string_view>
#include <vector>

#include <xla/models/resnet.hpp>

#include "images_task.hpp"
#include "training.hpp"

namespace {

constexpr auto logits_of = [](auto& model, auto& images) {
  model.eval();
  return model(images);
};

}  // namespace

int main(int argc, char** argv) {
  return bench::in_mode(argc, argv, logits_of, "read", [](std::string_view mode, auto&& step) {
    const auto ring = bench::make_images(4, {1, 3, 224, 1000});
    xla::models::ResNet18<> model;
    bench::set_image_weights(model);
    const auto run = [&](int n) {
      constexpr int warm = 2;  // as in peers/images_task.py
      // All are kept: eager mode that fuses would not compute what nobody can read any more.
      std::vector<xla::Tensor<float, 2>> logits;
      const auto read = [&](int first, int last) {
        for (int i = first; i < last; ++i)
          logits.push_back(step(model, ring[static_cast<std::size_t>(i) % ring.size()].first));
      };
      read(0, warm);
      const double start = bench::time_of(xla::num_threads());
      read(warm, warm + n);
      const auto numbers = logits.back().to_vector();
      const double seconds = bench::time_of(xla::num_threads()) - start;
      double sum = 0;
      for (const float f : numbers) sum += std::abs(f);
      return bench::turn{seconds * 1e9, sum};
    };
    return xla::no_grad([&] {
      run(2);
      return bench::serve(mode, run);
    });
  });
}
