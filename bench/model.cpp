// SPDX-License-Identifier: Apache-2.0
// One of the ten models of models.py: HEADER of include/xla/models/, MODEL in xla::models, TASK
// image_model or text_model.
#ifndef HEADER  // nobody has said which
#define HEADER <xla/models/alexnet.hpp>
#define MODEL AlexNet<>
#define TASK image_model
#endif
#include HEADER

#include "models.hpp"

int main(int argc, char** argv) {
  return bench::serve_model<bench::TASK<xla::models::MODEL>>(argc, argv);
}
