// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "xla/ext/decoder_config.hpp"
#include "xla/ext/safetensors_index.hpp"
#include "xla/models/gpt2.hpp"
#include "xla/models/llama.hpp"
#include "xla/nn/state_dict.hpp"

namespace xla::ext {

/// The tensors in a folder as Hugging Face's save_pretrained leaves it: of its model.safetensors,
/// or of the files that its model.safetensors.index.json lists. Throws `xla::io_error`.
inline StateDict read_pretrained(const std::string& folder, BFloat16 bfloat16 = BFloat16::widened) {
  const auto one = folder + "/model.safetensors", several = one + ".index.json";
  if (std::filesystem::exists(one)) return read_safetensors(one, bfloat16).tensors;
  if (std::filesystem::exists(several)) return read_safetensors_index(several, bfloat16);
  throw io_error("'" + folder + "' has neither model.safetensors nor model.safetensors.index.json");
}

/// Loads the weights of a GPT-2 or a Llama from a folder as Hugging Face's save_pretrained leaves
/// it, whose config.json has to describe this decoder; the model then evaluates. Throws
/// `xla::io_error` for files that cannot be read or describe another decoder, `xla::error` for
/// weights that do not fit, and then has changed nothing.
template <nn::DecoderConfig C>
void load_pretrained(nn::Decoder<C>& model, const std::string& folder) {
  const auto difference = decoder_difference(read_decoder_config(folder), C);
  if (!difference.empty())
    throw io_error("'" + folder +
                   "/config.json' describes another decoder than the program has: " + difference);
  auto state = read_pretrained(folder, BFloat16::kept);
  if constexpr (C.norm == nn::DecoderNorm::layer)
    state = models::gpt2_from_hugging_face(std::move(state), C.tied_head);
  else state = models::llama_from_hugging_face(std::move(state), C.tied_head);
  load_state_dict(model, state);
  model.eval();
}

}  // namespace xla::ext
