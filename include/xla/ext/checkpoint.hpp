// SPDX-License-Identifier: Apache-2.0
#pragma once

// Saves and loads a whole training state in one safetensors file: model, optimizer, schedule,
// random numbers. Weights alone are saved and loaded by safetensors.hpp and pretrained.hpp.

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "xla/ext/checksum.hpp"
#include "xla/ext/safetensors.hpp"
#include "xla/nn/state_dict.hpp"
#include "xla/run/state/seed.hpp"

namespace xla::ext {

/// Numbers that a program keeps with its model: step, epoch, position in the data. Whole numbers
/// are exact up to 2^53.
using CheckpointNumbers = std::map<std::string, double>;

namespace detail {

template <class Number>
std::string number_text(Number value) {
  char text[64];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  return {text, end};
}
template <class Number>
Number parse_number(const std::string& path, const std::string& key, std::string_view text) {
  Number value{};
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc{} || end != text.data() + text.size())
    throw io_error("'" + path + "' is not a checkpoint: its metadata " + in_quotes(key) + " is " +
                   in_quotes(text) + ", expected a number");
  return value;
}

inline constexpr const char* checksum_key = "checksum";

/// The checksum of everything else in a checkpoint, independent of the order of its tensors and of
/// the processor's order of bytes.
inline std::string checksum_of(const Safetensors& file) {
  crc32 sum;
  const auto add_text = [&](std::string_view text) {
    sum.add({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
    sum.add(std::array<std::uint8_t, 1>{});  // separates one text from the next
  };
  for (const auto& [key, text] : file.metadata) {
    if (key == checksum_key) continue;
    add_text(key);
    add_text(text);
  }
  std::vector<const NamedArray*> arrays;
  for (const auto& array : file.tensors) arrays.push_back(&array);
  std::sort(arrays.begin(), arrays.end(),
            [](const auto* a, const auto* b) { return a->name < b->name; });
  for (const auto* array : arrays) {
    add_text(array->name);
    add_text(name_of(array->type));
    add_text(io::sizes_text(array->sizes));
    io::detail::with_order(array->bytes, static_cast<std::size_t>(size_of(array->type)),
                           std::endian::little, [&](auto bytes) { sum.add(bytes); });
  }
  return number_text(sum.value());
}

/// Calls f(name, state) for everything that a checkpoint stores. A module's names are its own;
/// those of optimizers and schedules begin in a way that no member's name can.
template <class F, class... X>
void visit_checkpoint(F&& f, X&... parts) {
  int modules = 0, optimizers = 0, schedules = 0;
  const auto visit = [&]<class Part>(Part& part) {
    constexpr bool schedule = xla::detail::keeps_progress<Part>;
    constexpr bool optimizer = xla::detail::optimizer_like<Part>;
    const int number = (schedule ? schedules : optimizer ? optimizers : modules)++;
    const std::string kind = schedule ? "@schedule." : optimizer ? "@optimizer." : "@module.";
    const std::string prefix =
        schedule || optimizer || number > 0 ? kind + std::to_string(number) + "." : "";
    xla::detail::visit_named_state(part, prefix, f);
  };
  (visit(parts), ...);
}

}  // namespace detail

/// Writes one safetensors file from which training continues bit for bit. It holds the values of
/// modules, the states of optimizers and the counts of schedules, in the order given, the state of
/// the random number generator, the program's numbers, and a checksum. The first module's tensors
/// have PyTorch's names. If the process is killed, the last complete file remains. Throws
/// `xla::io_error` when writing fails.
template <class... X>
void save_checkpoint(const std::string& path, const CheckpointNumbers& numbers, X&... parts) {
  Safetensors file;
  detail::visit_checkpoint(
      [&](const std::string& name, auto& state) {
        file.tensors.push_back(xla::detail::to_array(name, state));
      },
      parts...);
  const auto rng = get_rng_state();
  file.metadata["rng.seed"] = detail::number_text(rng.seed);
  file.metadata["rng.offset"] = detail::number_text(rng.offset);
  for (const auto& [name, value] : numbers)
    file.metadata["number." + name] = detail::number_text(value);
  file.metadata[detail::checksum_key] = detail::checksum_of(file);
  write_safetensors(path, file);
}

/// Reads a file of `save_checkpoint` into modules, optimizers and schedules of the same types in
/// the same order, sets the random number generator, and returns the program's numbers. Throws
/// `xla::io_error` for a file that is damaged (even by a single flipped bit) or does not fit, and
/// then has changed nothing.
template <class... X>
CheckpointNumbers load_checkpoint(const std::string& path, X&... parts) {
  const auto file = read_safetensors(path);
  rng_state rng;
  CheckpointNumbers numbers;
  int found = 0;
  for (const auto& [key, text] : file.metadata) {
    constexpr std::string_view number = "number.";
    const auto counter = [&] { return detail::parse_number<std::uint64_t>(path, key, text); };
    if (key == "rng.seed") rng.seed = counter(), ++found;
    else if (key == "rng.offset") rng.offset = counter(), ++found;
    else if (key.starts_with(number))
      numbers[key.substr(number.size())] = detail::parse_number<double>(path, key, text);
  }
  if (found != 2)
    throw io_error("'" + path + "' is not a checkpoint: it lacks the random number generator's " +
                   "state; load_state_dict() takes a model's values alone");
  const auto sum = file.metadata.find(detail::checksum_key);
  if (sum == file.metadata.end())
    throw io_error("'" + path + "' is not a checkpoint: it lacks its checksum; " +
                   "load_state_dict() takes a model's values alone");
  if (sum->second != detail::checksum_of(file))
    throw io_error("'" + path + "' is damaged: its checksum does not match its content");
  xla::detail::state_loader loader{file.tensors};
  detail::visit_checkpoint([&](const std::string& name, auto& state) { loader.want(name, state); },
                           parts...);
  try {
    loader.check(true, "'" + path + "'");
  } catch (const runtime_error& e) {
    throw io_error(e.what());
  }
  loader.write();
  set_rng_state(rng);
  return numbers;
}

}  // namespace xla::ext
