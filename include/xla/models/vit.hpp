// SPDX-License-Identifier: Apache-2.0
#pragma once

// Vision transformers, by timm's names of members. vit_names.hpp renames weights of torchvision
// and Hugging Face.

#include <array>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "xla/models/parts.hpp"
#include "xla/models/pretrained.hpp"
#include "xla/models/vit_names.hpp"
#include "xla/nn/containers.hpp"
#include "xla/nn/conv.hpp"
#include "xla/nn/dropout.hpp"
#include "xla/nn/init.hpp"
#include "xla/nn/linear.hpp"
#include "xla/nn/normalization.hpp"
#include "xla/nn/shape.hpp"
#include "xla/op/check_index.hpp"
#include "xla/op/concat.hpp"
#include "xla/op/derived/activation.hpp"
#include "xla/op/derived/attention.hpp"
#include "xla/op/derived/split.hpp"
#include "xla/op/permute.hpp"
#include "xla/op/reshape.hpp"

namespace xla::models {

/// The structure of a vision transformer; the defaults are ViT-B/16.
struct VisionTransformerConfig {
  int image_size = 224;
  int patch_size = 16;
  int num_layers = 12;
  int num_heads = 12;
  int hidden_dim = 768;
  int mlp_dim = 3072;
  int num_classes = 1000;
  bool dropout = false;  ///< of the blocks' input, of attention, and of the residual branches
  double layer_norm_eps = 1e-6;  ///< as in timm and torchvision; Hugging Face's ViTConfig has 1e-12
  /// Runs the blocks as one loop whose body is recorded once; the program includes
  /// <xla/loop/scan_layers.hpp>. It pays with many blocks.
  bool scan_layers = false;

  /// The number of patches of an image.
  constexpr int patches() const { return (image_size / patch_size) * (image_size / patch_size); }
};

inline constexpr VisionTransformerConfig vit_b_16{};
inline constexpr VisionTransformerConfig vit_b_32{.patch_size = 32};
inline constexpr VisionTransformerConfig vit_l_16{
    .num_layers = 24, .num_heads = 16, .hidden_dim = 1024, .mlp_dim = 4096};

namespace detail {

template <VisionTransformerConfig C>
using vit_dropout = std::conditional_t<C.dropout, nn::Dropout, nn::Identity>;

/// Images (batch, 3, height, width) to a row for each patch (batch, patches, hidden_dim).
template <VisionTransformerConfig C>
struct VitPatchEmbed {
  nn::Conv2d<C.patch_size, C.patch_size> proj{3, C.hidden_dim};
  constexpr auto operator()(const Tensor<float, 4>& x) const {
    return transpose(flatten<2>(proj(x)), 1, 2);
  }
  XLA_MODULE(proj)
};

template <VisionTransformerConfig C>
struct VitAttention {
  static_assert(C.num_heads > 0 && C.hidden_dim % C.num_heads == 0,
                "xla::models::VisionTransformer: num_heads has to divide hidden_dim");
  nn::Linear qkv{C.hidden_dim, 3 * C.hidden_dim};
  vit_dropout<C> attn_drop;
  nn::Linear proj{C.hidden_dim, C.hidden_dim};
  vit_dropout<C> proj_drop;

  constexpr auto operator()(const Tensor<float, 3>& x) const {
    const auto [q, k, v] = split<3>(qkv(x), 2);
    AttentionOptions options;
    if constexpr (C.dropout)
      if (attn_drop.training) options.dropout_p = attn_drop.p;
    return proj_drop(proj(join_heads<C.hidden_dim>(
        scaled_dot_product_attention(heads(q), heads(k), heads(v), options))));
  }
  XLA_MODULE(qkv, attn_drop, proj, proj_drop)

 private:
  static constexpr auto heads(const Tensor<float, 3>& x) {
    return split_heads<C.num_heads, C.hidden_dim>(x);
  }
};

template <VisionTransformerConfig C>
struct VitMlp {
  nn::Linear fc1{C.hidden_dim, C.mlp_dim};
  vit_dropout<C> drop1;
  nn::Linear fc2{C.mlp_dim, C.hidden_dim};
  vit_dropout<C> drop2;
  constexpr auto operator()(const Tensor<float, 3>& x) const {
    return drop2(fc2(drop1(gelu(fc1(x)))));
  }
  XLA_MODULE(fc1, drop1, fc2, drop2)
};

template <VisionTransformerConfig C>
struct VitBlock {
  /// A static member: clang 16 at run time misreads a member of C after padding if C also ends in
  /// padding.
  static constexpr double eps = C.layer_norm_eps;
  nn::LayerNorm norm1{C.hidden_dim, eps};
  VitAttention<C> attn;
  nn::LayerNorm norm2{C.hidden_dim, eps};
  VitMlp<C> mlp;

  constexpr auto operator()(const Tensor<float, 3>& x) const {
    const auto h = x + attn(norm1(x));
    return h + mlp(norm2(h));
  }
  XLA_MODULE(norm1, attn, norm2, mlp)
};

/// Names the function in the error for images of another size.
struct vit_images {
  static constexpr auto name = "models::VisionTransformer";
};

}  // namespace detail

/// Images (batch, 3, image_size, image_size) to logits (batch, num_classes). Its state has the
/// names of timm's vit_base_patch16_224, whose weights load; vit_from_torchvision and
/// vit_from_hugging_face of vit_names.hpp rename theirs. Images of another size are a shape_error.
/// Dosovitskiy et al. (2020).
template <VisionTransformerConfig C = vit_b_16>
struct VisionTransformer {
  static_assert(C.patch_size > 0 && C.image_size % C.patch_size == 0,
                "xla::models::VisionTransformer: patch_size has to divide image_size");
  Parameter<float, 3> cls_token{{1, 1, C.hidden_dim}};
  Parameter<float, 3> pos_embed{{1, 1 + C.patches(), C.hidden_dim}};
  detail::VitPatchEmbed<C> patch_embed;
  detail::vit_dropout<C> pos_drop;
  std::array<detail::VitBlock<C>, C.num_layers> blocks;
  nn::LayerNorm norm{C.hidden_dim, detail::VitBlock<C>::eps};
  nn::Linear head{C.hidden_dim, C.num_classes};

  constexpr VisionTransformer() {
    if constexpr (C.dropout) set_dropout(0.1);
    if (!__builtin_is_constant_evaluated()) reset_parameters();
  }
  /// Dropout probabilities as in torchvision's model; the defaults are 0.1 and 0, as in the paper.
  /// One outside [0, 1] is an xla::error.
  constexpr explicit VisionTransformer(double dropout, double attention_dropout = 0)
    requires(C.dropout)
      : VisionTransformer() {
    set_dropout(dropout, attention_dropout);
  }
  /// Weights normal with a standard deviation of 0.02, biases 0, as timm's.
  void reset_parameters() {
    named_parameters(*this, [](const std::string& name, auto& p) {
      constexpr bool row = std::remove_cvref_t<decltype(p)>::rank == 1;
      if (name.starts_with("patch_embed")) return;  // as convolutions are initialised
      if (name.ends_with("bias")) nn::init::zeros_(p);
      else if (!row) nn::init::normal_(p, 0, name == "cls_token" ? 1e-6f : 0.02f);
    });
  }

  constexpr auto operator()(const Tensor<float, 4>& x, caller loc = here()) const {
    for (const int axis : {2, 3}) check_size<detail::vit_images>(x, axis, C.image_size, loc);
    const auto first = expand(cls_token, {x.size(0), 1, C.hidden_dim});
    Tensor<float, 3> h = pos_drop(cat({first, patch_embed(x)}, 1) + pos_embed);
    if constexpr (C.scan_layers)
      h = nn::detail::through_layers<nn::detail::layer_calls{.scan = true}>(blocks, h);
    else
      for (const auto& block : blocks) h = block(h);
    return head(norm(select(h, 1, 0)));
  }
  XLA_MODULE(cls_token, pos_embed, patch_embed, pos_drop, blocks, norm, head)

 private:
  constexpr void set_dropout(double p, double of_attention = 0) {
    pos_drop = nn::Dropout(p);
    for (auto& block : blocks) {
      block.attn.proj_drop = block.mlp.drop1 = block.mlp.drop2 = pos_drop;
      block.attn.attn_drop = nn::Dropout(of_attention);
    }
  }
};

/// Files by timm's names, torchvision's or Hugging Face's; a config.json of Hugging Face's.
template <VisionTransformerConfig C>
struct Pretrained<VisionTransformer<C>> {
  static constexpr std::string_view model_type = "vit";
  static constexpr ConfigField config[] = {{"image_size", C.image_size, 224},
                                           {"patch_size", C.patch_size, 16},
                                           {"num_channels", 3, 3},
                                           {"num_hidden_layers", C.num_layers, 12},
                                           {"num_attention_heads", C.num_heads, 12},
                                           {"hidden_size", C.hidden_dim, 768},
                                           {"intermediate_size", C.mlp_dim, 3072},
                                           {"layer_norm_eps", C.layer_norm_eps, 1e-12},
                                           {"hidden_act", "gelu", "gelu"},
                                           {"qkv_bias", true, true}};
  static constexpr std::string_view heads[] = {"pooler."};
  static StateDict own_names(StateDict state) { return vit_own_names(std::move(state)); }
};

}  // namespace xla::models
