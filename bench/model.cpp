// SPDX-License-Identifier: Apache-2.0
// One of the ten models of models.py: HEADER of include/xla/models/, MODEL in xla::models, TASK
// image_model or text_model.
#include HEADER

#include "models.hpp"

int main(int argc, char** argv) {
  return bench::serve_model<bench::TASK<xla::models::MODEL>>(argc, argv);
}
