# SPDX-License-Identifier: Apache-2.0
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_DATADIR}/cmake/xla")
install(TARGETS xla EXPORT xlaTargets FILE_SET HEADERS FILE_SET ext)
install(EXPORT xlaTargets NAMESPACE xla:: DESTINATION "${package_dir}")
configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/xlaConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/xlaConfig.cmake" INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/xlaConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
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
install(DIRECTORY "${CMAKE_CURRENT_LIST_DIR}/runtime" "${CMAKE_CURRENT_LIST_DIR}/pjrt" DESTINATION "${package_dir}" FILES_MATCHING PATTERN "*.cpp")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
