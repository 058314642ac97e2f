// SPDX-License-Identifier: Apache-2.0
#include "xla/io/atomic_file.hpp"

#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "catch.hpp"

#ifndef _WIN32
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
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

TEST_CASE("a folder that is not there, or is in the way, is an error") {
  const folder where{"xla_test_atomic_errors"};
  CHECK_THROWS_AS(atomic_file(where.file("no/f")), xla::io_error);
  fs::create_directory(where.file("f"));
  xla::io::write_file(where.file("f/full"), bytes{1});
  CHECK_THROWS_AS(write(where.file("f"), {1}), xla::io_error);
  CHECK(xla::io::read_file(where.file("f/full")) == bytes{1});
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
  fs::create_symlink("later", where.file("first"));  // nothing is after it yet
  fs::create_symlink(where.file("first"), where.file("chain"));
  write(where.file("chain"), {3});
  CHECK(fs::is_symlink(where.file("chain")));
  CHECK(fs::is_symlink(where.file("first")));
  CHECK(xla::io::read_file(where.file("later")) == bytes{3});
}

TEST_CASE("a file keeps its mode and its owner") {
  const folder where{"xla_test_atomic_mode"};
  const auto path = where.file("f");
  write(path, {1});
  REQUIRE(::chmod(path.c_str(), 0640) == 0);
  const bool root = ::geteuid() == 0;
  if (root) REQUIRE(::chown(path.c_str(), 12, 34) == 0);
  write(path, {2});
  struct stat now {};
  REQUIRE(::stat(path.c_str(), &now) == 0);
  CHECK((now.st_mode & 07777) == 0640);
  CHECK(now.st_uid == (root ? 12 : ::geteuid()));
  CHECK(now.st_gid == (root ? 34 : ::getegid()));
  CHECK(xla::io::read_file(path) == bytes{2});
}

TEST_CASE("devices and pipes are written to, not replaced") {
  const folder where{"xla_test_atomic_special"};
  const auto pipe = where.file("pipe");
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK_THROWS_AS(write(pipe, {1}), xla::io_error);  // nobody reads
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  REQUIRE(reader >= 0);
  write(pipe, {1, 2, 3});
  std::uint8_t got[4];
  CHECK(::read(reader, got, sizeof got) == 3);
  CHECK(got[2] == 3);
  ::close(reader);
  CHECK(fs::is_fifo(pipe));
  write("/dev/null", {1});
  CHECK(fs::is_character_file("/dev/null"));
  CHECK(where.count() == 1);
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
