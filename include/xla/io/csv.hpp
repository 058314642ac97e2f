// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads tables of numbers from CSV text and files. A field that is no number is an error.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "xla/base/error.hpp"
#include "xla/io/text.hpp"
#include "xla/op/create.hpp"
#include "xla/tensor.hpp"

namespace xla::io {

/// The format of a table of numbers.
struct csv_options {
  char delimiter = ',';
  bool header = true;                     ///< The first line has the names of the columns.
  std::vector<std::string> columns = {};  ///< Read only these, in this order; needs a header.
  std::optional<double> missing = {};     ///< The value of an empty field; without it, an error.
};

/// A table of numbers: (rows, columns), and the columns' names when the file has them.
template <std::floating_point T>
struct csv_table {
  std::vector<std::string> columns;
  Tensor<T, 2> values;

  /// The number of a column. Throws `xla::io_error` when no column has that name.
  std::int64_t column(std::string_view name) const {
    const auto found = std::find(columns.begin(), columns.end(), name);
    if (found == columns.end()) throw io_error("no column is called '" + std::string{name} + "'");
    return found - columns.begin();
  }
};

namespace detail {

/// One field: its text without quotes, and its position.
struct csv_field {
  std::string text;
  std::size_t line = 0;
};

/// Cuts text into records of fields (RFC 4180). Lines end with LF or CR LF; empty ones are skipped.
class csv_reader {
 public:
  csv_reader(std::string_view text, const std::string& name, char delimiter)
      : text_(text), name_(name), delimiter_(delimiter) {
    if (delimiter == '"' || delimiter == '\n' || delimiter == '\r')
      throw io_error("'" + name + "': the delimiter cannot be a quote or the end of a line");
    if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;  // a byte order mark
  }

  /// The next record in `out`, which is reused; false at the end.
  bool next(std::vector<csv_field>& out) {
    while (line_end()) ++line_;
    count_ = 0;
    if (at_ == text_.size()) return false;
    do {
      if (count_ == out.size()) out.emplace_back();
      read(out[count_++]);
    } while (at_ < text_.size() && !line_end() && text_[at_++] == delimiter_);
    out.resize(count_);
    ++line_;
    return true;
  }

  [[noreturn]] void refuse(std::size_t line, const std::string& reason) const {
    throw io_error("'" + name_ + "', line " + std::to_string(line) + reason);
  }

 private:
  /// Consumes the end of a line, if the text is there.
  bool line_end() {
    const auto rest = text_.substr(at_, 2);
    const std::size_t length = rest.starts_with('\n') ? 1 : rest == "\r\n" ? 2 : 0;
    at_ += length;
    return length > 0;
  }

  void read(csv_field& field) {
    field.text.clear();
    field.line = line_;
    if (text_.substr(at_).starts_with('"')) return read_quoted(field);
    const auto start = at_;
    while (at_ < text_.size() && text_[at_] != delimiter_ && text_[at_] != '\n') ++at_;
    auto end = at_;
    if (end > start && text_[end - 1] == '\r' && at_ < text_.size() && text_[at_] == '\n')
      at_ = --end;
    field.text = text_.substr(start, end - start);
  }

  void read_quoted(csv_field& field) {
    const auto column = ", column " + std::to_string(count_);
    for (++at_;; ++at_) {
      if (at_ == text_.size())
        refuse(field.line, column + ": the quote that opens here is not closed");
      if (text_[at_] == '"' && (++at_ == text_.size() || text_[at_] != '"')) break;
      line_ += text_[at_] == '\n';
      field.text += text_[at_];
    }
    const auto rest = text_.substr(at_, 2);
    if (!rest.empty() && rest[0] != delimiter_ && rest[0] != '\n' && rest != "\r\n")
      refuse(line_, column + ": text after the closing quote");
  }

  std::string_view text_;
  const std::string& name_;
  char delimiter_;
  std::size_t at_ = 0, line_ = 1, count_ = 0;
};

/// The beginning of a field, for an error message.
inline std::string shown(std::string_view text) {
  std::string out{text.substr(0, 24)};
  for (char& c : out)
    if (static_cast<unsigned char>(c) < 32 || c == 127) c = '?';
  return "'" + out + (text.size() > 24 ? "…'" : "'");
}

inline std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// Parses a number in C's notation, independent of the locale; also inf and nan. Returns why the
/// text is no number, or an empty string. A number too small to represent is 0.
template <class T>
std::string parse_number(std::string_view text, T& value) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::invalid_argument || end != text.data() + text.size())
    return shown(text) + " is not a number";
  if (error == std::errc{}) return {};
  double wide = 0;  // out of range: too large, or too small
  if constexpr (sizeof(T) < sizeof(double))
    if (parse_number(text, wide).empty() && std::abs(wide) < 1) {
      value = static_cast<T>(wide);
      return {};
    }
  if (wide == 0 && (text.find("e-") != text.npos || text.find("E-") != text.npos)) {
    value = 0;
    return {};
  }
  return shown(text) + " is too large for " + std::string{name_of(dtype_of<T>)};
}

/// The positions of the fields to read from a record, in order.
inline std::vector<std::size_t> csv_picks(const std::vector<std::string>& names, std::size_t count,
                                          const csv_options& options, const std::string& file) {
  std::vector<std::size_t> picks;
  for (const auto& wanted : options.columns) {
    const auto found = std::find(names.begin(), names.end(), wanted);
    if (found == names.end())
      throw io_error("'" + file + "' has no column '" + wanted + "'" +
                     (options.header ? "" : ": it is read without a header"));
    picks.push_back(static_cast<std::size_t>(found - names.begin()));
  }
  for (std::size_t i = 0; options.columns.empty() && i < count; ++i) picks.push_back(i);
  return picks;
}

}  // namespace detail

/// Reads a table from text; `name` stands for the file in messages. Fields may be quoted; spaces
/// around numbers are skipped. Throws `xla::io_error` with line and column for a field that is no
/// number, a record that is too short or too long, and a quote that is not closed.
template <std::floating_point T = float>
csv_table<T> parse_csv(std::string_view text, const std::string& name,
                       const csv_options& options = {}) {
  detail::csv_reader reader{text, name, options.delimiter};
  std::vector<detail::csv_field> record;
  std::vector<std::string> names;
  bool more = reader.next(record);
  if (!more) throw io_error("'" + name + "' is empty");
  const auto count = record.size(), first = record[0].line;
  if (options.header) {
    for (const auto& field : record) names.emplace_back(detail::trimmed(field.text));
    more = reader.next(record);
  }
  const auto picks = detail::csv_picks(names, count, options, name);
  std::vector<T> values;
  std::int64_t rows = 0;
  for (; more; more = reader.next(record), ++rows) {
    if (record.size() != count)
      reader.refuse(record[0].line, ": " + std::to_string(record.size()) + " fields, line " +
                                        std::to_string(first) + " has " + std::to_string(count));
    for (const auto i : picks) {
      const auto field = detail::trimmed(record[i].text);
      auto& value = values.emplace_back();
      if (field.empty() && options.missing) {
        value = static_cast<T>(*options.missing);
        continue;
      }
      const auto wrong = field.empty() ? "an empty field" : detail::parse_number(field, value);
      if (!wrong.empty())
        reader.refuse(record[i].line, ", column " + std::to_string(i + 1) +
                                          (names.empty() ? "" : " (" + names[i] + ")") + ": " +
                                          wrong);
    }
  }
  csv_table<T> table;
  for (const auto i : picks)
    if (!names.empty()) table.columns.push_back(names[i]);
  table.values = from_blob(values.data(), {rows, picks.size()});
  return table;
}

/// Reads a table of numbers from a file. Throws `xla::io_error`, naming the path.
template <std::floating_point T = float>
csv_table<T> read_csv(const std::string& path, const csv_options& options = {}) {
  return parse_csv<T>(read_text(path), path, options);
}

}  // namespace xla::io
