// SPDX-License-Identifier: Apache-2.0
#pragma once

// The whole library but ext/, and what a program includes by name: files (io/), training loops
// (train/), subsets of data (data/subset.hpp), profiles (run/profile.hpp).

/// Tensors, the functions on them, and the three ways to run them.
namespace xla {
/// Layers and losses, by PyTorch's names.
namespace nn {}
/// Optimizers, gradient clipping and learning-rate schedules.
namespace optim {}
/// Data sets and loaders.
namespace data {}
/// Files, and what a terminal shows.
namespace io {}
/// Training loops.
namespace train {}
}  // namespace xla

#include "xla/op/abs.hpp"
#include "xla/op/argmax.hpp"
#include "xla/op/arithmetic.hpp"
#include "xla/op/cast.hpp"
#include "xla/op/clip.hpp"
#include "xla/op/compare.hpp"
#include "xla/op/concat.hpp"
#include "xla/op/create.hpp"
#include "xla/op/derived/activation.hpp"
#include "xla/op/derived/any_all.hpp"
#include "xla/op/derived/attention.hpp"
#include "xla/op/derived/dropout.hpp"
#include "xla/op/derived/einsum.hpp"
#include "xla/op/derived/elementwise.hpp"
#include "xla/op/derived/indexing.hpp"
#include "xla/op/derived/linalg.hpp"
#include "xla/op/derived/loss.hpp"
#include "xla/op/derived/norm.hpp"
#include "xla/op/derived/normalize.hpp"
#include "xla/op/derived/on_device.hpp"
#include "xla/op/derived/pad.hpp"
#include "xla/op/derived/range.hpp"
#include "xla/op/derived/repeat.hpp"
#include "xla/op/derived/rotary.hpp"
#include "xla/op/derived/softmax.hpp"
#include "xla/op/derived/split.hpp"
#include "xla/op/derived/statistics.hpp"
#include "xla/op/derived/triangle.hpp"
#include "xla/op/embedding.hpp"
#include "xla/op/erf.hpp"
#include "xla/op/exponential.hpp"
#include "xla/op/gather.hpp"
#include "xla/op/index.hpp"
#include "xla/op/index_select.hpp"
#include "xla/op/integers.hpp"
#include "xla/op/logical.hpp"
#include "xla/op/matmul.hpp"
#include "xla/op/median.hpp"
#include "xla/op/minmax.hpp"
#include "xla/op/multinomial.hpp"
#include "xla/op/nonzero.hpp"
#include "xla/op/permute.hpp"
#include "xla/op/pow.hpp"
#include "xla/op/prod.hpp"
#include "xla/op/random.hpp"
#include "xla/op/reduce.hpp"
#include "xla/op/relu.hpp"
#include "xla/op/remainder.hpp"
#include "xla/op/reshape.hpp"
#include "xla/op/root.hpp"
#include "xla/op/rounding.hpp"
#include "xla/op/scan.hpp"
#include "xla/op/sigmoid.hpp"
#include "xla/op/sign.hpp"
#include "xla/op/slice.hpp"
#include "xla/op/sort.hpp"
#include "xla/op/tanh.hpp"
#include "xla/op/trigonometric.hpp"
#include "xla/op/where.hpp"

#include "xla/compile.hpp"
#include "xla/kernel/eigen.hpp"
#include "xla/run/checkpoint.hpp"
#include "xla/run/memory.hpp"
#include "xla/run/metrics.hpp"
#include "xla/run/runtime.hpp"
#include "xla/run/step.hpp"

#include "xla/data/loader.hpp"
#include "xla/io/print.hpp"
#include "xla/nn/activation.hpp"
#include "xla/nn/attention.hpp"
#include "xla/nn/decoder.hpp"
#include "xla/nn/dropout.hpp"
#include "xla/nn/embedding.hpp"
#include "xla/nn/generate.hpp"
#include "xla/nn/linear.hpp"
#include "xla/nn/loss.hpp"
#include "xla/nn/module_array.hpp"
#include "xla/nn/normalization.hpp"
#include "xla/nn/sequential.hpp"
#include "xla/nn/shape.hpp"
#include "xla/nn/state_dict.hpp"
#include "xla/optim/adagrad.hpp"
#include "xla/optim/adam.hpp"
#include "xla/optim/adamw.hpp"
#include "xla/optim/average.hpp"
#include "xla/optim/clip.hpp"
#include "xla/optim/lion.hpp"
#include "xla/optim/rmsprop.hpp"
#include "xla/optim/schedule.hpp"
#include "xla/optim/sgd.hpp"
