// SPDX-License-Identifier: Apache-2.0
#include "xla/io/progress.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <string>

#include "catch.hpp"

#ifndef _WIN32
#include <sys/wait.h>
#include <unistd.h>
#endif

namespace {

// A clock that the test moves.
struct test_clock {
  using duration = std::chrono::duration<double>;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<test_clock>;
  static inline double seconds = 0;
  static time_point now() { return time_point{duration{seconds}}; }
};

// A stream into memory by way of a temporary file.
struct sink {
  std::FILE* file = std::tmpfile();
  ~sink() { std::fclose(file); }
  std::string text() const {
    std::string out(static_cast<std::size_t>(std::ftell(file)), ' ');
    std::rewind(file);
    const auto count = std::fread(out.data(), 1, out.size(), file);
    std::fseek(file, 0, SEEK_END);
    return out.substr(0, count);
  }
};

using progress = xla::io::basic_progress<test_clock>;
using xla::io::detail::progress_line;
using xla::io::detail::progress_state;

constexpr auto erase = "\r\x1b[K";

}  // namespace

TEST_CASE("numbers and durations are short") {
  using namespace xla::io::detail;
  CHECK(short_number(0) == "0");
  CHECK(short_number(0.5) == "0.50");
  CHECK(short_number(7) == "7");
  CHECK(short_number(999.4) == "999");
  CHECK(short_number(999.6) == "1.00k");
  CHECK(short_number(12'345) == "12.3k");
  CHECK(short_number(1.5e6) == "1.50M");
  CHECK(short_number(-2e9) == "-2.00G");
  CHECK(short_number(1e300) == "1e+300");
  CHECK(short_number(std::nan("")) == "nan");
  CHECK(short_duration(0) == "0:00");
  CHECK(short_duration(59.6) == "1:00");
  CHECK(short_duration(3723) == "1:02:03");
  CHECK(short_duration(3 * 86400 + 4 * 3600 + 5 * 60) == "3d 04:05");
  CHECK(short_duration(-1) == "?");
  CHECK(short_duration(INFINITY) == "?");
}

TEST_CASE("a line keeps to its width, dropping the least important parts") {
  progress_state state{.step = 50, .total = 2000, .step_rate = 10, .item_rate = 81'920};
  state.values = {{"loss", 2.34567}, {"validation loss", 2.5}};
  const std::string whole =
      "  50/2000   2%  loss 2.346  validation loss 2.5  81.9k characters/s  3:15 left";
  CHECK(progress_line(state, "characters", 200) == whole);
  CHECK(progress_line(state, "characters", whole.size()) == whole);
  CHECK(progress_line(state, "characters", whole.size() - 1) ==
        "  50/2000   2%  loss 2.346  validation loss 2.5  81.9k characters/s");
  CHECK(progress_line(state, "characters", 20) == "  50/2000   2%");
  CHECK(progress_line(state, "characters", 6) == "  50/2");
  for (std::size_t width = 0; width < 90; ++width)
    CHECK(progress_line(state, "characters", width).size() <= width);
}

TEST_CASE("unknown totals, overruns and characters of several bytes are shown") {
  CHECK(progress_line({.step = 7}, "items", 80) == "step 7");
  CHECK(progress_line({.step = 12, .total = 10}, "items", 80) == "12/10 100%");
  CHECK(progress_line({.step = 999, .total = 1000, .step_rate = 1}, "i", 80) ==
        " 999/1000  99%  0:01 left");
  CHECK(progress_line({.step = 10, .total = 10, .elapsed = 61, .finished = true}, "i", 80) ==
        "10/10 100%  took 1:01");
  CHECK(progress_line({.step = 1, .values = {{"perte é", 1}}}, "i", 17) == "step 1  perte é 1");
  CHECK(xla::io::detail::cut_columns("aéé", 2) == "aé");
}

TEST_CASE("on a terminal one line is rewritten ten times a second at most") {
  const sink out;
  test_clock::seconds = 100;
  {
    progress bar{{.total = 1000, .unit = "characters", .stream = out.file, .terminal = true,
                  .width = 79}};
    for (int i = 0; i < 1000; ++i) {
      test_clock::seconds += 0.001;
      bar.value("loss", 1.0);
      bar.advance(64);
    }
    bar.finish();
    bar.finish();
  }
  const auto text = out.text();
  std::size_t draws = 0;
  for (auto at = text.find(erase); at != std::string::npos; at = text.find(erase, at + 1)) ++draws;
  CHECK(draws >= 9);
  CHECK(draws <= 11);
  CHECK(text.starts_with("   1/1000   0%  loss 1  64.0k characters/s  0:01 left"));
  CHECK(text.ends_with("1000/1000 100%  loss 1  64.0k characters/s  took 0:01\n"));
  CHECK(std::count(text.begin(), text.end(), '\n') == 1);
}

TEST_CASE("elsewhere plain lines are printed every so often") {
  const sink out;
  test_clock::seconds = 0;
  {
    progress bar{{.total = 40, .plain_seconds = 10, .stream = out.file}};  // a file, no terminal
    for (int i = 0; i < 40; ++i) {
      test_clock::seconds += 1;
      bar.advance();
    }
  }
  CHECK(out.text() ==
        " 1/40   2%  0:39 left\n"
        "11/40  27%  0:29 left\n"
        "21/40  52%  0:19 left\n"
        "31/40  77%  0:09 left\n"
        "40/40 100%  took 0:40\n");
}

TEST_CASE("printed lines are above the live one") {
  const sink out;
  test_clock::seconds = 0;
  {
    progress bar{{.stream = out.file, .terminal = true, .width = 79}};
    bar.print("before");
    bar.advance();
    bar.print("sample");
  }
  CHECK(out.text() == "before\nstep 1" + std::string{erase} + "sample\nstep 1" + erase +
                          "step 1  took 0:00\n");
}

TEST_CASE("a progress that never advanced prints nothing") {
  const sink out;
  { progress bar{{.total = 5, .stream = out.file, .terminal = true}}; }
  CHECK(out.text().empty());
}

#ifndef _WIN32
TEST_CASE("the first interrupt sets a flag, and the guard restores the handler") {
  const auto before = std::signal(SIGINT, SIG_DFL);
  {
    const xla::io::interrupt_guard outer;
    CHECK_FALSE(outer.interrupted());
    {
      const xla::io::interrupt_guard inner;
      std::raise(SIGINT);
      CHECK(inner.interrupted());
    }
    CHECK(outer.interrupted());
  }
  CHECK(std::signal(SIGINT, SIG_IGN) == SIG_DFL);
  {
    const xla::io::interrupt_guard guard;
    std::raise(SIGINT);
    CHECK_FALSE(guard.interrupted());
  }
  CHECK(std::signal(SIGINT, before) == SIG_IGN);
}

TEST_CASE("a second interrupt ends the process") {
  const auto child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::signal(SIGINT, SIG_DFL);  // the harness may handle it
    const xla::io::interrupt_guard guard;
    std::raise(SIGINT);
    if (!guard.interrupted()) _exit(1);
    std::raise(SIGINT);
    _exit(2);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGINT);
}
#endif
