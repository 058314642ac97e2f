// SPDX-License-Identifier: Apache-2.0
#pragma once

// Batches of sequences of different lengths, by PyTorch's names. Internally they stay padded;
// recurrent layers accept them.

#include <cstdint>
#include <utility>

#include "xla/module.hpp"
#include "xla/op/check_index.hpp"
#include "xla/op/compare.hpp"
#include "xla/op/create.hpp"
#include "xla/op/derived/range.hpp"
#include "xla/op/permute.hpp"
#include "xla/op/where.hpp"

namespace xla::nn {

/// Sequences of different lengths as one batch. They stay padded: data is (time, batch, features),
/// with zeros after each sequence's end, which recurrent layers neither read nor write.
template <class T>
struct PackedSequence {
  using value_type = T;
  Tensor<T, 3> data;                ///< (time, batch, features)
  Tensor<std::int64_t, 1> lengths;  ///< (batch)

  /// The mask of elements that belong to a sequence: (time, batch, 1).
  constexpr Tensor<bool, 3> mask() const {
    return unsqueeze(unsqueeze(arange(data.size(0)), 1) < unsqueeze(lengths, 0), 2);
  }
  XLA_MODULE(data, lengths)
};

namespace detail {
struct packed {
  static constexpr auto name = "nn::pack_padded_sequence: lengths";
};
}  // namespace detail

/// Packs a batch (time, batch, features) or, if batch_first, (batch, time, features) of sequences
/// of the given lengths, in any order; elements after a sequence's end are not read. Like
/// torch.nn.utils.rnn.pack_padded_sequence. A length outside [0, time] is an index_error, and
/// another number of lengths a shape_error.
template <class T>
constexpr PackedSequence<T> pack_padded_sequence(const Tensor<T, 3>& input,
                                                 const Tensor<std::int64_t, 1>& lengths,
                                                 bool batch_first = false, caller loc = here()) {
  const Tensor<T, 3> data = batch_first ? transpose(input, 0, 1) : input;
  check_size<detail::packed>(lengths, 0, data.size(1), loc);
  PackedSequence<T> p{data, check_index<detail::packed>(lengths, data.size(0) + 1, loc)};
  p.data = where(p.mask(), data, 0);
  return p;
}

/// The packed batch in its original size, with padding_value after each sequence's end, and the
/// lengths. Like torch.nn.utils.rnn.pad_packed_sequence.
template <class T>
constexpr std::pair<Tensor<T, 3>, Tensor<std::int64_t, 1>> pad_packed_sequence(
    const PackedSequence<T>& sequence, bool batch_first = false, T padding_value = 0) {
  Tensor<T, 3> data = sequence.data;
  if (padding_value != 0) data = where(sequence.mask(), data, padding_value);
  return {batch_first ? transpose(data, 0, 1) : data, sequence.lengths};
}

}  // namespace xla::nn
