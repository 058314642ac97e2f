// SPDX-License-Identifier: Apache-2.0
// What is the same in every program of the functions, layers and loaders that stand above the run time.
#define XLA_RUNTIME_SOURCE
#define XLA_RUNTIME_LIBRARY
#include <xla/data/prefetch_thread.hpp>
#include <xla/loop/products_ahead.hpp>
#include <xla/nn/state_loader.hpp>
#include <xla/op/derived/fill.hpp>
