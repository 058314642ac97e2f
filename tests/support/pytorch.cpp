// SPDX-License-Identifier: Apache-2.0
// PyTorch's numbers, read once for all tests.
#include "support/pytorch.hpp"

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace test {

pytorch& pytorch::instance() {
  static pytorch all;
  return all;
}

const pytorch::result& pytorch::find(const std::string& name) {
  const auto at = results_.find(name);
  if (at == results_.end()) throw std::runtime_error("PyTorch has computed no case " + name);
  used_.insert(name);
  return at->second;
}

const std::vector<std::string>& pytorch::states(const std::string& model) {
  const std::string name = "states/" + model;
  used_.insert(name);
  return states_[name];
}

pytorch::~pytorch() {
  if (const char* path = std::getenv("XLA_TEST_CASES")) {
    std::ofstream file(path);
    for (const auto& name : used_) file << name << '\n';
  }
}

pytorch::pytorch() {
  for (const char* name :
       {"ops", "forms", "functions", "selection", "distributions", "images", "attention",
        "autocast", "models", "bert_vit", "gpt2_llama"})
    read((XLA_TEST_DATA "/reference/" + std::string(name) + ".txt").c_str());
}

void pytorch::read(const char* path) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;  // the version, and the generator's sum
    std::istringstream words(line);
    std::string name, word;
    words >> name;
    if (name.starts_with("states/")) {
      states_[name].push_back(line.substr(name.size() + 1));
      continue;
    }
    result r;
    while (words >> word && word != ":") r.sizes.push_back(std::stoll(word));
    while (words >> word) r.elements.push_back(std::strtod(word.c_str(), nullptr));
    results_[name] = std::move(r);
  }
}

template void check_pytorch_elements(const std::string&, const float*, const sizes_t&, double);
template void check_pytorch_elements(const std::string&, const double*, const sizes_t&, double);

}  // namespace test
