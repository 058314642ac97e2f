// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which replicas live in which process, and checks of MPI's return codes. The other mpi_ headers
// share it.

#ifndef OMPI_SKIP_MPICXX
#define OMPI_SKIP_MPICXX 1
#endif
#ifndef MPICH_SKIP_MPICXX
#define MPICH_SKIP_MPICXX 1
#endif
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "xla/base/error.hpp"
#include "xla/run/world/replica.hpp"

namespace xla::mpi::detail {

using namespace xla::detail;

inline void check(int code, const char* function) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  throw runtime_error(std::string(function) + ": " + text.data());
}

/// Which replicas each process has: those of rank r are first[r] … first[r + 1] - 1.
struct process_map {
  int rank = 0;
  std::vector<int> first;
  /// Neighbouring replicas in the summation tree, which a process may combine itself.
  int unit = 1;

  process_map(int own_rank, std::span<const int> devices) : rank(own_rank), first{0} {
    int all = 0;
    for (const int n : devices) {
      first.push_back(first.back() + n);
      all |= n;
    }
    unit = all & -all;
  }
  int ranks() const { return static_cast<int>(first.size()) - 1; }
  int world_size() const { return first.back(); }
  int devices(int r) const { return at(r + 1) - at(r); }
  int at(int r) const { return first[static_cast<std::size_t>(r)]; }
  int own() const { return devices(rank); }
  int most() const {
    int n = 0;
    for (int r = 0; r < ranks(); ++r) n = std::max(n, devices(r));
    return n;
  }
  int rank_of(int ordinal) const {
    return static_cast<int>(std::upper_bound(first.begin(), first.end(), ordinal) - first.begin()) -
           1;
  }
};

/// An exchange that a replica has started, with pointers to its elements.
struct started {
  exchange what;
  std::vector<exchange_piece> pieces;
  std::vector<replica_pair> pairs;
  fingerprint program;

  void keep(const exchange& e) {
    what = e;
    pieces.assign(e.pieces, e.pieces + e.piece_count);
    pairs.assign(e.pairs, e.pairs + e.pair_count);
    what.pieces = pieces.data();
    what.pairs = pairs.data();
    if (e.program) {
      program = *e.program;
      what.program = &program;
    }
  }
};

}  // namespace xla::mpi::detail
