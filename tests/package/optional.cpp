// SPDX-License-Identifier: Apache-2.0
// A program that links the optional targets: their headers compile, their libraries are there.
#include <optional>
#include <string>

#include <xla/ext/image.hpp>
#include <xla/ext/mpi.hpp>
#include <xla/ext/sentencepiece.hpp>

namespace {

template <class F>
bool refuses(F read) {
  try {
    read("/nowhere");
  } catch (const xla::io_error& e) {
    return std::string(e.what()).find("/nowhere") != std::string::npos;
  }
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  std::optional<xla::mpi::Environment> ranks;
  if (xla::mpi::launched()) ranks.emplace(argc, argv);
  const bool pictures = refuses([](const char* path) { xla::ext::read_image(path); });
  const bool tokens = refuses([](const char* path) { xla::ext::SentencePieceTokenizer{path}; });
  return pictures && tokens ? 0 : 1;
}
