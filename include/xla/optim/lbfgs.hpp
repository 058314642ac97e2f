// SPDX-License-Identifier: Apache-2.0
#pragma once

// LBFGS, which evaluates the loss several times a step and runs in eager and traced mode alone.
// line_search.hpp finds the length of a move.

#include <array>
#include <concepts>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "xla/op/abs.hpp"
#include "xla/op/concat.hpp"
#include "xla/op/derived/linalg.hpp"
#include "xla/op/reduce.hpp"
#include "xla/op/slice.hpp"
#include "xla/optim/line_search.hpp"
#include "xla/optim/optimizer.hpp"

namespace xla::optim {

/// How LBFGS finds a step length: lr each time, or a line search that evaluates the loss.
enum class LineSearch { none, strong_wolfe };
inline constexpr LineSearch strong_wolfe = LineSearch::strong_wolfe;

/// Options of LBFGS, by PyTorch's names.
struct LBFGSOptions {
  Scalar lr = 1;
  int max_iter = 20;               ///< moves in a step
  int max_eval = 0;                ///< evaluations in a step; 0: max_iter * 5 / 4
  double tolerance_grad = 1e-7;    ///< of the gradient's largest element
  double tolerance_change = 1e-9;  ///< of the loss, and of a move's largest element
  int history_size = 100;
  LineSearch line_search_fn = LineSearch::none;
  XLA_HEADER_MODULE(lr, max_iter, max_eval, tolerance_grad, tolerance_change, history_size,
                    line_search_fn)
};

namespace detail {

/// The history of moves, oldest first. A move is the change of all parameters, as one vector.
template <class T>
struct lbfgs_memory {
  using vector = Tensor<T, 1>;
  std::vector<vector> changes, moves;  ///< changes of the gradient, and of the parameters
  std::vector<double> rho;             ///< one over their products
  vector direction, gradient;          ///< of the last move, and before it
  double length = 0, scale = 1;  ///< the last step length; the first estimate of the curvature
  double iterations = 0, evaluations = 0;

  /// Records the effect of the last move.
  void learn(const vector& now, std::size_t most) {
    const vector change = now - gradient, move = direction * length;
    const double product = dot(change, move).item();
    if (!(product > 1e-10)) return;
    if (changes.size() == most) forget();
    changes.push_back(change);
    moves.push_back(move);
    rho.push_back(1 / product);
    scale = product / dot(change, change).item();
  }
  /// The next direction, by the two-loop recursion: Nocedal (1980).
  vector descent(const vector& now) const {
    std::vector<Tensor<T, 0>> parts(changes.size());
    vector q = -now;
    for (std::size_t i = changes.size(); i-- > 0;) {
      parts[i] = dot(moves[i], q) * rho[i];
      q = q - changes[i] * parts[i];
    }
    q = q * scale;
    for (std::size_t i = 0; i < changes.size(); ++i)
      q = q + moves[i] * (parts[i] - dot(changes[i], q) * rho[i]);
    return q;
  }

 private:
  void forget() {
    changes.erase(changes.begin());
    moves.erase(moves.begin());
    rho.erase(rho.begin());
  }
};

template <class T>
double largest(const Tensor<T, 1>& x) {
  return max(abs(x)).item();
}

}  // namespace detail

/// Quasi-Newton's method with a limited memory. Liu and Nocedal (1989). A step evaluates the loss
/// several times, by a function that computes it with its gradients:
///   optimizer.step([&] {
///     optimizer.zero_grad();
///     auto loss = loss_fn(model(x), y);
///     loss.backward();
///     return loss;
///   });
/// Returns the loss at the start of the step. It branches on values, so it works in eager and
/// traced mode only. A step that throws leaves the parameters as they were.
template <class Model>
class LBFGS {
  using traits = model_traits<Model>;
  using holder = typename traits::holder;

 public:
  using model_type = Model;
  using module_type = typename traits::module;
  using value_type = parameter_type<module_type>;
  static constexpr int parameters = count_parameters<module_type>();
  static constexpr bool reads_values = true;  ///< compiled steps refuse LBFGS

  explicit LBFGS(const holder& model, const LBFGSOptions& o = {}) : options(o), model_(model) {
    static_assert(parameters > 0, "xla::optim: the model has no parameters");
    static_assert(floating_type<value_type>,
                  "xla::optim: parameters are float or double; where a model has both, an "
                  "optimizer is for a part() with one of them");
    model_.follow();
    check_disjoint(model_.get());
    check_options("optim::LBFGS",
                  {{"lr", o.lr.value()},
                   {"max_iter", static_cast<double>(o.max_iter), 1},
                   {"max_eval", static_cast<double>(o.max_eval)},  // 0: max_iter * 5 / 4
                   {"history_size", static_cast<double>(o.history_size), 1},
                   {"tolerance_grad", o.tolerance_grad},
                   {"tolerance_change", o.tolerance_change}});
  }

  // A copy would train the same model.
  LBFGS(const LBFGS&) = delete;
  LBFGS(LBFGS&&) noexcept = default;
  LBFGS& operator=(LBFGS&&) noexcept = default;

  /// Drops all gradients.
  void zero_grad() {
    for_each_parameter(model_.get(), [](auto& p) { p.zero_grad(); });
  }

  /// Moves the parameters up to max_iter times, and returns the loss before.
  template <class Closure>
  Tensor<value_type, 0> step(Closure&& closure) {
    static_assert(std::convertible_to<std::invoke_result_t<Closure&>, Tensor<value_type, 0>>,
                  "xla::optim::LBFGS: step() takes a function that computes the loss and its "
                  "gradients and returns the loss");
    const auto before = values();
    try {
      return minimize(closure);
    } catch (...) {
      move(before, {}, 0);
      throw;
    }
  }

  decltype(auto) model() const { return model_.get(); }
  const holder& target() const { return model_; }

  /// Calls f(state, path) for the state that a checkpoint stores; values that f writes take effect.
  template <class F>
  void visit_state(F&& f, const tree_path& path = {}) {
    saved_.emplace(recall(), gradient().size(0), options.history_size);
    f(saved_->changes, tree_path(&path, "changes"));
    f(saved_->moves, tree_path(&path, "moves"));
    f(saved_->last, tree_path(&path, "last"));
    f(saved_->numbers, tree_path(&path, "numbers"));
  }

  LBFGSOptions options;

 private:
  using T = value_type;
  using vector = Tensor<T, 1>;
  using memory = detail::lbfgs_memory<T>;
  using values_type = std::array<Tensor<T, dynamic_rank>, std::size_t(parameters)>;

  /// The history as buffers of fixed sizes.
  struct saved_memory {
    Buffer<T, 2> changes, moves, last;
    Buffer<double, 1> numbers;

    saved_memory(const memory& m, Size n, int history);
    memory get() const;
  };

  template <class Closure>
  Tensor<T, 0> minimize(Closure& closure);
  template <class Evaluate>
  detail::probe<T> move_along(const memory& m, const detail::probe<T>& start, Evaluate& evaluate,
                              int left, bool last);

  memory recall() const { return saved_ ? saved_->get() : memory_; }
  vector gradient() {
    std::array<vector, std::size_t(parameters)> parts;
    std::size_t i = 0;
    for_each_parameter(model_.get(), [&](auto& p) {
      const auto g = p.grad();
      parts[i++] = flatten(g.defined() ? g.detach() : zeros_like(p.detach()));
    });
    return cat(parts, 0);
  }
  values_type values() {
    values_type all;
    std::size_t i = 0;
    for_each_parameter(model_.get(), [&](auto& p) { all[i++] = p.detach(); });
    return all;
  }
  /// Sets every parameter to its value in `from` plus t times its part of the direction, if given.
  void move(const values_type& from, const vector& direction, double t) {
    std::size_t i = 0;
    Size start = 0;
    for_each_parameter(model_.get(), [&](auto& p) {
      const Tensor<T, std::remove_cvref_t<decltype(p)>::rank> value = from[i++];
      if (!direction.defined()) return void(p.copy_(value));
      p.copy_(value + view_as(narrow(direction, 0, start, value.numel()), value) * t);
      start = start + value.numel();
    });
  }

  holder model_;
  memory memory_;
  std::optional<saved_memory> saved_;
};

template <class Model>
template <class Closure>
Tensor<typename LBFGS<Model>::value_type, 0> LBFGS<Model>::minimize(Closure& closure) {
  memory m = recall();
  const int most = options.max_eval > 0 ? options.max_eval : options.max_iter * 5 / 4;
  const double change = options.tolerance_change;
  const Tensor<T, 0> first = closure();
  detail::probe<T> now{.loss = first.item(), .gradient = gradient()};
  const double before = m.evaluations++;
  bool done = detail::largest(now.gradient) <= options.tolerance_grad;
  for (int n = 1; n <= options.max_iter && !done; ++n) {
    if (++m.iterations > 1) m.learn(now.gradient, std::size_t(options.history_size));
    m.direction = m.descent(now.gradient);
    m.gradient = now.gradient;
    m.length = options.lr.value();
    if (m.iterations == 1) m.length *= std::min(1., 1 / double(sum(abs(now.gradient)).item()));
    now.slope = dot(now.gradient, m.direction).item();
    if (now.slope > -change) break;

    const double loss = now.loss;
    const auto evaluate = [&] {
      const double value = closure().item();
      ++m.evaluations;
      return value;
    };
    const int left = most - static_cast<int>(m.evaluations - before);
    now = move_along(m, now, evaluate, left, n == options.max_iter);
    m.length = now.t;
    done = m.evaluations - before >= most ||
           detail::largest(now.gradient) <= options.tolerance_grad ||
           detail::largest(m.direction * m.length) <= change || std::abs(now.loss - loss) < change;
  }
  memory_ = std::move(m);
  saved_.reset();
  return first;
}

/// Moves the parameters along the direction, and returns the new point.
template <class Model>
template <class Evaluate>
detail::probe<typename LBFGS<Model>::value_type> LBFGS<Model>::move_along(
    const memory& m, const detail::probe<T>& start, Evaluate& evaluate, int left, bool last) {
  const auto from = values();
  const auto go = [&](double t) {
    move(from, m.direction, t);
    detail::probe<T> p{.t = t, .loss = evaluate(), .gradient = gradient()};
    p.slope = dot(p.gradient, m.direction).item();
    return p;
  };
  detail::probe<T> here = start;
  here.t = 0;
  if (options.line_search_fn == LineSearch::strong_wolfe) {
    detail::wolfe_search<T, decltype(go)> search(go, here, detail::largest(m.direction),
                                                 options.tolerance_change, left);
    here = search.from(m.length);
  } else {
    if (!last) return go(m.length);
    here.t = m.length;
  }
  move(from, m.direction, here.t);
  return here;
}

template <class Model>
LBFGS<Model>::saved_memory::saved_memory(const memory& m, Size n, int history) {
  const Size rows = history;
  const auto all = [&](const std::vector<vector>& of) {
    Tensor<T, 2> t = zeros<T>({rows, n});
    for (std::size_t i = 0; i < of.size(); ++i) t[std::int64_t(i)] = of[i];
    return t;
  };
  const auto keep = [](auto& buffer, const auto& value) {
    buffer = std::remove_reference_t<decltype(buffer)>::like(value);
    buffer.copy_(value);
  };
  keep(changes, all(m.changes));
  keep(moves, all(m.moves));
  Tensor<T, 2> two = zeros<T>({2, n});
  if (m.direction.defined()) two[0] = m.direction, two[1] = m.gradient;
  keep(last, two);
  std::vector<double> scalars{m.length, m.scale, m.iterations, m.evaluations,
                              static_cast<double>(m.rho.size())};
  scalars.insert(scalars.end(), m.rho.begin(), m.rho.end());
  scalars.resize(5 + static_cast<std::size_t>(history));
  keep(numbers, tensor(as_dependent<T>(scalars)));
}
template <class Model>
auto LBFGS<Model>::saved_memory::get() const -> memory {
  const auto scalars = numbers.to_vector();
  memory m;
  m.length = scalars[0];
  m.scale = scalars[1];
  m.iterations = scalars[2];
  m.evaluations = scalars[3];
  for (std::size_t i = 0; i < static_cast<std::size_t>(scalars[4]); ++i) {
    m.rho.push_back(scalars[5 + i]);
    m.changes.push_back(select(changes.detach(), 0, i));
    m.moves.push_back(select(moves.detach(), 0, i));
  }
  if (m.iterations > 0) m.direction = select(last.detach(), 0, 0);
  if (m.iterations > 0) m.gradient = select(last.detach(), 0, 1);
  return m;
}

template <class Model>
LBFGS(Model&&, LBFGSOptions) -> LBFGS<model_target<Model>>;
template <class Model>
LBFGS(Model&&) -> LBFGS<model_target<Model>>;

}  // namespace xla::optim
