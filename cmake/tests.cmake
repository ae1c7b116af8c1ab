# One test program a folder, holding every *_test.cc in it; the tests are found by asking the program. Tests named
# DISABLED_Nightly… run under `ctest -C Nightly -L nightly` alone.
find_package(GTest REQUIRED)
include(GoogleTest)

add_library(heedful_test_support INTERFACE)
target_link_libraries(heedful_test_support INTERFACE heedful heedful_flags GTest::gtest_main GTest::gmock)
target_compile_definitions(heedful_test_support INTERFACE
    HEEDFUL_GOLDENS="${CMAKE_CURRENT_SOURCE_DIR}/../shared/goldens")
target_include_directories(heedful_test_support INTERFACE ${CMAKE_CURRENT_SOURCE_DIR})

file(GLOB folders LIST_DIRECTORIES true CONFIGURE_DEPENDS heedful/*)
list(APPEND folders ${CMAKE_CURRENT_SOURCE_DIR}/cli)
foreach(folder ${folders})
  get_filename_component(name ${folder} NAME)
  file(GLOB tests CONFIGURE_DEPENDS ${folder}/*_test.cc)
  if(tests)
    add_executable(${name}_test ${tests})
    target_link_libraries(${name}_test PRIVATE heedful_test_support)
    gtest_discover_tests(${name}_test TEST_PREFIX ${name}/ PROPERTIES LABELS ${name} TIMEOUT 900
                         DISCOVERY_TIMEOUT 60)
    add_test(NAME ${name}/nightly CONFIGURATIONS Nightly
             COMMAND ${name}_test --gtest_also_run_disabled_tests --gtest_filter=*.DISABLED_Nightly*)
    set_tests_properties(${name}/nightly PROPERTIES LABELS nightly TIMEOUT 7200)
  endif()
endforeach()

# The program's tests run the program.
target_compile_definitions(cli_test PRIVATE HEEDFUL_PROGRAM="$<TARGET_FILE:heedful_program>"
                                            HEEDFUL_SCREENSHOT="${CMAKE_BINARY_DIR}/lab.png")
add_dependencies(cli_test heedful_program)

# A sanitized library would need a sanitized consumer.
if(NOT HEEDFUL_SANITIZE)
  add_test(NAME install/embed
           COMMAND ${CMAKE_COMMAND} -D BUILD=${CMAKE_BINARY_DIR} -D SOURCE=${CMAKE_CURRENT_SOURCE_DIR}
                   -D WORK=${CMAKE_BINARY_DIR}/install_test -P ${CMAKE_CURRENT_SOURCE_DIR}/cmake/install_test.cmake)
  set_tests_properties(install/embed PROPERTIES LABELS install TIMEOUT 300)
endif()
