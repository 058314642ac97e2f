// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

/// What the command line says. Where a configuration has a habit of its own (batch, sequence, rate,
/// steps), 0 stands for it.
struct Options {
  std::string config = "char";
  std::string mode = "compiled";
  std::vector<std::string> text;
  bool zeros = false;

  std::int64_t steps = 0;
  std::int64_t batch = 0, sequence = 0;
  std::int64_t accumulate = 1;
  bool autocast = false;
  int devices = 0;  // 0: as XLA_DEVICES says, or one
  double lr = 0, min_lr = 0.1;
  std::int64_t warmup = 100;
  double weight_decay = 0.1, beta2 = 0.99;
  double clip = 1;
  std::uint64_t seed = 42;

  std::int64_t log_every = 100, eval_every = 250, eval_batches = 20;
  std::string checkpoint;
  std::int64_t save_every = 500;
  std::string resume;

  std::string prompt = "\n";
  std::int64_t length = 500;
  double temperature = 0.8;
  std::int64_t top_k = 0;
  std::string curve = "train_decoder.svg";
};
