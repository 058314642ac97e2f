// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

/// What the command line says. Where a model has a habit of its own (size, rate), 0 stands for it.
struct Options {
  std::string pictures, held_out;
  double share = 0.2;
  std::string model, mode = "compiled";

  std::int64_t size = 0, resize = 0;
  std::string augment = "resized";
  bool flip = true;
  std::string unreadable = "stop";
  int threads = 0;
  std::int64_t ahead = 2;

  std::string weights;
  bool freeze = false;
  std::int64_t epochs = 10, batch = 32;
  double lr = 0, min_lr = 0.01, weight_decay = 0.01, warmup = 0.05;
  std::uint64_t seed = 42;

  std::int64_t log_every = 20;
  std::string curves = "train_images";
  std::string checkpoint, resume, output;
  std::int64_t save_every = 0;
};

/// Trains a model of ../image_models.hpp as the options say, to the end. Each is compiled in a file
/// of its own, made of model.cpp.in.
template <class Entry>
void run(const Options& options);
