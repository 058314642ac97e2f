// SPDX-License-Identifier: Apache-2.0
// Convolutions whose maps run in registers: finds out whether the maps after one are a chain that
// such kernels compute, and calls them. Compiled with -ffp-contract=off, so that the results are
// those of the ops' own kernels.
#define XLA_RUNTIME_SOURCE
#include <algorithm>
#include <cstdint>

#include <xla/kernel/convolution/register_epilogue.hpp>
#include <xla/kernel/op/convolution.hpp>
#include <xla/run/execute/register_epilogue.hpp>

namespace xla::detail {
namespace {

using kernel::micro_op;
using chain_of_maps = kernel::register_epilogue<float>;
using one_map = kernel::register_map<float>;

/// Reads a region of maps as a chain that begins with one input, the result of a convolution.
class chain_reader {
 public:
  /// made: that result, channels innermost.
  chain_reader(const plan& p, const ready_step& s, void* const* pointers, const float* made,
               std::int64_t channels)
      : words_(&p.source.words[s.source->first_word]),
        count_(s.source->words),
        s_(s),
        loops_(p.loops[s.loops]),
        pointers_(pointers),
        channels_(channels) {
    chain_.result = made;
  }

  /// Whether it is one, whose result takes the place of the convolution's.
  bool read() {
    if (s_.operands != s_.inputs + 1 || pointers_[s_.inputs] != chain_.result) return false;
    if (loops_.axes > 2 || loops_.inner() != channels_) return false;  // over rows of channels
    int last = -1;  // the value of the region that the chain has come to
    for (int i = 0; i < count_; ++i) {
      const micro_op m = micro_op::of(words_[i]);
      if (m.type != dtype::float32 || m.index || m.reduce || m.column) return false;
      if (m.input) {
        if (pointers_[i] != chain_.result) continue;
        if (last >= 0 || !per_element(i)) return false;
        last = i;
      } else {
        if (last < 0 || !add(m, last) || m.output != (i + 1 == count_)) return false;
        last = i;
      }
    }
    return chain_.count > 0;
  }
  const chain_of_maps& chain() const { return chain_; }

 private:
  std::int64_t stride(int k, int from_last) const {
    return loops_.axes < from_last ? 0 : loops_.strides[k][loops_.axes - from_last];
  }
  bool per_element(int k) const {
    return stride(k, 1) == 1 && (loops_.axes < 2 || stride(k, 2) == channels_);
  }
  bool per_channel(int k) const { return stride(k, 1) == 1 && stride(k, 2) == 0; }
  bool one_number(int k) const { return stride(k, 1) == 0 && stride(k, 2) == 0; }
  bool is_input(int k) const { return k < s_.inputs && pointers_[k] != chain_.result; }

  /// Appends an op of the chain's last value.
  bool add(const micro_op& m, int last) {
    if (chain_.count == chain_of_maps::most) return false;
    one_map& to = chain_.maps[chain_.count];
    const auto data = [&](int k) { return static_cast<const float*>(pointers_[k]); };
    if (m.id == id_of<op::relu>) {
      if (m.a != last) return false;
      to.what = one_map::relu;
    } else if (m.id == id_of<op::add>) {
      const int other = m.a == last ? m.b : m.a;
      if ((m.a != last && m.b != last) || !is_input(other)) return false;
      if (per_channel(other)) to.what = one_map::add_channel;
      else if (per_element(other)) to.what = one_map::add_element;
      else return false;
      to.a = data(other);
      if (to.what == one_map::add_element) chain_.shortcut = to.a;
    } else if (m.id == id_of<op::center_scale> || m.id == id_of<op::hardtanh>) {
      const bool scales = m.id == id_of<op::center_scale>;
      const auto fits = [&](int k) {
        return is_input(k) && (scales ? per_channel(k) : one_number(k));
      };
      if (m.a != last || !fits(m.b) || !fits(m.c)) return false;
      to.what = scales ? one_map::center_scale : one_map::hardtanh;
      to.a = data(m.b);
      to.b = data(m.c);
    } else {
      return false;
    }
    ++chain_.count;
    return true;
  }

  const std::uint64_t* words_;
  int count_;
  const ready_step& s_;
  kernel::loop_nest loops_;
  void* const* pointers_;
  std::int64_t channels_;
  chain_of_maps chain_;
};

}  // namespace

bool run_in_registers(const plan& p, const ready_step& made, void* const* pointers,
                      const shape* shapes, buffer* cache_owner, const ready_step& maps,
                      void* const* of_maps) {
  const node& of = p.source.values[made.source->value];
  if (of.op->id != id_of<op::convolution> || of.type != dtype::float32) return false;
  kernel_call call;
  call.in = pointers;
  call.in_shapes = shapes;
  call.out = pointers[made.inputs];
  call.out_shape = shapes + made.inputs;
  call.attr = made.attr;
  call.cache_owner = cache_owner;
  const auto attr = call.attributes<op::convolution>();
  if (!attr.channels_last) return false;
  const convolution_parts<float> parts(attr, shapes[0], shapes[1], *call.out_shape);
  auto* const y = static_cast<float*>(call.out);
  chain_reader reader(p, maps, of_maps, y, parts.sizes.out);
  if (parts.rounds || !reader.read() || !kernel::conv_takes_maps(parts.sizes, reader.chain()))
    return false;
  kernel::conv_with_maps<float>(parts.sizes, static_cast<const float*>(pointers[0]),
                                parts.cached_weights(call, kernel::conv_direction::forward), y,
                                reader.chain());
  return true;
}

}  // namespace xla::detail
