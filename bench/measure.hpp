// SPDX-License-Identifier: Apache-2.0
#pragma once

// Samples of functions in turn, their medians and quantiles, and JSON of them. Parts without a peer
// use it.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

namespace bench {

inline double now() {
  using clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(clock::now().time_since_epoch()).count();
}

/// Seconds of CPU time, which other processes do not affect. It is wall-clock time where several
/// threads share the work, or where BENCH_CLOCK=wall says that a peer can measure nothing else.
inline double time_of(int threads) {
  static const char* const said = std::getenv("BENCH_CLOCK");
  if (threads > 1 || (said && std::string(said) == "wall")) return now();
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// The compiler must assume that the memory after p is read and written here.
inline void touch(const void* p) { asm volatile("" : : "g"(p) : "memory"); }

/// Order statistics of some samples.
struct spread {
  double p10 = 0, median = 0, p90 = 0;
};

inline spread spread_of(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  const auto at = [&](double q) {
    return samples[static_cast<std::size_t>(q * static_cast<double>(samples.size() - 1) + 0.5)];
  };
  return {at(0.1), at(0.5), at(0.9)};
}

/// Seconds that f takes each time when called n times.
template <class F>
double seconds_per_call(F&& f, std::int64_t n) {
  const double start = now();
  for (std::int64_t i = 0; i < n; ++i) f();
  return (now() - start) / static_cast<double>(n);
}

/// How often to call f so that one sample takes about `seconds`.
template <class F>
std::int64_t calls_for(F&& f, double seconds) {
  std::int64_t n = 1;
  for (;;) {
    const double took = seconds_per_call(f, n) * static_cast<double>(n);
    if (took >= seconds / 4)
      return std::max<std::int64_t>(
          1, static_cast<std::int64_t>(static_cast<double>(n) * seconds / took));
    n *= 2;
  }
}

/// Seconds per call of `ours` and `theirs`, and the ratio of their speeds: above 1 ours is faster.
struct pair_result {
  spread ours, theirs, speed;
};

/// Samples the two in turn, so that both see the same machine. Samples are short, so that most of
/// them fall between two interruptions.
template <class A, class B>
pair_result measure_pair(A&& ours, B&& theirs) {
  constexpr int fewest = 15, most = 101;
  constexpr double sample = 3e-4, enough = 1;
  const std::int64_t n = calls_for(ours, sample), m = calls_for(theirs, sample);
  std::vector<double> a, b, speed;
  const double start = now();
  for (int i = 0; i < most && (i < fewest || now() - start < enough); ++i) {
    a.push_back(seconds_per_call(ours, n));
    b.push_back(seconds_per_call(theirs, m));
    speed.push_back(b.back() / a.back());
  }
  return {spread_of(a), spread_of(b), spread_of(speed)};
}

/// A number as Python's json reads it.
inline std::string json_number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

/// One measured thing on one line of JSON.
class record {
 public:
  explicit record(const char* part) { add("part", part); }
  record& add(const char* key, const char* value) {
    return raw(key, '"' + std::string(value) + '"');
  }
  record& add(const char* key, double value) {
    char text[40];
    std::snprintf(text, sizeof text, "%.6g", value);
    return raw(key, text);
  }
  record& add(const char* key, const spread& s) {
    char text[120];
    std::snprintf(text, sizeof text, "[%.6g, %.6g, %.6g]", s.p10, s.median, s.p90);
    return raw(key, text);
  }
  void print() const {
    std::printf("{%s}\n", text_.c_str());
    std::fflush(stdout);
  }

 private:
  record& raw(const char* key, const std::string& value) {
    text_ += (text_.empty() ? "\"" : ", \"") + std::string(key) + "\": " + value;
    return *this;
  }
  std::string text_;
};

/// The compiler of this program.
inline const char* compiler() {
#if defined(__clang__)
  return "clang++ " __clang_version__;
#else
  return "g++ " __VERSION__;
#endif
}

/// The widest vectors that this program was compiled for.
inline const char* instruction_set() {
#if defined(__AVX512F__)
  return "AVX512";
#elif defined(__AVX2__)
  return "AVX2";
#elif defined(__SSE2__)
  return "SSE2";
#else
  return "baseline";
#endif
}

}  // namespace bench
