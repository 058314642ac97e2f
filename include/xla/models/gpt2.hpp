// SPDX-License-Identifier: Apache-2.0
#pragma once

// GPT-2 as nn::Decoder at its sizes, and the renaming of Hugging Face's weights, which stores
// matrices transposed.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "xla/models/names.hpp"
#include "xla/nn/decoder.hpp"

namespace xla::models {

namespace detail {
constexpr nn::DecoderConfig gpt2_config(int layers, int hidden, int heads) {
  return {.hidden = hidden,
          .layers = layers,
          .heads = heads,
          .kv_heads = heads,
          .intermediate = 4 * hidden,
          .vocabulary = 50257,
          .max_positions = 1024,
          .tied_head = true,
          .bias = true,
          .dropout = true,
          .norm = nn::DecoderNorm::layer,
          .norm_eps = 1e-5,
          .activation = nn::DecoderActivation::gelu_tanh,
          .init = nn::DecoderInit::normal};
}
}  // namespace detail

/// GPT-2 is nn::Decoder<gpt2>, and so on; Hugging Face's names of the sizes, from 82 million
/// parameters to 1558. Radford et al. (2019).
inline constexpr nn::DecoderConfig distilgpt2 = detail::gpt2_config(6, 768, 12);
inline constexpr nn::DecoderConfig gpt2 = detail::gpt2_config(12, 768, 12);
inline constexpr nn::DecoderConfig gpt2_medium = detail::gpt2_config(24, 1024, 16);
inline constexpr nn::DecoderConfig gpt2_large = detail::gpt2_config(36, 1280, 20);
inline constexpr nn::DecoderConfig gpt2_xl = detail::gpt2_config(48, 1600, 25);

namespace detail {

/// Hugging Face's names, and nn::Decoder's.
inline constexpr std::array<RenamedPart, 9> gpt2_names{{
    {"wte.", "embed_tokens."},
    {"wpe.", "embed_positions."},
    {"ln_f.", "norm."},
    {"h.", "layers."},
    {".ln_1.", ".input_layernorm."},
    {".ln_2.", ".post_attention_layernorm."},
    {".attn.c_proj.", ".self_attn.o_proj."},
    {".mlp.c_fc.", ".mlp.up_proj."},
    {".mlp.c_proj.", ".mlp.down_proj."},
}};
inline constexpr std::string_view gpt2_prefix = "transformer.", gpt2_packed = ".attn.c_attn.";
inline constexpr std::array<std::string_view, 3> gpt2_parts{
    ".self_attn.q_proj.", ".self_attn.k_proj.", ".self_attn.v_proj."};

/// Elements of Width bytes: some columns of rows as rows, by blocks that stay in the cache.
template <std::int64_t Width>
void transpose_columns(const std::uint8_t* from, std::int64_t rows, std::int64_t stride,
                       std::int64_t columns, std::uint8_t* to) {
  constexpr std::int64_t block = 64 / Width;
  for (std::int64_t c = 0; c < columns; c += block)
    for (std::int64_t r = 0; r < rows; r += block)
      for (std::int64_t j = c; j < std::min(c + block, columns); ++j)
        for (std::int64_t i = r; i < std::min(r + block, rows); ++i)
          std::memcpy(to + (j * rows + i) * Width, from + (i * stride + j) * Width, Width);
}

/// True for a weight (rows, columns) or a bias (columns) whose bytes match its sizes.
template <class = void>
bool is_projection(const NamedArray& a) {
  return (a.sizes.size() == 1 || a.sizes.size() == 2) &&
         io::array_bytes(a.type, a.sizes) == a.bytes.size();
}

/// Some columns of a projection under another name: of a weight (rows, columns) transposed to
/// (columns, rows), of a bias its elements.
template <class = void>
NamedArray columns_as_rows(const NamedArray& a, std::string name, std::int64_t first,
                           std::int64_t columns) {
  const std::int64_t rows = a.sizes.size() == 2 ? a.sizes[0] : 1, width = size_of(a.type);
  std::vector<std::uint8_t> to(static_cast<std::size_t>(rows * columns * width));
  const auto turn = [&]<std::int64_t Width>(std::integral_constant<std::int64_t, Width>) {
    // Without rows a file may claim any number of columns.
    if (width == Width && rows > 0)
      transpose_columns<Width>(a.bytes.data() + first * width, rows, a.sizes.back(), columns,
                               to.data());
  };
  turn(std::integral_constant<std::int64_t, 1>{});
  turn(std::integral_constant<std::int64_t, 2>{});
  turn(std::integral_constant<std::int64_t, 4>{});
  turn(std::integral_constant<std::int64_t, 8>{});
  NamedArray out{std::move(name), a.type, {columns}, std::move(to)};
  if (a.sizes.size() == 2) out.sizes.push_back(rows);
  return out;
}

/// The projections among GPT-2's arrays, whose axes the two formats order differently.
inline bool is_transposed(const NamedArray& a) {
  return a.sizes.size() == 2 && a.name.ends_with("_proj.weight") && is_projection(a);
}

}  // namespace detail

/// Renames weights of Hugging Face's GPT2LMHeadModel or GPT2Model to nn::Decoder's names and
/// transposes them: theirs are (in, out), with queries, keys and values in one. The head is dropped
/// if it is the embedding's weight, as are the masks that early files contain.
template <class = void>
StateDict gpt2_from_hugging_face(StateDict state, bool tied_head = true) {
  constexpr std::array<RenamedPart, 1> prefix{{{detail::gpt2_prefix, ""}}};
  state = renamed(renamed(std::move(state), prefix), detail::gpt2_names);
  if (tied_head)
    detail::join_tied(state, "lm_head.weight", "embed_tokens.weight", "gpt2_from_hugging_face");
  StateDict out;
  for (auto& a : state) {
    if (a.name.ends_with(".attn.bias") || a.name.ends_with(".attn.masked_bias")) continue;
    if (a.name.find(detail::gpt2_packed) != std::string::npos && detail::is_projection(a) &&
        a.sizes.back() % 3 == 0) {
      const std::int64_t third = a.sizes.back() / 3;
      for (std::int64_t i = 0; i < 3; ++i)
        out.push_back(detail::columns_as_rows(
            a, detail::with_part(a.name, detail::gpt2_packed, detail::gpt2_parts[i]), i * third,
            third));
    } else if (detail::is_transposed(a)) {
      out.push_back(detail::columns_as_rows(a, a.name, 0, a.sizes[1]));
    } else {
      out.push_back(std::move(a));
    }
    a = {};  // otherwise its elements would stay in memory until the last one is done
  }
  return out;
}

/// The reverse: converts the state_dict() of an nn::Decoder such as gpt2 for GPT2LMHeadModel. A
/// runtime_error unless queries, keys and values have one size, as in GPT-2.
template <class = void>
StateDict gpt2_to_hugging_face(StateDict state) {
  auto names = detail::gpt2_names;
  for (auto& part : names) std::swap(part.from, part.to);
  state = detail::joined(state, detail::gpt2_parts, detail::gpt2_packed, "gpt2_to_hugging_face");
  for (auto& a : state) {
    const bool packed = a.name.ends_with(".attn.c_attn.weight") && detail::is_projection(a);
    if (packed || detail::is_transposed(a)) a = detail::columns_as_rows(a, a.name, 0, a.sizes[1]);
  }
  state = renamed(std::move(state), names);
  for (auto& a : state)
    if (a.name != "lm_head.weight") a.name.insert(0, detail::gpt2_prefix);
  return state;
}

}  // namespace xla::models
