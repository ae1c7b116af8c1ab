include(CMakePackageConfigHelpers)
install(TARGETS heedful EXPORT heedful-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS heedful_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY heedful DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h"
        REGEX "(test|golden|support)[^/]*\\.h$" EXCLUDE)  # what tests share
install(EXPORT heedful-targets NAMESPACE heedful:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/heedful)
write_basic_package_version_file(heedful-config-version.cmake COMPATIBILITY SameMinorVersion)
configure_file(cmake/heedful-config.cmake.in heedful-config.cmake @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/heedful-config.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/heedful-config-version.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/heedful)
