// SPDX-License-Identifier: Apache-2.0
#pragma once

// Groups convolutions, and what is between them, that run better one image after the other than one
// step after the other. run/execute/image_groups.hpp calls it, and runs the groups.

#include <algorithm>
#include <string_view>

#include "xla/base/dependent.hpp"
#include "xla/base/list.hpp"
#include "xla/kernel/memory/cache_sizes.hpp"
#include "xla/kernel/threads/parallel.hpp"
#include "xla/op/concat.hpp"
#include "xla/op/convolution.hpp"
#include "xla/op/slice.hpp"
#include "xla/run/plan/plan.hpp"
#include "xla/run/plan/slice_groups.hpp"

namespace xla::detail {

/// Whether a step is a convolution, or the gradient of one's input.
inline bool is_convolution(const op_info& op) { return op.plan && op.plan->epilogues; }

/// Whether operand k of a step over this space has an image for each of the step's: all operands of
/// ops with a kernel do, except for a convolution's weight, and those of a map that vary along the
/// first axis.
template <class In = void>
bool has_images(const dependent<In, plan>& p, const step& s, int k, const shape& operand,
                const shape& space) {
  if (s.kind == step_kind::library && k > 0 && k < s.inputs &&
      is_convolution(*p.source.values[s.value].op))
    return false;
  return operand.rank == space.rank && operand[0] == space[0];
}

/// See step_group::cut. The axis of the images stays, with size 1.
template <class In = void>
[[gnu::cold]] void cut_image(dependent<In, plan>& p, ready_step& r, shape& space) {
  const std::int64_t images = p.groups[r.group].slices;
  r.first_slice = p.slice_shapes.size();
  r.sliced = p.sliced.size();
  p.sliced.emplace_back().push(images);
  for (int k = 0; k < r.operands; ++k) {
    const int v = p.operands[r.first_operand + k];
    const placement& q = p.placements[p.base[v]];
    shape image = p.shape_of(r, k);
    slice_placement placed;
    if (q.where == storage::slice) placed.offset = q.offset;
    if (has_images<In>(p, *r.source, k, image, space)) {
      image[0] = 1;
      placed.strides[0] = p.bytes(v) / images;
    }
    p.slice_placements.push_back(placed);
    p.slice_shapes.push_back(image);
  }
  space[0] = 1;
}

/// Finds convolutions in a row, with the maps, pools and joins between them, whose values in
/// between are larger than a core's cache for a batch, and not so for an image. Each thread then
/// takes an image through all of them, and needs memory for the values of one. The steps of a group
/// become neighbours; bits do not change.
///
/// Eight images, a busy Zen 3 with 512 KiB of L2, one thread, whole batch against image by image,
/// in milliseconds; expand, depthwise 3x3 and project with their maps: 112x112, 16-96-24 with
/// stride 2 24.2 and 14.2; 56x56, 24-144-24 16.1 and 12.2; 28x28, 32-192-32 4.7 and 4.1; 14x14,
/// 64-384-64 4.5 and 2.9. But 7x7, 160-960-160 3.2 and 4.4: weights are read again for each image.
/// Strips of rows of an image gained no more.
template <class In>
class basic_image_finder {
 public:
  using runner = decltype(step_group::run);
  /// once: per step of the program, whether it runs only when memory is made; run: runs a group.
  basic_image_finder(dependent<In, plan>& out, const list<char>& once, runner run)
      : out_(out), p_(out.source), once_(once), run_(run) {}

  [[gnu::cold]] void run() {
    for (int i = 0; i < p_.count.steps; ++i)
      if (convolves(i) && (images_ = out_.shapes[out_.step_at(i).value][0]) > 1 && fits(i))
        i = form(i);
  }

 private:
  /// The fewest pixels of a convolution's result: products of fewer are slower by image.
  static constexpr std::int64_t fewest_pixels = 64;
  /// Steps further apart than this are not brought together.
  static constexpr int window = 16;

  int base(int v) const { return out_.base[v]; }
  int input(const step& s, int k) const { return p_.inputs[s.first_input + k]; }
  int output(const step& s, int k) const { return p_.outputs[s.first_output + k]; }

  /// Whether step i is a convolution of images.
  bool convolves(int i) const {
    const step& s = out_.step_at(i);
    return s.kind == step_kind::library && is_convolution(*p_.values[s.value].op) &&
           p_.values[s.value].rank == 4;
  }

  /// Whether step i can run image by image and reads the images of members as it makes its own.
  [[gnu::cold]] bool fits(int i) const {
    const step& s = out_.step_at(i);
    if (s.check || s.exchanges || out_.group_of[i] >= 0 || once_[out_.order[i]]) return false;
    if (s.inputs + s.outputs > kernel::max_operands || !divides(s)) return false;
    const shape space = space_of<In>(out_, s);
    if (space.rank < 2 || space[0] != images_) return false;
    for (int k = 0; k < s.outputs; ++k)
      if (!has_images<In>(out_, s, s.inputs + k, out_.shapes[output(s, k)], space)) return false;
    for (int k = 0; k < s.inputs; ++k) {
      const shape& x = out_.shapes[input(s, k)];
      if (has_images<In>(out_, s, k, x, space)) continue;
      const bool varies = s.kind == step_kind::map && x.rank == space.rank && x[0] != 1;
      if (varies || is_member(input(s, k))) return false;
    }
    return !convolves(i) || pays(s);
  }
  /// Whether each image of a step's result depends on the same image of what it reads alone.
  [[gnu::cold]] bool divides(const step& s) const {
    if (s.kind != step_kind::library) return s.kind == step_kind::map;
    const node& n = p_.values[s.value];
    if (n.op->impure) return false;
    if (is<op::concat>(n)) return n.attributes<op::concat>().axis != 0;
    if (is<op::slice>(n)) return n.attributes<op::slice>().axis != 0;
    return is_convolution(*n.op) || n.op->accepts == axes_rule::images;
  }
  /// Whether a convolution is as fast by image, and has the same bits: those of bfloat16 may be
  /// summed in another order.
  [[gnu::cold]] bool pays(const step& s) const {
    const node& n = p_.values[s.value];
    const shape whole[] = {out_.shapes[input(s, 0)], out_.shapes[input(s, 1)],
                           out_.shapes[s.value]};
    const auto of = unpack<op::convolving::attributes>(n.attr);
    if (op::convolving::operands(of, whole[1]) == precision::bfloat16 || !n.op->choose)
      return false;
    shape cut[] = {whole[0], whole[1], whole[2]};
    cut[0][0] = cut[2][0] = 1;
    const kernel_choice by_image = choice_for(n, cut);
    const std::int64_t weights = std::max(out_.bytes(input(s, 1)), by_image.cached);
    const std::int64_t image = (out_.bytes(input(s, 0)) + out_.bytes(s.value)) / images_;
    return whole[2][1] * whole[2][2] >= fewest_pixels && 2 * weights <= image &&
           std::string_view(by_image.algorithm) == choice_for(n, whole).algorithm;
  }
  [[gnu::cold]] kernel_choice choice_for(const node& n, const shape* shapes) const {
    kernel_choice c;
    kernel_call call;
    call.in_shapes = shapes;
    call.out_shape = shapes + 2;
    call.attr = attributes_at<In>(out_, n);
    n.op->choose(call, c);
    return c;
  }

  /// What a step is to the group: nothing, a part of it, or it reads a part and runs after the
  /// group.
  enum class role : std::uint8_t { none, member, after };
  bool is_member(int v) const { return !role_.empty() && role_[base(v)] == role::member; }
  bool reads(const step& s, role r) const {
    for (int k = 0; k < s.inputs; ++k)
      if (role_[base(input(s, k))] == r) return true;
    return false;
  }

  /// Makes the group that begins with step `first`, if it pays. Returns its last step, or the last
  /// one of those that would have been in it.
  [[gnu::cold]] int form(int first) {
    role_.assign(p_.count.values, role::none);
    members_.clear();
    list<int> before, after;
    int convolutions = 0, last = first, sooner = 0, later = 0;
    for (int i = first; i < p_.count.steps && i - last <= window; ++i) {
      const step& s = out_.step_at(i);
      const bool uses = reads(s, role::member), late = reads(s, role::after);
      if (!late && (uses || convolves(i)) && fits(i)) {
        convolutions += convolves(i);
        add_member(out_.order[i]);
        last = i;
        sooner = before.size();
        later = after.size();
        continue;
      }
      if (out_.group_of[i] >= 0 || s.check || s.exchanges || runs_alone(s)) break;
      (uses || late ? after : before).push_back(out_.order[i]);
      for (int k = 0; k < s.outputs && (uses || late); ++k) role_[output(s, k)] = role::after;
    }
    if (convolutions < 2 || !find_inside()) return last;
    std::copy_n(before.begin(), sooner, out_.order.begin() + first);
    group(first + sooner);
    std::copy_n(after.begin(), later, out_.order.begin() + last + 1 - later);
    return last;
  }
  /// A map comes right after the convolution that it reads, if it can, and runs on parts of it.
  [[gnu::cold]] void add_member(int number) {
    const step& s = p_.steps[number];
    for (int k = 0; k < s.outputs; ++k) role_[output(s, k)] = role::member;
    members_.push_back(number);
    int at = members_.size() - 1;
    while (at > 0 && !makes_input(p_.steps[members_[at - 1]], s)) --at;
    if (at > 0 && goes_on_parts(p_.steps[members_[at - 1]], s))
      std::rotate(members_.begin() + at, members_.end() - 1, members_.end());
  }
  bool makes_input(const step& maker, const step& s) const {
    for (int k = 0; k < s.inputs; ++k)
      for (int j = 0; j < maker.outputs; ++j)
        if (base(input(s, k)) == output(maker, j)) return true;
    return false;
  }
  /// Whether a step has an effect, and keeps its place.
  bool runs_alone(const step& s) const {
    return s.value >= 0 && s.kind == step_kind::library && p_.values[s.value].op->impure;
  }

  /// Finds the values that only members read, and whether these are worth a group: what the
  /// convolutions read of them is more than the cache holds, and images are enough for all threads.
  [[gnu::cold]] bool find_inside() {
    const int threads = num_threads();
    if (images_ % threads != 0 && images_ < 4 * threads) return false;
    list<int> left(p_.count.values, 0);            // per value: its readers that are no members
    list<char> convolved(p_.count.values, false);  // per value: a convolution among them reads it
    for (int i = 0; i < p_.count.steps; ++i)
      for (int k = 0; k < p_.steps[i].inputs; ++k) ++left[base(input(p_.steps[i], k))];
    for (const int number : members_) {
      const step& s = p_.steps[number];
      for (int k = 0; k < s.inputs; ++k) --left[base(input(s, k))];
      if (s.kind == step_kind::library && is_convolution(*p_.values[s.value].op))
        convolved[base(input(s, 0))] = true;
    }
    for (const int v : out_.copies)
      if (v >= 0) ++left[base(v)];
    inside_.clear();
    std::int64_t bytes = 0;
    for (const int number : members_)
      for (int k = 0; k < p_.steps[number].outputs; ++k) {
        const int v = output(p_.steps[number], k);
        if (left[v] > 0 || out_.placements[v].where != storage::arena) continue;
        inside_.push_back(v);
        if (convolved[v]) bytes += out_.bytes(v);
      }
    return bytes > kernel::own_memory<>;
  }

  /// The members become the steps from `first` on.
  [[gnu::cold]] void group(int first) {
    step_group g;
    g.first = first;
    g.last = first + members_.size() - 1;
    g.slices = images_;
    g.threads = static_cast<int>(std::min<std::int64_t>(num_threads(), images_));
    g.borders = out_.borders.size();
    g.run = run_;
    g.cut = &cut_image<In>;
    for (int k = 0; k < members_.size(); ++k) {
      out_.order[first + k] = members_[k];
      out_.group_of[first + k] = out_.groups.size();
      out_.borders.push_back(k > 0 &&
                             goes_on_parts(p_.steps[members_[k - 1]], p_.steps[members_[k]]));
    }
    for (const int v : inside_) {
      out_.placements[v].where = storage::slice;
      out_.placements[v].index = out_.groups.size();
    }
    out_.groups.push_back(g);
  }
  /// Whether a map can run on parts of the result of the step before it.
  bool goes_on_parts(const step& maker, const step& s) const {
    if (maker.kind != step_kind::library || s.kind != step_kind::map ||
        !is_convolution(*p_.values[maker.value].op))
      return false;
    const shape space = space_of<In>(out_, s);
    for (int k = 0; k < s.inputs; ++k)
      if (input(s, k) == maker.value && out_.shapes[maker.value] == space &&
          space[space.rank - 1] > 1)
        return true;
    return false;
  }

  dependent<In, plan>& out_;
  const program& p_;
  const list<char>& once_;
  const runner run_;
  std::int64_t images_ = 0;
  list<role> role_;    // per value: that of the step that makes it
  list<int> members_;  // steps of the program
  list<int> inside_;   // values that only members read
};
using image_finder = basic_image_finder<void>;

}  // namespace xla::detail
