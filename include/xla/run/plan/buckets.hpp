// SPDX-License-Identifier: Apache-2.0
#pragma once

// Combines sums of gradients over replicas into few exchanges that overlap with the rest of the
// step, like PyTorch's DistributedDataParallel. Only plans of programs with exchanges include it.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include "xla/base/dependent.hpp"
#include "xla/base/instance.hpp"
#include "xla/base/list.hpp"
#include "xla/op/collectives.hpp"
#include "xla/run/plan/plan.hpp"

namespace xla::detail {

/// The size of a bucket in bytes: an exchange starts when it has this many bytes of gradients. 25
/// MB, or as the environment variable XLA_BUCKET_MB says; with 0 each gradient has its own
/// exchange.
inline double bucket_bytes() {
  constexpr double megabyte = 1 << 20;
  const char* const wanted = std::getenv("XLA_BUCKET_MB");
  return megabyte * (wanted && *wanted ? std::strtod(wanted, nullptr) : 25);
}

/// The steps after bucketing, with those that start an exchange and wait for it.
struct bucket_steps {
  list<step> steps;
  list<int> inputs, outputs;
  int buckets = 0;
};

/// Combines all_reduces into buckets. A bucket starts as soon as the last of its inputs is
/// computed, and is waited for before its first reader. In between, steps that depend on no other
/// replica run in their order. Steps that do depend on one run as late as possible, to give
/// exchanges time. An input that only an all_reduce reads is computed in the memory of the sum.
/// Each all_reduce is replaced by a start and a wait; bits do not change.
///
/// Replicas must exchange in the same order. The order follows from the program and its sizes
/// alone, and later passes keep it. A replica that reads a traced value earlier than others has
/// other graphs; therefore traced graphs have no buckets, and keep the program's order.
template <class In>
class basic_bucket_finder {
 public:
  /// once: per step of the program, whether it runs only when memory is made.
  basic_bucket_finder(dependent<In, plan>& out, list<char>& once)
      : out_(out),
        p_(out.source),
        once_(once),
        traced_(p_.word_ops),
        limit_(traced_ ? 0 : bucket_bytes()) {}

  /// The original steps; the caller has to keep them alive.
  [[XLA_PLANS]] bucket_steps&& run() {
    find_uses();
    find_writes();
    new_.inputs.append(p_.inputs, p_.inputs + p_.count.inputs);
    new_.outputs.append(p_.outputs, p_.outputs + p_.count.outputs);
    for (;;) {
      sweep();
      const int next = next_to_wait_for();
      if (next < 0) break;
      const step& s = p_.steps[next];
      for (int b = 0; b < buckets_.size(); ++b)
        for (int k = 0; k < s.inputs; ++k)
          if (state_[input(s, k)] == b) wait(b);
    }
    for (int b = 0; b < buckets_.size(); ++b) wait(b);
    replace_steps();
    return std::move(new_);
  }

 private:
  /// States of a value; other numbers are the bucket with which it arrives.
  static constexpr int there = -1, missing = -2;

  /// All_reduces that may share a bucket: they combine the same type in the same way, and depend on
  /// equally many exchanges in sequence, so that none of them depends on another.
  struct kind {
    dtype type;
    reduce_type how;
    int before;
    int left = 0;   ///< that are in no bucket yet
    int open = -1;  ///< the bucket that takes more
  };
  struct bucket {
    double bytes = 0;
    bool started = false, over = false;
    list<int> reduces = {};  ///< steps of the program
  };

  int base(int v) const { return out_.base[v]; }
  int input(const step& s, int k) const { return base(p_.inputs[s.first_input + k]); }
  int output(const step& s, int k) const { return p_.outputs[s.first_output + k]; }
  /// Whether a step is nothing but an all_reduce from its input to its output.
  bool reduces(const step& s) const {
    if (!s.exchanges || !is<op::all_reduce>(p_.values[s.value])) return false;
    const node& n = p_.values[s.value];
    const bool summed =
        n.type == dtype::float32 || n.type == dtype::float64 || n.type == dtype::int64;
    return summed && n.template attributes<op::all_reduce>().root < 0;
  }

  /// Finds which step makes and reads each value, and how many exchanges in sequence depend on it.
  [[XLA_PLANS]] void find_uses() {
    const int steps = p_.count.steps, values = p_.count.values;
    maker_ = reducer_ = list<int>(values, -1);
    reads_ = before_ = unread_ = list<int>(values, 0);
    beside_.assign(steps, -1);
    for (int i = 0; i < steps; ++i) {
      for (int k = 0; k < p_.steps[i].outputs; ++k) maker_[output(p_.steps[i], k)] = i;
      if (p_.steps[i].exchanges) exchanges_.push_back(i);
    }
    for (int i = steps - 1; i >= 0; --i) {
      const step& s = p_.steps[i];
      const int before = after(s) + (s.exchanges ? 1 : 0);
      for (int k = 0; k < s.inputs; ++k) {
        const int v = input(s, k);
        ++reads_[v];
        before_[v] = std::max(before_[v], before);
        if (reduces(s)) beside_[i] = std::exchange(reducer_[v], i);
      }
      if (reduces(s)) ++kind_of(i).left;
    }
    for (int v : out_.copies)
      if (v >= 0) ++reads_[base(v)];
    state_.assign(values, missing);
    for (int v = 0; v < values; ++v)
      if (maker_[v] < 0) state_[v] = there;
    done_.assign(steps, false);
  }
  int after(const step& s) const {
    int most = 0;
    for (int k = 0; k < s.outputs; ++k) most = std::max(most, before_[output(s, k)]);
    return most;
  }
  /// Steps that read the old value of a slot come before the step that may overwrite it.
  [[XLA_PLANS]] void find_writes() {
    replaced_ = writer_ = list<int>(p_.count.values, -1);
    for (int i = 0; i < p_.count.writes; ++i) {
      const write& w = p_.writes[i];
      const int old = p_.replaced_by(w), v = base(w.value);
      if (old < 0 || out_.copies[i] >= 0) continue;
      replaced_[v] = old;
      writer_[old] = maker_[v];
    }
    for (int i = 0; i < p_.count.steps; ++i) count_reads(i, 1);
  }
  void count_reads(int i, int by) {
    const step& s = p_.steps[i];
    for (int k = 0; k < s.inputs; ++k)
      if (const int v = input(s, k); i <= writer_[v]) unread_[v] += by;
  }
  int reads(const step& s, int v) const {
    int n = 0;
    for (int k = 0; k < s.inputs; ++k) n += input(s, k) == v;
    return n;
  }

  /// Appends all steps that depend on no exchange in flight, in program order.
  [[XLA_PLANS]] void sweep() {
    for (int i = 0; i < p_.count.steps; ++i)
      if (!done_[i] && is_ready(i)) take(i);
  }
  bool is_ready(int i) const {
    const step& s = p_.steps[i];
    if (comes_later(i)) return false;
    for (int k = 0; k < s.inputs; ++k)
      if (state_[input(s, k)] != there) return false;
    return !would_overwrite(s);
  }
  /// In a traced graph: whether an earlier exchange has not been started yet.
  bool comes_later(int i) const {
    return traced_ && p_.steps[i].exchanges && exchanges_[exchanged_] != i;
  }
  bool would_overwrite(const step& s) const {
    for (int k = 0; k < s.outputs; ++k)
      if (const int old = replaced_[output(s, k)]; old >= 0 && unread_[old] > reads(s, old))
        return true;
    return false;
  }
  [[XLA_PLANS]] void take(int i) {
    const step& s = p_.steps[i];
    done_[i] = true;
    exchanged_ += s.exchanges;
    count_reads(i, -1);
    if (reduces(s)) return bundle(i);
    add(s, once_[i]);
    for (int k = 0; k < s.outputs; ++k) state_[output(s, k)] = there;
    for (int k = 0; k < s.outputs; ++k)
      for (int r = reducer_[output(s, k)]; r >= 0; r = beside_[r])
        if (!done_[r] && is_ready(r)) take(r);
  }
  [[XLA_PLANS]] void bundle(int i) {
    const int sum = output(p_.steps[i], 0);
    kind& k = kind_of(i);
    if (k.open < 0 || buckets_[k.open].started) {
      k.open = buckets_.size();
      buckets_.emplace_back();
    }
    const int b = state_[sum] = k.open;
    buckets_[b].reduces.push_back(i);
    buckets_[b].bytes += static_cast<double>(out_.bytes(sum));
    if (--k.left == 0 || buckets_[b].bytes >= limit_) start(b);
  }
  kind& kind_of(int i) {
    const int sum = output(p_.steps[i], 0);
    const node& n = p_.values[sum];
    const reduce_type how = n.template attributes<op::all_reduce>().how;
    for (kind& k : kinds_)
      if (k.type == n.type && k.how == how && k.before == before_[sum]) return k;
    return kinds_.emplace_back(kind{n.type, how, before_[sum]});
  }

  /// The next exchange to wait for, when no other step can run: first one that other exchanges
  /// depend on, then the one started first. -1: all steps are done.
  [[XLA_PLANS]] int next_to_wait_for() const {
    int best = -1, most = -1, earliest = 0;
    for (int i = 0; i < p_.count.steps; ++i) {
      const step& s = p_.steps[i];
      if (done_[i] || would_overwrite(s) || comes_later(i)) continue;
      int latest = there;
      bool others = false;
      for (int k = 0; k < s.inputs; ++k) {
        latest = std::max(latest, state_[input(s, k)]);
        others |= state_[input(s, k)] == missing;
      }
      const int before = after(s);
      if (others || before < most || (before == most && latest >= earliest)) continue;
      best = i;
      most = before;
      earliest = latest;
    }
    return best;
  }

  void add(const step& s, bool once) {
    new_.steps.push_back(s);
    now_once_.push_back(once);
  }
  /// Appends a start or a wait of a bucket; its first operands are the sums.
  step& add(step_kind kind, int b) {
    step s;
    s.kind = kind;
    s.exchanges = true;
    s.value = output(p_.steps[buckets_[b].reduces[0]], 0);
    s.kernel = b;
    s.first_input = new_.inputs.size();
    s.first_output = new_.outputs.size();
    s.ops = s.inputs = s.outputs = buckets_[b].reduces.size();
    add(s, false);
    return new_.steps.back();
  }
  [[XLA_PLANS]] void start(int b) {
    bucket& started = buckets_[b];
    if (std::exchange(started.started, true)) return;
    add(step_kind::start, b);
    for (int i : started.reduces) {
      const int sum = output(p_.steps[i], 0);
      new_.inputs.push_back(make_in_place(i) ? sum : p_.inputs[p_.steps[i].first_input]);
      new_.outputs.push_back(sum);
    }
  }
  /// The memory of a sum is in use until the end, and it is not written before the exchange starts.
  [[XLA_PLANS]] void wait(int b) {
    start(b);
    bucket& waited = buckets_[b];
    if (std::exchange(waited.over, true)) return;
    step& s = add(step_kind::wait, b);
    for (int i : waited.reduces) {
      const int sum = output(p_.steps[i], 0);
      new_.inputs.push_back(sum);
      new_.outputs.push_back(sum);
      state_[sum] = there;
    }
    for (int i : waited.reduces)
      if (const int v = p_.inputs[p_.steps[i].first_input]; !in_place(v)) {
        new_.inputs.push_back(v);
        ++s.inputs;
      }
  }
  bool in_place(int v) const { return state_[base(v)] == missing; }

  /// Lets the step that computes an all_reduce's input write to the memory of the sum, if nothing
  /// else reads the input.
  [[XLA_PLANS]] bool make_in_place(int i) {
    const step& reduce = p_.steps[i];
    const int v = input(reduce, 0), sum = output(reduce, 0), maker = maker_[v];
    if (maker < 0 || once_[maker] || reads_[v] != 1 || out_.placements[v].where != storage::arena)
      return false;
    const step& m = p_.steps[maker];
    // A step with several results refers to them by their nodes; so does a loop that writes rows.
    const bool loops = m.kind == step_kind::library && p_.values[m.value].op->loops_steps;
    const bool one_of_several = loops || is<op::output>(p_.values[v]);
    if (reduces(m) || one_of_several || !(out_.shapes[v] == out_.shapes[sum])) return false;
    for (int k = 0; k < m.outputs; ++k)
      if (output(m, k) == v) new_.outputs[m.first_output + k] = sum;
    state_[v] = missing;  // it is not stored any more
    return true;
  }

  [[XLA_PLANS]] void replace_steps() {
    program& p = out_.source;
    p.steps = new_.steps.data();
    p.inputs = new_.inputs.data();
    p.outputs = new_.outputs.data();
    p.count.steps = new_.steps.size();
    p.count.inputs = new_.inputs.size();
    p.count.outputs = new_.outputs.size();
    once_ = std::move(now_once_);
    for (int i = out_.order.size(); i < p.count.steps; ++i) out_.order.push_back(i);
    out_.order.resize(p.count.steps);
    out_.group_of.assign(p.count.steps, -1);
    new_.buckets = buckets_.size();
  }

  dependent<In, plan>& out_;
  const program& p_;
  list<char>& once_;
  const bool traced_;
  const double limit_;
  list<int> exchanges_;        // steps of the program, in its order
  int exchanged_ = 0;          // how many of them were consumed
  list<int> maker_, reducer_;  // per value: the step that makes it; the first that reduces it
  list<int> beside_;           // per step: another all_reduce of the same value
  list<int> reads_;            // per value: by how many operands
  list<int> before_;           // per value: how many exchanges in sequence wait for it
  list<int> replaced_;         // per value: the slot value that it may overwrite, or -1
  list<int> writer_,
      unread_;       // per slot value: the step that replaces it; how many reads come before
  list<int> state_;  // per value: present, missing, or the number of its bucket in flight
  list<char> done_;  // per step
  list<kind> kinds_;
  list<bucket> buckets_;
  bucket_steps new_;
  list<char> now_once_;
};
using bucket_finder = basic_bucket_finder<void>;

}  // namespace xla::detail
