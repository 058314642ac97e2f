// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs one exchange op, such as all_reduce, for one replica: it arranges blocks in memory and hands
// them to the transport. Plans start several exchanges ahead instead (run/execute/exchange.hpp).

#include <algorithm>
#include <cstring>

#include "xla/base/instance.hpp"
#include "xla/base/list.hpp"
#include "xla/kernel/fused/loops.hpp"
#include "xla/kernel/op/collectives.hpp"
#include "xla/run/state/metric_store.hpp"
#include "xla/run/world/world.hpp"

namespace xla::detail {

/// Copies blocks, one per replica, between a tensor that has them along an axis and contiguous
/// memory. If the axis is shorter than all blocks together, the rest is zeros.
class replica_blocks {
 public:
  /// For a tensor of this shape, whose blocks are `part` long.
  replica_blocks(const shape& s, int axis, std::int64_t part, std::int64_t bytes)
      : size_(s[axis]), part_(part), inner_(bytes) {
    for (int i = 0; i < axis; ++i) outer_ *= s[i];
    for (int i = axis + 1; i < s.rank; ++i) inner_ *= s[i];
  }
  /// Whether the tensor has the blocks in contiguous order already.
  bool are_contiguous(int blocks) const { return outer_ == 1 && size_ == blocks * part_; }

  void take_out(const void* tensor, void* blocks, int count) const {
    each(count, [&](std::int64_t at, std::int64_t block, std::int64_t bytes) {
      char* const to = static_cast<char*>(blocks) + block;
      std::memcpy(to, static_cast<const char*>(tensor) + at, static_cast<std::size_t>(bytes));
      std::memset(to + bytes, 0, static_cast<std::size_t>(part_ * inner_ - bytes));
    });
  }
  void put_in(const void* blocks, void* tensor, int count) const {
    each(count, [&](std::int64_t at, std::int64_t block, std::int64_t bytes) {
      std::memcpy(static_cast<char*>(tensor) + at, static_cast<const char*>(blocks) + block,
                  static_cast<std::size_t>(bytes));
    });
  }

 private:
  template <class F>
  void each(int count, const F& copy) const {
    for (std::int64_t k = 0, block = 0; k < count; ++k) {
      const std::int64_t first = std::min(k * part_, size_);
      const std::int64_t bytes = (std::min(first + part_, size_) - first) * inner_;
      for (std::int64_t o = 0; o < outer_; ++o, block += part_ * inner_)
        copy((o * size_ + first) * inner_, block, bytes);
    }
  }
  std::int64_t outer_ = 1, size_, part_, inner_;  // inner: in bytes
};

/// One exchange of one op.
template <class In>
class basic_exchange_run {
 public:
  basic_exchange_run(const kernel_call& call, dtype type, replica& with)
      : call_(call), with_(with), bytes_(size_of(type)) {
    e_.type = type;
    piece_ = {call.in[0], call.out, count(*call.out_shape)};
  }

  void run(std::uint32_t op) {
    if (op == id_of<op::all_reduce>) all_reduce();
    else if (op == id_of<op::all_gather>) all_gather();
    else if (op == id_of<op::reduce_scatter>) reduce_scatter();
    else if (op == id_of<op::all_to_all>) all_to_all();
    else if (op == id_of<op::broadcast>) broadcast();
    else permute();
  }

 private:
  using kind = exchange::kind;

  void go(kind what) {
    e_.what = what;
    e_.program = this_thread.program;
    e_.pieces = &piece_;
    e_.piece_count = 1;
    with_.run(e_);
  }
  void all_reduce() {
    const auto [how, root, world, parameter] = call_.attributes<op::all_reduce>();
    e_.how = how;
    piece_.parameter = parameter;
    go(kind::all_reduce);
    if (root >= 0 && root != with_.ordinal)
      std::memset(call_.out, 0, static_cast<std::size_t>(piece_.count * bytes_));
  }
  void all_gather() {
    const int axis = call_.attributes<op::all_gather>().axis;
    piece_.count = count(call_.in_shapes[0]);
    const replica_blocks blocks(*call_.out_shape, axis, call_.in_shapes[0][axis], bytes_);
    const bool direct = blocks.are_contiguous(with_.world_size);
    if (!direct) piece_.out = scratch<op::all_gather>(piece_.count);
    go(kind::all_gather);
    if (!direct) blocks.put_in(piece_.out, call_.out, with_.world_size);
  }
  void reduce_scatter() {
    const auto [axis, how, part, parameter] = call_.attributes<op::reduce_scatter>();
    e_.how = how;
    piece_.parameter = parameter;
    const replica_blocks blocks(call_.in_shapes[0], axis, part, bytes_);
    if (!blocks.are_contiguous(with_.world_size)) {
      void* const packed = scratch<op::reduce_scatter>(piece_.count);
      blocks.take_out(call_.in[0], packed, with_.world_size);
      piece_.in = packed;
    }
    go(kind::reduce_scatter);
  }
  void all_to_all() {
    const auto [split, concat, world] = call_.attributes<op::all_to_all>();
    piece_.count /= with_.world_size;
    const shape& in = call_.in_shapes[0];
    const replica_blocks from(in, split, in[split] / with_.world_size, bytes_);
    const replica_blocks to(*call_.out_shape, concat, (*call_.out_shape)[concat] / with_.world_size,
                            bytes_);
    if (!from.are_contiguous(with_.world_size)) {
      void* const packed = scratch<op::all_to_all>(piece_.count);
      from.take_out(call_.in[0], packed, with_.world_size);
      piece_.in = packed;
    }
    const bool direct = to.are_contiguous(with_.world_size);
    if (!direct) piece_.out = scratch<op::all_gather>(piece_.count);
    go(kind::all_to_all);
    if (!direct) to.put_in(piece_.out, call_.out, with_.world_size);
  }
  void broadcast() {
    e_.root = call_.attributes<op::broadcast>().root;
    go(kind::broadcast);
  }
  void permute() {
    list<replica_pair> pairs;
    for (std::int64_t i = 0; i < call_.in_shapes[1][0]; ++i)
      pairs.push_back({static_cast<int>(static_cast<const std::int64_t*>(call_.in[1])[i]),
                       static_cast<int>(static_cast<const std::int64_t*>(call_.in[2])[i])});
    e_.pairs = pairs.data();
    e_.pair_count = pairs.size();
    go(kind::permute);
  }
  /// Memory for one block per replica.
  template <class Use>
  void* scratch(std::int64_t block) const {
    return kernel::thread_scratch<Use>(block * bytes_ * with_.world_size);
  }

  const kernel_call& call_;
  replica& with_;
  const std::int64_t bytes_;
  exchange e_;
  exchange_piece piece_;
};

template <class In>
[[gnu::cold]] void run_exchange(const kernel_call& call, std::uint32_t op, dtype type) {
  if (replica* const with = replica_now()) {
    get_metric<In>("ExchangedBytes", metric_unit::bytes)
        .add(static_cast<double>(count(call.in_shapes[0]) * size_of(type)));
    const dependent<In, timed> sample(get_metric<In>("ExchangeTime"));
    return basic_exchange_run<In>(call, type, *with).run(op);
  }
  std::memcpy(call.out, call.in[0],
              static_cast<std::size_t>(count(*call.out_shape) * size_of(type)));
}
XLA_INSTANCE(void run_exchange<void>(const kernel_call&, std::uint32_t, dtype));

}  // namespace xla::detail
