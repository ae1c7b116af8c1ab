# Every bench/*.cc makes one program, heedful_bench; script/bench runs it.
find_package(benchmark REQUIRED)
file(GLOB bench_sources CONFIGURE_DEPENDS bench/*.cc)
add_executable(heedful_bench ${bench_sources})
target_link_libraries(heedful_bench PRIVATE heedful heedful_flags hwy::hwy benchmark::benchmark ${CMAKE_DL_LIBS})
target_include_directories(heedful_bench PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
