// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads and writes NumPy's .npy files as tensors, of both orders of bytes. Archives (.npz) are not
// read.

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "xla/base/error.hpp"
#include "xla/io/bytes.hpp"
#include "xla/io/file.hpp"
#include "xla/op/create.hpp"
#include "xla/tensor.hpp"

namespace xla::io {

/// An array read from a `.npy` file: its type, its sizes, its elements in row-major order.
struct npy_array {
  dtype type = dtype::float32;
  std::vector<std::int64_t> sizes;
  std::vector<std::uint8_t> bytes;
};

namespace detail {

/// NumPy's names for the element types.
inline constexpr std::array<std::pair<dtype, std::string_view>, 6> npy_types{{
    {dtype::float32, "<f4"},
    {dtype::float64, "<f8"},
    {dtype::int32, "<i4"},
    {dtype::int64, "<i8"},
    {dtype::uint8, "|u1"},
    {dtype::boolean, "|b1"},
}};

[[noreturn]] inline void refuse_npy(const std::string& name, const std::string& reason) {
  throw io_error("'" + name + "' is not a .npy file that can be read: " + reason);
}

/// The header: a Python dictionary literal with exactly the keys descr, fortran_order and shape.
class npy_header {
 public:
  dtype type = dtype::float32;
  std::endian order = std::endian::little;  ///< of the bytes of each element
  bool fortran = false;
  std::vector<std::int64_t> sizes;

  npy_header(std::string_view text, const std::string& name) : rest_(text), name_(name) {
    expect("{");
    while (!take("}")) {
      const auto key = quoted();
      expect(":");
      if (key == "descr" && !(seen_ & 1)) read_type();
      else if (key == "fortran_order" && !(seen_ & 2)) fortran = read_bool();
      else if (key == "shape" && !(seen_ & 4)) read_sizes();
      else refuse("key '" + std::string{key} + "', expected descr, fortran_order and shape once");
      seen_ |= key == "descr" ? 1 : key == "shape" ? 4 : 2;
      if (!take(",")) {
        expect("}");
        break;
      }
    }
    if (seen_ != 7) refuse("the header lacks descr, fortran_order or shape");
    if (skip(); !rest_.empty()) refuse("text after the header");
  }

 private:
  [[noreturn]] void refuse(const std::string& reason) const { refuse_npy(name_, reason); }

  void skip() {
    const auto space = [](char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; };
    while (!rest_.empty() && space(rest_[0])) rest_.remove_prefix(1);
  }
  bool take(std::string_view word) {
    skip();
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  void expect(std::string_view word) {
    if (!take(word)) refuse("'" + std::string{word} + "' is missing in the header");
  }
  std::string_view quoted() {
    skip();
    const char quote = rest_.empty() ? '\0' : rest_[0];
    if (quote != '\'' && quote != '"') refuse("a quoted word is missing in the header");
    const auto end = rest_.find(quote, 1);
    if (end == rest_.npos || end > 32) refuse("a word of the header does not end");
    const auto word = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return word;
  }
  void read_type() {
    if (take("[")) refuse("it holds records; save one field, array['field']");
    const auto descr = quoted();
    for (const auto& [known, text] : npy_types) {
      const auto orders = text[0] == '|' ? "|<>=" : "<>";  // a single byte has no order
      if (descr.substr(descr.empty() ? 0 : 1) == text.substr(1) &&
          descr.find_first_of(orders) == 0) {
        type = known;
        if (descr[0] == '>') order = std::endian::big;
        return;
      }
    }
    refuse("element type '" + std::string{descr} +
           "', expected float32, float64, int32, int64, uint8 or bool");
  }
  bool read_bool() {
    if (take("True")) return true;
    expect("False");
    return false;
  }
  void read_sizes() {
    expect("(");
    while (!take(")")) {
      sizes.push_back(read_size());
      if (!take(",")) {
        expect(")");
        if (sizes.size() == 1) refuse("a shape of one axis lacks its comma");
        break;
      }
    }
  }
  std::int64_t read_size() {
    skip();
    std::int64_t n = 0;
    std::size_t digits = 0;
    for (; digits < rest_.size() && rest_[digits] >= '0' && rest_[digits] <= '9'; ++digits) {
      if (n > (std::numeric_limits<std::int64_t>::max() - 9) / 10) refuse("a size is too large");
      n = 10 * n + (rest_[digits] - '0');
    }
    if (digits == 0) refuse("a size of the shape is not a number");
    rest_.remove_prefix(digits);
    take("L");  // Python 2 wrote an L after a long number
    return n;
  }

  std::string_view rest_;
  const std::string& name_;
  int seen_ = 0;
};

/// The number of bytes of the elements; empty if a product of sizes overflows, even if another axis
/// has size 0.
inline std::optional<std::uint64_t> npy_bytes(const npy_header& header) {
  std::uint64_t bytes = static_cast<std::uint64_t>(size_of(header.type));
  bool any = true;
  for (const auto size : header.sizes) {
    const auto factor = static_cast<std::uint64_t>(size);
    any = any && factor > 0;
    if (factor == 0) continue;
    if (bytes > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) / factor)
      return std::nullopt;
    bytes *= factor;
  }
  return any ? bytes : 0;
}

/// Elements in column-major order, to row-major order.
inline std::vector<std::uint8_t> from_fortran(std::span<const std::uint8_t> from,
                                              const std::vector<std::int64_t>& sizes,
                                              std::size_t width) {
  std::vector<std::uint8_t> out(from.size());
  std::vector<std::int64_t> at(sizes.size(), 0);
  for (std::size_t to = 0; to < out.size(); to += width) {
    std::int64_t element = 0;
    for (std::size_t i = sizes.size(); i-- > 0;) element = element * sizes[i] + at[i];
    std::memcpy(out.data() + to, from.data() + static_cast<std::size_t>(element) * width, width);
    for (std::size_t i = sizes.size(); i-- > 0 && ++at[i] == sizes[i];) at[i] = 0;
  }
  return out;
}

inline std::string npy_shape(std::span<const std::int64_t> sizes) {
  std::string out;
  for (const auto size : sizes) out += (out.empty() ? "" : ", ") + std::to_string(size);
  return "(" + out + (sizes.size() == 1 ? ",)" : ")");
}

}  // namespace detail

/// Reads an array from the bytes of a `.npy` file, version 1 to 3, with axes and bytes in either
/// order; `name` stands for the file in messages. Throws `xla::io_error` unless header and length
/// are exactly consistent. The format: numpy.lib.format.
inline npy_array parse_npy(std::span<const std::uint8_t> file, const std::string& name) {
  const std::string_view text{reinterpret_cast<const char*>(file.data()), file.size()};
  if (!text.starts_with("\x93NUMPY")) detail::refuse_npy(name, "it does not start with \\x93NUMPY");
  const std::size_t start = text.size() > 6 && file[6] == 1 ? 10 : 12;
  if (file.size() < start) detail::refuse_npy(name, "it ends within its first bytes");
  if (file[6] < 1 || file[6] > 3)
    detail::refuse_npy(name, "version " + std::to_string(file[6]) + ", expected 1 to 3");
  std::size_t length = 0;
  for (std::size_t i = start; i-- > 8;) length = length << 8 | file[i];
  if (length > file.size() - start)
    detail::refuse_npy(name, "the header takes " + std::to_string(length) + " bytes, found " +
                                 std::to_string(file.size() - start));
  detail::npy_header header{text.substr(start, length), name};
  const auto elements = file.subspan(start + length);
  const auto bytes = detail::npy_bytes(header);
  const auto shape = detail::npy_shape(header.sizes);
  if (!bytes) detail::refuse_npy(name, "shape " + shape + " overflows");
  if (*bytes != elements.size())
    detail::refuse_npy(name, "shape " + shape + " of " + std::string{name_of(header.type)} +
                                 " takes " + std::to_string(*bytes) +
                                 " bytes after the header, found " +
                                 std::to_string(elements.size()));
  npy_array out{header.type, std::move(header.sizes), {}};
  if (header.fortran && out.sizes.size() > 1)
    out.bytes =
        detail::from_fortran(elements, out.sizes, static_cast<std::size_t>(size_of(out.type)));
  else out.bytes.assign(elements.begin(), elements.end());
  detail::convert_bytes(out.bytes, static_cast<std::size_t>(size_of(out.type)), header.order);
  if (out.type == dtype::boolean)
    for (auto& byte : out.bytes) byte = byte != 0;
  return out;
}

/// An array as a tensor of its type and rank. Throws `xla::io_error` when either differs; `name`
/// stands for the file.
template <element T, int Rank>
Tensor<T, Rank> to_tensor(const npy_array& array, const std::string& name) {
  if (array.type != dtype_of<T> || array.sizes.size() != static_cast<std::size_t>(Rank))
    throw io_error("'" + name + "' holds " + std::string{name_of(array.type)} + " of shape " +
                   detail::npy_shape(array.sizes) + ", wanted " +
                   std::string{name_of(dtype_of<T>)} + " of " + std::to_string(Rank) + " axes");
  if constexpr (Rank == 0) {
    T value;
    std::memcpy(&value, array.bytes.data(), sizeof(T));
    return Tensor<T, 0>(value);
  } else {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return from_blob(reinterpret_cast<const T*>(array.bytes.data()), {array.sizes[I]...});
    }(std::make_index_sequence<static_cast<std::size_t>(Rank)>{});
  }
}

/// Reads a `.npy` file: `read_npy<float, 2>("weights.npy")`. Throws `xla::io_error`, naming the
/// path, what was found and what was expected.
template <element T, int Rank>
Tensor<T, Rank> read_npy(const std::string& path) {
  return to_tensor<T, Rank>(parse_npy(read_file(path), path), path);
}

/// A tensor as the bytes of a `.npy` file of version 1, little-endian on every processor.
template <element T, int Rank>
std::vector<std::uint8_t> to_npy(const Tensor<T, Rank>& tensor) {
  constexpr auto descr = std::find_if(detail::npy_types.begin(), detail::npy_types.end(),
                                      [](const auto& t) { return t.first == dtype_of<T>; });
  static_assert(descr != detail::npy_types.end(), "xla::io: .npy has no such element type; cast");
  std::string text = "{'descr': '" + std::string{descr->second} +
                     "', 'fortran_order': False, 'shape': " + detail::npy_shape(tensor.sizes()) +
                     ", }";
  text.append(63 - (text.size() + 10) % 64, ' ');  // elements start at a multiple of 64 bytes
  text += '\n';
  std::vector<std::uint8_t> out{0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0};
  out.push_back(static_cast<std::uint8_t>(text.size() & 255));
  out.push_back(static_cast<std::uint8_t>(text.size() >> 8));
  out.insert(out.end(), text.begin(), text.end());
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(tensor.data());
  out.insert(out.end(), bytes,
             bytes + sizeof(T) * static_cast<std::size_t>(std::int64_t(tensor.numel())));
  detail::convert_bytes(std::span(out).subspan(10 + text.size()), sizeof(T), std::endian::little);
  return out;
}

/// Writes a `.npy` file that numpy.load reads. Throws `xla::io_error` when that fails.
template <element T, int Rank>
void write_npy(const std::string& path, const Tensor<T, Rank>& tensor) {
  write_file(path, to_npy(tensor));
}

}  // namespace xla::io
