// SPDX-License-Identifier: Apache-2.0
#pragma once

// A dataset of pictures in class folders, as torchvision's ImageFolder. It decodes nothing: the
// program passes in a function for that, such as ext::read_image.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "xla/base/error.hpp"
#include "xla/base/system/joining_thread.hpp"
#include "xla/base/system/mutex.hpp"
#include "xla/base/system/thread.hpp"
#include "xla/data/folder_index.hpp"
#include "xla/data/loader.hpp"
#include "xla/data/transforms.hpp"

namespace xla::data::detail {

/// Calls f(0) … f(count - 1) on this many threads, including the calling one. They are not the
/// kernels' threads, which a step uses. An exception of a call is rethrown when all have ended; of
/// several, that of the smallest number.
template <class F>
void side_by_side(int threads, std::size_t count, const F& f) {
  std::vector<std::exception_ptr> failures(count);
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i; (i = next++) < count;) try {
        f(i);
      } catch (...) {
        failures[i] = std::current_exception();
      }
  };
  {
    std::vector<sys::joining_thread> others;
    const auto all = std::min(static_cast<std::size_t>(sys::has_threads ? threads : 1), count);
    for (std::size_t i = 1; i < all; ++i) others.emplace_back(work);
    work();
  }
  for (const auto& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

}  // namespace xla::data::detail

namespace xla::data {

/// What an `ImageFolder` takes for pictures, and how it reads them.
struct ImageFolderOptions {
  std::vector<std::string> extensions = {".jpg", ".jpeg", ".png"};  ///< In any case of letters.
  int threads = 1;  ///< That read the pictures of a batch in parallel.
  /// Called once for each picture that cannot be read, on the thread that tried, one call at a
  /// time. It must not use the dataset. Another picture of the batch replaces the unreadable one.
  /// Without this function an unreadable picture ends the loop.
  std::function<void(const std::string& what)> on_unreadable = {};
};

namespace detail {

/// State that copies of a dataset share, such as a loader's copy.
struct image_files {
  explicit image_files(FolderIndex files) : index(std::move(files)) {}
  FolderIndex index;
  sys::mutex lock;
  std::map<std::int64_t, std::string> unreadable;  // why
};

}  // namespace detail

/// Pictures in a folder of class folders, `root/cat/1.jpg`, `root/dog/any/2.png`, with the classes
/// and the order of torchvision's ImageFolder. A batch is a pair of images (batch, channels,
/// height, width) and classes (batch). `read(path)` returns a picture, for instance by
/// `ext::read_image`. `transform(picture, random)` makes an `Image` of it, all of one size, with
/// this sample's random numbers for this epoch. Both run on the threads that the options ask for,
/// ahead of the step if the loader prefetches: `DataLoader{ImageFolder{"train", read, transform,
/// {.threads = 4}}, {.batch_size = 64, .shuffle = true, .prefetch = 2}}`.
template <class Read, class Transform>
class ImageFolder {
 public:
  using batch_type = std::pair<Tensor<float, 4>, Tensor<std::int64_t, 1>>;

  /// Throws `xla::io_error` if the folder does not exist, has no class folder, or has one without a
  /// picture, and `xla::error` for fewer than one thread.
  ImageFolder(const std::string& root, Read read, Transform transform,
              ImageFolderOptions options = {})
      : files_(std::make_shared<files>(read_folder_index(root, options.extensions))),
        read_(std::move(read)),
        transform_(std::move(transform)),
        options_(std::move(options)) {
    if (options_.threads < 1)
      throw runtime_error("ImageFolder: threads is " + std::to_string(options_.threads) +
                          ", it has to be at least 1");
  }

  /// The number of pictures.
  std::int64_t size() const { return std::ssize(files_->index.samples); }
  /// The names of the classes; a class's number is its index here.
  const std::vector<std::string>& classes() const { return files_->index.classes; }
  /// Path and class of each picture.
  const std::vector<FolderSample>& samples() const { return files_->index.samples; }

  /// The same pictures with another transform, for instance for validation.
  template <class Other>
  ImageFolder<Read, Other> with_transform(Other transform) const {
    return {files_, read_, std::move(transform), options_};
  }

  /// The pictures with these numbers in this epoch. Throws `xla::index_error` outside [0, size).
  /// Throws `xla::io_error` for a picture that cannot be read, unless `on_unreadable` is set, or if
  /// no picture of the batch can be read. Throws `xla::shape_error` if the images have different
  /// sizes, or a size that the transform refuses.
  batch_type batch(std::span<const std::int64_t> samples, const Epoch& epoch = {}) const {
    for (const auto i : samples)
      if (i < 0 || i >= size())
        throw index_error("ImageFolder: sample " + std::to_string(i) + " of " +
                          std::to_string(size()));
    std::vector<std::optional<Image>> images(samples.size());
    detail::side_by_side(options_.threads, samples.size(),
                         [&](std::size_t i) { images[i] = image(samples[i], epoch); });
    return stack(samples, images);
  }

  /// Whether an earlier attempt to read a picture has failed.
  bool is_unreadable(std::int64_t sample) const {
    const std::lock_guard hold(files_->lock);
    return files_->unreadable.contains(sample);
  }

 private:
  template <class, class>
  friend class ImageFolder;
  using files = detail::image_files;

  ImageFolder(std::shared_ptr<files> files, Read read, Transform transform,
              ImageFolderOptions options)
      : files_(std::move(files)),
        read_(std::move(read)),
        transform_(std::move(transform)),
        options_(std::move(options)) {}

  /// One picture; none if it cannot be read and the loop continues.
  std::optional<Image> image(std::int64_t sample, const Epoch& epoch) const {
    std::optional<decltype(read_(std::string{}))> picture;
    try {
      picture = read_(sample_of(sample).path);
    } catch (const io_error& e) {
      if (!options_.on_unreadable) throw;
      const std::lock_guard hold(files_->lock);
      if (files_->unreadable.emplace(sample, e.what()).second) options_.on_unreadable(e.what());
      return {};
    }
    SampleRandom random{epoch, sample};
    try {
      return transform_(std::move(*picture), random);
    } catch (const shape_error& e) {
      throw shape_error("ImageFolder: '" + sample_of(sample).path + "': " + e.what());
    }
  }

  batch_type stack(std::span<const std::int64_t> samples,
                   std::span<const std::optional<Image>> images) const {
    const auto count = static_cast<std::int64_t>(samples.size());
    const auto there = std::ranges::find_if(images, [](const auto& x) { return x.has_value(); });
    if (count > 0 && there == images.end()) refuse_batch(samples);
    const Image none, &first = count > 0 ? **there : none;
    std::vector<float> pixels;
    pixels.reserve(samples.size() * first.pixels.size());
    std::vector<std::int64_t> targets;
    auto from = static_cast<std::size_t>(there - images.begin());
    for (std::size_t i = 0; i < samples.size(); ++i) {
      if (images[i]) from = i;
      const auto& image = *images[from];
      if (image.channels != first.channels || image.height != first.height ||
          image.width != first.width)
        throw shape_error("ImageFolder: '" + sample_of(samples[from]).path + "' comes out as " +
                          sizes_of(image) + ", others of the batch as " + sizes_of(first) +
                          "; a crop at the end of the transform makes them alike");
      pixels.insert(pixels.end(), image.pixels.begin(), image.pixels.end());
      targets.push_back(sample_of(samples[from]).target);
    }
    return {from_blob(pixels.data(), {count, first.channels, first.height, first.width}),
            from_blob(targets.data(), {count})};
  }

  const FolderSample& sample_of(std::int64_t sample) const {
    return files_->index.samples[static_cast<std::size_t>(sample)];
  }
  static std::string sizes_of(const Image& image) {
    return std::to_string(image.channels) + " x " + std::to_string(image.height) + " x " +
           std::to_string(image.width);
  }
  [[noreturn]] void refuse_batch(std::span<const std::int64_t> samples) const {
    const std::lock_guard hold(files_->lock);
    throw io_error("ImageFolder: of a batch of " + std::to_string(samples.size()) +
                   " no picture can be read; the first: " + files_->unreadable.at(samples[0]));
  }

  std::shared_ptr<files> files_;
  Read read_;
  Transform transform_;
  ImageFolderOptions options_;
};

}  // namespace xla::data
