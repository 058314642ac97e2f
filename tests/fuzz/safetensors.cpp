// SPDX-License-Identifier: Apache-2.0
// What libFuzzer calls: a file is refused by an io_error, or read, written and read again.
#include "xla/ext/safetensors.hpp"

#include <algorithm>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace xla::ext;
  try {
    auto content = parse_safetensors({data, size}, "input");
    auto again = parse_safetensors(to_safetensors(content), "output");
    for (auto* c : {&content, &again})
      std::sort(c->tensors.begin(), c->tensors.end(),
                [](const auto& a, const auto& b) { return a.name < b.name; });
    if (again.metadata != content.metadata || again.tensors != content.tensors) std::abort();
  } catch (const xla::io_error&) {}
  return 0;
}
