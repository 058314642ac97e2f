// SPDX-License-Identifier: Apache-2.0
#pragma once

// MPI messages under way together, and the memory that MPI reads and writes for them.
// mpi_transport.hpp and mpi_reduction.hpp use it.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "xla/ext/mpi_process_map.hpp"

namespace xla::mpi::detail {

/// Bytes that Open MPI and MPICH send within a machine without asking the receiver for room.
inline constexpr std::int64_t sent_at_once = 4032;

/// The messages of a process that are in flight together, all with one tag.
class messages {
 public:
  messages(MPI_Comm comm, int tag) : comm_(comm), tag_(tag) {}

  void send(const std::byte* from, std::int64_t bytes, int to) {
    check(MPI_Isend(from, static_cast<int>(bytes), MPI_BYTE, to, tag_, comm_, &more()),
          "MPI_Isend");
  }
  /// Of at most this many bytes.
  void receive(std::byte* to, std::int64_t bytes, int from) {
    check(MPI_Irecv(to, static_cast<int>(bytes), MPI_BYTE, from, tag_, comm_, &more()),
          "MPI_Irecv");
  }
  /// Of a collective function.
  MPI_Request& more() { return requests_.emplace_back(MPI_REQUEST_NULL); }

  bool empty() const noexcept { return requests_.empty(); }
  /// Whether all messages are complete; if so, the list is cleared.
  bool done() {
    int all = 1;
    if (!empty())
      check(MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &all,
                        MPI_STATUSES_IGNORE),
            "MPI_Testall");
    if (all) requests_.clear();
    return all != 0;
  }

 private:
  MPI_Comm comm_;
  int tag_;
  std::vector<MPI_Request> requests_;
};

/// Memory that only grows, for MPI to read and write.
class message_memory {
 public:
  std::byte* room(std::int64_t bytes) {
    if (static_cast<std::int64_t>(bytes_.size()) < bytes)
      bytes_.resize(static_cast<std::size_t>(bytes));
    return bytes_.data();
  }
  std::byte* data() noexcept { return bytes_.data(); }
  const std::byte* data() const noexcept { return bytes_.data(); }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace xla::mpi::detail
