// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "xla/base/error.hpp"
#include "xla/data/bpe_tokenizer.hpp"
#include "xla/ext/json_values.hpp"
#include "xla/io/text.hpp"

namespace xla::ext {
namespace detail {

/// Reads Hugging Face's files of a byte-level BPE tokenizer; what it cannot do alike is refused.
class bpe_file {
 public:
  explicit bpe_file(std::string path) : path_(std::move(path)) {}

  data::BpeTokenizer tokenizer_json() const {
    const auto file = json();
    const auto& model = object(file, "model");
    if (text(model, "type", "BPE") != "BPE") refuse("its model is " + model["type"].dump());
    if (flag(model, "byte_fallback", false))
      refuse("its model is sentencepiece's, whose own file is tokenizer.model");
    for (const char* affix : {"continuing_subword_prefix", "end_of_word_suffix"})
      if (!text(model, affix, "").empty()) refuse(std::string("its model has an affix: ") + affix);
    if (file.contains("normalizer") && !file["normalizer"].is_null())
      refuse("it changes texts by a normalizer: " + shortened(file["normalizer"]));
    auto tokens = numbers(object(model, "vocab"));
    data::BpeOptions options;
    options.special.clear();
    options.ignore_merges = flag(model, "ignore_merges", false);
    read_pre_tokenizer(file, options);
    read_added(file, options, tokens);
    read_template(file, options);
    return made(std::move(tokens), merges(model), std::move(options));
  }

  data::BpeTokenizer vocab_and_merges(const std::string& merges_path) const {
    const auto vocabulary = json();
    if (!vocabulary.is_object()) refuse("it is no object of tokens and their numbers");
    return made(numbers(vocabulary), bpe_file(merges_path).merge_lines(), {});
  }

 private:
  using json_t = nlohmann::json;
  using numbered = std::vector<std::pair<std::string, std::uint64_t>>;
  using merges_t = std::vector<data::BpeTokenizer::merge>;

  [[noreturn]] void refuse(const std::string& why) const {
    throw io_error("'" + path_ + "' is no byte-level BPE tokenizer that can be read: " + why);
  }
  static std::string shortened(const json_t& value) {
    auto out = value.dump(-1, ' ', true, json_t::error_handler_t::replace);
    if (out.size() > 200) out = out.substr(0, 200) + "…";
    return out;
  }
  json_t json() const {
    auto out = parse_json(path_);
    if (out.is_discarded()) refuse("it is not JSON");
    return out;
  }

  const json_t& object(const json_t& in, const char* name) const {
    if (!in.is_object() || !in.contains(name) || !in[name].is_object())
      refuse(std::string("it has no object '") + name + "'");
    return in[name];
  }
  std::string text(const json_t& in, const char* name, std::string habit) const {
    if (!in.contains(name) || in[name].is_null()) return habit;
    if (!in[name].is_string()) refuse(std::string("'") + name + "' is no text");
    return in[name].get<std::string>();
  }
  bool flag(const json_t& in, const char* name, bool habit) const {
    if (!in.contains(name) || in[name].is_null()) return habit;
    if (!in[name].is_boolean()) refuse(std::string("'") + name + "' is neither true nor false");
    return in[name].get<bool>();
  }

  numbered numbers(const json_t& vocabulary) const {
    numbered out;
    for (const auto& [token, number] : vocabulary.items()) {
      if (!number.is_number_unsigned()) refuse("token '" + token + "' has no number");
      out.emplace_back(token, number.get<std::uint64_t>());
    }
    return out;
  }
  merges_t merges(const json_t& model) const {
    if (!model.contains("merges") || !model["merges"].is_array()) refuse("it has no list 'merges'");
    merges_t out;
    for (const auto& entry : model["merges"]) {
      if (entry.is_string()) out.push_back(merge(entry.get<std::string>()));
      else if (entry.is_array() && entry.size() == 2 && entry[0].is_string() &&
               entry[1].is_string())
        out.emplace_back(entry[0].get<std::string>(), entry[1].get<std::string>());
      else refuse("merge " + std::to_string(out.size()) + " is " + shortened(entry));
    }
    return out;
  }
  merges_t merge_lines() const {
    merges_t out;
    const auto all = io::read_text(path_);
    for (std::string_view rest = all; !rest.empty();) {
      auto line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(line.size() + 1, rest.size()));
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (!line.empty() && !line.starts_with("#version")) out.push_back(merge(line));
    }
    return out;
  }
  data::BpeTokenizer::merge merge(std::string_view line) const {
    const auto space = line.find(' ');
    if (space == 0 || space + 1 >= line.size() || line.find(' ', space + 1) != line.npos)
      refuse("a merge is two tokens with a space between them, not '" + std::string(line) + "'");
    return {std::string(line.substr(0, space)), std::string(line.substr(space + 1))};
  }

  /// The steps of a part that may be one, several in a Sequence, or nothing.
  std::vector<json_t> steps(const json_t& file, const char* part, const char* list) const {
    if (!file.contains(part) || file[part].is_null()) return {};
    const auto& first = object(file, part);
    if (text(first, "type", "") != "Sequence") return {first};
    if (!first.contains(list) || !first[list].is_array()) refuse(std::string("no list ") + list);
    return first[list].get<std::vector<json_t>>();
  }
  void read_pre_tokenizer(const json_t& file, data::BpeOptions& options) const {
    const auto cuts = steps(file, "pre_tokenizer", "pretokenizers");
    const auto is = [&](std::size_t i, const char* type) {
      return i < cuts.size() && cuts[i].is_object() && text(cuts[i], "type", "") == type;
    };
    const bool cut_before = cuts.size() == 2 && is(1, "ByteLevel");
    if (cuts.size() == 1 && is(0, "ByteLevel") && flag(cuts[0], "use_regex", true))
      options.pattern = data::BpePattern::gpt2;
    else if (cut_before && is(0, "Digits") && flag(cuts[0], "individual_digits", false) &&
             flag(cuts[1], "use_regex", true))
      options.pattern = data::BpePattern::digits;
    else if (cut_before && is(0, "Split") && is_llama3(cuts[0]) &&
             !flag(cuts[1], "use_regex", true))
      options.pattern = data::BpePattern::llama3;
    else refuse("it cuts texts otherwise than GPT-2, SmolLM and Llama 3: " + shortened(cuts));
    options.add_prefix_space = flag(cuts.back(), "add_prefix_space", true);
    if (cut_before && options.add_prefix_space)
      refuse("it puts a space before each part of a text: " + shortened(cuts));
  }
  bool is_llama3(const json_t& split) const {
    constexpr auto expression =
        R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
        R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
    return text(object(split, "pattern"), "Regex", "") == expression &&
           text(split, "behavior", "") == "Isolated" && !flag(split, "invert", false);
  }
  void read_added(const json_t& file, data::BpeOptions& options, numbered& tokens) const {
    if (!file.contains("added_tokens") || !file["added_tokens"].is_array()) return;
    for (const auto& token : file["added_tokens"]) {
      if (!token.is_object() || !token.contains("id") || !token["id"].is_number_unsigned())
        refuse("an added token has no number: " + shortened(token));
      for (const char* rule : {"lstrip", "rstrip", "single_word"})
        if (flag(token, rule, false))
          refuse(std::string("an added token asks for ") + rule + ": " + shortened(token));
      const auto name = text(token, "content", "");
      (flag(token, "special", false) ? options.special : options.added).push_back(name);
      tokens.emplace_back(name, token["id"].get<std::uint64_t>());
    }
  }
  /// What stands around a text: [{"SpecialToken": {"id": …}}, {"Sequence": …}].
  void read_template(const json_t& file, data::BpeOptions& options) const {
    for (const auto& step : steps(file, "post_processor", "processors")) {
      const auto type = step.is_object() ? text(step, "type", "") : "";
      if (type == "ByteLevel") continue;
      if (type != "TemplateProcessing" || !step.contains("single") || !step["single"].is_array())
        refuse("its post_processor is " + shortened(step));
      auto* to = &options.before;
      for (const auto& part : step["single"]) {
        if (part.is_object() && part.contains("Sequence")) to = &options.after;
        else to->push_back(text(object(part, "SpecialToken"), "id", ""));
      }
    }
  }

  data::BpeTokenizer made(const numbered& tokens, const merges_t& merges,
                          data::BpeOptions options) const {
    std::vector<std::string> in_order(tokens.size());
    std::size_t end = 0, filled = 0;
    for (const auto& [token, number] : tokens) {
      if (number >= tokens.size())
        refuse("token '" + token + "' has number " + std::to_string(number) + ", there are " +
               std::to_string(tokens.size()));
      auto& place = in_order[static_cast<std::size_t>(number)];
      if (place.empty()) ++filled;
      else if (place != token) refuse("'" + place + "' and '" + token + "' have one number");
      place = token;
      end = std::max(end, static_cast<std::size_t>(number) + 1);
    }
    if (filled != end) refuse("the numbers of its tokens have gaps");
    in_order.resize(end);
    try {
      return {std::move(in_order), merges, std::move(options)};
    } catch (const runtime_error& e) {
      refuse(e.what());
    }
  }

  std::string path_;
};

}  // namespace detail

/// A tokenizer from GPT-2's two files, vocab.json and merges.txt. Throws `xla::io_error` with the
/// path and the reason.
inline data::BpeTokenizer read_bpe_tokenizer(const std::string& vocab_json,
                                             const std::string& merges_txt) {
  return detail::bpe_file(vocab_json).vocab_and_merges(merges_txt);
}

/// A tokenizer from Hugging Face's tokenizer.json, as GPT-2, SmolLM 2 and Llama 3 have it, or from
/// a folder with that or with vocab.json and merges.txt. Throws `xla::io_error` with the path and
/// the reason, also where the file asks for what is not done here: another way to cut texts, a
/// normalizer.
inline data::BpeTokenizer read_bpe_tokenizer(const std::string& path) {
  const std::filesystem::path folder(path);
  if (!std::filesystem::is_directory(folder)) return detail::bpe_file(path).tokenizer_json();
  if (const auto file = folder / "tokenizer.json"; std::filesystem::exists(file))
    return detail::bpe_file(file.string()).tokenizer_json();
  return read_bpe_tokenizer((folder / "vocab.json").string(), (folder / "merges.txt").string());
}

}  // namespace xla::ext
