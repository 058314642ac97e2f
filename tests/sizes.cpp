// SPDX-License-Identifier: Apache-2.0
// How large the types are that hold tensors: a tensor is two pointers and what constant evaluation
// needs.
#include <cstddef>
#include <string>

#include "catch.hpp"
#include "xla/xla.hpp"

namespace {

struct bound {
  std::string name;
  std::size_t bytes, most;
};

constexpr std::size_t one_tensor = 64;

/// A parameter keeps the sizes that its type fixes.
constexpr std::size_t state(int rank) { return one_tensor + 8 * static_cast<std::size_t>(rank); }

constexpr std::size_t number = 24, flag = 16;

#define ROW(most, ...) \
  bound { #__VA_ARGS__, sizeof(__VA_ARGS__), most }

}  // namespace

TEST_CASE("types that hold tensors are small") {
  using namespace xla;
  using nn::Linear;
  const bound rows[] = {
      ROW(one_tensor, detail::handle),
      ROW(one_tensor, Tensor<float, 0>),
      ROW(one_tensor, Tensor<double, 1>),
      ROW(one_tensor, Tensor<float, 2>),
      ROW(one_tensor, Tensor<std::int64_t, 3>),
      ROW(one_tensor, Tensor<std::uint8_t, 4>),
      ROW(one_tensor, Tensor<bool, 5>),
      ROW(one_tensor, Tensor<bfloat16, 6>),
      ROW(one_tensor, Tensor<float, dynamic_rank>),
      ROW(state(1), Parameter<float, 0>),
      ROW(state(1), Parameter<float, 1>),
      ROW(state(2), Parameter<float, 2>),
      ROW(state(4), Parameter<double, 4>),
      ROW(state(6), Buffer<float, 6>),
      ROW(number, Scalar),
      ROW(16, Size),
      ROW(flag, TrainingFlag),
      ROW(state(2) + state(1), Linear),
      ROW(state(2), nn::LinearNoBias),
      ROW(state(2) + 8, nn::Embedding),
      ROW(2 * state(1) + number, nn::LayerNorm),
      ROW(state(1) + number, nn::RMSNorm),
      ROW(5 * state(1) + 2 * number + flag, nn::BatchNorm1d),
      ROW(number + flag, nn::Dropout),
      ROW(4 * state(2), nn::Attention<64, 4>),
      ROW(3 * state(2), nn::SwiGLU<64, 128>),
      ROW(2 * sizeof(Linear), nn::FeedForward<64, 128>),
      ROW(2 * state(4), nn::KeyValues<1, 4, 16, 16>),
      ROW(2 * sizeof(Linear) + 8, nn::Sequential<Linear, nn::ReLU, Linear>),
      ROW(3 * sizeof(Linear), nn::ModuleArray<Linear, 3>),
      ROW(sizeof(Linear), nn::Residual<Linear>),
      ROW(2 * state(2) + 9 * number + 8, optim::SGD<Linear>),  // clang gives room to empty arrays
      ROW(4 * state(2) + 8 * number, optim::AdamW<Linear>),
      ROW(3 * one_tensor, decltype(Tensor<float, 2>()[0])),
  };
  for (const bound& b : rows) {
    INFO(b.name << " has " << b.bytes << " bytes, of " << b.most);
    CHECK(b.bytes <= b.most);
  }
}
