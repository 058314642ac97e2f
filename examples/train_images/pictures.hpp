// SPDX-License-Identifier: Apache-2.0
#pragma once

// From folders of pictures to batches: reading, random changes, and what happens to damaged files.

#include <array>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <xla/data/image_folder.hpp>
#include <xla/data/padding.hpp>
#include <xla/data/random_resized_crop.hpp>
#include <xla/data/resize.hpp>
#include <xla/data/subset.hpp>
#include <xla/data/transforms.hpp>
#include <xla/ext/image.hpp>
#include <xla/xla.hpp>

#include "options.hpp"

namespace data = xla::data;

/// Means and deviations of ImageNet's colours, which torchvision's weights expect.
inline const data::Normalize normalize{{0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}};

/// From a picture to the image that a model is given: another one in every epoch to learn from, the
/// middle to be asked.
class View {
 public:
  View(const Options& o, bool training) : o_(o), kind_(training ? o.augment : "middle") {}

  data::Image operator()(data::Picture picture, data::SampleRandom& random) const {
    const std::array size{o_.size, o_.size};
    if (kind_ == "resized") {
      data::RandomResizedCrop{size}(picture, random);
    } else {
      data::Resize{o_.resize}(picture, random);
      if (kind_ != "moved") picture = data::center_crop(picture, size);
    }
    auto image = data::to_image(picture);
    if (kind_ == "moved") data::RandomCrop{.size = size, .padding = o_.size / 14}(image, random);
    if (o_.flip && kind_ != "middle") data::RandomHorizontalFlip{}(image, random);
    normalize(image, random);
    return image;
  }

 private:
  Options o_;
  std::string kind_;
};

struct Read {
  data::Picture operator()(const std::string& path) const { return xla::ext::read_image(path); }
};
using Folder = data::ImageFolder<Read, View>;
using Pictures = data::Subset<Folder>;

inline Folder open_folder(const std::string& path, const Options& o, bool training) {
  data::ImageFolderOptions how{.threads = o.threads};
  if (o.unreadable == "skip")
    how.on_unreadable = [](const std::string& what) {
      std::fprintf(stderr, "left out: %s\n", what.c_str());
    };
  return {path, Read{}, View{o, training}, how};
}

/// The pictures to learn from, and those to be asked: another folder, or a share of the first.
struct Sets {
  Pictures training, held_out;
};
inline Sets divide(const Folder& folder, const Options& o) {
  const auto plain = [&](const Folder& of) { return of.with_transform(View{o, false}); };
  if (o.held_out.empty()) {
    const auto parts = data::random_split(folder, {1 - o.share, o.share}, o.seed);
    return {parts[0], {plain(folder), parts[1].samples()}};
  }
  const auto all = [](const Folder& of) {
    return Pictures{of, xla::arange(of.size()).to_vector()};
  };
  const auto other = open_folder(o.held_out, o, false);
  if (other.classes() != folder.classes())
    throw xla::runtime_error("'" + o.held_out + "' has other classes than '" + o.pictures + "'");
  return {all(folder), all(other)};
}
