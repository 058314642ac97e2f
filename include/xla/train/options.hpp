// SPDX-License-Identifier: Apache-2.0
#pragma once

// The options of fit(), the arguments of its callbacks, and its result. loop.hpp includes it.

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "xla/io/progress.hpp"

namespace xla::training {

/// The mode in which a step that is not compiled runs: the program's, or one for the training. In
/// traced mode each step is one graph, run by sync().
enum class run_mode { current, eager, traced };

/// The state of a training, as callbacks see it. Values not yet known are NaN.
struct moment {
  static constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
  std::int64_t step = 0;   ///< Steps done.
  std::int64_t epoch = 0;  ///< Epochs done.
  double part = 0;         ///< The fraction of the training that is done, from 0 to 1.
  double seconds = 0;
  double loss = unknown;        ///< Mean over the steps since the last reading.
  double rate = unknown;        ///< Items per second since the last reading.
  double validation = unknown;  ///< The last result of `validate`.
  double best = unknown;        ///< The best result of `validate`.
};

/// How long to train, and what happens on the way. Epochs, steps and seconds count if they are
/// given, and the first limit reached ends the training; without any it is one epoch.
struct options {
  std::int64_t epochs = 0;
  std::int64_t steps = 0;
  double seconds = 0;
  /// For a resumed training: the steps done before, which `steps` includes. The loader must
  /// continue where they ended.
  std::int64_t first_step = 0;
  run_mode mode = run_mode::current;

  /// Steps between readings of the loss; the loop does not wait in between.
  std::int64_t log_every = 20;
  bool show = true;  ///< A live line; `line` says how and where.
  io::progress_options line = {.unit = "samples"};
  std::int64_t items_per_sample = 1;  ///< The unit of the rates, such as the tokens of a sequence.
  bool interruptible = true;          ///< Ctrl-C ends the training in order.

  /// Measures the model, in evaluation and without gradients: every n steps, or at the end of
  /// each epoch, and at the very end.
  std::function<double()> validate = {};
  std::int64_t validate_every = 0;
  std::string validation_name = "validation";
  bool higher_is_better = false;
  /// Stops after this many validations in a row without an improvement by `min_delta`; 0: never.
  std::int64_t patience = 0;
  double min_delta = 0;

  /// Called before each step, for instance to set the learning rate.
  std::function<void(const moment&)> schedule = {};
  /// Called after each step; returning false ends the training.
  std::function<bool(const moment&)> after_step = {};
  /// Called after each epoch and its validation, for instance to step a schedule that counts
  /// epochs.
  std::function<void(const moment&)> after_epoch = {};
  /// `log` is called after each reading of the loss; `log_line` returns a line to print.
  std::function<void(const moment&)> log = {};
  std::function<std::string(const moment&)> log_line = {};
  /// Called every n steps; with 0 after each validation that is the best so far or, without
  /// `validate`, at the end of each epoch.
  std::function<void(const moment&)> checkpoint = {};
  std::int64_t checkpoint_every = 0;
};

/// Values by the number of steps done.
struct curve {
  std::vector<double> step, value;
};

/// Why a training ended: as planned, by `patience`, by `after_step`, by Ctrl-C, or because the loss
/// was no longer a finite number.
enum class ending { completed, early_stop, stopped, interrupted, diverged };

/// The result of a training.
struct report : moment {
  ending end = ending::completed;
  std::int64_t best_step = 0;  ///< The step with the best validation.
  curve losses, validations;
  bool stopped_early() const { return end == ending::early_stop; }
};

}  // namespace xla::training
