// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

/// The command line, with the names and defaults of PyTorch's program.
struct Options {
  std::string data, model = "LSTM", weights, save;
  double lr = 20, clip = 0.25, dropout = 0.2;
  std::int64_t epochs = 40, batch_size = 20, bptt = 35, log_interval = 200, steps = 0;
  std::uint64_t seed = 1111;
  bool tied = false, bytes = false;
};

void run_lstm(const Options& o);
void run_gru(const Options& o);
void run_transformer(const Options& o);
