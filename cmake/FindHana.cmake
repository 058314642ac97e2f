# SPDX-License-Identifier: Apache-2.0
# Boost's packages ship Hana's headers without a CMake target: this makes Boost::hana.

find_path(Hana_INCLUDE_DIR boost/hana.hpp)
mark_as_advanced(Hana_INCLUDE_DIR)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Hana REQUIRED_VARS Hana_INCLUDE_DIR)
if(Hana_FOUND AND NOT TARGET Boost::hana)
  add_library(Boost::hana INTERFACE IMPORTED)
  target_include_directories(Boost::hana INTERFACE "${Hana_INCLUDE_DIR}")
endif()
