# One libFuzzer program for every fuzz/*_fuzz.cc, and a target that runs each for a while from seeds made on the spot:
#   cmake --preset fuzz && cmake --build --preset fuzz --target run_fuzzers
set(HEEDFUL_FUZZ_SECONDS 60 CACHE STRING "How long run_fuzzers gives each fuzzer")
target_compile_options(heedful_flags INTERFACE -fsanitize=fuzzer-no-link)

add_executable(make_seeds fuzz/make_seeds.cc)
target_link_libraries(make_seeds PRIVATE heedful heedful_flags)

set(corpora ${CMAKE_CURRENT_BINARY_DIR}/corpora)
add_custom_target(run_fuzzers COMMAND make_seeds ${corpora})
file(GLOB fuzzers CONFIGURE_DEPENDS fuzz/*_fuzz.cc)
foreach(source ${fuzzers})
  get_filename_component(name ${source} NAME_WE)
  string(REPLACE "_fuzz" "" corpus ${name})
  add_executable(${name} ${source})
  target_link_libraries(${name} PRIVATE heedful heedful_flags -fsanitize=fuzzer)
  add_custom_command(TARGET run_fuzzers POST_BUILD
                     COMMAND ${CMAKE_COMMAND} -E make_directory ${corpora}/${corpus}
                     COMMAND ${name} -max_total_time=${HEEDFUL_FUZZ_SECONDS} -timeout=10 -rss_limit_mb=1024
                             -print_final_stats=1 ${corpora}/${corpus})
endforeach()
