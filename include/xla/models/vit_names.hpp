// SPDX-License-Identifier: Apache-2.0
#pragma once

// The names of a vision transformer's parts in torchvision, timm and Hugging Face. vit.hpp uses it
// to load their files.

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "xla/models/names.hpp"

namespace xla::models {

namespace detail {

/// torchvision's names, and timm's.
inline constexpr std::array<RenamedPart, 12> vit_names{{
    {"class_token", "cls_token"},
    {"encoder.pos_embedding", "pos_embed"},
    {"conv_proj.", "patch_embed.proj."},
    {"encoder.layers.encoder_layer_", "blocks."},
    {".ln_1.", ".norm1."},
    {".self_attention.in_proj_", ".attn.qkv."},
    {".self_attention.out_proj.", ".attn.proj."},
    {".ln_2.", ".norm2."},
    {".mlp.0.", ".mlp.fc1."},
    {".mlp.3.", ".mlp.fc2."},
    {"encoder.ln.", "norm."},
    {"heads.head.", "head."},
}};
/// The names that torchvision's files have in addition.
inline constexpr std::array<RenamedPart, 2> vit_old_names{
    {{".mlp.linear_1.", ".mlp.fc1."}, {".mlp.linear_2.", ".mlp.fc2."}}};

/// The names of Hugging Face's files, and timm's.
inline constexpr std::array<RenamedPart, 11> vit_hugging_face_names{{
    {"embeddings.cls_token", "cls_token"},
    {"embeddings.position_embeddings", "pos_embed"},
    {"embeddings.patch_embeddings.projection.", "patch_embed.proj."},
    {"encoder.layer.", "blocks."},
    {".layernorm_before.", ".norm1."},
    {".attention.output.dense.", ".attn.proj."},
    {".layernorm_after.", ".norm2."},
    {".intermediate.dense.", ".mlp.fc1."},
    {".output.dense.", ".mlp.fc2."},
    {"layernorm.", "norm."},
    {"classifier.", "head."},
}};
/// The names that the modules of transformers 5 have in addition.
inline constexpr std::array<RenamedPart, 5> vit_module_names{{
    {"layers.", "blocks."},
    {".attention.q_proj.", ".attention.attention.query."},
    {".attention.k_proj.", ".attention.attention.key."},
    {".attention.v_proj.", ".attention.attention.value."},
    {".attention.o_proj.", ".attn.proj."},
}};
inline constexpr std::string_view vit_prefix = "vit.", vit_packed = ".attn.qkv.";
inline constexpr std::array<std::string_view, 3> vit_parts{
    ".attention.attention.query.", ".attention.attention.key.", ".attention.attention.value."};

/// The list for the reverse direction.
template <std::size_t N>
constexpr std::array<RenamedPart, N> reversed_names(std::array<RenamedPart, N> names) {
  for (auto& part : names) std::swap(part.from, part.to);
  return names;
}

}  // namespace detail

/// Renames a state of torchvision's vision transformer, or of its files, to VisionTransformer's
/// names.
inline StateDict vit_from_torchvision(StateDict state) {
  return renamed(renamed(std::move(state), detail::vit_names), detail::vit_old_names);
}
/// The reverse.
inline StateDict vit_to_torchvision(StateDict state) {
  return renamed(std::move(state), detail::reversed_names(detail::vit_names));
}

/// Renames weights of Hugging Face's ViTForImageClassification or ViTModel to VisionTransformer's
/// names, and joins their separate queries, keys and values. If one of these is missing, it is a
/// runtime_error.
template <class = void>
StateDict vit_from_hugging_face(StateDict state) {
  constexpr std::array<RenamedPart, 1> prefix{{{detail::vit_prefix, ""}}};
  state = renamed(renamed(std::move(state), prefix), detail::vit_module_names);
  state = detail::joined(state, detail::vit_parts, detail::vit_packed, "vit_from_hugging_face");
  return renamed(std::move(state), detail::vit_hugging_face_names);
}
/// The reverse: converts the state_dict() of a VisionTransformer for ViTForImageClassification.
template <class = void>
StateDict vit_to_hugging_face(StateDict state) {
  constexpr auto names = detail::reversed_names(detail::vit_hugging_face_names);
  state = renamed(detail::unpacked(state, detail::vit_parts, detail::vit_packed), names);
  for (auto& value : state)
    value.name.insert(0, value.name.starts_with("classifier.") ? "" : detail::vit_prefix);
  return state;
}

/// Renames weights of torchvision, timm or Hugging Face, which it tells apart by their names, to
/// VisionTransformer's names.
template <class = void>
StateDict vit_own_names(StateDict state) {
  const auto any = [&](std::string_view part) {
    return std::any_of(state.begin(), state.end(), [&](const auto& value) {
      return value.name.find(part) != std::string::npos;
    });
  };
  if (any("encoder_layer_")) return vit_from_torchvision(std::move(state));
  if (any(".patch_embeddings.projection.")) return vit_from_hugging_face(std::move(state));
  return state;
}

}  // namespace xla::models
