// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>

#include "xla/op/check_index.hpp"
#include "xla/op/create.hpp"
#include "xla/op/derived/reduction.hpp"
#include "xla/op/derived/softmax.hpp"

namespace xla {

/// How cross_entropy and nll_loss treat targets, by PyTorch's names.
struct CrossEntropyOptions {
  Scalar ignore_index = -100;  ///< targets that count for nothing
  Scalar label_smoothing = 0;  ///< the part of each target that is spread over all classes
};

namespace detail {

/// One class number per row, in range, and a batch that is not empty.
template <class T>
constexpr void check_classes(const Tensor<T, 2>& input, const Tensor<std::int64_t, 1>& target,
                             const call_site& site, std::string_view empty) {
  const shape s = input.dims();
  const size_scope scope{input.table() ? input.table() : target.table(), site};
  extent batch = s[0];
  if (!scope.equal(batch, target.dims()[0]))
    scope.fail(text("logits ") << s << " and target " << target.dims()
                               << ": one class number per row of logits is needed");
  scope.nonzero(batch, empty);
}

/// True at the class of each row: (batch, classes). Class numbers are compared as T: exact up to
/// 2^24 classes in float.
template <class T>
constexpr Tensor<bool, 2> class_hit(const Tensor<T, 2>& input,
                                    const Tensor<std::int64_t, 1>& target, const call_site& site) {
  const auto index = check_index(target, input.size(1), site);
  return unsqueeze(cast<T>(index), 1) == arange<T>(input.size(1));
}

/// The value at each row's class: (batch, 1).
template <class T>
constexpr Tensor<T, 2> at_class(const Tensor<T, 2>& values, const Tensor<bool, 2>& hit) {
  return sum(where(hit, values, 0), {1}, keepdim);
}

/// Losses per row (batch, 1), those of ignored rows 0, reduced; the mean is over the others.
template <class T>
constexpr Tensor<T, 0> reduce_rows(const Tensor<T, 2>& loss, const Tensor<bool, 2>& counts,
                                   reduction::mean_t) {
  return sum(loss) / sum(cast<T>(counts));
}
template <class T>
constexpr Tensor<T, 0> reduce_rows(const Tensor<T, 2>& loss, const Tensor<bool, 2>&,
                                   reduction::sum_t) {
  return sum(loss);
}
template <class T>
constexpr Tensor<T, 1> reduce_rows(const Tensor<T, 2>& loss, const Tensor<bool, 2>&,
                                   reduction::none_t) {
  return squeeze<1>(loss);
}

template <class T>
constexpr Tensor<T, 0> reduce_rows(const Tensor<T, 2>& picked, reduction::mean_t) {
  return -mean(picked);
}
template <class T>
constexpr Tensor<T, 0> reduce_rows(const Tensor<T, 2>& picked, reduction::sum_t) {
  return -sum(picked);
}
template <class T>
constexpr Tensor<T, 1> reduce_rows(const Tensor<T, 2>& picked, reduction::none_t) {
  return -squeeze<1>(picked);
}

template <class T>
constexpr Tensor<T, 0> reduce_losses(const Tensor<T, 2>& loss, reduction::mean_t) {
  return mean(loss);
}
template <class T>
constexpr Tensor<T, 0> reduce_losses(const Tensor<T, 2>& loss, reduction::sum_t) {
  return sum(loss);
}
template <class T>
constexpr Tensor<T, 1> reduce_losses(const Tensor<T, 2>& loss, reduction::none_t) {
  return squeeze<1>(loss);
}

inline constexpr std::string_view empty_cross_entropy =
    "cross_entropy: the batch is empty, its mean loss is not defined";
inline constexpr std::string_view empty_nll_loss =
    "nll_loss: the batch is empty, its mean loss is not defined";

}  // namespace detail

/// Cross-entropy between logits (batch, classes) and class numbers (batch). A class outside
/// [0, classes) is an index_error, an empty batch a shape_error.
template <class T, detail::loss_reduction Reduction>
constexpr auto cross_entropy(const Tensor<T, 2>& logits, const Tensor<std::int64_t, 1>& target,
                             Reduction reduction, caller who = here()) {
  const detail::call_site site{"cross_entropy", who};
  detail::check_classes(logits, target, site, detail::empty_cross_entropy);
  const auto hit = detail::class_hit(logits, target, site);
  // The class is picked before the logarithm is taken off: so one pass over the row does both.
  const auto parts = detail::split_log_softmax(logits, -1, who);
  const auto loss = parts.log_total + detail::at_class(-parts.z, hit);
  return detail::reduce_losses(detail::narrowed<T>(loss), reduction);
}
template <class T>
constexpr auto cross_entropy(const Tensor<T, 2>& logits, const Tensor<std::int64_t, 1>& target,
                             caller who = here()) {
  return cross_entropy(logits, target, reduction::mean, who);
}

/// The same with smoothed labels (Szegedy et al. 2016) and targets to leave out, which may have any
/// number and over which no mean goes: NaN when all are left out.
template <class T, std::same_as<std::int64_t> I,
          detail::loss_reduction Reduction = reduction::mean_t>
constexpr auto cross_entropy(const Tensor<T, 2>& logits, const Tensor<I, 1>& target,
                             const CrossEntropyOptions& options, Reduction reduction = {},
                             caller who = here()) {
  const detail::call_site site{"cross_entropy", who};
  detail::check_classes(logits, target, site, detail::empty_cross_entropy);
  const auto counts = target != options.ignore_index;
  const auto hit = detail::class_hit(logits, where(counts, target, 0), site);
  const auto probabilities = log_softmax(logits);
  const auto smoothing = options.label_smoothing.template as<T>();
  // The sum over all classes may be -infinity where a class is impossible.
  const auto spread = where(smoothing > 0, sum(probabilities, {1}, keepdim), 0);
  const auto loss = detail::at_class(probabilities, hit) * (smoothing - 1) -
                    spread * (smoothing / logits.size(1));
  const auto rows = unsqueeze(counts, 1);
  return detail::reduce_rows(where(rows, loss, 0), rows, reduction);
}

/// Minus the logarithms of probabilities (batch, classes) at class numbers (batch): what remains of
/// cross_entropy after log_softmax, with the same refusals.
template <class T, detail::loss_reduction Reduction>
constexpr auto nll_loss(const Tensor<T, 2>& input, const Tensor<std::int64_t, 1>& target,
                        Reduction reduction, caller who = here()) {
  const detail::call_site site{"nll_loss", who};
  detail::check_classes(input, target, site, detail::empty_nll_loss);
  const auto hit = detail::class_hit(input, target, site);
  return detail::reduce_rows(detail::at_class(input, hit), reduction);
}
template <class T>
constexpr auto nll_loss(const Tensor<T, 2>& input, const Tensor<std::int64_t, 1>& target,
                        caller who = here()) {
  return nll_loss(input, target, reduction::mean, who);
}
/// The same with targets to leave out.
template <class T, std::same_as<std::int64_t> I,
          detail::loss_reduction Reduction = reduction::mean_t>
constexpr auto nll_loss(const Tensor<T, 2>& input, const Tensor<I, 1>& target,
                        const Scalar& ignore_index, Reduction reduction = {}, caller who = here()) {
  const detail::call_site site{"nll_loss", who};
  detail::check_classes(input, target, site, detail::empty_nll_loss);
  const auto counts = target != ignore_index;
  const auto hit = detail::class_hit(input, where(counts, target, 0), site);
  const auto rows = unsqueeze(counts, 1);
  return detail::reduce_rows(where(rows, -detail::at_class(input, hit), 0), rows, reduction);
}

}  // namespace xla
