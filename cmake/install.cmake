# SPDX-License-Identifier: Apache-2.0
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_DATADIR}/cmake/xla")
install(TARGETS xla EXPORT xlaTargets FILE_SET HEADERS FILE_SET ext)
install(EXPORT xlaTargets NAMESPACE xla:: DESTINATION "${package_dir}")
configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/xlaConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/xlaConfig.cmake" INSTALL_DESTINATION "${package_dir}")
# Semantic versioning: before 1.0 a new minor version may break programs.
set(compatibility SameMajorVersion)
if(PROJECT_VERSION_MAJOR EQUAL 0)
  set(compatibility SameMinorVersion)
endif()
write_basic_package_version_file("${PROJECT_BINARY_DIR}/xlaConfigVersion.cmake"
  COMPATIBILITY ${compatibility} ARCH_INDEPENDENT)
install(FILES
  "${PROJECT_BINARY_DIR}/xlaConfig.cmake"
  "${PROJECT_BINARY_DIR}/xlaConfigVersion.cmake"
  "${CMAKE_CURRENT_LIST_DIR}/FindHana.cmake"
  "${CMAKE_CURRENT_LIST_DIR}/xlaRuntime.cmake"
  "${CMAKE_CURRENT_LIST_DIR}/xlaInterpreter.cmake"
  "${CMAKE_CURRENT_LIST_DIR}/xlaPjrt.cmake"
  "${CMAKE_CURRENT_LIST_DIR}/xlaGzip.cmake"
  "${CMAKE_CURRENT_LIST_DIR}/xlaImages.cmake"
  "${CMAKE_CURRENT_LIST_DIR}/xlaSafetensors.cmake"
  "${CMAKE_CURRENT_LIST_DIR}/xlaDlpack.cmake"
  "${CMAKE_CURRENT_LIST_DIR}/xlaSentencepiece.cmake"
  "${CMAKE_CURRENT_LIST_DIR}/xlaMpi.cmake"
  DESTINATION "${package_dir}")
install(DIRECTORY "${CMAKE_CURRENT_LIST_DIR}/runtime" "${CMAKE_CURRENT_LIST_DIR}/pjrt" DESTINATION "${package_dir}" FILES_MATCHING
  PATTERN "*.cpp" PATTERN "*.inc")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")

# For pkg-config, headers alone. The compilers spell the limits differently and know which one compiles only later:
# xla.pc is for g++, xla-clang.pc for clang. Paths start at the file's own folder, so the folder may be moved.
set(pc_dir "${CMAKE_INSTALL_FULL_DATADIR}/pkgconfig")
file(RELATIVE_PATH XLA_PC_INCLUDE "${pc_dir}" "${CMAKE_INSTALL_FULL_INCLUDEDIR}")
function(xla_pc_file name)
  list(JOIN ARGN " " XLA_PC_LIMITS)
  configure_file("${CMAKE_CURRENT_FUNCTION_LIST_DIR}/packages/xla.pc.in" "${PROJECT_BINARY_DIR}/${name}.pc" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/${name}.pc" DESTINATION "${CMAKE_INSTALL_DATADIR}/pkgconfig")
endfunction()
xla_pc_file(xla ${XLA_LIMITS_GNU})
xla_pc_file(xla-clang ${XLA_LIMITS_CLANG})

# cpack -G DEB. What is installed is source, so nothing is built before.
if(PROJECT_IS_TOP_LEVEL)
  set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)
  set(CPACK_GENERATOR DEB)
  set(CPACK_PACKAGE_NAME libxla-dev)
  set(CPACK_PACKAGE_CONTACT "The authors of xla <authors@xla.invalid>")
  set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE all)
  set(CPACK_DEBIAN_PACKAGE_SECTION libdevel)
  set(CPACK_DEBIAN_PACKAGE_DEPENDS "libeigen3-dev (>= 3.4), libboost-dev (>= 1.74)")
  set(CPACK_DEBIAN_PACKAGE_SUGGESTS  # of the optional targets
    "zlib1g-dev, nlohmann-json3-dev, libpng-dev, libjpeg-dev, libdlpack-dev, libsentencepiece-dev, mpi-default-dev")
  include(CPack)
endif()
