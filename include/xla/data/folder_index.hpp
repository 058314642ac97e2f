// SPDX-License-Identifier: Apache-2.0
#pragma once

// Lists the files of a folder of class folders, in torchvision's order. image_folder.hpp uses it;
// it opens no file.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "xla/base/error.hpp"
#include "xla/base/system/path.hpp"

namespace xla::data {

/// A file, and the number of its class.
struct FolderSample {
  std::string path;
  std::int64_t target = 0;
};

/// The files in a folder of class folders: names of classes in order, files class by class.
struct FolderIndex {
  std::vector<std::string> classes;
  std::vector<FolderSample> samples;
};

namespace detail {

namespace fs = std::filesystem;

/// Whether a name ends with one of these suffixes, in any case.
inline bool ends_with_any(const std::string& name, const std::vector<std::string>& endings) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::ranges::any_of(endings, [&](const auto& ending) {
    return name.size() >= ending.size() &&
           std::ranges::equal(std::string_view(name).substr(name.size() - ending.size()), ending,
                              {}, lower, lower);
  });
}

/// The files and folders in a folder, by name.
struct folder_content {
  std::vector<std::string> files, folders;
};
inline folder_content list_folder(const std::string& folder) {
  folder_content out;
  try {
    for (const auto& entry : fs::directory_iterator(sys::path_of(folder)))
      (entry.is_directory() ? out.folders : out.files)
          .push_back(sys::text_of(entry.path().filename()));
  } catch (const fs::filesystem_error& e) {
    throw io_error("cannot read the folder '" + folder + "': " + e.code().message());
  }
  std::ranges::sort(out.files);
  std::ranges::sort(out.folders);
  return out;
}

/// A folder and all folders below it. Links are followed, but not into a cycle.
inline void list_below(const std::string& folder, std::vector<fs::path>& within,
                       std::vector<std::pair<std::string, folder_content>>& out) {
  std::error_code failed;
  const auto real = fs::canonical(sys::path_of(folder), failed);
  if (std::ranges::find(within, real) != within.end()) return;
  within.push_back(real);
  out.emplace_back(folder, list_folder(folder));
  const auto folders = out.back().second.folders;
  for (const auto& name : folders) list_below(folder + "/" + name, within, out);
  within.pop_back();
}

}  // namespace detail

/// The files with these suffixes in the folders of a folder, at any depth. Each folder is a class,
/// sorted by name. The files of a class are in the order of their folders' paths, then by name, as
/// in torchvision. Throws `xla::io_error` if the folder does not exist, contains no folder, or has
/// a class without such a file.
inline FolderIndex read_folder_index(const std::string& root,
                                     const std::vector<std::string>& endings) {
  FolderIndex index;
  index.classes = detail::list_folder(root).folders;
  if (index.classes.empty())
    throw io_error("'" + root + "' has no folder for a class, as '" + root + "/cat/1.jpg'");
  for (std::size_t c = 0; c < index.classes.size(); ++c) {
    std::vector<std::pair<std::string, detail::folder_content>> all;
    std::vector<detail::fs::path> within;
    detail::list_below(root + "/" + index.classes[c], within, all);
    std::ranges::sort(all, {}, [](const auto& part) -> auto& { return part.first; });
    const auto before = index.samples.size();
    for (const auto& [folder, content] : all)
      for (const auto& name : content.files)
        if (detail::ends_with_any(name, endings))
          index.samples.push_back({folder + "/" + name, static_cast<std::int64_t>(c)});
    if (index.samples.size() > before) continue;
    std::string kinds;
    for (const auto& ending : endings) kinds += ' ' + ending;
    throw io_error("class '" + index.classes[c] + "' of '" + root + "' has no file of the kinds" +
                   kinds);
  }
  return index;
}

}  // namespace xla::data
