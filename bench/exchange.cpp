// SPDX-License-Identifier: Apache-2.0
// mpirun -n <ranks> exchange: what an all_reduce of this many floats takes, and MPI_Allreduce of
// the same bytes, in turn; the first process prints a line of JSON for each number. `mpirun …
// exchange brief` has a tenth of the calls, and none of MPI's. Alone, `exchange <devices>` has
// devices of one process instead.
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#if XLA_HAS_MPI
#include <optional>
#include <xla/ext/mpi.hpp>
#endif
#include <xla/parallel.hpp>
#include <xla/xla.hpp>

#include "exchange.hpp"
#include "measure.hpp"

namespace {

constexpr int rounds = 11;

/// What f takes; all replicas call it as often, from one moment on.
template <class F>
double microseconds(int calls, F&& f) {
  xla::rendezvous("round");
  return 1e6 * bench::seconds_per_call(f, calls);
}

void measure(bool with_mpi, int share = 1) {
  for (const std::int64_t n : {1, 1000, 100'000, 1'000'000, 6'000'000}) {
    const int calls = (n <= 1000 ? 1000 : n <= 100'000 ? 100 : 10) / share;
    bench::all_reduce all{n};
    std::vector<double> ours, bare;
    for (int round = 0; round < rounds; ++round) {
      ours.push_back(microseconds(calls, all));
#if XLA_HAS_MPI
      if (with_mpi)
        bare.push_back(microseconds(calls, [&] {
          MPI_Allreduce(all.in.data(), all.out.data(), static_cast<int>(n), MPI_FLOAT, MPI_SUM,
                        MPI_COMM_WORLD);
        }));
#endif
    }
    if (xla::global_ordinal() > 0) continue;
    std::printf(R"({"floats": %lld, "replicas": %d, "us": %.2f)", static_cast<long long>(n),
                static_cast<int>(xla::world_size()), bench::spread_of(ours).median);
    if (with_mpi) std::printf(R"(, "mpi_us": %.2f)", bench::spread_of(bare).median);
    std::puts("}");
  }
}

}  // namespace

int main(int argc, char** argv) {
#if XLA_HAS_MPI
  std::optional<xla::mpi::Environment> ranks;
  if (xla::mpi::launched()) ranks.emplace(argc, argv);
  const bool processes = ranks && ranks->size() > 1;
#else
  const bool processes = false;
#endif
  xla::eager_mode(true);
  if (processes) {
    const bool brief = argc > 1 && std::string_view(argv[1]) == "brief";
    measure(!brief, brief ? 10 : 1);
    return 0;
  }
  xla::set_device_count(argc > 1 ? std::atoi(argv[1]) : 2);
  xla::launch([](std::int64_t) { measure(false); });
}
