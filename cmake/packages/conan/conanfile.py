# SPDX-License-Identifier: Apache-2.0
"""Conan 2: conan create cmake/packages/conan"""

import os
import re

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load


class Xla(ConanFile):
    name = "xla"
    description = "PyTorch/XLA's eager mode and compile API for C++20, header-only"
    license = "Apache-2.0"
    package_type = "header-library"
    settings = "os", "arch", "compiler", "build_type"
    no_copy_source = True

    @property
    def tree(self):
        return os.path.join(self.recipe_folder, "..", "..", "..")

    def set_version(self):
        text = load(self, os.path.join(self.tree, "CMakeLists.txt"))
        self.version = re.search(r"^project\(xla VERSION ([0-9.]+)", text, re.M)[1]

    def export_sources(self):
        for pattern in ("CMakeLists.txt", "LICENSE", "cmake/*", "include/*"):
            copy(self, pattern, src=self.tree, dst=self.export_sources_folder, excludes="cmake/packages/conan/*")

    def requirements(self):
        self.requires("eigen/[>=3.4.0 <4]", transitive_headers=True)
        self.requires("boost/[>=1.74.0 <2]", transitive_headers=True)

    def configure(self):
        self.options["boost"].header_only = True  # of which Hana is needed

    def validate(self):
        check_min_cppstd(self, 20)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["XLA_BUILD_TESTS"] = False
        toolchain.cache_variables["XLA_BUILD_EXAMPLES"] = False
        toolchain.generate()
        CMakeDeps(self).generate()

    def build(self):
        CMake(self).configure()  # what is installed is source

    def package(self):
        CMake(self).install()

    def package_id(self):
        self.info.clear()

    def package_info(self):
        # The package's own CMake files make the targets, among them xla::runtime, which is compiled in the user's build.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = ["share/cmake/xla"]
        self.cpp_info.bindirs = []
        self.cpp_info.libdirs = []
