// SPDX-License-Identifier: Apache-2.0
#pragma once

// The whole library except ext/ and rarely used headers, which a program includes by name: loops
// (loop.hpp), networks (models/), generated text (nn/generate.hpp), files (io/), training loops
// (train/), several replicas (parallel.hpp), distributions. Further ones are subsets, padded
// batches, sequences and transforms of data (data/), profiles (run/profile.hpp), averages of
// parameters (optim/average.hpp), and the optimizers optim/lbfgs.hpp, lion, nadam, radam, adagrad,
// adamax, adafactor, adadelta, asgd, muon, rprop.

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
namespace training {}
/// Tags that choose a form of a function, in a namespace because programs use such names
/// themselves: xla::tags::same.
namespace tags {}
}  // namespace xla

#include "xla/op/abs.hpp"
#include "xla/op/argmax.hpp"
#include "xla/op/arithmetic.hpp"
#include "xla/op/avg_pool.hpp"
#include "xla/op/bitwise.hpp"
#include "xla/op/cast.hpp"
#include "xla/op/clip.hpp"
#include "xla/op/collectives.hpp"
#include "xla/op/compare.hpp"
#include "xla/op/concat.hpp"
#include "xla/op/convolution.hpp"
#include "xla/op/create.hpp"
#include "xla/op/derived/activation.hpp"
#include "xla/op/derived/any_all.hpp"
#include "xla/op/derived/attention.hpp"
#include "xla/op/derived/batch_norm.hpp"
#include "xla/op/derived/convolution.hpp"
#include "xla/op/derived/distance.hpp"
#include "xla/op/derived/dropout.hpp"
#include "xla/op/derived/einsum.hpp"
#include "xla/op/derived/elementwise.hpp"
#include "xla/op/derived/group_norm.hpp"
#include "xla/op/derived/index_put.hpp"
#include "xla/op/derived/indexing.hpp"
#include "xla/op/derived/interpolate.hpp"
#include "xla/op/derived/linalg.hpp"
#include "xla/op/derived/loss.hpp"
#include "xla/op/derived/norm.hpp"
#include "xla/op/derived/normalize.hpp"
#include "xla/op/derived/on_device.hpp"
#include "xla/op/derived/other_forms.hpp"
#include "xla/op/derived/pad.hpp"
#include "xla/op/derived/pixel_shuffle.hpp"
#include "xla/op/derived/range.hpp"
#include "xla/op/derived/repeat.hpp"
#include "xla/op/derived/rotary.hpp"
#include "xla/op/derived/softmax.hpp"
#include "xla/op/derived/split.hpp"
#include "xla/op/derived/statistics.hpp"
#include "xla/op/derived/triangle.hpp"
#include "xla/op/elementwise.hpp"
#include "xla/op/embedding.hpp"
#include "xla/op/erf.hpp"
#include "xla/op/exponential.hpp"
#include "xla/op/floor_divide.hpp"
#include "xla/op/gather.hpp"
#include "xla/op/hardtanh.hpp"
#include "xla/op/index.hpp"
#include "xla/op/index_select.hpp"
#include "xla/op/integers.hpp"
#include "xla/op/local_shard.hpp"
#include "xla/op/logical.hpp"
#include "xla/op/matmul.hpp"
#include "xla/op/max_pool.hpp"
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
#include "xla/op/search.hpp"
#include "xla/op/sigmoid.hpp"
#include "xla/op/sign.hpp"
#include "xla/op/slice.hpp"
#include "xla/op/sort.hpp"
#include "xla/op/tanh.hpp"
#include "xla/op/trigonometric.hpp"
#include "xla/op/unfold.hpp"
#include "xla/op/where.hpp"

#include "xla/compile.hpp"
#include "xla/kernel/convolution/allow_winograd.hpp"
#include "xla/kernel/simd/eigen.hpp"
#include "xla/run/plan/memory.hpp"
#include "xla/run/state/metrics.hpp"
#include "xla/run/state/passes.hpp"
#include "xla/run/trace/autocast.hpp"
#include "xla/run/trace/checkpoint.hpp"
#include "xla/run/trace/custom_gradient.hpp"
#include "xla/run/trace/runtime.hpp"
#include "xla/run/trace/step.hpp"

#include "xla/data/loader.hpp"
#include "xla/nn/activation.hpp"
#include "xla/nn/attention.hpp"
#include "xla/nn/batch_norm.hpp"
#include "xla/nn/containers.hpp"
#include "xla/nn/conv.hpp"
#include "xla/nn/decoder.hpp"
#include "xla/nn/dropout.hpp"
#include "xla/nn/embedding.hpp"
#include "xla/nn/group_norm.hpp"
#include "xla/nn/linear.hpp"
#include "xla/nn/loss.hpp"
#include "xla/nn/multihead_attention.hpp"
#include "xla/nn/normalization.hpp"
#include "xla/nn/pool.hpp"
#include "xla/nn/shape.hpp"
#include "xla/nn/state_dict.hpp"
#include "xla/nn/transformer.hpp"
#include "xla/nn/upsample.hpp"
#include "xla/op/functional_copy.hpp"
#include "xla/op/print.hpp"
#include "xla/optim/adam.hpp"
#include "xla/optim/adamw.hpp"
#include "xla/optim/clip.hpp"
#include "xla/optim/rmsprop.hpp"
#include "xla/optim/schedule.hpp"
#include "xla/optim/sgd.hpp"
