// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <xla/models/bert.hpp>
#include <xla/nn/prelu_mish_glu.hpp>
#include <xla/xla.hpp>

#include "models.hpp"

// Networks that bench/reading.py only reads with, by their published layers; as in
// peers/reading_nets.py.
namespace bench {

/// The first network of MTCNN, of Zhang, Zhang, Li and Qiao (2016), on whole images: (n, 3, h, w)
/// to the probabilities of a face and the corners of its box, (n, 6, h', w').
struct PNet {
  xla::nn::Conv2d<3> conv1{3, 10}, conv2{10, 16}, conv3{16, 32};
  xla::nn::PReLU prelu1{10}, prelu2{16}, prelu3{32};
  xla::nn::MaxPool2d<xla::nn::MaxPool2dConfig{.kernel_size = 2, .ceil_mode = true}> pool;
  xla::nn::Conv2d<1> face{32, 2}, box{32, 4};

  constexpr auto operator()(const xla::Tensor<float, 4>& x) const {
    const auto shared = prelu3(conv3(prelu2(conv2(pool(prelu1(conv1(x)))))));
    return xla::cat({xla::softmax(face(shared), 1), box(shared)}, 1);
  }
  XLA_MODULE(conv1, prelu1, conv2, prelu2, conv3, prelu3, pool, face, box)
};

struct pnet_task {
  using Model = PNet;
  using Output = xla::Tensor<float, 4>;
  static void set_weights(Model& model) {
    set_image_weights(model);
    for (auto* prelu : {&model.prelu1, &model.prelu2, &model.prelu3})
      prelu->weight.copy_(xla::full_like(prelu->weight, 0.25f));
  }
  static auto ring(std::int64_t count, std::int64_t batch) {
    return make_images(count, {batch, 3, 224, 2});
  }
};

/// A convolution of CREPE with what follows it; a length is halved.
template <auto Kernel>
struct CrepeLayer {
  xla::nn::Conv1d<Kernel> conv;
  xla::nn::BatchNorm1d norm;
  xla::nn::MaxPool1d<2> pool;

  constexpr CrepeLayer(std::int64_t in, std::int64_t out) : conv(in, out), norm(out) {}
  constexpr auto operator()(const xla::Tensor<float, 3>& x) const {
    return pool(norm(xla::relu(conv(x))));
  }
  XLA_MODULE(conv, norm, pool)
};

/// The pitch of 1024 samples of sound, of Kim, Salamon, Li and Bello (2018): (n, 1, 1024) to (n,
/// 360). Capacity is 4 (tiny) to 32 (full).
template <std::int64_t Capacity>
struct Crepe {
  static constexpr xla::nn::Conv1dConfig first{.kernel_size = 512, .stride = 4, .padding = 254};
  static constexpr xla::nn::Conv1dConfig later{.kernel_size = 64, .padding = xla::tags::same};

  CrepeLayer<first> conv1{1, 32 * Capacity};
  CrepeLayer<later> conv2{32 * Capacity, 4 * Capacity}, conv3{4 * Capacity, 4 * Capacity},
      conv4{4 * Capacity, 4 * Capacity}, conv5{4 * Capacity, 8 * Capacity},
      conv6{8 * Capacity, 16 * Capacity};
  xla::nn::Linear classifier{64 * Capacity, 360};

  constexpr auto operator()(const xla::Tensor<float, 3>& x) const {
    const auto features = conv6(conv5(conv4(conv3(conv2(conv1(x))))));
    return xla::sigmoid(classifier(xla::flatten<1>(features)));
  }
  XLA_MODULE(conv1, conv2, conv3, conv4, conv5, conv6, classifier)
};

template <std::int64_t Capacity>
struct crepe_task {
  using Model = Crepe<Capacity>;
  using Output = xla::Tensor<float, 2>;
  static void set_weights(Model& model) { set_image_weights(model); }
  static auto ring(std::int64_t count, std::int64_t batch) {
    constexpr std::int64_t samples = 1024;
    std::vector<std::pair<xla::Tensor<float, 3>, xla::Tensor<std::int64_t, 1>>> made;
    for (auto& [image, label] : make_images(count, {batch, 1, 32, 2}))
      made.emplace_back(xla::reshape(image, {batch, 1, samples}), label);
    return made;
  }
};

/// The shape of all-MiniLM-L6-v2: tokens (n, Length) to (n, Length, 384).
inline constexpr xla::models::BertConfig minilm{.hidden_size = 384,
                                                .num_hidden_layers = 6,
                                                .num_attention_heads = 12,
                                                .intermediate_size = 1536};

template <std::int64_t Length>
struct minilm_task {
  using Model = xla::models::BertModel<minilm, false>;
  using Output = xla::Tensor<float, 3>;
  static void set_weights(Model& model) { set_image_weights(model); }
  static auto ring(std::int64_t count, std::int64_t batch) {
    return make_texts(count, batch, Length);
  }
};

template <class Task>
int serve_reading(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
  xla::set_num_threads(threads);
  xla::eager_mode(true);
  answer_ways(reading_program<Task>{threads});
  return 0;
}

}  // namespace bench
