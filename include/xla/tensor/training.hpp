// SPDX-License-Identifier: Apache-2.0
#pragma once

// The flag by which a module knows whether it trains or evaluates. Layers such as Dropout have one
// as a member; model.train() and model.eval() set all flags of a model.

#include <limits>

namespace xla {

/// Whether a module trains or evaluates: a member, by XLA_MODULE, of modules that differ (Dropout,
/// BatchNorm1d). True at the start; model.train() and model.eval() set it in a whole model, and it
/// stays as they set it, also when a step calls them in its body, in every mode: what evaluates in
/// the middle of training says train() again at its end. A step is compiled for training, a module
/// for evaluation; where that read the flag before it set it, a call whose flag differs is refused.
class TrainingFlag {
 public:
  constexpr operator bool() const {
    if (fact_) *fact_ = fact(on_);
    return on_;
  }
  /// Writes only what changes, so that threads may share a model that each call sets alike.
  constexpr void set(bool on) {
    if (on_ == on && !fact_) return;
    on_ = on;
    fact_ = nullptr;
  }
  /// In a capture: the body has set it.
  constexpr bool chosen() const { return !fact_; }

  // Binding: what a capture notes of the flag, so that a call can be compared with it. No plain
  // number is infinite in the type of a model.
  static constexpr double unread = std::numeric_limits<double>::quiet_NaN();
  static constexpr double fact(bool on) {
    return on ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
  }
  constexpr void name_fact(double* to, bool on) {
    on_ = on;
    fact_ = to;
    if (to) *to = unread;
  }

 private:
  bool on_ = true;
  double* fact_ = nullptr;
};

}  // namespace xla
