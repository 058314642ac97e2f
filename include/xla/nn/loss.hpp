// SPDX-License-Identifier: Apache-2.0
#pragma once

// Losses as modules. The functions are in op/derived/; margin losses are in margin_loss.hpp.

#include "xla/base/option.hpp"
#include "xla/module.hpp"
#include "xla/op/derived/loss.hpp"

/// Losses as modules. A call gives the mean unless it names another reduction: loss_fn(input,
/// target, xla::reduction::none).
namespace xla::nn {

/// Cross-entropy between logits (batch, classes) and class numbers (batch), or probabilities of the
/// logits' sizes; further axes come last. Rows of class -100 are ignored. Sizes that do not match
/// are a shape_error, another class outside of [0, classes) an index_error.
struct CrossEntropyLoss {
  constexpr CrossEntropyLoss() = default;
  template <class T = void>
  constexpr explicit CrossEntropyLoss(const CrossEntropyOptions&) {
    static_assert(!std::is_void_v<T>,
                  "xla::nn::CrossEntropyLoss: has no options; nn::SmoothCrossEntropyLoss takes "
                  "ignore_index and label_smoothing, nn::WeightedCrossEntropyLoss weights too");
  }
  template <class T, int R, class U, int C, class Reduction = reduction::mean_t>
  constexpr auto operator()(const Tensor<T, R>& logits, const Tensor<U, C>& target,
                            Reduction reduction = {}, caller loc = here()) const {
    return cross_entropy(logits, target, reduction, loc);
  }
};

/// CrossEntropyLoss with label smoothing and another class to ignore:
/// nn::SmoothCrossEntropyLoss{{.ignore_index = 0, .label_smoothing = 0.1}}. It has the same errors.
struct SmoothCrossEntropyLoss {
  Scalar ignore_index = -100, label_smoothing = 0;

  constexpr SmoothCrossEntropyLoss() = default;
  constexpr explicit SmoothCrossEntropyLoss(const CrossEntropyOptions& options)
      : ignore_index(options.ignore_index), label_smoothing(options.label_smoothing) {
    check_options("nn::SmoothCrossEntropyLoss",
                  {{"label_smoothing", label_smoothing.value(), 0, 1}});
  }
  template <class T, int R, class U, int C, class Reduction = reduction::mean_t>
  constexpr auto operator()(const Tensor<T, R>& logits, const Tensor<U, C>& target,
                            Reduction reduction = {}, caller loc = here()) const {
    const CrossEntropyOptions options{ignore_index, label_smoothing};
    return cross_entropy(logits, target, options, reduction, loc);
  }
  XLA_HEADER_MODULE(ignore_index, label_smoothing)
};

/// SmoothCrossEntropyLoss with a weight for each class: nn::WeightedCrossEntropyLoss{weight,
/// {.ignore_index = 0}}. It has the same errors; a weight of another size than (classes) is a
/// shape_error.
template <class T>
struct BasicWeightedCrossEntropyLoss {
  Buffer<T, 1> weight;
  Scalar ignore_index = -100, label_smoothing = 0;

  constexpr BasicWeightedCrossEntropyLoss() = default;
  explicit BasicWeightedCrossEntropyLoss(const Tensor<T, 1>& of_classes,
                                         const CrossEntropyOptions& options = {})
      : weight(Buffer<T, 1>::like(of_classes)),
        ignore_index(options.ignore_index),
        label_smoothing(options.label_smoothing) {
    weight.copy_(of_classes);
  }
  template <int R, class U, int C, class Reduction = reduction::mean_t>
  constexpr auto operator()(const Tensor<T, R>& logits, const Tensor<U, C>& target,
                            Reduction reduction = {}, caller loc = here()) const {
    const CrossEntropyOptions options{ignore_index, label_smoothing};
    return cross_entropy(logits, target, weight, options, reduction, loc);
  }
  XLA_MODULE(weight, ignore_index, label_smoothing)
};
using WeightedCrossEntropyLoss = BasicWeightedCrossEntropyLoss<float>;

/// Minus the logarithms of probabilities (batch, classes) at class numbers (batch); further axes
/// come last. Rows of class ignore_index are ignored: nn::NLLLoss{.ignore_index = 0}. Sizes that do
/// not match are a shape_error, another class outside of [0, classes) an index_error.
struct NLLLoss {
  Scalar ignore_index = -100;

  template <class T, int R, class U, int C, class Reduction = reduction::mean_t>
  constexpr auto operator()(const Tensor<T, R>& input, const Tensor<U, C>& target,
                            Reduction reduction = {}, caller loc = here()) const {
    return nll_loss(input, target, ignore_index, reduction, loc);
  }
  XLA_HEADER_MODULE(ignore_index)
};

/// Squared differences. Input and target of other sizes are a shape_error.
struct MSELoss {
  template <class T, int A, class U, int B, class Reduction = reduction::mean_t>
  constexpr auto operator()(const Tensor<T, A>& input, const Tensor<U, B>& target,
                            Reduction reduction = {}, caller loc = here()) const {
    return mse_loss(input, target, reduction, loc);
  }
};

/// Magnitudes of the differences. Input and target of other sizes are a shape_error.
struct L1Loss {
  template <class T, int A, class U, int B, class Reduction = reduction::mean_t>
  constexpr auto operator()(const Tensor<T, A>& input, const Tensor<U, B>& target,
                            Reduction reduction = {}, caller loc = here()) const {
    return l1_loss(input, target, reduction, loc);
  }
};

/// Half the squared difference up to delta, linear beyond. Input and target of other sizes are a
/// shape_error.
struct HuberLoss {
  Scalar delta = 1;

  constexpr HuberLoss() = default;
  constexpr explicit HuberLoss(Scalar bound) : delta(bound) {}
  template <class T, int A, class U, int B, class Reduction = reduction::mean_t>
  constexpr auto operator()(const Tensor<T, A>& input, const Tensor<U, B>& target,
                            Reduction reduction = {}, caller loc = here()) const {
    return huber_loss(input, target, delta, reduction, loc);
  }
  XLA_HEADER_MODULE(delta)
};

/// HuberLoss over beta: of slope 1 beyond it.
struct SmoothL1Loss {
  Scalar beta = 1;

  constexpr SmoothL1Loss() = default;
  constexpr explicit SmoothL1Loss(Scalar bound) : beta(bound) {}
  template <class T, int A, class U, int B, class Reduction = reduction::mean_t>
  constexpr auto operator()(const Tensor<T, A>& input, const Tensor<U, B>& target,
                            Reduction reduction = {}, caller loc = here()) const {
    return smooth_l1_loss(input, target, beta, reduction, loc);
  }
  XLA_HEADER_MODULE(beta)
};

/// Cross-entropy between two probabilities in [0, 1]. Input and target of other sizes are a
/// shape_error.
struct BCELoss {
  template <class T, int A, class U, int B, class Reduction = reduction::mean_t>
  constexpr auto operator()(const Tensor<T, A>& input, const Tensor<U, B>& target,
                            Reduction reduction = {}, caller loc = here()) const {
    return binary_cross_entropy(input, target, reduction, loc);
  }
};

/// Cross-entropy between logits and probabilities in [0, 1]. Input and target of other sizes are a
/// shape_error.
struct BCEWithLogitsLoss {
  template <class T, int A, class U, int B, class Reduction = reduction::mean_t>
  constexpr auto operator()(const Tensor<T, A>& input, const Tensor<U, B>& target,
                            Reduction reduction = {}, caller loc = here()) const {
    return binary_cross_entropy_with_logits(input, target, reduction, loc);
  }
};

/// Divergence of a target's probabilities from an input's logarithms of probabilities. Input and
/// target of other sizes are a shape_error.
struct KLDivLoss {
  bool log_target = false;

  template <class T, int A, class U, int B, class Reduction = reduction::mean_t>
  constexpr auto operator()(const Tensor<T, A>& input, const Tensor<U, B>& target,
                            Reduction reduction = {}, caller loc = here()) const {
    return kl_div(input, target, reduction, log_target, loc);
  }
  XLA_HEADER_MODULE(log_target)
};

}  // namespace xla::nn
