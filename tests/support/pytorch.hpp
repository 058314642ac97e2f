// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "support/reference.hpp"
#include "xla/op/reduce.hpp"
#include "xla/run/trace/backward.hpp"

namespace test {

/// What PyTorch computed, by case; written by the generators of tests/reference.
class pytorch {
 public:
  struct result {
    sizes_t sizes;
    std::vector<double> elements;
  };
  static pytorch& instance() {
    static pytorch all;
    return all;
  }
  const result& find(const std::string& name) {
    const auto at = results_.find(name);
    if (at == results_.end()) throw std::runtime_error("PyTorch has computed no case " + name);
    used_.insert(name);
    return at->second;
  }
  /// The states of a model of torchvision's, timm's or Hugging Face's, in order: "conv1.weight 64 3
  /// 7 7".
  const std::vector<std::string>& states(const std::string& model) {
    const std::string name = "states/" + model;
    used_.insert(name);
    return states_[name];
  }
  /// For tests/reference.cmake, which looks for cases that nobody looks up.
  ~pytorch() {
    if (const char* path = std::getenv("XLA_TEST_CASES")) {
      std::ofstream file(path, std::ios::app);
      for (const auto& name : used_) file << name << '\n';
    }
  }

 private:
  pytorch() {
    read(XLA_TEST_DATA "/reference/ops.txt");
    read(XLA_TEST_DATA "/reference/images.txt");
    read(XLA_TEST_DATA "/reference/attention.txt");
    read(XLA_TEST_DATA "/reference/autocast.txt");
    read(XLA_TEST_DATA "/reference/models.txt");
    read(XLA_TEST_DATA "/reference/bert_vit.txt");
    read(XLA_TEST_DATA "/reference/gpt2_llama.txt");
  }
  void read(const char* path) {
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
  std::map<std::string, result> results_;
  std::map<std::string, std::vector<std::string>> states_;
  std::set<std::string> used_;
};

/// A result of ours against PyTorch's: within a tolerance that is relative above 1 and absolute
/// below; NaN, infinities and the sizes exactly. With tolerance 0 zeros have PyTorch's sign.
template <class T, int R>
void check_pytorch(const std::string& name, const xla::Tensor<T, R>& got, double tolerance) {
  INFO(name);
  const auto& want = pytorch::instance().find(name);
  CHECK(got.sizes() == want.sizes);
  REQUIRE(std::int64_t(got.numel()) == static_cast<std::int64_t>(want.elements.size()));
  for (std::size_t i = 0; i < want.elements.size(); ++i) {
    const double a = static_cast<double>(got.data()[i]);
    const double b = static_cast<double>(static_cast<T>(want.elements[i]));
    const bool same = (a == b && (a != 0 || tolerance > 0 || std::signbit(a) == std::signbit(b))) ||
                      (std::isnan(a) && std::isnan(b)) ||
                      (std::isfinite(b) && tolerance > 0 &&
                       std::abs(a - b) <= tolerance * std::max(1.0, std::abs(b)));
    if (same) continue;
    std::ostringstream s;
    s.precision(9);
    s << "element " << i << " is " << a << ", PyTorch's " << b;
    FAIL_CHECK(s.str());
    return;
  }
  SUCCEED();
}

/// The result of f and the gradients of its float inputs against PyTorch's; eager.
/// Gradients may be sums of many: they are allowed some more.
template <class F, class... T, int... R>
void check_pytorch(const std::string& name, double tolerance, F f, const xla::Tensor<T, R>&... x) {
  const xla::eager_mode_guard eager;
  std::tuple<xla::Parameter<T, R>...> p{xla::Parameter<T, R>::like(x)...};
  std::apply([&](auto&... q) { (q.copy_(x), ...); }, p);
  const auto y = std::apply([&](auto&... q) { return f(q...); }, p);
  check_pytorch(name, y, tolerance);
  using Y = std::remove_cvref_t<decltype(y)>;
  if constexpr (std::is_floating_point_v<typename Y::value_type>) {
    const sizes_t sizes = y.sizes();
    xla::Size s[Y::rank > 0 ? Y::rank : 1] = {1};
    for (std::size_t i = 0; i < sizes.size(); ++i) s[i] = sizes[i];
    const auto weights = xla::reshape(numbers<typename Y::value_type>(s, 99), s);
    xla::sum(y * weights).backward();
    int k = 0;
    std::apply(
        [&](auto&... q) {
          (check_pytorch(name + "/grad" + std::to_string(k++),
                         q.grad().defined() ? q.grad() : zeros_like(q.detach()), tolerance + 5e-7),
           ...);
        },
        p);
  }
}

}  // namespace test
