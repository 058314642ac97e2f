// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a program that writes `using namespace xla` may call its own; checks/headers_together
// compiles it after all headers.
#include "xla/xla.hpp"

using namespace xla;

struct line {
  int length = 0;
};
enum { refused, valid, verified, padded };

struct Net {
  nn::Linear fc{8, 3};
  constexpr auto operator()(Tensor<float, 2> x) const { return fc(x); }
  XLA_MODULE(fc)
};
constexpr auto step = [](auto& model, auto& x, auto& y, auto& optimizer) {
  optimizer.zero_grad();
  auto loss = cross_entropy(model(x), y);
  loss.backward();
  optimizer.step();
  return loss;
};
inline bool same(float a, float b) { return a == b; }
inline int without(line a) { return a.length - refused; }

inline bool train() {
  Net model;
  optim::SGD optimizer{model, {.lr = 0.1}};
  auto part = randn<float>({6, 8});
  auto size = part.size(0);
  auto device = part.device();
  auto tags = randint(0, 3, {static_cast<std::int64_t>(size)}).to(device);
  auto loss = compile(step)(model, part, tags, optimizer);
  return same(loss.item(), 0) || without(line{}) > 0;
}
inline bool trained = train();
