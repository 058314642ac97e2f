// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads and writes safetensors files as named arrays; big-endian processors swap bytes. Loading
// them into a model is pretrained.hpp; resuming a training is checkpoint.hpp.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "xla/ext/safetensors_header.hpp"
#include "xla/io/atomic_file.hpp"
#include "xla/io/bytes.hpp"
#include "xla/io/file.hpp"

namespace xla::ext {

/// The contents of a safetensors file: arrays of float32, float64, int32, int64, uint8 and bool,
/// and texts, by name. bfloat16 and float16 are read as float32, unless BFloat16::as_stored is
/// given.
struct Safetensors {
  StateDict tensors;
  std::map<std::string, std::string> metadata;
};

/// The element type in which float32 arrays are written. Those of 16 bits take half the space, and
/// round to the nearest even. Arrays of bfloat16 are written as they are.
enum class FloatFormat { float32, bfloat16, float16 };

/// How bfloat16 of a file is read: widened to float32, or as stored, in half the memory;
/// load_state_dict then widens one tensor after the other.
enum class BFloat16 { widened, as_stored };

namespace detail {

inline std::uint64_t header_length(std::span<const std::uint8_t, 8> first, std::uint64_t file_bytes,
                                   const std::string& name) {
  std::uint64_t length = 0;
  for (std::size_t i = 8; i-- > 0;) length = length << 8 | first[i];
  if (length > max_safetensors_header)
    refuse_safetensors(name, "the header takes " + std::to_string(length) + " bytes, at most " +
                                 std::to_string(max_safetensors_header) + " are allowed");
  if (length > file_bytes - 8)
    refuse_safetensors(name, "the header takes " + std::to_string(length) + " bytes, found " +
                                 std::to_string(file_bytes - 8));
  return length;
}

/// The element type in which an array is stored; nullptr if the format has none.
inline const safetensors_type* stored_as(dtype type, FloatFormat floats) {
  if (type == dtype::bfloat16) return &stored_bfloat16;
  const int skip = type == dtype::float32 ? static_cast<int>(floats) : 0;
  const auto found = std::find_if(safetensors_types.begin(), safetensors_types.end(),
                                  [&](const auto& t) { return t.type == type; });
  return found == safetensors_types.end() ? nullptr : &*found + skip;
}

/// The header of a file to be written, and the arrays in the order of their bytes.
struct safetensors_layout {
  struct part {
    const NamedArray* array;
    const safetensors_type* stored;
    /// Calls write(bytes) with the parts of the file in order.
    template <class Write>
    void put(Write&& write) const {
      const auto width = static_cast<std::size_t>(size_of(stored->width));
      if (is_narrow(*stored)) {
        auto elements = narrow(*stored, array->bytes);
        io::detail::convert_bytes(elements, width, std::endian::little);
        write(elements);
      } else {
        io::detail::with_order(array->bytes, width, std::endian::little, write);
      }
    }
  };
  std::vector<std::uint8_t> head;
  std::vector<part> arrays;
};

inline safetensors_layout lay_out_safetensors(const Safetensors& content, const std::string& name,
                                              FloatFormat floats) {
  const auto refuse = [&](const std::string& reason) {
    throw io_error("cannot write '" + name + "': " + reason);
  };
  safetensors_layout out;
  for (const auto& array : content.tensors)
    if (const auto* const stored = stored_as(array.type, floats))
      out.arrays.push_back({&array, stored});
    else refuse("tensor " + in_quotes(array.name) + " has a type that no file can have");
  // Wider elements come first, so that all are aligned.
  std::stable_sort(out.arrays.begin(), out.arrays.end(), [](const auto& a, const auto& b) {
    return size_of(a.stored->width) > size_of(b.stored->width);
  });
  auto header = nlohmann::json::object();
  if (!content.metadata.empty()) header[std::string{safetensors_metadata}] = content.metadata;
  std::uint64_t at = 0;
  for (const auto& [array, stored] : out.arrays) {
    const auto in_memory = io::array_bytes(array->type, array->sizes);
    if (!in_memory || *in_memory != array->bytes.size())
      refuse("tensor " + in_quotes(array->name) + " of sizes " + io::sizes_text(array->sizes) +
             " holds " + std::to_string(array->bytes.size()) + " bytes");
    if (array->name == safetensors_metadata || header.contains(array->name))
      refuse("the name " + in_quotes(array->name) + " appears twice or is reserved");
    const auto bytes = is_narrow(*stored) ? *in_memory / 2 : *in_memory;
    header[array->name] = {
        {"dtype", stored->name}, {"shape", array->sizes}, {"data_offsets", {at, at + bytes}}};
    at += bytes;
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const nlohmann::json::exception&) {
    refuse("a name or a metadata text is not UTF-8");
  }
  text.append((8 - text.size() % 8) % 8, ' ');
  if (text.size() > max_safetensors_header) refuse("its header would be too long");
  out.head.resize(8 + text.size());
  for (std::size_t i = 0; i < 8; ++i)
    out.head[i] = static_cast<std::uint8_t>(std::uint64_t{text.size()} >> 8 * i);
  std::memcpy(out.head.data() + 8, text.data(), text.size());
  return out;
}

/// part(bytes) makes an array's storage from its bytes in the file: a copy, or a view of a mapping.
template <class Part>
Safetensors parse_file(std::span<const std::uint8_t> file, const std::string& name, Part&& part,
                       BFloat16 bfloat16 = BFloat16::widened) {
  if (file.size() < 8) refuse_safetensors(name, "it ends within its first 8 bytes");
  const auto length = header_length(file.first<8>(), file.size(), name);
  const std::string_view text{reinterpret_cast<const char*>(file.data()) + 8,
                              static_cast<std::size_t>(length)};
  const auto data = file.subspan(8 + length);
  auto header = parse_safetensors_header(text, data.size(), name);
  Safetensors out{{}, std::move(header.metadata)};
  for (auto& entry : header.entries) {
    if (bfloat16 == BFloat16::as_stored) entry.keep_bfloat16();
    entry.take(part(data.subspan(entry.begin, entry.end - entry.begin)));
    out.tensors.push_back(std::move(entry.array));
  }
  return out;
}

}  // namespace detail

/// Reads a safetensors file given as bytes; `name` stands for it in messages. Throws
/// `xla::io_error` unless every field is legal and the tensors cover the data exactly. The format:
/// github.com/huggingface/safetensors.
inline Safetensors parse_safetensors(std::span<const std::uint8_t> file, const std::string& name) {
  return detail::parse_file(
      file, name, [](auto bytes) { return std::vector<std::uint8_t>(bytes.begin(), bytes.end()); });
}

/// Reads a safetensors file. No memory is allocated for sizes that the file does not cover. The
/// arrays point into the file, which stays mapped until the last of them is destroyed: see
/// `io::map_file`. Elements of 16 bits are widened into memory, bfloat16 only if asked for. Throws
/// `xla::io_error` with the path and the reason.
inline Safetensors read_safetensors(const std::string& path,
                                    BFloat16 bfloat16 = BFloat16::widened) {
  const auto file = io::map_file(path);
  return detail::parse_file(
      file, path, [&](auto bytes) { return file.view(bytes); }, bfloat16);
}

/// A safetensors file as bytes; `name` stands for it in messages. Throws `xla::io_error` for a
/// repeated name, names that are not UTF-8, and bytes that do not match the sizes.
inline std::vector<std::uint8_t> to_safetensors(const Safetensors& content,
                                                const std::string& name = "safetensors",
                                                FloatFormat floats = FloatFormat::float32) {
  auto layout = detail::lay_out_safetensors(content, name, floats);
  auto out = std::move(layout.head);
  for (const auto& part : layout.arrays)
    part.put([&](const auto& bytes) { out.insert(out.end(), bytes.begin(), bytes.end()); });
  return out;
}

/// Writes a safetensors file, which replaces an existing file only when all of it is on disk; see
/// `io::atomic_file`. Throws `xla::io_error` if that fails, and leaves the old file.
inline void write_safetensors(const std::string& path, const Safetensors& content,
                              FloatFormat floats = FloatFormat::float32) {
  const auto layout = detail::lay_out_safetensors(content, path, floats);
  io::atomic_file file{path};
  file.write(layout.head);
  for (const auto& part : layout.arrays) part.put([&](const auto& bytes) { file.write(bytes); });
  file.commit();
}

}  // namespace xla::ext
