// SPDX-License-Identifier: Apache-2.0
#pragma once

// The data of a profile: steps, values, times, peaks. It measures nothing; text, JSON and the page
// are made of it.

#include <algorithm>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "xla/base/error.hpp"
#include "xla/shape/dtype.hpp"

namespace xla {

/// The measured peak performance of this machine in this program: with the vectors that it is
/// compiled for, on this many threads at once.
struct MachinePeaks {
  int threads = 0;
  double flops = 0;  ///< float32 multiply-adds in registers, two operations each, per second
  double bytes = 0;  ///< a copy between blocks that exceed the caches, read and written, per second
};

/// The peaks of this machine on this many threads; measured at first use, in about a tenth of a
/// second, with 128 MiB of memory.
template <class = void>
[[gnu::cold]] MachinePeaks machine_peaks(int threads);

/// When a thread worked on a step. Thread 0 is the one that ran the function.
struct ProfileSpan {
  int thread = 0;
  double start = 0;  ///< seconds since the call's first step began
  double seconds = 0;
};

/// A step of a plan: an op with a kernel of its own, or a fused region.
struct ProfileStep {
  std::string name;              ///< "matmul 64x128x784" (m, n, k), "map mul add (64, 128)",
                                 ///< "convolution 784x128x1152 winograd 4x4 channels_last"
  std::string kind;              ///< "product", "map", "row", "reduce", "slices": steps that run
                                 ///< slice by slice; "parallel": small ones that run side by side;
                                 ///< "start" and "wait" of an exchange with the other replicas;
                                 ///< "loop", also of branches; or "move" for the rest
  std::vector<std::string> ops;  ///< in the order in which it computes them
  std::string algorithm;         ///< if a kernel has several: "direct", "winograd 4x4"
  std::string attributes;   ///< of an op with a kernel of its own: "axis 1", "… channels_last"
  std::int64_t cached = 0;  ///< bytes of packed weights, cached between calls
  std::string source;       ///< "model.cpp:42", if the plan knows the line; else empty
  /// The name in the model of the module whose parameters a step of a compiled function uses:
  /// "layers.3.q"; of several the first ("layers.3.q +2"); for the body of a loop over blocks
  /// "layers.0-23.q". For steps without parameters, the innermost module around neighbouring steps;
  /// empty if unknown.
  std::string module;
  dtype type = dtype::float32;  ///< of its first result
  std::vector<int> after;       ///< steps whose results it reads
  std::vector<int> reads;       ///< indices in ProfileFunction::values
  std::vector<int> writes;
  int started = -1;    ///< of a wait: the step that started its exchange
  bool once = false;   ///< depends on sizes alone: ran when memory was made, not in the call
  double start = 0;    ///< in the call that is shown, as the spans
  double seconds = 0;  ///< median over the calls
  std::vector<ProfileSpan> spans;  ///< one per thread and loop; without any, thread 0 alone
  double flops = 0;                ///< operations
  double bytes_read = 0;           ///< of its inputs, each once
  double bytes_written = 0;
  /// For a loop: how often its body has run in the call, and the body's steps, with the operations,
  /// bytes and seconds of all runs together.
  std::int64_t runs = 0;
  std::vector<ProfileStep> body;
};

/// A value that steps read or write: an argument, an intermediate value in the arena, a result.
struct ProfileValue {
  std::string name;  ///< "argument 0.fc1.weight", "result 0"; an intermediate value is "%12"
  /// Where it is stored, see placement: "arena", "donated", "argument", "gradient", "write",
  /// "result".
  std::string storage;
  std::string shape;  ///< "float32 (64, 128)"
  std::int64_t bytes = 0;
  std::int64_t offset = 0;  ///< in the arena
  int first = 0;            ///< the step that makes it; -1: it exists before the first step
  int last = 0;             ///< the last step that needs it; the number of steps: the call's end
  /// The value whose memory it takes over in the step that reads that one; -1: none.
  int replaces = -1;
};

/// A compiled function at one signature, or a traced graph.
struct ProfileFunction {
  std::string name;
  std::string signature;  ///< the shapes of tensors among the arguments
  int calls = 0;          ///< recorded
  double seconds = 0;     ///< of all steps, median over the calls
  std::int64_t arena_bytes = 0;
  std::int64_t unshared_bytes = 0;  ///< the arena's size if no value reused another's memory
  int threads = 1;                  ///< that worked in the call that is shown
  std::vector<ProfileStep> steps;   ///< in the order in which they run
  std::vector<ProfileValue> values;

  template <class = void>
  double flops() const {
    double sum = 0;
    for (const ProfileStep& s : steps) sum += s.once ? 0 : s.flops;
    return sum;
  }
  template <class = void>
  double bytes() const {
    double sum = 0;
    for (const ProfileStep& s : steps) sum += s.once ? 0 : s.bytes_read + s.bytes_written;
    return sum;
  }
};

/// A backend other than the native one, which ran during the profile; it has no steps to show.
struct ProfileBackend {
  std::string name;  ///< its name for set_backend()
  std::int64_t runs = 0;
};

/// The growth of a metric or counter of metrics_report() during the profile.
struct ProfileMetric {
  std::string name;          ///< "OutboundData"
  std::string unit;          ///< of the total: "ns", "bytes"; empty for a counter
  std::int64_t samples = 0;  ///< samples of a metric; for a counter, its growth
  double total = 0;          ///< the sum of the samples
};

/// An interval on a thread, if the program names scopes (xla::Trace): a scope, an op of eager mode
/// within one, or a run of a compiled function or traced graph.
struct ProfileEvent {
  std::string name;  ///< of the scope or function; for an op with its result's shape: "add (2, 3)"
  std::string kind;  ///< "scope", "op", "plan"
  std::int64_t step = -1;  ///< the number of a StepTrace; -1: none
  int thread = 0;          ///< 0 is that of the first event
  double start = 0;        ///< seconds since the recording began
  double seconds = 0;
  int parent = -1;  ///< the enclosing event; -1: none
};

/// The order of a table of steps; all but `order` begin with the highest value.
enum class ProfileSort { time, flops, bytes, order };

/// Where the time of a call goes; see xla::profile.
template <class>
struct BasicProfile {
  MachinePeaks peaks;
  std::vector<ProfileFunction> functions;  ///< in the order of their first calls
  std::vector<ProfileBackend> backends;    ///< backends that ran instead of plans
  /// If backends ran, how they spent their time: execution, compilation, caches, transfers.
  std::vector<ProfileMetric> metrics;
  /// Scopes and their events, in the order in which they began; empty if no scope ended.
  std::vector<ProfileEvent> events;
  std::int64_t dropped_events = 0;  ///< scopes beyond the first 65,536 that ended

  /// The steps of the first function; an error if no plan ran.
  const std::vector<ProfileStep>& steps() const {
    if (functions.empty())
      throw runtime_error("Profile::steps: only plans have steps to show; set_backend(\"native\")");
    return functions.front().steps;
  }

  /// The share of the machine's multiply-add peak that a step reaches; for float64 the peak is
  /// half.
  double flop_share(const ProfileStep& s) const {
    const double peak = s.type == dtype::float64 ? peaks.flops / 2 : peaks.flops;
    return s.seconds > 0 && peak > 0 ? s.flops / s.seconds / peak : 0;
  }
  /// The share of the memory bandwidth that a step reaches; above 1 if caches help.
  double byte_share(const ProfileStep& s) const {
    return s.seconds > 0 && peaks.bytes > 0
               ? (s.bytes_read + s.bytes_written) / s.seconds / peaks.bytes
               : 0;
  }

  /// One table per function, with at most row_limit steps.
  std::string table(ProfileSort sort_by = ProfileSort::time, int row_limit = 40) const;
  std::string to_string() const { return table(); }
  /// All data, for programs.
  std::string to_json() const;
  /// A self-contained page for a browser: timeline, steps, graph, memory.
  std::string to_html() const;

  /// These write a file, and throw `xla::io_error` if that fails.
  void write_text(const std::string& path) const;
  void write_json(const std::string& path) const;
  void write_html(const std::string& path) const;
  /// In one of these forms, by the path's suffix: .html, .json, or text.
  void write(const std::string& path) const;
};
using Profile = BasicProfile<void>;

template <class = void>
std::ostream& operator<<(std::ostream& out, const Profile& p);

}  // namespace xla
