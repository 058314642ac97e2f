// SPDX-License-Identifier: Apache-2.0
// One process of several that mpirun has started: see run.cmake.
#include <signal.h>
#include <unistd.h>
#include <algorithm>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <xla/ext/mpi.hpp>

#include "support/exchanges.hpp"

namespace {

using test::kind;
using test::of;
using xla::reduce_type;
using xla::detail::open_world;
using xla::detail::replica;

/// Two at once of more elements than are under way together, in parts of other sizes.
std::string objection_to_long_sums(xla::detail::world& w) {
  return test::objection(w, [](replica& r) {
    const auto x = test::numbers<float>(r.ordinal, 300'007);
    std::vector<float> y(x.size()), z = x;
    const auto reduced = [&](const auto& from, auto& to, std::int64_t first) {
      return r.start(of<float>(kind::all_reduce,
                               {{from.data(), to.data(), first},
                                {from.data() + first, to.data() + first, std::ssize(from) - first}},
                               reduce_type::mean));
    };
    const auto apart = reduced(x, y, 200'000), in_place = reduced(z, z, 1);
    r.wait(in_place);
    r.wait(apart);
    test::want(y == z, "other bits in place");
    for (std::size_t i = 0; i < y.size(); i += i % 997 + 1)
      test::want(y[i] == test::expected<float>(reduce_type::mean, r.world_size,
                                               static_cast<std::int64_t>(i)),
                 "long all_reduce");
  });
}

std::string exchanges(int devices) {
  const auto w = open_world(devices);
  for (const reduce_type how : {reduce_type::sum, reduce_type::mean, reduce_type::max})
    if (const auto s = test::objection_to_sums<float>(*w, how); !s.empty()) return s;
  for (const auto& s : {test::objection_to_sums<double>(*w, reduce_type::mean),
                        test::objection_to_sums<std::int64_t>(*w, reduce_type::product),
                        test::objection_to_flights(*w, 20, 3), objection_to_long_sums(*w)})
    if (!s.empty()) return s;
  if (w->at(0).world_size > 2)
    for (const auto& s :
         {test::objection_to_moves<std::uint8_t>(*w), test::objection_to_moves<double>(*w)})
      if (!s.empty()) return s;
  return "as it should be";
}

/// With sums that MPI makes in an order of its choice: here those that no order changes.
std::string fast() {
  const auto w = open_world(2);
  for (const auto& s : {test::objection_to_sums<std::int64_t>(*w, reduce_type::sum),
                        test::objection_to_sums<std::int64_t>(*w, reduce_type::product),
                        test::objection_to_sums<double>(*w, reduce_type::min),
                        test::objection_to_sums<float>(*w, reduce_type::max)})
    if (!s.empty()) return s;
  return "as it should be";
}

/// What an Environment says of time-outs that are none; "" where it takes one.
std::string refused(int& argc, char**& argv) {
  std::string all;
  for (const double seconds : {0., -1., std::nan("")}) try {
      xla::mpi::Environment(argc, argv, {.timeout = seconds});
      return "";
    } catch (const xla::error& e) {
      all += e.what();
    }
  return all;
}

/// An all_reduce of this many elements after the other, until `stop(step)`; then leaves.
template <class Stop>
std::string reduce_until(replica& r, std::int64_t count, Stop stop) {
  std::vector<float> x(static_cast<std::size_t>(count), 1.f);
  for (int step = 0; !stop(step); ++step)
    r.run(of<float>(kind::all_reduce, {{x.data(), x.data(), count}}, reduce_type::mean));
  return "came to its end";
}

/// What goes wrong in the rank `culprit`. Just before it is killed it makes the file `killed`.
std::string fault(const std::string& what, int rank, int culprit, double after,
                  const std::string& killed) {
  const auto w = open_world(1, what == "late" ? after : 60);
  replica& r = w->at(0);
  const auto never = [](int) { return false; };
  const auto third = [](int step) { return step == 3; };
  const auto nap = std::chrono::duration<double>(after);
  if (rank != culprit) return reduce_until(r, 1000, never);
  if (what == "leaves") return reduce_until(r, 1000, third);
  if (what == "late") std::this_thread::sleep_for(10 * nap);
  if (what == "throws" || what == "late" || what == "differs") reduce_until(r, 1000, third);
  if (what == "throws") {
    const auto why = std::make_exception_ptr(std::runtime_error("no more paper"));
    r.abort(why);
    std::rethrow_exception(why);
  }
  if (what == "differs") return reduce_until(r, 3000, never);
  if (what == "orphans" && fork() == 0) {
    for (const int output : {0, 1, 2}) close(output);  // for which launchers wait
    std::this_thread::sleep_for(std::chrono::seconds(20));
    _exit(0);
  }
  if (what == "dies" || what == "orphans") {
    std::thread([=] {
      std::this_thread::sleep_for(nap);
      std::ofstream{killed};
      kill(getpid(), SIGKILL);
    }).detach();
    return reduce_until(r, 1000, never);
  }
  return "is no fault: " + what;
}

/// What waiting costs: rank 0 comes half a second late.
std::string idle() {
  const auto w = open_world(1);
  const auto processor = [] { return double(std::clock()) / CLOCKS_PER_SEC; };
  w->at(0).run({});
  double used = 1;  // the least of some times, as others may need this core
  for (int i = 0; i < 3; ++i) {
    const double before = processor();
    if (w->at(0).ordinal == 0) std::this_thread::sleep_for(std::chrono::milliseconds(500));
    w->at(0).run({});
    used = std::min(used, processor() - before);
  }
  return used < 0.04 ? "as it should be"
                     : "waited half a second with " + std::to_string(used) + " of a processor";
}

struct Finalizer {
  bool wanted;
  ~Finalizer() {
    if (wanted) MPI_Finalize();
  }
};

std::string run(const std::string& folder, const std::string& what, int rank, char** arguments) {
  if (what == "fast") return fast();
  if (what == "idle") return idle();
  if (what == "exchanges" || what == "serialized") return exchanges(std::atoi(arguments[rank]));
  return fault(what, rank, std::atoi(arguments[0]), std::atof(arguments[1]), folder + "/killed");
}

struct ending {
  int rank = 0, status = 0;
  std::string said;
};

/// What a rank has to say, when it is no part of the world any more.
ending take_part(int argc, char** argv) {
  const std::string folder = argv[1], what = argv[2], none = refused(argc, argv);
  if (none.find("timeout is -1.000000 s, and has to be above 0") == std::string::npos)
    throw std::logic_error("a timeout that is none was refused by: " + none);
  const bool own = what == "serialized";
  int level = 0, rank = -1;
  if (own) {
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  }
  const Finalizer end{own};
  xla::mpi::Environment env{argc, argv, {.fast = what == "fast" || rank == 0}};
  try {
    return {env.rank(), 0, run(folder, what, env.rank(), argv + 3)};
  } catch (const std::exception& e) {
    return {env.rank(), 3, e.what()};
  }
}

}  // namespace

// <folder> exchanges <devices of rank 0> <of rank 1>…
// <folder> serialized <…>: the same, where MPI has been started for one caller at a time, and
//   rank 0 alone would have its sums
// <folder> fast
// <folder> idle
// <folder> leaves|late|throws|differs|dies|orphans <rank> <seconds>; orphans: leaves a child behind
// Each rank writes what it has to say to a file of its own, as launchers swallow lines, and at its
// very end: the file's time is that of it.
int main(int argc, char** argv) try {
  const ending mine = take_part(argc, argv);
  const auto file = std::string(argv[1]) + "/" + std::to_string(mine.rank);
  std::ofstream(file + ".part") << mine.said << '\n';
  std::filesystem::rename(file + ".part", file);
  return mine.status;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
