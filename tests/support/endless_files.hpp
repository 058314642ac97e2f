// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "catch.hpp"
#include "xla/base/error.hpp"

#ifndef _WIN32
#include <sys/stat.h>
#include <unistd.h>
#endif

namespace test {

/// read(path) refuses, by what the system says and before it reads. Those are a file of one byte
/// more than the limit, which is sparse and takes no place on the disk, a pipe that nobody writes
/// to, and a device that never ends.
template <class Read>
void check_endless_files(const Read& read, std::uint64_t limit) {
  const auto said = [&](const std::string& path) -> std::string {
    try {
      read(path);
    } catch (const xla::io_error& e) {
      return e.what();
    }
    return "read";
  };
  namespace fs = std::filesystem;
  auto path = (fs::temp_directory_path() / "xla_test_endless").string();
#ifndef _WIN32
  path += std::to_string(::getpid());  // other tests do the same at the same time
#endif
  fs::remove(path);
  std::ofstream{path};
  fs::resize_file(path, limit + 1);
  CHECK(said(path) == "'" + path + "' has " + std::to_string(limit + 1) +
                          " bytes, which is more than the limit of " + std::to_string(limit) +
                          " bytes");
  fs::remove(path);
#ifndef _WIN32
  const std::string no_file =
      "': it is a device or a pipe, whose size is not known and may have no limit; copy what it "
      "gives to a file";
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  CHECK(said(path) == "cannot read '" + path + no_file);
  fs::remove(path);
  CHECK(said("/dev/zero") == "cannot read '/dev/zero" + no_file);
#endif
}

}  // namespace test
