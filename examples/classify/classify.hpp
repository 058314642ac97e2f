// SPDX-License-Identifier: Apache-2.0
#pragma once

// From files of pictures to printed labels: reads, prepares and classifies each picture, and
// reports those that cannot be read.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <xla/data/resize.hpp>
#include <xla/data/transforms.hpp>
#include <xla/ext/image.hpp>
#include <xla/ext/pretrained.hpp>
#include <xla/models/head.hpp>
#include <xla/xla.hpp>

#include "../image_models.hpp"
#include "labels.hpp"
#include "options.hpp"

namespace data = xla::data;

constexpr auto classify_fn = [](auto& model, auto& images) {
  model.eval();
  return xla::softmax(model(images), 1);
};

/// Milliseconds since the last call.
class Watch {
 public:
  double operator()() {
    const auto now = std::chrono::steady_clock::now();
    const std::chrono::duration<double, std::milli> passed = now - std::exchange(last_, now);
    return passed.count();
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

/// From a picture to what the model is given: (1, 3, size, size).
inline xla::Tensor<float, 4> prepare(data::Picture picture, std::int64_t resize,
                                     std::int64_t size) {
  // Means and deviations of ImageNet's colours, which torchvision's weights expect.
  const data::Compose view{data::Resize{resize}, data::CenterCrop{{size, size}}, data::ToTensor{},
                           data::Normalize{{0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}}};
  data::SampleRandom nothing_random{{}, 0};
  const auto image = view(std::move(picture), nothing_random);
  return xla::from_blob(image.pixels.data(), {1, image.channels, image.height, image.width});
}

inline void print_likeliest(const std::vector<float>& likelihoods, int top, const Labels& labels) {
  std::vector<std::size_t> order(likelihoods.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto end = order.begin() + std::min<std::ptrdiff_t>(top, std::ssize(order));
  std::partial_sort(order.begin(), end, order.end(), [&](auto a, auto b) {
    return likelihoods[a] != likelihoods[b] ? likelihoods[a] > likelihoods[b] : a < b;
  });
  for (auto best = order.begin(); best != end; ++best)
    std::printf("  %6.2f %%  %s\n", 100 * static_cast<double>(likelihoods[*best]),
                labels[*best].c_str());
}

/// A model that says of pictures what they show.
template <class Entry, class Run>
class Classifier {
 public:
  Classifier(const Options& o, Run run)
      : o_(o),
        run_(std::move(run)),
        labels_(o.labels, read_model()),
        size_(o.size == 0 ? Entry::size : o.size),
        resize_(o.resize == 0 ? size_ * 8 / 7 : o.resize) {  // 256 for 224, as ImageNet's
    std::printf("%s: %lld parameters, read in %.0f ms\n", o.model.c_str(),
                static_cast<long long>(xla::parameter_count(model_)), watch_());
  }

  void show(const std::string& path) {
    watch_();
    auto picture = xla::ext::read_image(path);
    const auto height = picture.height, width = picture.width;
    auto images = prepare(std::move(picture), resize_, size_);
    const double reading = watch_();
    std::vector<float> likelihoods;
    std::vector<double> times;
    for (int i = 0; i < o_.repeat; ++i) {
      watch_();
      likelihoods = xla::no_grad([&] { return run_(model_, images); }).to_vector();
      times.push_back(watch_());
    }
    std::ranges::sort(times);
    std::printf("%s: %lld x %lld, read in %.1f ms, classified in %.1f ms\n", path.c_str(),
                static_cast<long long>(width), static_cast<long long>(height), reading,
                times[times.size() / 2]);
    print_likeliest(likelihoods, o_.top, labels_);
  }

 private:
  /// Its head gets as many classes as there are in the file; how many.
  std::int64_t read_model() {
    xla::models::load(model_, o_.weights);
    return xla::models::head(model_).weight.size(0);
  }

  const Options& o_;
  Run run_;
  Watch watch_;
  typename Entry::Model model_;
  Labels labels_;
  std::int64_t size_, resize_;
};

template <class Entry, class Run>
bool classify_all(const Options& o, Run run) {
  Classifier<Entry, Run> classifier{o, std::move(run)};
  bool all = true;
  const auto leave_out = [&](const std::string& why) {
    std::fflush(stdout);
    std::fprintf(stderr, "left out: %s\n", why.c_str());
    all = false;
  };
  for (const auto& path : o.pictures) {
    try {
      classifier.show(path);
    } catch (const xla::io_error& e) {
      leave_out(e.what());
    } catch (const xla::shape_error& e) {  // too long and thin, say
      leave_out("'" + path + "': " + e.what());
    }
  }
  return all;
}

template <class Entry>
bool classify(const Options& o) {
  if (o.threads > 0) xla::set_num_threads(o.threads);
  xla::eager_mode(o.mode != "traced");
  if (o.mode != "compiled") return classify_all<Entry>(o, classify_fn);
  return classify_all<Entry>(o, xla::compile(classify_fn, {.name = "classify"}));
}
