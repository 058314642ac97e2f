// SPDX-License-Identifier: Apache-2.0
#pragma once

// Recognises the origin of a weight file by its names, and renames them to a model's.
// state_loader.hpp uses it.

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "xla/base/dependent.hpp"

/// Recognises the library that wrote a weight file, and how its names differ from a model's.
namespace xla::nn::detail {

/// A part that occurs only in one library's names of a network's states, and the function that
/// renames them.
struct known_names {
  std::string_view part, writer, function, header;
};
inline constexpr known_names all_known_names[] = {
    {".LayerNorm.gamma", "early files of BERT", "bert_names", "bert"},
    {"embeddings.position_ids", "older files of BERT", "bert_names", "bert"},
    {"encoder.layers.encoder_layer_", "torchvision's vision transformer", "vit_from_torchvision",
     "vit"},
    {".patch_embeddings.projection.", "Hugging Face's vision transformer", "vit_from_hugging_face",
     "vit"},
    {".attn.c_attn.", "Hugging Face's GPT-2", "gpt2_from_hugging_face", "gpt2"},
    {"model.embed_tokens.", "Hugging Face's Llama", "llama_from_hugging_face", "llama"},
    {".rotary_emb.inv_freq", "older files of Llama", "llama_from_hugging_face", "llama"},
};

/// The first of them that occurs in some name; null: none.
template <class Names>
const known_names* known_names_in(const Names& names) {
  for (const auto& known : all_known_names)
    for (const std::string_view name : names)
      if (name.find(known.part) != name.npos) return &known;
  return nullptr;
}

/// The prefix, ending with a point, that turns the most short names into long ones. Empty if none
/// does so for half of them, or if more would turn into existing long names. The candidates precede
/// the first short name that ends a long one.
template <class In = void>
std::string common_prefix(const std::vector<std::string>& long_names,
                          const std::vector<std::string>& short_names) {
  dependent<In, std::unordered_map<std::string_view, bool>> known;
  for (const auto& name : long_names) known[name] = true;
  const auto fitting = [&](const std::string& prefix) {
    return std::count_if(short_names.begin(), short_names.end(),
                         [&](const auto& name) { return known.contains(prefix + name); });
  };
  std::string best;
  for (const auto& name : short_names) {
    auto most = std::max(fitting(""), (std::ssize(short_names) - 1) / 2);
    for (const auto& longer : long_names) {
      if (longer.size() <= name.size() + 1 || !longer.ends_with("." + name)) continue;
      const auto prefix = longer.substr(0, longer.size() - name.size());
      if (const auto count = fitting(prefix); count > most) {
        most = count;
        best = prefix;
      }
    }
    if (!best.empty()) break;
  }
  return best;
}

/// Hints for names of a state that do not match a model's, as lines of a message.
template <class In = void>
std::string naming_hint(const std::vector<std::string>& missing,
                        const std::vector<std::string>& unexpected) {
  std::string out;
  if (const auto* const known = known_names_in(unexpected)) {
    const auto part = [](std::string_view text) { return std::string{text}; };
    out += "\n  the names are those of " + part(known->writer) + ": models::" +
           part(known->function) + "(state) of <xla/models/" + part(known->header) +
           ".hpp> gives values the model's names, and models::load(model, path) of "
           "<xla/ext/pretrained.hpp> loads such files";
  }
  if (const auto prefix = common_prefix(unexpected, missing); !prefix.empty())
    out += "\n  the state has the model's names behind '" + prefix +
           "': models::part_of(state, \"" + prefix +
           "\") of <xla/models/names.hpp> takes that part";
  else if (const auto member = common_prefix(missing, unexpected); !member.empty())
    out += "\n  the state has the names of a part of the model: load_state_dict(model." +
           member.substr(0, member.size() - 1) + ", state) loads that part";
  return out;
}

}  // namespace xla::nn::detail
