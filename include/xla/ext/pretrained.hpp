// SPDX-License-Identifier: Apache-2.0
#pragma once

// Loads weights from safetensors files and Hugging Face folders into models, and checks that they
// fit. It downloads nothing.

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "xla/base/system/path.hpp"
#include "xla/ext/model_config.hpp"
#include "xla/ext/safetensors_index.hpp"
#include "xla/models/gpt2.hpp"
#include "xla/models/head.hpp"
#include "xla/models/llama.hpp"
#include "xla/nn/file_names.hpp"
#include "xla/nn/state_dict.hpp"

namespace xla::ext {

/// The tensors of a safetensors file, of the files that an index (….json) lists, or of a folder
/// that Hugging Face's save_pretrained has written: its model.safetensors, or the files that its
/// model.safetensors.index.json lists. Throws `xla::io_error`.
inline StateDict read_pretrained(const std::string& path, BFloat16 bfloat16 = BFloat16::widened) {
  constexpr auto advice = "; examples/to_safetensors.py makes one of a file of torch.save";
  if (!std::filesystem::is_directory(sys::path_of(path))) {
    for (const char* pickled : {".bin", ".pth", ".pt", ".ckpt"})
      if (path.ends_with(pickled))
        throw io_error("'" + path + "' is no safetensors file" + advice);
    if (path.ends_with(".json")) return read_safetensors_index(path, bfloat16);
    return read_safetensors(path, bfloat16).tensors;
  }
  const auto one = path + "/model.safetensors", several = one + ".index.json";
  if (std::filesystem::exists(sys::path_of(one))) return read_safetensors(one, bfloat16).tensors;
  if (std::filesystem::exists(sys::path_of(several)))
    return read_safetensors_index(several, bfloat16);
  throw io_error("'" + path + "' has neither model.safetensors nor model.safetensors.index.json" +
                 advice);
}

}  // namespace xla::ext

namespace xla::models {

/// For GPT-2's and Llama's files: nn::Decoder has names of its own.
template <nn::DecoderConfig C>
struct Pretrained<nn::Decoder<C>> {
  static constexpr std::array<std::string_view, 0> heads{};
  static StateDict own_names(StateDict state) {
    if constexpr (C.norm == nn::DecoderNorm::layer)
      return gpt2_from_hugging_face(std::move(state), C.tied_head);
    else return llama_from_hugging_face(std::move(state), C.tied_head);
  }
};

struct LoadOptions {
  bool strict = true;  ///< values that are missing, or that the model does not have, are an error
  bool ignore_mismatched_sizes =
      false;  ///< values of other sizes are left out, such as those of a new head
};

namespace detail {

using name_and_sizes = std::pair<std::string, std::vector<std::int64_t>>;
template <class Model>
std::vector<name_and_sizes> names_and_sizes(Model& model) {
  std::vector<name_and_sizes> out;
  xla::detail::visit_named_state(model, "", [&](const std::string& name, auto& state) {
    out.emplace_back(name, state.sizes());
  });
  return out;
}

/// Removes the values that `leave_out` names, and lists them.
inline void move_names(StateDict& state, std::vector<std::string>& to, auto&& leave_out) {
  std::erase_if(state, [&](const NamedArray& value) {
    const bool out = leave_out(value);
    if (out) to.push_back(value.name);
    return out;
  });
}

/// Renames the values of a state for a model that is a part of the file's, or has the file's as a
/// part. Leaves out values outside of the model and heads that it lacks, and returns their names.
inline std::vector<std::string> fit_names(StateDict& state, const std::vector<name_and_sizes>& own,
                                          std::span<const std::string_view> heads) {
  std::vector<std::string> names, needed, left_out;
  for (const auto& value : state) names.push_back(value.name);
  for (const auto& [name, sizes] : own) needed.push_back(name);
  const auto is_needed = [&](const std::string& name) {
    return std::find(needed.begin(), needed.end(), name) != needed.end();
  };
  if (const auto prefix = nn::detail::common_prefix(names, needed); !prefix.empty()) {
    move_names(state, left_out, [&](const auto& a) { return !a.name.starts_with(prefix); });
    for (auto& value : state) value.name.erase(0, prefix.size());
  } else if (const auto member = nn::detail::common_prefix(needed, names); !member.empty()) {
    for (auto& value : state)
      if (is_needed(member + value.name)) value.name.insert(0, member);
  }
  move_names(state, left_out, [&](const auto& a) {
    const auto begins = [&](std::string_view head) { return a.name.starts_with(head); };
    return !is_needed(a.name) && std::any_of(heads.begin(), heads.end(), begins);
  });
  return left_out;
}

/// Leaves out values whose sizes differ from the model's, and returns their names.
inline std::vector<std::string> leave_mismatched(StateDict& state,
                                                 const std::vector<name_and_sizes>& own) {
  std::vector<std::string> left_out;
  move_names(state, left_out, [&](const auto& a) {
    return std::any_of(own.begin(), own.end(), [&](const auto& state_of_model) {
      return state_of_model.first == a.name && state_of_model.second != a.sizes;
    });
  });
  return left_out;
}

/// Like load_state_dict; a model of any number of classes first gets a head of the state's size.
template <class Model>
IncompatibleKeys load_classes(Model& model, const StateDict& state, bool strict) {
  return load_state_dict(model, state, strict);
}
template <class Model>
IncompatibleKeys load_classes(AnyClasses<Model>& model, const StateDict& state, bool strict) {
  const auto before = head(model);
  const auto weight = head_prefix(model) + "weight";
  try {
    for (const auto& value : state)
      if (value.name == weight && !value.sizes.empty() && value.sizes[0] != before.weight.size(0))
        replace_head(model, value.sizes[0]);
    return load_state_dict(model, state, strict);
  } catch (...) {
    head(model) = before;
    throw;
  }
}

template <class Model>
IncompatibleKeys load_values(Model& model, StateDict state, const std::string& path,
                             const LoadOptions& options) {
  const auto own = names_and_sizes(model);
  auto left_out = fit_names(state, own, Pretrained<Model>::heads);
  std::vector<std::string> mismatched;
  if (options.ignore_mismatched_sizes) mismatched = leave_mismatched(state, own);
  if (!mismatched.empty())
    for (auto& value : state_dict(model))  // which stays as it is
      if (std::find(mismatched.begin(), mismatched.end(), value.name) != mismatched.end())
        state.push_back(std::move(value));
  auto report = load_classes(model, state, options.strict);
  if (report.missing_keys.size() == own.size())
    throw runtime_error("models::load: '" + path + "' has no value of the model's names");
  const auto append = [](auto& to, const auto& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  append(report.missing_keys, mismatched);
  append(report.unexpected_keys, left_out);
  return report;
}

}  // namespace detail

/// Loads the weights of any network of models/, or of nn::Decoder, from a folder that Hugging
/// Face's save_pretrained has written, or from a safetensors file or index. The model is in
/// evaluation mode afterwards. Names are those of Hugging Face, torchvision or timm. The file's
/// network may contain the model ("bert.", "module.") or be a part of it, and may have heads that
/// the model lacks. Returns what was left out or is missing. A folder's config.json must describe
/// the model's type. AnyClasses gets a head for the file's number of classes. Throws
/// `xla::io_error` for files that cannot be read or describe another model, `xla::error` for
/// weights that do not fit, and then has changed nothing.
template <class Model>
IncompatibleKeys load(Model& model, const std::string& path, const LoadOptions& options = {}) {
  if (std::filesystem::is_directory(sys::path_of(path))) ext::detail::check_config(model, path);
  auto state = Pretrained<Model>::own_names(ext::read_pretrained(path, ext::BFloat16::as_stored));
  auto report = detail::load_values(model, std::move(state), path, options);
  model.eval();
  return report;
}

}  // namespace xla::models
