// SPDX-License-Identifier: Apache-2.0
#include "xla/io/atomic_file.hpp"

#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "catch.hpp"

#ifndef _WIN32
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

namespace fs = std::filesystem;
using xla::io::atomic_file;

namespace {

using bytes = std::vector<std::uint8_t>;

/// A folder of its own, removed at the end.
struct folder {
  fs::path path;
  explicit folder(const std::string& name) : path(fs::temp_directory_path() / name) {
    fs::remove_all(path);
    fs::create_directory(path);
  }
  ~folder() { fs::remove_all(path); }
  std::string file(const std::string& name) const { return (path / name).string(); }
  std::size_t count() const {
    std::size_t n = 0;
    for ([[maybe_unused]] const auto& entry : fs::directory_iterator(path)) ++n;
    return n;
  }
};

void write(const std::string& path, const bytes& content) {
  atomic_file file{path};
  file.write(content);
  file.commit();
}

}  // namespace

TEST_CASE("a file appears, and is replaced, only at commit") {
  const folder where{"xla_test_atomic"};
  const auto path = where.file("f");
  {
    atomic_file file{path};
    file.write(bytes{1, 2});
    CHECK_FALSE(fs::exists(path));
    file.write(bytes{3});
    file.commit();
  }
  CHECK(xla::io::read_file(path) == bytes{1, 2, 3});
  {
    atomic_file file{path};
    file.write(bytes{4});
  }
  CHECK(xla::io::read_file(path) == bytes{1, 2, 3});
  CHECK(where.count() == 1);
  xla::io::write_file(path + ".tmp", bytes(100, 9));  // what a kill may leave
  write(path, bytes{5});
  CHECK(xla::io::read_file(path) == bytes{5});
  CHECK(where.count() == 1);
  write(path, {});
  CHECK(xla::io::read_file(path).empty());
}

TEST_CASE("a folder that is not there, or stands in the way, is an error") {
  const folder where{"xla_test_atomic_errors"};
  CHECK_THROWS_AS(atomic_file(where.file("no/f")), xla::io_error);
  fs::create_directory(where.file("f"));
  xla::io::write_file(where.file("f/full"), bytes{1});
  CHECK_THROWS_AS(write(where.file("f"), {1}), xla::io_error);
  CHECK(where.count() == 1);
}

#ifndef _WIN32
TEST_CASE("a link stays a link") {
  const folder where{"xla_test_atomic_link"};
  fs::create_symlink("real", where.file("link"));
  xla::io::write_file(where.file("real"), bytes{1});
  write(where.file("link"), {2});
  CHECK(fs::is_symlink(where.file("link")));
  CHECK(xla::io::read_file(where.file("real")) == bytes{2});
}

TEST_CASE("a disk that refuses leaves the old file") {
  const folder where{"xla_test_atomic_full"};
  const auto path = where.file("f");
  write(path, bytes(10, 1));
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{4096, 4096};
    setrlimit(RLIMIT_FSIZE, &limit);
    try {
      write(path, bytes(1'000'000, 2));
    } catch (const xla::io_error&) {
      _exit(7);
    }
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WEXITSTATUS(status) == 7);
  CHECK(xla::io::read_file(path) == bytes(10, 1));
  CHECK(where.count() == 1);
}

TEST_CASE("a kill at any moment leaves a whole file") {
  const folder where{"xla_test_atomic_kill"};
  const auto path = where.file("f");
  write(path, bytes(100'000, 0));
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0)
      for (std::uint8_t n = 1;; ++n) write(path, bytes(100'000u + n, n));
    usleep(static_cast<useconds_t>(500 + 731 * i));
    kill(child, SIGKILL);
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    const auto content = xla::io::read_file(path);
    REQUIRE(!content.empty());
    REQUIRE(content == bytes(100'000u + content[0], content[0]));
  }
}
#endif
