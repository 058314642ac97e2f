// SPDX-License-Identifier: Apache-2.0
#pragma once

// ragged_all_to_all(): replicas send each other parts of different sizes, composed of other ops.
// Parts of one size are all_to_all(), in collectives.hpp.

#include <array>
#include <cstdint>

#include "xla/op/clip.hpp"
#include "xla/op/collectives.hpp"
#include "xla/op/concat.hpp"
#include "xla/op/create.hpp"
#include "xla/op/derived/reduction.hpp"
#include "xla/op/floor_divide.hpp"
#include "xla/op/index_select.hpp"
#include "xla/op/logical.hpp"
#include "xla/op/slice.hpp"
#include "xla/op/where.hpp"

namespace xla {
namespace detail {

// What errors about rows that do not exist begin with.
struct ragged_sent_offset {
  static constexpr auto name = "ragged_all_to_all, input_offsets";
};
struct ragged_sent_size {
  static constexpr auto name = "ragged_all_to_all, send_sizes";
};
struct ragged_sent_end {
  static constexpr auto name = "ragged_all_to_all, input_offsets + send_sizes";
};
struct ragged_received_offset {
  static constexpr auto name = "ragged_all_to_all, the senders' output_offsets";
};
struct ragged_received_end {
  static constexpr auto name = "ragged_all_to_all, the senders' output_offsets + recv_sizes";
};
struct ragged_received_size {
  static constexpr auto name = "ragged_all_to_all, recv_sizes - the senders' send_sizes";
};

using ragged_numbers = Tensor<std::int64_t, 1>;

/// The source of each row of a result, as a row of all replicas' operands one after the other; -1
/// where nothing is received.
constexpr auto ragged_sources(const auto& first, const auto& size, const auto& to, Size rows) {
  const auto part = unsqueeze(arange<std::int64_t>(to.size(0)), 1);
  const auto row = arange<std::int64_t>(rows);
  const auto begin = unsqueeze(to, 1);
  const auto own = logical_and(row >= begin, row < begin + unsqueeze(size, 1));  // (parts, rows)
  const auto last = xla::max(where(own, part, -1), {0});
  const auto from = index_select(first - to, 0, clamp_min(last, 0)) + row;
  return where(last >= 0, from, -1);
}

/// Refuses operands and lists of parts whose sizes do not match.
template <class T, int R>
constexpr void check_ragged(const Tensor<T, R>& operand, const Tensor<T, R>& output,
                            const ragged_numbers* const (&lists)[4], const size_scope& scope) {
  for (int i = 1; i < R; ++i)
    if (extent size = output.dims()[i]; !scope.equal(size, operand.dims()[i]))
      scope.fail(text("rows of ") << operand.dims() << " do not fit an output of "
                                  << output.dims());
  if (!scope.at_least(operand.dims()[0], 1))
    scope.fail(text("an operand of ") << operand.dims() << " has no rows; pad it to one");
  for (const ragged_numbers* const list : lists) {
    extent count = list->dims()[0];
    if (!scope.equal(count, lists[0]->dims()[0]))
      scope.fail(text("offsets and sizes of ") << lists[0]->dims()[0] << " and of " << count
                                               << " parts; all four have an element for each");
    if (!scope.at_least(count, 1))
      scope.fail("there are no parts; each replica sends one at least, of size 0 if need be");
  }
}

}  // namespace detail

/// Replicas send each other parts of different sizes, as mixtures of experts need: jax.lax's and
/// torch_tpu's ragged_all_to_all. A part is rows, indices of the first axis. The lists have an
/// element for each part that this replica sends: the first ones go to replica 0, equally many to
/// replica 1, and so on. Part i is operand[input_offsets[i]] and the following send_sizes[i] rows,
/// which its receiver writes from its row output_offsets[i] on. recv_sizes are the sizes of what
/// this replica receives, in the order of the senders. The result is `output` with these rows; of
/// parts that overlap in it, the last sender's counts. Gradients go back to where rows came from,
/// and add up there if a row was sent several times.
///
/// Sizes of tensors are known before the values of the lists, so each replica gets all operands by
/// an all_gather and picks its rows: the memory is that of all replicas' operands. Operands of
/// other sizes and lists of other lengths are a shape_error; rows that do not exist, and recv_sizes
/// that differ from what is sent, are an index_error.
template <class T, int R>
constexpr Tensor<T, R> ragged_all_to_all(const Tensor<T, R>& operand, const Tensor<T, R>& output,
                                         const Tensor<std::int64_t, 1>& input_offsets,
                                         const Tensor<std::int64_t, 1>& send_sizes,
                                         const Tensor<std::int64_t, 1>& output_offsets,
                                         const Tensor<std::int64_t, 1>& recv_sizes,
                                         caller loc = here()) {
  using namespace detail;
  static_assert(R != 0, "xla::ragged_all_to_all: a tensor without axes has no rows to send");
  const size_scope scope{operand.table() ? operand.table() : output.table(),
                         {"ragged_all_to_all", loc}};
  check_ragged(operand, output, {&input_offsets, &send_sizes, &output_offsets, &recv_sizes}, scope);
  const Size rows = operand.size(0), places = output.size(0);
  const Size each = equal_part(input_offsets, 0, scope);
  const auto offsets = check_index<ragged_sent_offset>(input_offsets, rows + 1, loc);
  const auto sizes = check_index<ragged_sent_size>(send_sizes, rows + 1, loc);
  const auto ends = check_index<ragged_sent_end>(offsets + sizes, rows + 1, loc);

  const auto sent = stack(std::array{offsets, ends - offsets, output_offsets}, 1);
  const auto received = all_to_all(sent, 0, 0, loc);
  const auto to = check_index<ragged_received_offset>(select(received, 1, 2), places + 1, loc);
  const auto surplus = recv_sizes - select(received, 1, 1);
  const auto size = recv_sizes - check_index<ragged_received_size>(surplus, 1, loc);
  const auto end = check_index<ragged_received_end>(to + size, places + 1, loc);

  const auto sender = floor_divide(arange<std::int64_t>(to.size(0)), each);
  const auto first = sender * rows + select(received, 1, 0);
  const auto source = ragged_sources(first, end - to, to, places);
  const auto picked = index_select(all_gather(operand, 0, loc), 0, clamp_min(source, 0), loc);
  shape line;
  line.push(places.extent());
  for (int i = 1; i < R; ++i) line.push(1);
  return where(with_shape<op::reshape, R>(source >= 0, line), picked, output);
}

}  // namespace xla
