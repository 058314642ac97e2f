// SPDX-License-Identifier: Apache-2.0
#pragma once

// The search for a step length that satisfies the Wolfe conditions. Only LBFGS uses it.

#include <algorithm>
#include <cmath>

#include "xla/tensor.hpp"

namespace xla::optim::detail {

/// A point t along a direction: the loss there, its gradient, and its slope in the direction.
template <class T>
struct probe {
  double t = 0, loss = 0, slope = 0;
  Tensor<T, 1> gradient;
};

/// The minimum between low and high of the cubic through two points with their slopes; the middle
/// if it has none. Nocedal and Wright (2006), equation 3.59.
template <class T>
double cubic_minimum(const probe<T>& a, const probe<T>& b, double low, double high) {
  const probe<T>&p = a.t <= b.t ? a : b, &q = a.t <= b.t ? b : a;
  const double d1 = p.slope + q.slope - 3 * (p.loss - q.loss) / (p.t - q.t);
  const double square = d1 * d1 - p.slope * q.slope;
  if (!(square >= 0)) return (low + high) / 2;
  const double d2 = std::sqrt(square);
  const double least = q.t - (q.t - p.t) * ((q.slope + d2 - d1) / (q.slope - p.slope + 2 * d2));
  return std::min(std::max(least, low), high);
}

/// A search for a point that satisfies the strong Wolfe conditions, in PyTorch's steps: Nocedal and
/// Wright (2006), algorithms 3.5 and 3.6. evaluate(t) gives a probe.
template <class T, class Evaluate>
class wolfe_search {
 public:
  wolfe_search(Evaluate& evaluate, const probe<T>& start, double longest, double tolerance,
               int most)
      : evaluate_(evaluate), start_(start), longest_(longest), tolerance_(tolerance), max_(most) {}

  probe<T> from(double t) {
    if (bracket(t)) return points_[0];
    zoom();
    return points_[low_];
  }

 private:
  bool too_high(const probe<T>& p) const {
    return p.loss > start_.loss + 1e-4 * p.t * start_.slope;
  }
  bool flat(const probe<T>& p) const { return std::abs(p.slope) <= -0.9 * start_.slope; }
  void order() { low_ = points_[0].loss <= points_[1].loss ? 0 : 1; }

  /// Advances until such a point lies between two others; true if it found one itself.
  bool bracket(double t) {
    probe<T> last = start_, now = evaluate_(t);
    for (; count_ < max_; ++count_) {
      if (too_high(now) || (count_ > 1 && now.loss >= last.loss)) break;
      if (flat(now)) return points_[0] = now, true;
      if (now.slope >= 0) break;
      t = cubic_minimum(last, now, now.t + 0.01 * (now.t - last.t), now.t * 10);
      last = now;
      now = evaluate_(t);
    }
    points_[0] = count_ == max_ ? start_ : last;
    points_[1] = now;
    order();
    return false;
  }

  /// Shrinks the bracket until its lower end is such a point.
  void zoom() {
    for (bool close = false; count_ < max_; ++count_) {
      const double low = std::min(points_[0].t, points_[1].t);
      const double high = std::max(points_[0].t, points_[1].t);
      if ((high - low) * longest_ < tolerance_) return;
      double t = cubic_minimum(points_[0], points_[1], low, high);
      // After two trials near an end, or at it: a tenth of the bracket away from it.
      const double margin = 0.1 * (high - low);
      const bool near = std::min(high - t, t - low) < margin, move = close || t >= high || t <= low;
      if (near && move) t = std::abs(t - high) < std::abs(t - low) ? high - margin : low + margin;
      close = near && !move;
      if (take(evaluate_(t))) return;
    }
  }
  bool take(const probe<T>& now) {
    probe<T>&best = points_[low_], &other = points_[1 - low_];
    if (too_high(now) || now.loss >= best.loss) {
      other = now;
      order();
      return false;
    }
    const bool done = flat(now);
    if (!done && now.slope * (other.t - best.t) >= 0) other = best;
    best = now;
    return done;
  }

  Evaluate& evaluate_;
  const probe<T>& start_;
  double longest_, tolerance_;
  int max_, count_ = 0, low_ = 0;
  probe<T> points_[2];
};

}  // namespace xla::optim::detail
