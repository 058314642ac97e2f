// SPDX-License-Identifier: Apache-2.0
#include "xla/data/image_folder.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

#include "catch.hpp"
#include "xla/data/padding.hpp"
#include "xla/data/subset.hpp"
#include "xla/io/text.hpp"
#include "xla/xla.hpp"

namespace {

using namespace xla::data;
namespace fs = std::filesystem;
using numbers = std::vector<std::int64_t>;
using pixels = std::vector<float>;
using words = std::vector<std::string>;

/// A folder of files, by their paths below it; a picture's file holds its number.
class Folder {
 public:
  explicit Folder(const words& files) : path_(fs::temp_directory_path() / name()) {
    fs::remove_all(path_);
    fs::create_directories(path_);
    int number = 0;
    for (const auto& file : files) write(file, std::to_string(number++));
  }
  ~Folder() { fs::remove_all(path_); }
  void write(const std::string& file, const std::string& text) const {
    fs::create_directories((path_ / file).parent_path());
    std::ofstream(path_ / file) << text;
  }
  std::string path() const { return path_.string(); }

 private:
  static std::string name() {
    static std::atomic<int> count = 0;
    return "xla_image_folder_" + std::to_string(::getpid()) + "_" + std::to_string(count++);
  }
  fs::path path_;
};

// A picture of one row: its number twice, and what is drawn for it.
constexpr auto read_number = [](const std::string& path) {
  const auto text = xla::io::read_text(path);
  if (text == "damaged") throw xla::io_error("'" + path + "' is damaged");
  return std::stof(text);
};
constexpr auto with_draw = [](float number, SampleRandom& random) {
  return Image{1, 1, 3, {number, number, random.uniform()}};
};
auto folder_of(const Folder& folder, ImageFolderOptions options = {}) {
  return ImageFolder{folder.path(), read_number, with_draw, options};
}
words paths_of(const auto& folder, const std::string& root) {
  words out;
  for (const auto& [path, target] : folder.samples())
    out.push_back(std::to_string(target) + path.substr(root.size()));
  return out;
}
words numbered(int n) {
  words out;
  for (int i = 0; i < n; ++i)
    out.push_back((i < n / 2 ? "a/" : "b/") + std::to_string(100 + i) + ".png");
  return out;
}

// Of each picture what an epoch makes of it.
template <class Loader>
std::map<float, pixels> epoch(Loader& loader) {
  std::map<float, pixels> out;
  for (auto& batch : loader) {
    const auto all = std::get<0>(batch).to_vector();
    for (std::size_t i = 0; i < all.size(); i += 3)
      out[all[i]] = {all.begin() + static_cast<std::ptrdiff_t>(i),
                     all.begin() + static_cast<std::ptrdiff_t>(i) + 3};
  }
  return out;
}

}  // namespace

// The list is that of torchvision.datasets.ImageFolder for the same files.
TEST_CASE("classes and pictures are in torchvision's order") {
  const Folder files{{"dog/2.png", "dog/10.png", "dog/1.PNG", "Zebra/z.jpeg", "cat/b/1.jpg",
                      "cat/b-c/0.jpg", "cat/z.jpg", "cat/b/a/1.jpg", "cat/notes.txt", "cat/x.webp",
                      "top.png", "äffchen/1.jpg", "dog/.png"}};
  const auto folder = folder_of(files);
  CHECK(folder.classes() == words{"Zebra", "cat", "dog", "äffchen"});
  CHECK(paths_of(folder, files.path()) == words{"0/Zebra/z.jpeg", "1/cat/z.jpg", "1/cat/b/1.jpg",
                                                "1/cat/b-c/0.jpg", "1/cat/b/a/1.jpg", "2/dog/.png",
                                                "2/dog/1.PNG", "2/dog/10.png", "2/dog/2.png",
                                                "3/äffchen/1.jpg"});
  CHECK(folder.size() == 10);
  const auto [images, classes] = folder.batch(numbers{9, 0, 4});
  CHECK(images.sizes() == numbers{3, 1, 1, 3});
  CHECK(classes.to_vector() == numbers{3, 0, 1});
  const auto all = images.to_vector();
  CHECK(pixels{all[0], all[3], all[6]} == pixels{11, 3, 7});
  CHECK(folder.batch(numbers{}).first.sizes()[0] == 0);
  CHECK(folder_of(files, {.extensions = {".JPG", "peg", ".PNG", ".webp"}}).size() == 11);
}

TEST_CASE("links are followed, but not in a circle") {
  const Folder files{{"a/1.png"}}, others{{"2.png", "deep/3.png"}};
  fs::create_directory_symlink(others.path(), files.path() + "/b");
  fs::create_directory_symlink(files.path() + "/a", files.path() + "/a/again");
  CHECK(paths_of(folder_of(files), files.path()) ==
        words{"0/a/1.png", "1/b/2.png", "1/b/deep/3.png"});
}

TEST_CASE("draws depend on seed, epoch and sample alone, in any thread") {
  const Folder files{numbered(23)};
  const auto epochs = [&](ImageFolderOptions how, loader_options cut) {
    DataLoader loader{folder_of(files, how), cut};
    return std::pair{epoch(loader), epoch(loader)};
  };
  const auto [first, second] = epochs({}, {.batch_size = 23, .seed = 4});
  CHECK(first.size() == 23);
  CHECK(first != second);
  for (const int threads : {1, 3, 50})
    for (const std::int64_t ahead : {0, 2}) {
      const auto again = epochs({.threads = threads},
                                {.batch_size = 5, .shuffle = true, .seed = 4, .prefetch = ahead});
      CHECK(again.first == first);
      CHECK(again.second == second);
    }
  const auto folder = folder_of(files);
  DataLoader some{Subset{folder, {3, 20}}, {.batch_size = 1, .seed = 4}};
  CHECK(epoch(some) == std::map<float, pixels>{{3, first.at(3)}, {20, first.at(20)}});
  const auto plain = folder.with_transform([](float number, SampleRandom&) {
    return Image{1, 1, 1, {number}};
  });
  CHECK(plain.batch(numbers{7}).first.to_vector() == pixels{7});
}

TEST_CASE("the pictures of a batch are read side by side") {
  const Folder files{numbered(12)};
  std::atomic<int> running = 0, most = 0, wanted = 1;
  const auto read = [&](const std::string& path) {
    const int now = ++running;
    for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) continue;
    // Waits for the others, which a busy machine may start late.
    for (int i = 0; i < 10'000 && most < wanted; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
    --running;
    return read_number(path);
  };
  const ImageFolder one{files.path(), read, with_draw};
  const ImageFolder three{files.path(), read, with_draw, {.threads = 3}};
  numbers all(12);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i);
  one.batch(all);
  CHECK(most == 1);
  wanted = 3;
  three.batch(all);
  CHECK(most == 3);
}

TEST_CASE("a picture that cannot be read ends the loop with its path") {
  const Folder files{numbered(8)};
  files.write("a/102.png", "damaged");
  for (const int threads : {1, 4})
    for (const std::int64_t ahead : {0, 2}) {
      DataLoader loader{folder_of(files, {.threads = threads}),
                        {.batch_size = 2, .prefetch = ahead}};
      int batches = 0;
      const auto loop = [&] {
        for ([[maybe_unused]] auto& batch : loader) ++batches;
      };
      CHECK_THROWS_WITH(loop(), "'" + files.path() + "/a/102.png' is damaged");
      CHECK(batches == 1);
    }
}

TEST_CASE("another one of its batch stands for a picture that cannot be read, if asked for") {
  const Folder files{numbered(8)};
  files.write("a/102.png", "damaged");
  files.write("b/107.png", "damaged");
  for (const int threads : {1, 3}) {
    words heard;
    const auto folder = folder_of(
        files,
        {.threads = threads, .on_unreadable = [&](const auto& what) { heard.push_back(what); }});
    const auto [images, classes] = folder.batch(numbers{2, 4, 1, 7});
    const auto all = images.to_vector();
    CHECK(pixels(all.begin(), all.begin() + 3) == pixels(all.begin() + 3, all.begin() + 6));
    CHECK(pixels{all[0], all[3], all[6], all[9]} == pixels{4, 4, 1, 1});
    CHECK(classes.to_vector() == numbers{1, 1, 0, 0});
    std::ranges::sort(heard);
    CHECK(heard == words{"'" + files.path() + "/a/102.png' is damaged",
                         "'" + files.path() + "/b/107.png' is damaged"});
    DataLoader loader{folder, {.batch_size = 4, .prefetch = 1}};
    CHECK(epoch(loader).size() == 6);
    CHECK(heard.size() == 2);  // once each, also from copies
    CHECK(folder.is_unreadable(2));
    CHECK_FALSE(folder.is_unreadable(3));
    CHECK_THROWS_WITH(folder.batch(numbers{7, 2}),
                      "ImageFolder: of a batch of 2 no picture can be read; the first: '" +
                          files.path() + "/b/107.png' is damaged");
  }
}

TEST_CASE("folders without classes and pictures of different sizes are refused") {
  const Folder none{{"a.png"}}, lacking{{"a/1.png", "b/1.txt"}}, good{numbered(4)};
  CHECK_THROWS_WITH(folder_of(none), "'" + none.path() + "' has no folder for a class, as '" +
                                         none.path() + "/cat/1.jpg'");
  CHECK_THROWS_WITH(folder_of(lacking), "class 'b' of '" + lacking.path() +
                                            "' has no file of the kinds .jpg .jpeg .png");
  CHECK_THROWS_WITH((ImageFolder{"/nowhere", read_number, with_draw}),
                    "cannot read the folder '/nowhere': No such file or directory");
  CHECK_THROWS_AS(folder_of(good, {.threads = 0}), xla::runtime_error);
  const auto folder = folder_of(good);
  CHECK_THROWS_AS(folder.batch(numbers{4}), xla::index_error);
  CHECK_THROWS_AS(folder.batch(numbers{-1}), xla::index_error);
  const auto uneven = folder.with_transform([](float number, SampleRandom&) {
    const auto width = static_cast<std::int64_t>(number) + 1;
    return Image{1, 1, width, pixels(static_cast<std::size_t>(width))};
  });
  CHECK_THROWS_WITH(uneven.batch(numbers{0, 1}),
                    "ImageFolder: '" + good.path() +
                        "/a/101.png' comes out as 1 x 1 x 2, others of the batch as 1 x 1 x 1; a "
                        "crop at the end of the transform makes them alike");
  const auto picky = folder.with_transform(
      [](float, SampleRandom&) -> Image { throw xla::shape_error("too small"); });
  CHECK_THROWS_WITH(picky.batch(numbers{1}),
                    "ImageFolder: '" + good.path() + "/a/101.png': too small");
}
