# SPDX-License-Identifier: Apache-2.0
# An overlay port, which installs the tree that it is in: vcpkg install xla --overlay-ports=<tree>/cmake/packages/vcpkg
set(VCPKG_BUILD_TYPE release)  # header-only
set(tree "${CURRENT_PORT_DIR}/../../../..")
vcpkg_cmake_configure(SOURCE_PATH "${tree}" OPTIONS -DXLA_BUILD_TESTS=OFF -DXLA_BUILD_EXAMPLES=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH share/cmake/xla)
vcpkg_fixup_pkgconfig()
vcpkg_install_copyright(FILE_LIST "${tree}/LICENSE")
