// SPDX-License-Identifier: Apache-2.0
// resnet18 <compiled|traced|fused|eager> <threads>: torchvision's network on 8 images.

#include <xla/models/resnet.hpp>

#include "images_task.hpp"
#include "training.hpp"

int main(int argc, char** argv) {
  return bench::serve_training<
      bench::image_training<xla::models::ResNet18<>, 8, 3, 224, 1000, 4, 2>>(argc, argv);
}
