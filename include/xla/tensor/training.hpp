// SPDX-License-Identifier: Apache-2.0
#pragma once

// The flag that says whether a module trains or evaluates. Layers such as Dropout have one as a
// member; model.train() and model.eval() set all flags of a model.

#include <limits>

namespace xla {

/// Whether a module trains or evaluates: a member, listed in XLA_MODULE, of modules that behave
/// differently (Dropout, BatchNorm1d). True at the start. model.train() and model.eval() set it in
/// a whole model, and it keeps that value, even if a step calls them in its body, in every mode:
/// code that evaluates in the middle of training calls train() again at its end. A step is compiled
/// for training, a module for evaluation; if the body read the flag before setting it, a call with
/// another flag is refused.
class TrainingFlag {
 public:
  constexpr operator bool() const {
    if (fact_) *fact_ = fact(on_);
    return on_;
  }
  /// Writes only on a change, so that threads may share a model that each call sets alike.
  constexpr void set(bool on) {
    if (on_ == on && !fact_) return;
    on_ = on;
    fact_ = nullptr;
  }
  /// In a capture: records that the body has set it.
  constexpr bool chosen() const { return !fact_; }

  // Binding: the value that a capture records for the flag, to compare calls with it. No plain
  // number in the type of a model is infinite.
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
