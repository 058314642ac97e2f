// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

/// What the command line says. 0 stands for what the model is used to.
struct Options {
  std::string model, weights, labels, mode = "compiled";
  std::vector<std::string> pictures;
  std::int64_t size = 0, resize = 0;
  int top = 5, repeat = 1, threads = 0;
};

/// What a picture shows, each label's likelihood, as the model of `Entry` says; prints it for all
/// pictures. False where one of them cannot be read. Each model is compiled in a file of its own.
template <class Entry>
bool classify(const Options& options);
