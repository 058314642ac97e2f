// SPDX-License-Identifier: Apache-2.0
// cmake/runtime/region_keys.inc has the regions of compiled training steps. This writes the file:
//   XLA_WRITE_REGIONS=1 cmake -DMATCH=run/known_regions -P cmake/test.cmake

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "catch.hpp"
#include "xla/op/list.hpp"
#include "xla/xla.hpp"

namespace {

using xla::Tensor;
using xla::kernel::micro_op;
namespace nn = xla::nn;

struct Layer {
  xla::Parameter<float, 2> weight;
  XLA_MODULE(weight)
};

constexpr auto train = [](auto& layer, auto& optimizer, auto& x) {
  optimizer.zero_grad();
  const auto y = matmul(x, layer.weight);
  sum(y * y).backward();
  optimizer.step();
};

/// A convolution with its batch norm.
struct Unit {
  nn::Conv2d<nn::Conv2dConfig{.kernel_size = 1, .bias = false}> convolution{32, 32};
  nn::BatchNorm2d norm{32};
  constexpr auto operator()(const Tensor<float, 4>& x) const { return norm(convolution(x)); }
  XLA_MODULE(convolution, norm)
};

/// Inverted residuals, as of MobileNet-v2 and MNASNet, the second one with a shortcut.
template <class Activation>
struct InvertedResiduals {
  Unit stem, first, second, third, fourth, last;
  constexpr auto operator()(const Tensor<float, 4>& x) const {
    const Activation a;
    const auto y = second(a(first(a(stem(x)))));
    return a(last(y + fourth(a(third(y)))));
  }
  XLA_MODULE(stem, first, second, third, fourth, last)
};

/// Residual blocks, as of ResNet, the second one with a convolution in its shortcut.
struct Residuals {
  Unit stem, first, second, third, fourth, shortcut;
  constexpr auto operator()(const Tensor<float, 4>& x) const {
    const auto y = relu(stem(x));
    const auto z = relu(second(relu(first(y))) + y);
    return relu(fourth(relu(third(z))) + shortcut(z));
  }
  XLA_MODULE(stem, first, second, third, fourth, shortcut)
};

constexpr auto train_normed = [](auto& model, auto& x) {
  const auto y = mean(model(x), {2, 3});
  sum(y * y).backward();
};

struct op_name {
  std::uint32_t id;
  std::string_view name;
};
#define XLA_TEST_OP_NAME(op, group) op_name{xla::detail::id_of<op>, #op},
constexpr op_name names[] = {XLA_ALL_OPS(XLA_TEST_OP_NAME)};
#undef XLA_TEST_OP_NAME

std::string name_of(std::uint32_t id) {
  const auto at = std::find_if(std::begin(names), std::end(names),
                               [&](const op_name& o) { return o.id == id; });
  REQUIRE(at != std::end(names));
  return std::string(at->name.substr(std::string_view("xla::").size()));
}

std::string type_of(xla::dtype type) {
  REQUIRE((type == xla::dtype::float32 || type == xla::dtype::boolean));
  return type == xla::dtype::float32 ? "f32" : "boolean";
}

/// A word as known_regions.cpp writes it.
std::string word_text(std::uint64_t word) {
  const auto m = micro_op::of(word);
  REQUIRE((!m.reduce && !m.index));
  if (m.input)
    return (m.invariant ? "scalar(" : "elements(") +
           (m.type == xla::dtype::float32 ? "" : type_of(m.type)) + ")";
  if (m.column) {
    REQUIRE((m.id == xla::detail::id_of<xla::op::sum> && m.type == xla::dtype::float32));
    REQUIRE((m.output && m.b == micro_op::none));
    return "column_sum(" + std::to_string(m.a) + ")";
  }
  std::string text = (m.output ? "stored<" : "value<") + name_of(m.id) + ">(" + type_of(m.type);
  for (const int operand : {m.a, m.b, m.c})
    if (operand != micro_op::none) text += ", " + std::to_string(operand);
  return text + ")";
}

/// Regions, each once, as they are written in the file.
struct region_list {
  std::vector<std::string> found;
  template <class Step>
  void add(int key) {
    const auto& k = Step::result.storage.keys[key];
    std::string text, line = k.row ? "XLA_ROW_REGION(" : "XLA_MAP_REGION(";
    for (int w = 0; w < k.count; ++w) {
      const bool last = w + 1 == k.count;
      const auto word = word_text(Step::result.storage.words[k.first + w]) + (last ? ")" : ",");
      if (line.size() + word.size() > 99) text += line + "\n", line = "   ";
      line += (line.back() == '(' ? "" : " ") + word;
    }
    text += line + "\n";
    if (std::find(found.begin(), found.end(), text) == found.end()) found.push_back(text);
  }
  /// The update of a parameter: the largest map region of the step that is not of numbers alone.
  template <class Optimizer>
  void add_update() {
    using step = xla::detail::static_program<std::remove_const_t<decltype(train)>, Layer&,
                                             Optimizer&, Tensor<float, 2>&>;
    const auto& s = step::result.storage;
    const auto reads_elements = [&](const auto& k) {
      for (int w = 0; w < k.count; ++w)
        if (const auto m = micro_op::of(s.words[k.first + w]); m.input && !m.invariant) return true;
      return false;
    };
    int best = -1;
    for (int i = 0; i < step::size.keys; ++i)
      if (!s.keys[i].row && reads_elements(s.keys[i]) &&
          (best < 0 || s.keys[i].count > s.keys[best].count))
        best = i;
    REQUIRE(best >= 0);
    add<step>(best);
  }
  /// The regions of batch norms.
  template <class Model>
  void add_norms() {
    using step = xla::detail::static_program<std::remove_const_t<decltype(train_normed)>, Model&,
                                             Tensor<float, 4>&>;
    const auto before = found.size();
    for (int i = 0; i < step::size.keys; ++i) {
      const auto& k = step::result.storage.keys[i];
      bool images = false, alone = true;
      for (int w = 0; w < k.count; ++w) {
        const auto m = micro_op::of(step::result.storage.words[k.first + w]);
        images |= m.id == xla::detail::id_of<xla::op::center_scale> ||
                  m.id == xla::detail::id_of<xla::op::center_square>;
        alone = alone && !m.reduce;
      }
      if (images && alone) add<step>(i);
    }
    CHECK(found.size() > before);
  }
};

}  // namespace

TEST_CASE("the run time's list of known regions is what compiled steps have") {
  region_list list;
  list.add_update<xla::optim::SGD<Layer>>();
  list.add_update<xla::optim::Adam<Layer>>();
  list.add_update<xla::optim::AdamW<Layer>>();
  list.add_norms<InvertedResiduals<nn::ReLU6>>();
  list.add_norms<InvertedResiduals<nn::ReLU>>();
  list.add_norms<Residuals>();

  std::string text =
      "// SPDX-License-Identifier: Apache-2.0\n"
      "// Regions of compiled steps, of which known_regions.cpp makes loops. Made by\n"
      "// tests/run/known_regions.cpp, which says how.\n\n";
  for (const auto& region : list.found) text += region;

  const std::string path = XLA_TEST_DATA "/../cmake/runtime/region_keys.inc";
  if (std::getenv("XLA_WRITE_REGIONS")) std::ofstream(path) << text;
  std::ifstream file(path);
  const std::string now{std::istreambuf_iterator<char>(file), {}};
  INFO(path << " differs: XLA_WRITE_REGIONS=1 cmake -DMATCH=run/known_regions -P cmake/test.cmake");
  CHECK(now == text);
}
