// SPDX-License-Identifier: Apache-2.0
#pragma once

// cross_entropy() and nll_loss(): targets as classes or probabilities, weights, smoothing.

#include <concepts>

#include "xla/op/check_index.hpp"
#include "xla/op/create.hpp"
#include "xla/op/derived/reduction.hpp"
#include "xla/op/derived/softmax.hpp"
#include "xla/op/index_select.hpp"

namespace xla {

/// How cross_entropy treats targets, by PyTorch's names.
struct CrossEntropyOptions {
  Scalar ignore_index = -100;  ///< rows of this class are left out
  Scalar label_smoothing = 0;  ///< the part of each target that is spread over all classes
};

namespace detail {

/// The axis of the classes: logits are (classes), (batch, classes) or (batch, classes, ...).
template <int R>
inline constexpr int class_axis = R == 1 ? 0 : 1;

/// Checks that there is one class number for each row of logits.
template <class T, int R, int C>
constexpr void check_classes(const Tensor<T, R>& input, const Tensor<std::int64_t, C>& target,
                             const call_site& site) {
  const shape s = input.dims(), t = target.dims();
  const size_scope scope{input.table() ? input.table() : target.table(), site};
  bool fits = true;
  for (int i = 0; i < C; ++i) {
    extent e = s[i < class_axis<R> ? i : i + 1];
    fits = scope.equal(e, t[i]) && fits;
  }
  if (!fits)
    scope.fail(text("logits ") << s << " and target " << t
                               << ": one class number per row of logits is needed");
}

/// One number per class, reshaped to broadcast along the class axis of logits.
template <int R, class T>
constexpr auto along_classes(const Tensor<T, 1>& of_class) {
  if constexpr (R <= 2) {
    return of_class;
  } else {
    shape s;
    s.push(of_class.dims()[0]);
    while (s.rank < R - 1) s.push(1);
    return with_shape<op::reshape, R - 1>(of_class, s);
  }
}

struct cross_entropy_name {
  static constexpr auto name = "cross_entropy";
};
struct nll_loss_name {
  static constexpr auto name = "nll_loss";
};

/// Which rows count, and the class of each; ignored rows have class 0. The class axis has size 1.
template <int R>
struct row_classes {
  Tensor<bool, R - 1> counts;
  Tensor<bool, R> counted;  ///< the same
  Tensor<std::int64_t, R> labels;
};
template <class Function, class T, int R>
constexpr row_classes<R> classes_of(const Tensor<T, R>& input,
                                    const Tensor<std::int64_t, R - 1>& target,
                                    const Scalar& ignore_index, caller loc) {
  constexpr int axis = class_axis<R>;
  const auto counts = target != ignore_index;
  const auto classes = check_index<Function>(where(counts, target, 0), input.size(axis), loc);
  return {counts, unsqueeze(counts, axis), unsqueeze(classes, axis)};
}

/// A mask of the logits' sizes, true at the class of each row. Class numbers are compared as T,
/// which is exact up to 2^24 classes for float.
template <class T, int R>
constexpr Tensor<bool, R> class_hit(const Tensor<T, R>& input,
                                    const Tensor<std::int64_t, R>& labels) {
  return cast<T>(labels) == along_classes<R>(arange<T>(input.size(class_axis<R>)));
}

/// The value at each row's class, the axis of classes kept with size 1.
template <class T, int R>
constexpr Tensor<T, R> at_class(const Tensor<T, R>& values, const Tensor<std::int64_t, R>& labels) {
  return gather_along(values, class_axis<R>, labels);
}
/// The same by a mask, for values whose gradient comes from this alone: most of it is 0, and need
/// not be stored.
template <class T, int R>
constexpr Tensor<T, R> at_class(const Tensor<T, R>& values, const Tensor<bool, R>& hit) {
  return sum(where(hit, values, 0), {class_axis<R>}, keepdim);
}
/// Looks up a value per class, such as its weight, for each row.
template <class T, int R>
constexpr Tensor<T, R> of_classes(const Tensor<T, 1>& values,
                                  const Tensor<std::int64_t, R>& labels) {
  shape line;
  line.push(-1);
  return with_shape<op::reshape, R>(
      select_along(values, 0, with_shape<op::reshape, 1>(labels, line)), labels.dims());
}

template <class T, int R>
constexpr Tensor<T, 0> reduce_losses(const Tensor<T, R>& loss, reduction::mean_t) {
  return mean(loss);
}
template <class T, int R>
constexpr Tensor<T, 0> reduce_losses(const Tensor<T, R>& loss, reduction::sum_t) {
  return sum(loss);
}
template <class T, int R>
constexpr Tensor<T, R - 1> reduce_losses(const Tensor<T, R>& loss, reduction::none_t) {
  return squeeze<class_axis<R>>(loss);
}

/// Reduces the losses of rows, some of which are ignored.
template <class T, int R, class Reduction>
struct row_reduction {
  using C = computed<T>;
  Tensor<bool, R> counted;

  constexpr row_reduction(const row_classes<R>& rows, const Tensor<C, R>&)
      : counted(rows.counted) {}
  constexpr auto operator()(const Tensor<T, R>& loss) const {
    return reduce_losses(where(counted, loss, 0), Reduction{});
  }
  /// For losses a - b.
  constexpr auto of_difference(const Tensor<C, R>& a, const Tensor<C, R>& b) const {
    return (*this)(narrowed<T>(-b + a));
  }
};
/// The mean multiplies each loss by the row's share, 0 for ignored rows. The share is computed
/// before the losses, because gradients are multiplied by it: one pass over the logits can then
/// compute losses and gradient.
template <class T, int R>
struct row_reduction<T, R, reduction::mean_t> {
  using C = computed<T>;
  Tensor<bool, R> counted;
  Tensor<C, R> factor, minus;
  Tensor<C, 0> nothing;  ///< 0, or NaN if no row counts

  constexpr row_reduction(const row_classes<R>& rows, const Tensor<C, R>& share)
      : counted(rows.counted) {
    const auto total = sum(share);
    const auto each = 1 / total;
    nothing = 0 / total;
    const auto of_row = where(rows.counts, each, 0), off_row = -of_row;
    factor = unsqueeze(of_row, class_axis<R>);
    minus = unsqueeze(off_row, class_axis<R>);
  }
  constexpr Tensor<T, 0> operator()(const Tensor<T, R>& loss) const {
    return total(widened(loss) * factor);
  }
  constexpr Tensor<T, 0> of_difference(const Tensor<C, R>& a, const Tensor<C, R>& b) const {
    return total(b * minus + a * factor);
  }

 private:
  constexpr Tensor<T, 0> total(const Tensor<C, R>& x) const {
    return narrowed<T>(sum(where(counted, x, 0)) + nothing);
  }
};
/// The reduction if every row that counts has the same share.
template <class T, int R, class Reduction>
constexpr auto equal_rows(const row_classes<R>& rows, Reduction) {
  return row_reduction<T, R, Reduction>(rows, cast<computed<T>>(rows.counted));
}

/// The content of the target: a class number for each row, or a probability for each class.
enum class target_kind { classes, probabilities, wrong };

template <class T, int R, class U, int C>
constexpr target_kind kind_of_target() {
  constexpr bool classes = std::is_same_v<U, std::int64_t>;
  static_assert(R >= 1, "xla::cross_entropy: logits need an axis of classes: (batch, classes)");
  static_assert(!classes || C == R - 1,
                "xla::cross_entropy: class numbers have the logits' axes without that of the "
                "classes: (batch) for logits (batch, classes)");
  static_assert(classes || std::is_same_v<U, T>,
                "xla::cross_entropy: the target is class numbers of std::int64_t, or probabilities "
                "of the logits' element type; convert it: xla::cast<std::int64_t>(target)");
  static_assert(
      classes || !std::is_same_v<U, T> || C == R,
      "xla::cross_entropy: a floating-point target has the probability of each class, in the "
      "logits' sizes; class numbers are std::int64_t: xla::cast<std::int64_t>(target)");
  if (classes && C == R - 1) return target_kind::classes;
  return std::is_same_v<U, T> && C == R ? target_kind::probabilities : target_kind::wrong;
}
template <class T, int R, class U, int C>
constexpr bool is_classes() {
  constexpr bool classes = std::is_same_v<U, std::int64_t> && C == R - 1;
  static_assert(classes,
                "xla::nll_loss: the target is class numbers of std::int64_t with the input's axes "
                "without that of the classes: (batch) for (batch, classes)");
  return classes;
}

/// One number for each class.
template <class T, int R>
constexpr void check_weight(const Tensor<T, R>& input, const Tensor<T, 1>& weight,
                            const call_site& site) {
  const size_scope scope{input.table() ? input.table() : weight.table(), site};
  if (extent e = weight.dims()[0]; !scope.equal(e, input.dims()[class_axis<R>]))
    scope.fail(text("weights ") << weight.dims() << " for logits " << input.dims()
                                << ": one weight per class is needed");
}

/// Log-softmax of logits, in two parts: for all classes, and for each row's own class.
template <class T, int R>
struct class_logs {
  Tensor<T, R> all, own;

  constexpr class_logs(const Tensor<T, R>& logits, const Tensor<std::int64_t, R>& labels,
                       caller loc) {
    const auto parts = split_log_softmax(logits, class_axis<R>, loc);
    all = narrowed<T>(parts.together());
    own = narrowed<T>(at_class(parts.z, labels) - parts.log_total);
  }
};
/// Losses of smoothed targets, from such logarithms.
template <class T, int R>
constexpr Tensor<T, R> smooth_losses(const Tensor<T, R>& own, const Tensor<T, R>& all,
                                     const Tensor<T, 0>& smoothing) {
  // The sum over all classes may be -infinity if a class is impossible.
  const auto spread = where(smoothing > 0, sum(all, {class_axis<R>}, keepdim), 0);
  return own * (smoothing - 1) - spread * (smoothing / all.size(class_axis<R>));
}

/// Cross-entropy with class numbers. Weight is the classes' weights, or nothing for 1.
template <class T, int R, class Reduction, class... Weight>
constexpr auto cross_entropy_of_classes(const Tensor<T, R>& logits,
                                        const Tensor<std::int64_t, R - 1>& target,
                                        const CrossEntropyOptions& options, Reduction reduction,
                                        caller loc, const Weight&... weight) {
  const call_site site{"cross_entropy", loc};
  check_classes(logits, target, site);
  const auto rows = classes_of<cross_entropy_name>(logits, target, options.ignore_index, loc);
  const auto smoothing = options.label_smoothing.template as<T>();
  if constexpr (sizeof...(weight) == 0) {
    const auto reduced = equal_rows<T>(rows, reduction);
    const class_logs logs(logits, rows.labels, loc);
    return reduced(smooth_losses(logs.own, logs.all, smoothing));
  } else {
    (check_weight(logits, weight, site), ...);
    const auto mine = of_classes((weight, ...), rows.labels);
    const auto share = widened(where(rows.counted, mine, 0));
    const row_reduction<T, R, Reduction> reduced(rows, share);
    const class_logs logs(logits, rows.labels, loc);
    const auto each = (along_classes<R>(weight), ...);
    return reduced(smooth_losses(logs.own * mine, logs.all * each, smoothing));
  }
}

/// Cross-entropy with probabilities: the mean is over all rows, whatever their weights.
template <class T, int R, class Reduction, class... Weight>
constexpr auto cross_entropy_of_probabilities(const Tensor<T, R>& logits,
                                              const Tensor<T, R>& target,
                                              const CrossEntropyOptions& options,
                                              Reduction reduction, const call_site& site,
                                              const Weight&... weight) {
  check_same_sizes(logits, target, site);
  const auto smoothing = options.label_smoothing.template as<T>();
  const auto smooth = target * (1 - smoothing) + smoothing / logits.size(class_axis<R>);
  const auto each = log_softmax(logits, class_axis<R>) * smooth;
  if constexpr (sizeof...(weight) == 0) {
    return reduce_losses(-sum(each, {class_axis<R>}, keepdim), reduction);
  } else {
    (check_weight(logits, weight, site), ...);
    const auto weighted = each * (along_classes<R>(weight), ...);
    return reduce_losses(-sum(weighted, {class_axis<R>}, keepdim), reduction);
  }
}

template <class T, int R, class U, int C, class Reduction, class... Weight>
constexpr auto cross_entropy_by(const Tensor<T, R>& logits, const Tensor<U, C>& target,
                                const CrossEntropyOptions& options, Reduction reduction, caller loc,
                                const Weight&... weight) {
  const call_site site{"cross_entropy", loc};
  if (options.label_smoothing.known() &&
      !(options.label_smoothing.value() >= 0 && options.label_smoothing.value() <= 1))
    refuse_now(logits, "cross_entropy: label_smoothing is between 0 and 1");
  if constexpr (kind_of_target<T, R, U, C>() == target_kind::classes)
    return cross_entropy_of_classes(logits, target, options, reduction, loc, weight...);
  else if constexpr (kind_of_target<T, R, U, C>() == target_kind::probabilities)
    return cross_entropy_of_probabilities(logits, target, options, reduction, site, weight...);
  else return Tensor<T, 0>();
}

}  // namespace detail

/// Cross-entropy between logits (batch, classes) and class numbers (batch), or probabilities
/// (batch, classes) of the logits' element type. Further axes come last: (batch, classes, ...) with
/// (batch, ...); logits of one axis have no batch. A row of class -100 is ignored: its loss is 0,
/// and the mean is over the others, NaN if there are none, as in an empty batch. Another class
/// outside [0, classes) is an index_error.
template <class T, int R, class U, int C, detail::loss_reduction Reduction>
constexpr auto cross_entropy(const Tensor<T, R>& logits, const Tensor<U, C>& target,
                             Reduction reduction, caller loc = here()) {
  if constexpr (detail::kind_of_target<T, R, U, C>() == detail::target_kind::classes) {
    detail::check_classes(logits, target, {"cross_entropy", loc});
    const auto rows = detail::classes_of<detail::cross_entropy_name>(
        logits, target, CrossEntropyOptions{}.ignore_index, loc);
    const auto reduced = detail::equal_rows<T>(rows, reduction);
    const auto parts = detail::split_log_softmax(logits, detail::class_axis<R>, loc);
    // In this order the gradient first computes the terms that all elements have in common, then
    // the class's own.
    return reduced.of_difference(parts.log_total, detail::at_class(parts.z, rows.labels));
  } else {
    return detail::cross_entropy_by(logits, target, {}, reduction, loc);
  }
}
template <class T, int R, class U, int C>
constexpr auto cross_entropy(const Tensor<T, R>& logits, const Tensor<U, C>& target,
                             caller loc = here()) {
  return cross_entropy(logits, target, reduction::mean, loc);
}

/// The same with smoothed labels (Szegedy et al. 2016), and with another class number to ignore.
/// Probabilities are never ignored.
template <class T, int R, class U, int C, detail::loss_reduction Reduction = reduction::mean_t>
constexpr auto cross_entropy(const Tensor<T, R>& logits, const Tensor<U, C>& target,
                             const CrossEntropyOptions& options, Reduction reduction = {},
                             caller loc = here()) {
  return detail::cross_entropy_by(logits, target, options, reduction, loc);
}

/// The same with a weight for each class, which multiplies losses. The mean over class numbers
/// divides by the sum of their weights, that over probabilities by the number of rows. A weight of
/// another size than (classes) is a shape_error.
template <class T, int R, class U, int C, std::same_as<T> W, detail::loss_reduction Reduction>
constexpr auto cross_entropy(const Tensor<T, R>& logits, const Tensor<U, C>& target,
                             const Tensor<W, 1>& weight, Reduction reduction, caller loc = here()) {
  return detail::cross_entropy_by(logits, target, {}, reduction, loc, weight);
}
template <class T, int R, class U, int C, std::same_as<T> W,
          detail::loss_reduction Reduction = reduction::mean_t>
constexpr auto cross_entropy(const Tensor<T, R>& logits, const Tensor<U, C>& target,
                             const Tensor<W, 1>& weight, const CrossEntropyOptions& options = {},
                             Reduction reduction = {}, caller loc = here()) {
  return detail::cross_entropy_by(logits, target, options, reduction, loc, weight);
}

/// Minus the logarithms of probabilities (batch, classes) at class numbers (batch): cross_entropy
/// after log_softmax, with the same further axes, ignored rows and errors.
template <class T, int R, class U, int C, detail::loss_reduction Reduction = reduction::mean_t>
constexpr auto nll_loss(const Tensor<T, R>& input, const Tensor<U, C>& target,
                        const Scalar& ignore_index, Reduction reduction = {}, caller loc = here()) {
  if constexpr (detail::is_classes<T, R, U, C>()) {
    detail::check_classes(input, target, {"nll_loss", loc});
    const auto rows = detail::classes_of<detail::nll_loss_name>(input, target, ignore_index, loc);
    const auto reduced = detail::equal_rows<T>(rows, reduction);
    const auto hit = detail::class_hit(input, rows.labels);
    return reduced(-detail::at_class(input, hit));
  } else {
    return Tensor<T, 0>();
  }
}
template <class T, int R, class U, int C, detail::loss_reduction Reduction = reduction::mean_t>
constexpr auto nll_loss(const Tensor<T, R>& input, const Tensor<U, C>& target,
                        Reduction reduction = {}, caller loc = here()) {
  return nll_loss(input, target, CrossEntropyOptions{}.ignore_index, reduction, loc);
}

}  // namespace xla
