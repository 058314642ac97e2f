// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds a plugin's file for a device: by XLA_PJRT_PLUGIN, or among Python's packages. It installs
// and downloads nothing.

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "xla/base/error.hpp"
#include "xla/base/system/path.hpp"
#include "xla/base/text.hpp"

namespace xla::ext::pjrt {

namespace detail {

/// A plugin that a Python package contains.
struct packaged {
  std::string_view device, package, file;
};
inline constexpr packaged packages[] = {
    {"CPU", "lammps-jax-pjrt-cpu", "lammps_jax_pjrt_cpu/pjrt_c_api_cpu_plugin.so"},
    {"CPU", "xla-cpu-pjrt", "xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so"},
    {"CUDA", "jax-cuda13-pjrt", "jax_plugins/xla_cuda13/xla_cuda_plugin.so"},
    {"CUDA", "jax-cuda12-pjrt", "jax_plugins/xla_cuda12/xla_cuda_plugin.so"},
    {"TPU", "libtpu", "libtpu/libtpu.so"}};

inline std::string_view variable(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

/// The folders of Python's packages: of the virtual environment, of each python3 on the path, the
/// user's, the system's, in this order.
inline std::vector<std::filesystem::path> package_folders() {
  namespace fs = std::filesystem;
  std::vector<fs::path> prefixes, found;
  const auto add = [](auto& to, const fs::path& p) {
    if (std::find(to.begin(), to.end(), p) == to.end()) to.push_back(p);
  };
  std::error_code ignored;
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"})
    if (const auto prefix = variable(name); !prefix.empty()) add(prefixes, prefix);
  for (std::string_view rest = variable("PATH"); !rest.empty();) {
    const std::string_view text = rest.substr(0, rest.find(':'));
    const fs::path folder = sys::path_of(text);
    rest.remove_prefix(std::min(rest.size(), text.size() + 1));
    if (fs::exists(folder / "python3", ignored)) add(prefixes, folder.parent_path());
  }
  if (const auto home = variable("HOME"); !home.empty()) add(prefixes, fs::path(home) / ".local");
  for (const char* prefix : {"/usr/local", "/usr"}) add(prefixes, prefix);
  for (const fs::path& prefix : prefixes)
    for (const auto& entry : fs::directory_iterator(prefix / "lib", ignored))
      if (sys::text_of(entry.path().filename()).starts_with("python3"))
        for (const char* last : {"site-packages", "dist-packages"})
          if (fs::is_directory(entry.path() / last, ignored)) add(found, entry.path() / last);
  return found;
}

inline std::string upper_case(std::string_view s) {
  std::string out(s);
  for (char& c : out) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return out;
}

[[noreturn]] inline void refuse_to_find(std::string_view device) {
  std::string_view package, comma;
  std::string known;
  for (const packaged& p : packages) {
    if (p.device == device && package.empty()) package = p.package;
    if (known.find(p.device) != known.npos) continue;
    known = xla::detail::join({known, comma, p.device});
    comma = ", ";
  }
  const auto fix = package.empty() ? xla::detail::join({"; known without that are ", known})
                                   : xla::detail::join({", or pip install ", package});
  throw runtime_error(
      xla::detail::join({"PJRT_DEVICE=", device,
                         ": no plugin found; set XLA_PJRT_PLUGIN to a .so with GetPjrtApi", fix}));
}

}  // namespace detail

/// The file of the plugin for a device, "CPU", "CUDA" or "TPU": the one that XLA_PJRT_PLUGIN in the
/// environment names, or else that of a package which pip has installed in the virtual environment,
/// for a python3 on the path, for the user or for all. Throws `xla::runtime_error` if there is
/// none.
inline std::string find_plugin(std::string_view device) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (const auto path = detail::variable("XLA_PJRT_PLUGIN"); !path.empty()) {
    if (fs::exists(sys::path_of(path), ignored)) return std::string(path);
    throw runtime_error(xla::detail::join({"XLA_PJRT_PLUGIN=", path, ": there is no such file"}));
  }
  const std::string wanted = detail::upper_case(device);
  const auto folders = detail::package_folders();
  for (const detail::packaged& p : detail::packages)
    if (p.device == wanted)
      for (const fs::path& folder : folders)
        if (fs::exists(folder / p.file, ignored)) return sys::text_of(folder / p.file);
  detail::refuse_to_find(wanted);
}

}  // namespace xla::ext::pjrt
