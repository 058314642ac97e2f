// SPDX-License-Identifier: Apache-2.0
#pragma once

// Groups small steps that do not depend on each other, so that threads run them at the same time.
// specialize.hpp calls it; a large step is shared among threads by its kernel instead.

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "xla/base/dependent.hpp"
#include "xla/base/instance.hpp"
#include "xla/base/list.hpp"
#include "xla/run/plan/slice_groups.hpp"

namespace xla::detail {

/// Finds small steps that do not depend on each other, and lets threads run them side by side. Each
/// of them is too small to be divided, such as the products of a small network's backward. Between
/// larger steps they may change their order by a few positions, so that memory is not held for
/// long. Bits do not change.
template <class In>
class basic_side_finder {
 public:
  /// once: per step of the program, whether it runs only when memory is made.
  basic_side_finder(dependent<In, plan>& out, const list<char>& once)
      : out_(out), p_(out.source), once_(once), threads_(num_threads()) {}

  [[XLA_PLANS]] void run() {
    if (threads_ == 1) return;
    maker_.assign(p_.count.values, -1);
    const int steps = p_.count.steps;
    for (int i = 0; i < steps; ++i) {
      first_ = i;
      work_.clear();
      std::int64_t all = 0, most = 0;
      for (std::int64_t work; i < steps && (work = work_of(i)) != large; ++i) {
        work_.push_back(work);
        all += work;
        most = std::max(most, work);
      }
      if (all - most >= worth_sharing) arrange(i - first_);
    }
  }

 private:
  static constexpr int window = 24;  ///< how far apart steps of a group may have been
  /// The work that other threads must save the first one, in elements times ops.
  static constexpr std::int64_t worth_sharing = kernel::parallel_work;
  static constexpr std::int64_t fetch =
      2;  ///< the cost of a byte that was in another thread's cache
  static constexpr std::int64_t each = 4096;  ///< the cost of a step in addition to its elements
  static constexpr std::int64_t large = -1, alone = 0;
  struct link {
    int to, next;  ///< a waiting step; the maker's next link or -1
  };

  [[XLA_PLANS]] int base(int v) const { return out_.base[v]; }

  /// Elements times ops of a step that one thread runs; alone: it is not in a group; large: others
  /// do not move past it.
  [[XLA_PLANS]] std::int64_t work_of(int i) const {
    const step& s = out_.step_at(i);
    if (s.check || s.exchanges || out_.group_of[i] >= 0) return large;
    const bool alone_here = once_[out_.order[i]];
    if (s.kind != step_kind::library)
      return small(count(space_of<In>(out_, s)) * s.ops, kernel::parallel_work, alone_here);
    const node& n = p_.values[s.value];
    if (!n.op->loops)
      return small(count(space_of<In>(out_, s)), kernel::parallel_work,
                   alone_here || n.op->kind != op_kind::reduce);
    shape in[few_inputs];
    for (int k = 0; k < std::min(s.inputs, few_inputs); ++k)
      in[k] = out_.shapes[p_.inputs[s.first_input + k]];
    return small(count(n.op->loops(in, out_.shapes[s.value], n.attr)), 8 * kernel::parallel_work,
                 alone_here);
  }
  static std::int64_t small(std::int64_t work, std::int64_t limit, bool alone_here) {
    return work >= limit ? large : alone_here ? alone : each + work;
  }

  [[XLA_PLANS]] void arrange(int n) {
    link_steps(n);
    const int groups = out_.groups.size();
    done_.assign(n, false);
    thread_.assign(n, 0);
    order_.clear();
    for (int next = 0; next < n;) {
      const int end = std::min(n, next + window);
      ready_.clear();
      for (int j = next; j < end; ++j)
        if (!done_[j] && waits_[j] == 0) ready_.push_back(j);
      if (!take_group()) take(needed(end));
      while (next < n && done_[next]) ++next;
    }
    if (out_.groups.size() == groups) return;
    for (int& j : order_) j = out_.order[first_ + j];
    std::copy(order_.begin(), order_.end(), out_.order.begin() + first_);
    for (int g = groups; g < out_.groups.size(); ++g)
      for (int i = out_.groups[g].first; i <= out_.groups[g].last; ++i) out_.group_of[i] = g;
  }

  // A step waits for its inputs. A step that writes a slot's value and those that read the old
  // value keep their order, so that it may overwrite it.
  [[XLA_PLANS]] void link_steps(int n) {
    waits_.assign(n, 0);
    links_.assign(n, -1);
    edges_.clear();
    for (int j = 0; j < n; ++j) {
      const step& s = step_of(j);
      for (int k = 0; k < s.inputs; ++k) link_to(maker_[base(input(s, k))], j);
      for (int k = 0; k < s.outputs; ++k) {
        const int old = replaced(output(s, k));
        maker_[output(s, k)] = j;
        if (old < 0) continue;
        for (int i = std::max(0, j - window); i < j; ++i)
          if (reads(step_of(i), old)) link_to(i, j);
        maker_[old] = j;
      }
    }
    for (int j = 0; j < n; ++j)
      for (int k = 0; k < step_of(j).outputs; ++k) {
        const int v = output(step_of(j), k), old = replaced(v);
        maker_[v] = -1;
        if (old >= 0) maker_[old] = -1;
      }
  }
  void link_to(int maker, int j) {
    if (maker < 0 || maker == j) return;
    edges_.push_back({j, links_[maker]});
    links_[maker] = edges_.size() - 1;
    ++waits_[j];
  }
  const step& step_of(int j) const { return out_.step_at(first_ + j); }
  int output(const step& s, int k) const { return p_.outputs[s.first_output + k]; }
  int input(const step& s, int k) const { return p_.inputs[s.first_input + k]; }
  bool reads(const step& s, int v) const {
    for (int k = 0; k < s.inputs; ++k)
      if (base(input(s, k)) == v) return true;
    return false;
  }
  /// The value at entry that a write replaces; -1 if there is none.
  int replaced(int v) const {
    const placement& q = out_.placements[v];
    return q.where == storage::write ? p_.replaced_by(p_.writes[q.index]) : -1;
  }

  /// The first ready step for which another one before `end` waits.
  int needed(int end) const {
    for (int j : ready_)
      for (int e = links_[j]; e >= 0; e = edges_[e].next)
        if (edges_[e].to < end) return j;
    return ready_[0];
  }
  void take(int j) {
    done_[j] = true;
    order_.push_back(j);
    for (int e = links_[j]; e >= 0; e = edges_[e].next) --waits_[edges_[e].to];
  }

  /// Makes a group of the ready steps if that is worth it.
  [[XLA_PLANS]] bool take_group() {
    std::int64_t all = 0, most = 0;
    for (int j : ready_) {
      const std::int64_t saved = std::max<std::int64_t>(0, work_[j] - fetch * bytes_of(j));
      all += saved;
      most = std::max(most, saved);
    }
    if (all - std::max(most, all / threads_) < worth_sharing) return false;
    const int begin = first_ + order_.size();
    ready_.remove_if([&](int j) { return work_[j] == alone; });
    distribute();
    step_group g;
    g.first = begin;
    g.last = begin + ready_.size() - 1;
    g.slices = step_group::whole;
    g.threads = std::min(threads_, ready_.size());
    g.borders = out_.borders.size();
    for (int t = 0; t < g.threads; ++t) {
      out_.borders.push_back(first_ + order_.size());
      for (int j : ready_)
        if (thread_[j] == t) take(j);
    }
    out_.borders.push_back(g.last + 1);
    out_.groups.push_back(g);
    return true;
  }
  std::int64_t bytes_of(int j) const {
    const step& s = step_of(j);
    std::int64_t bytes = 0;
    for (int k = 0; k < s.inputs; ++k) bytes += out_.placements[base(input(s, k))].bytes;
    for (int k = 0; k < s.outputs; ++k) bytes += out_.placements[output(s, k)].bytes;
    return bytes;
  }
  // The largest first, each to the thread with the least work.
  [[XLA_PLANS]] void distribute() {
    list<measured> by_work;
    for (int j : ready_) by_work.push_back({work_[j], j});
    largest_first(by_work);
    load_.assign(threads_, 0);
    for (int k = 0; k < ready_.size(); ++k) {
      const int j = ready_[k] = by_work[k].number;
      const auto least = std::min_element(load_.begin(), load_.end());
      *least += work_[j];
      thread_[j] = static_cast<int>(least - load_.begin());
    }
  }

  dependent<In, plan>& out_;
  const program& p_;
  const list<char>& once_;
  const int threads_;
  int first_ = 0;  // position of the considered steps
  // Of the considered steps, by their positions among them:
  list<std::int64_t> work_;
  list<int> waits_, links_;  // how many wait for it; the first link to one that does
  list<link> edges_;
  list<char> done_;
  list<int> order_, ready_, thread_;
  list<std::int64_t> load_;  // per thread
  list<int> maker_;          // per value, the step that makes or replaces it
};
using side_finder = basic_side_finder<void>;

}  // namespace xla::detail
