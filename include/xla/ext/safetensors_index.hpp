// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads models that are split over several safetensors files, by their index. pretrained.hpp calls
// it.

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "xla/base/system/path.hpp"
#include "xla/ext/json_values.hpp"
#include "xla/ext/safetensors.hpp"

namespace xla::ext {

namespace detail {
/// The names of tensors, grouped by the file that the index names.
inline std::map<std::string, std::vector<std::string>> parse_safetensors_index(
    const std::string& path) {
  const auto index = json_values::read(path);
  std::map<std::string, std::vector<std::string>> out;
  const auto map = index.object("weight_map");
  for (const auto& [name, file] : map.all().items()) {
    if (!file.is_string()) index.refuse("weight_map names no file for " + in_quotes(name));
    const std::string text = file.get<std::string>();
    if (text.empty() || sys::path_of(text).filename() != sys::path_of(text) || text == "..")
      index.refuse("weight_map has " + in_quotes(name) + " in " + in_quotes(text) +
                   ", which is no file in its folder");
    out[text].push_back(name);
  }
  if (out.empty()) index.refuse("its weight_map is empty or absent");
  return out;
}
}  // namespace detail

/// Reads the tensors of the safetensors files that a model.safetensors.index.json in their folder
/// lists. Throws `xla::io_error` with the path and the reason, also if a file lacks a tensor that
/// the index says it has.
inline StateDict read_safetensors_index(const std::string& path,
                                        BFloat16 bfloat16 = BFloat16::widened) {
  StateDict out;
  const auto folder = sys::path_of(path).parent_path();
  for (const auto& [file, names] : detail::parse_safetensors_index(path)) {
    const auto part_path = sys::text_of(folder / sys::path_of(file));
    auto part = read_safetensors(part_path, bfloat16).tensors;
    for (const auto& name : names)
      if (std::none_of(part.begin(), part.end(), [&](const auto& a) { return a.name == name; }))
        throw io_error("'" + part_path + "' lacks the tensor " + detail::in_quotes(name) +
                       ", which '" + path + "' says is in it");
    std::move(part.begin(), part.end(), std::back_inserter(out));
  }
  return out;
}

}  // namespace xla::ext
