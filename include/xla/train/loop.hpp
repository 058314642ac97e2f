// SPDX-License-Identifier: Apache-2.0
#pragma once

// fit() and evaluate(): training loops that call a step function for each batch. They are optional:
// the step function works in your own loop as well, and nothing else in the library includes this.

#include <concepts>
#include <cstdint>
#include <iterator>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "xla/compile.hpp"
#include "xla/run/state/mode.hpp"
#include "xla/run/trace/step.hpp"
#include "xla/train/options.hpp"
#include "xla/train/supervisor.hpp"

namespace xla::training {
namespace detail {

template <class X>
concept tuple_like = requires { std::tuple_size<std::remove_cvref_t<X>>::value; };

template <class F>
inline constexpr bool is_compiled = false;
template <class F>
inline constexpr bool is_compiled<Compiled<F>> = true;

/// Sets a model to training or evaluation within a scope. Does nothing if the model is a function.
template <class Model>
class training_scope {
  static constexpr bool has_flag = requires(Model& m) {
    m.train(true);
    { m.is_training() } -> std::convertible_to<bool>;
  };

 public:
  training_scope(Model& model, bool on) : model_(model) {
    if constexpr (has_flag) {
      before_ = model_.is_training();
      model_.train(on);
    }
  }
  training_scope(const training_scope&) = delete;
  training_scope& operator=(const training_scope&) = delete;
  ~training_scope() {
    if constexpr (has_flag) model_.train(before_);
  }

 private:
  Model& model_;
  bool before_ = true;
};

/// The batches of an epoch; 0 if the loader does not say.
template <class Loader>
std::int64_t batches_of(const Loader& loader) {
  if constexpr (requires {
                  { loader.size() } -> std::convertible_to<std::int64_t>;
                })
    return static_cast<std::int64_t>(loader.size());
  else return 0;
}

/// The number of samples in a batch: the first size of its first tensor.
template <class Batch>
std::int64_t samples_of(const Batch& batch) {
  if constexpr (tuple_like<Batch>) return samples_of(std::get<0>(batch));
  else if constexpr (requires {
                       Batch::rank;
                       batch.size(0);
                     }) {
    if constexpr (Batch::rank > 0) return batch.size(0);
    else return 1;
  } else return 1;
}

/// The loss in the result of a step: the result itself or the first of several; a number or a
/// tensor without axes.
template <class Result>
auto loss_of(Result result) {
  if constexpr (tuple_like<Result>) return std::get<0>(std::move(result));
  else return result;
}

/// The mean of the losses, which are then removed. Waits until the last one is computed.
template <class Loss>
double take_mean(std::vector<Loss>& losses) {
  double sum = 0;
  for (const auto& loss : losses)
    if constexpr (std::is_arithmetic_v<Loss>) sum += static_cast<double>(loss);
    else sum += static_cast<double>(loss.item());
  const auto count = static_cast<double>(losses.size());
  losses.clear();
  return sum / count;
}

template <class Step, class Model, class Batch, class... Context>
auto call_step(Step& step, Model& model, Batch& batch, Context&... context) {
  if constexpr (tuple_like<Batch>)
    return std::apply([&](auto&... parts) { return step(model, parts..., context...); }, batch);
  else return step(model, batch, context...);
}

/// One step, as one graph in traced mode.
template <class Step, class Model, class Batch, class... Context>
auto run_step(Step& step, Model& model, Batch& batch, Context&... context) {
  const auto body = [&] { return call_step(step, model, batch, context...); };
  static_assert(!std::is_void_v<decltype(body())>,
                "xla::training::fit: the step function has to return its loss");
  if constexpr (!is_compiled<std::remove_cvref_t<Step>>)
    if (!is_eager_mode()) return loss_of(xla::traced_step(body));
  return loss_of(body());
}

}  // namespace detail

/// Trains: calls `step(model, data, target, context...)` for every batch of the loader, epoch after
/// epoch. A batch that is a tuple is passed as separate arguments; the context is the step's
/// further arguments, such as a loss function and an optimizer. A step made by xla::compile runs
/// compiled, another one in `how.mode`. The step returns its loss, which is read every
/// `how.log_every` steps, so that traced steps continue while earlier ones still run. Exceptions of
/// the step, the loader or a callback are rethrown, with modes and training flags restored.
template <class Model, class Step, class Loader, class... Context>
report fit(Model& model, Step&& step, Loader& loader, const options& how, Context&... context) {
  std::optional<eager_mode_guard> mode;
  if (how.mode != run_mode::current) mode.emplace(how.mode == run_mode::eager);
  const detail::training_scope training(model, true);
  detail::supervisor watch(how, detail::batches_of(loader));
  using Batch = decltype(*std::begin(loader));
  using Loss = decltype(detail::run_step(
      step, model, std::declval<std::remove_reference_t<Batch>&>(), context...));
  std::vector<Loss> losses;
  const auto finish_losses = [&] {
    if (!losses.empty()) watch.take_loss(detail::take_mean(losses));
  };
  const auto validate = [&] {
    double value = 0;
    {
      const detail::training_scope evaluation(model, false);
      no_grad([&] { value = how.validate(); });
    }
    watch.take_validation(value);
  };

  while (watch.running()) {
    watch.begin_epoch();
    for (auto&& batch : loader) {
      watch.begin_step();
      losses.push_back(detail::run_step(step, model, batch, context...));
      watch.end_step(detail::samples_of(batch));
      if (watch.wants_loss()) finish_losses();
      if (watch.wants_validation()) validate();
      watch.finish_step();
      if (!watch.running()) break;
    }
    if (!watch.running() && !watch.whole_epoch()) break;
    watch.finish_epoch();
    if (watch.wants_epoch_validation()) finish_losses(), validate();
    watch.after_epoch();
  }
  finish_losses();
  if (watch.lacks_validation()) validate();
  return watch.finish();
}

}  // namespace xla::training
