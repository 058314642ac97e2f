// SPDX-License-Identifier: Apache-2.0
#pragma once

// Training with many processes by MPI: a program makes one Environment in main(). Without it a
// world consists of the threads of one process (parallel/).

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "xla/base/error.hpp"
#include "xla/base/system/cores.hpp"
#include "xla/base/system/process.hpp"
#include "xla/ext/mpi_world.hpp"
#include "xla/run/state/context.hpp"
#include "xla/run/world/launch.hpp"

namespace xla::mpi {

struct EnvironmentOptions {
  /// Leaves sums of many elements to MPI, which chooses their order. All replicas get the same
  /// bits, but not those that threads get. It takes effect only if all processes ask for it.
  bool fast = false;
  /// Seconds that a replica waits for others before it ends the world; positive.
  double timeout = xla::detail::replica_timeout();
};

/// Whether a launcher such as mpirun has started this process: of Open MPI, MPICH and their kin, or
/// another one that uses PMI or PMIx, like Slurm's. A program that runs alone can skip MPI, which
/// takes up to a second to start: `std::optional<Environment> env; if (launched())
/// env.emplace(argc, argv);`.
inline bool launched() {
  return std::getenv("OMPI_COMM_WORLD_SIZE") || std::getenv("PMI_RANK") || std::getenv("PMIX_RANK");
}

/// Makes one world of the processes that mpirun has started. Outside of `xla::launch` each process
/// is one replica, and all draw the same random numbers. Inside it each device is a replica; the
/// devices of rank 0 have the first ordinals. Create the Environment in main(), before
/// set_device_count() and any exchange; it must outlive them. It starts MPI unless MPI runs
/// already, and ends it. With a single process it does nothing else.
///
/// The processes also keep TCP connections of their own. If one dies, all others throw
/// `xla::replica_error` at their next or current exchange. After that a program can only end.
class Environment final : xla::detail::world_maker {
 public:
  /// Throws `xla::runtime_error` if MPI was started without MPI_THREAD_SERIALIZED, if a process
  /// cannot reach that of rank 0, or if the timeout is not positive.
  Environment(int& argc, char**& argv, const EnvironmentOptions& options = {});
  ~Environment();
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }  ///< processes

 private:
  std::unique_ptr<xla::detail::world> open(int replicas, double timeout) override;
  void join_ranks(bool fast, bool alone);
  void leave_ranks();

  int rank_ = 0, size_ = 1;
  const double timeout_;
  bool ends_mpi_ = false;
  const int exceptions_ = std::uncaught_exceptions();
  MPI_Comm comm_ = MPI_COMM_NULL;
  std::unique_ptr<detail::channel> channel_;
  std::unique_ptr<xla::detail::world> world_;  // outside of `launch`
};

namespace detail {

/// Gives each process its share of the cores on which the launcher lets it run. Without it, several
/// processes on the same cores would each start a thread for every core.
inline void share_cores() {
  MPI_Comm machine = MPI_COMM_NULL;
  check(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine),
        "MPI_Comm_split_type");
  int rank = 0, processes = 1;
  MPI_Comm_rank(machine, &rank);
  MPI_Comm_size(machine, &processes);
  const auto own = sys::core_set::of_this_thread();
  std::vector<sys::core_set> all(static_cast<std::size_t>(processes));
  check(MPI_Allgather(&own, sizeof own, MPI_BYTE, all.data(), sizeof own, MPI_BYTE, machine),
        "MPI_Allgather");
  MPI_Comm_free(&machine);
  const auto sharers = [&](int ranks) {  // among the first this many
    return static_cast<int>(
        std::count_if(all.begin(), all.begin() + ranks, [&](const auto& s) { return s == own; }));
  };
  const int cores = own.count(), index = sharers(rank), shares = sharers(processes);
  const auto part = own.part(index, shares);
  if (cores >= shares) part.pin_this_thread();
  sys::set_environment("XLA_NUM_THREADS", std::to_string(std::max(1, part.count())), false);
}

}  // namespace detail

inline Environment::Environment(int& argc, char**& argv, const EnvironmentOptions& options)
    : timeout_(options.timeout) {
  if (!(timeout_ > 0))
    throw runtime_error("mpi::Environment: timeout is " + std::to_string(timeout_) +
                        " s, and has to be above 0");
  int level = MPI_THREAD_SINGLE, runs = 0;
  detail::check(MPI_Initialized(&runs), "MPI_Initialized");
  if (runs) {
    detail::check(MPI_Query_thread(&level), "MPI_Query_thread");
  } else {
    detail::check(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level), "MPI_Init_thread");
    ends_mpi_ = true;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);  // of requests, too
  }
  detail::check(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "MPI_Comm_rank");
  detail::check(MPI_Comm_size(MPI_COMM_WORLD, &size_), "MPI_Comm_size");
  if (size_ == 1) return;
  if (level < MPI_THREAD_SERIALIZED)
    throw runtime_error(
        "mpi::Environment: MPI was started for one thread; call MPI_Init_thread with "
        "MPI_THREAD_SERIALIZED or MPI_THREAD_MULTIPLE, or leave that to the Environment");
  join_ranks(options.fast, level == MPI_THREAD_MULTIPLE);
}

inline void Environment::join_ranks(bool fast, bool alone) {
  detail::share_cores();
  detail::check(MPI_Comm_dup(MPI_COMM_WORLD, &comm_), "MPI_Comm_dup");
  MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  int all_fast = fast;
  detail::check(MPI_Allreduce(MPI_IN_PLACE, &all_fast, 1, MPI_INT, MPI_MIN, comm_),
                "MPI_Allreduce");
  channel_ = std::make_unique<detail::channel>(comm_, rank_, size_, all_fast != 0, alone);
  detail::endpoint first;
  if (rank_ == 0) first = channel_->peers.listen();
  detail::check(MPI_Bcast(&first, sizeof first, MPI_BYTE, 0, comm_), "MPI_Bcast");
  channel_->peers.join(first);
  world_ = open(1, timeout_);
  xla::detail::device_of(0).replica = &world_->at(0);
  xla::detail::the_process.worlds = this;
}

inline std::unique_ptr<xla::detail::world> Environment::open(int replicas, double timeout) {
  return std::make_unique<detail::rank_world>(
      *channel_, detail::process_map(rank_, channel_->all_gather(replicas, timeout)),
      std::min(timeout, timeout_));
}

inline void Environment::leave_ranks() {
  xla::detail::the_process.worlds = nullptr;
  xla::detail::device_of(0).replica = nullptr;
  if (std::uncaught_exceptions() > exceptions_)
    world_->at(0).abort(std::make_exception_ptr(
        runtime_error("an exception has ended the function that made the mpi::Environment")));
  world_ = nullptr;
  if (!channel_->leave()) {
    ends_mpi_ = false;  // MPI would wait for a dead process
    return;
  }
  channel_->peers.at_end([] {
    std::fputs("mpi::Environment: a process has died while MPI was ended\n", stderr);
    std::_Exit(EXIT_FAILURE);
  });
  MPI_Comm_free(&comm_);
}

inline Environment::~Environment() {
  if (size_ > 1) leave_ranks();
  if (ends_mpi_) MPI_Finalize();
}

}  // namespace xla::mpi
