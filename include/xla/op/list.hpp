// SPDX-License-Identifier: Apache-2.0
#pragma once

// clang-format off: made from the ops' definitions by cmake -P cmake/op_list.cmake, which a test
// compares.
#include "xla/graph/builtin.hpp"
#include "xla/op/abs.hpp"
#include "xla/op/argmax.hpp"
#include "xla/op/arithmetic.hpp"
#include "xla/op/attention.hpp"
#include "xla/op/avg_pool.hpp"
#include "xla/op/bitwise.hpp"
#include "xla/op/cast.hpp"
#include "xla/op/check_between.hpp"
#include "xla/op/check_index.hpp"
#include "xla/op/clip.hpp"
#include "xla/op/collectives.hpp"
#include "xla/op/compare.hpp"
#include "xla/op/concat.hpp"
#include "xla/op/convolution.hpp"
#include "xla/op/create.hpp"
#include "xla/op/cummax.hpp"
#include "xla/op/derived/batch_norm.hpp"
#include "xla/op/derived/normalize.hpp"
#include "xla/op/embedding.hpp"
#include "xla/op/erf.hpp"
#include "xla/op/erfinv.hpp"
#include "xla/op/exponential.hpp"
#include "xla/op/floor_divide.hpp"
#include "xla/op/gamma.hpp"
#include "xla/op/gather.hpp"
#include "xla/op/hardtanh.hpp"
#include "xla/op/index_select.hpp"
#include "xla/op/integers.hpp"
#include "xla/op/inverse_trigonometric.hpp"
#include "xla/op/local_shard.hpp"
#include "xla/op/logcumsumexp.hpp"
#include "xla/op/logical.hpp"
#include "xla/op/matmul.hpp"
#include "xla/op/max_pool.hpp"
#include "xla/op/median.hpp"
#include "xla/op/minmax.hpp"
#include "xla/op/multinomial.hpp"
#include "xla/op/permute.hpp"
#include "xla/op/pow.hpp"
#include "xla/op/prod.hpp"
#include "xla/op/random.hpp"
#include "xla/op/reduce.hpp"
#include "xla/op/relu.hpp"
#include "xla/op/remainder.hpp"
#include "xla/op/resample.hpp"
#include "xla/op/reshape.hpp"
#include "xla/op/root.hpp"
#include "xla/op/rounding.hpp"
#include "xla/op/scan.hpp"
#include "xla/op/scatter_reduce.hpp"
#include "xla/op/search.hpp"
#include "xla/op/sigmoid.hpp"
#include "xla/op/sign.hpp"
#include "xla/op/slice.hpp"
#include "xla/op/sort.hpp"
#include "xla/op/special.hpp"
#include "xla/op/tanh.hpp"
#include "xla/op/trigonometric.hpp"
#include "xla/op/unfold.hpp"
#include "xla/op/where.hpp"

/// X(op, group of element types) for every op that computes.
#define XLA_ALL_OPS(X) \
  X(xla::op::abs, numbers) \
  X(xla::op::argmax, positions) \
  X(xla::op::argmin, positions) \
  X(xla::op::add, numbers) \
  X(xla::op::sub, numbers) \
  X(xla::op::mul, numbers) \
  X(xla::op::div, numbers) \
  X(xla::op::neg, numbers) \
  X(xla::op::attention, fractions) \
  X(xla::op::attention_gradient, fractions) \
  X(xla::op::avg_pool, fractions) \
  X(xla::op::avg_pool_backward, fractions) \
  X(xla::op::bitwise_and, indices) \
  X(xla::op::bitwise_or, indices) \
  X(xla::op::bitwise_xor, indices) \
  X(xla::op::bitwise_not, indices) \
  X(xla::op::cast, conversions) \
  X(xla::op::check_between, fractions) \
  X(xla::op::check_index, indices) \
  X(xla::op::clamp, numbers) \
  X(xla::op::all_reduce, numbers) \
  X(xla::op::all_gather, all) \
  X(xla::op::reduce_scatter, numbers) \
  X(xla::op::all_to_all, all) \
  X(xla::op::broadcast, all) \
  X(xla::op::collective_permute, all) \
  X(xla::op::eq, comparisons) \
  X(xla::op::ne, comparisons) \
  X(xla::op::lt, comparisons) \
  X(xla::op::le, comparisons) \
  X(xla::op::gt, comparisons) \
  X(xla::op::ge, comparisons) \
  X(xla::op::concat, all) \
  X(xla::op::convolution, fractions) \
  X(xla::op::convolution_input, fractions) \
  X(xla::op::convolution_weight, fractions) \
  X(xla::op::arange, numbers) \
  X(xla::op::cummax_index, positions) \
  X(xla::op::cummin_index, positions) \
  X(xla::op::center_scale, fractions) \
  X(xla::op::center_square, fractions) \
  X(xla::op::squared_deviation, fractions) \
  X(xla::op::standardize, fractions) \
  X(xla::op::embedding, fractions) \
  X(xla::op::embedding_backward, fractions) \
  X(xla::op::erf, fractions) \
  X(xla::op::erfc, fractions) \
  X(xla::op::ndtr, fractions) \
  X(xla::op::erfinv, fractions) \
  X(xla::op::exp, fractions) \
  X(xla::op::log, fractions) \
  X(xla::op::expm1, fractions) \
  X(xla::op::log1p, fractions) \
  X(xla::op::floor_divide, numbers) \
  X(xla::op::lgamma, fractions) \
  X(xla::op::digamma, fractions) \
  X(xla::op::zeta, fractions) \
  X(xla::op::scatter_add, numbers) \
  X(xla::op::scatter, all) \
  X(xla::op::gather, all) \
  X(xla::op::gather_into, numbers) \
  X(xla::op::hardtanh, fractions) \
  X(xla::op::index_add, numbers) \
  X(xla::op::index_copy, all) \
  X(xla::op::index_select, all) \
  X(xla::op::integers, indices) \
  X(xla::op::permutation, indices) \
  X(xla::op::asin, fractions) \
  X(xla::op::acos, fractions) \
  X(xla::op::atan, fractions) \
  X(xla::op::asinh, fractions) \
  X(xla::op::acosh, fractions) \
  X(xla::op::atanh, fractions) \
  X(xla::op::local_shard, all) \
  X(xla::op::logcumsumexp, fractions) \
  X(xla::op::logical_and, booleans) \
  X(xla::op::logical_or, booleans) \
  X(xla::op::logical_not, booleans) \
  X(xla::op::matmul, fractions) \
  X(xla::op::max_pool, numbers) \
  X(xla::op::max_pool_index, positions) \
  X(xla::op::max_pool_scatter, fractions) \
  X(xla::op::max_pool_gather, fractions) \
  X(xla::op::median_index, positions) \
  X(xla::op::median, numbers) \
  X(xla::op::maximum, numbers) \
  X(xla::op::minimum, numbers) \
  X(xla::op::check_probabilities, doubles) \
  X(xla::op::permute, all) \
  X(xla::op::pow, numbers) \
  X(xla::op::prod, numbers) \
  X(xla::op::uniform, fractions) \
  X(xla::op::normal, fractions) \
  X(xla::op::sum, numbers) \
  X(xla::op::max, numbers) \
  X(xla::op::min, numbers) \
  X(xla::op::relu, numbers) \
  X(xla::op::remainder, numbers) \
  X(xla::op::fmod, numbers) \
  X(xla::op::resample, numbers) \
  X(xla::op::resample_backward, fractions) \
  X(xla::op::reshape, all) \
  X(xla::op::expand, all) \
  X(xla::op::sqrt, fractions) \
  X(xla::op::rsqrt, fractions) \
  X(xla::op::floor, fractions) \
  X(xla::op::ceil, fractions) \
  X(xla::op::round, fractions) \
  X(xla::op::trunc, fractions) \
  X(xla::op::cumsum, numbers) \
  X(xla::op::recurrence, fractions) \
  X(xla::op::cumprod, numbers) \
  X(xla::op::scatter_prod, numbers) \
  X(xla::op::scatter_amax, numbers) \
  X(xla::op::scatter_amin, numbers) \
  X(xla::op::searchsorted, positions) \
  X(xla::op::sigmoid, fractions) \
  X(xla::op::softplus, fractions) \
  X(xla::op::sign, numbers) \
  X(xla::op::slice, all) \
  X(xla::op::slice_scatter, numbers) \
  X(xla::op::argsort, positions) \
  X(xla::op::sinh, fractions) \
  X(xla::op::cosh, fractions) \
  X(xla::op::log2, fractions) \
  X(xla::op::log10, fractions) \
  X(xla::op::logit, fractions) \
  X(xla::op::logaddexp, fractions) \
  X(xla::op::hypot, fractions) \
  X(xla::op::xlogy, fractions) \
  X(xla::op::xlog1py, fractions) \
  X(xla::op::sinc, fractions) \
  X(xla::op::tanh, fractions) \
  X(xla::op::sin, fractions) \
  X(xla::op::cos, fractions) \
  X(xla::op::atan2, fractions) \
  X(xla::op::unfold, numbers) \
  X(xla::op::fold, numbers) \
  X(xla::op::where, all)

/// X(op) for every other that a graph may hold: values from outside, and what binds them.
#define XLA_BUILTIN_OPS(X) \
  X(xla::op::input) \
  X(xla::op::constant) \
  X(xla::op::scalar) \
  X(xla::op::size) \
  X(xla::op::data) \
  X(xla::op::detach) \
  X(xla::op::updated) \
  X(xla::op::gradient_part) \
  X(xla::op::compiled_result) \
  X(xla::op::to_device) \
  X(xla::op::output) \
  X(xla::op::custom_gradient) \
  X(xla::op::result)
