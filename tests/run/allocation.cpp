// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cstdlib>
#include <new>

#include <xla/xla.hpp>

#include "catch.hpp"
#include "support/mlp.hpp"

namespace {
std::atomic<long> allocations{0};
}

// Replaced as a pair; g++ 12 looks at one at a time.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
#endif

void* operator new(std::size_t n) {
  ++allocations;
  if (void* p = std::malloc(n ? n : 1)) return p;
  throw std::bad_alloc();
}
void* operator new(std::size_t n, std::align_val_t a) {
  ++allocations;
  const auto alignment = static_cast<std::size_t>(a);
  if (void* p = std::aligned_alloc(alignment, (n + alignment) / alignment * alignment)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }

TEST_CASE("a compiled training step in its stride allocates nothing") {
  const xla::eager_mode_guard eager;
  test::Mlp model;
  xla::nn::CrossEntropyLoss loss_fn;
  xla::optim::SGD optimizer{model, {.lr = 0.1, .momentum = 0.9}};
  auto step = xla::compile(test::step_fn);
  test::batch b(16);
  xla::Tensor<float, 0> loss;
  for (int i = 0; i < 5; ++i) loss = step(model, b.data, b.target, loss_fn, optimizer);
  const long before = allocations;
  for (int i = 0; i < 20; ++i) loss = step(model, b.data, b.target, loss_fn, optimizer);
  CHECK(allocations == before);
  CHECK(loss.item() > 0);
}
