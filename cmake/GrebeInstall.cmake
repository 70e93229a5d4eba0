# What `cmake --install` puts down: the command, the static library, the public headers, and a
# CMake package: find_package(Grebe) gives Grebe::grebe. examples/consumer uses it, and a test
# builds that.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Grebe)

if(TARGET grebe_cli)
  install(TARGETS grebe_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT command)
endif()
install(TARGETS grebe EXPORT Grebe
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/grebe DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        COMPONENT library FILES_MATCHING PATTERN "*.h")
install(EXPORT Grebe FILE GrebeExport.cmake NAMESPACE Grebe:: DESTINATION ${_package_dir}
        COMPONENT library)

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/GrebeConfig.cmake.in
  ${PROJECT_BINARY_DIR}/GrebeConfig.cmake INSTALL_DESTINATION ${_package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/GrebeConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/GrebeConfig.cmake
        ${PROJECT_BINARY_DIR}/GrebeConfigVersion.cmake
        ${CMAKE_CURRENT_LIST_DIR}/GrebeArrow.cmake
        DESTINATION ${_package_dir} COMPONENT library)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/NOTICE
        DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT library)
