# Puts the page's style and scripts into the library as text: web/ always, uPlot where npm is there to fetch it.
set(page_folder ${CMAKE_CURRENT_BINARY_DIR}/page)
set(plot_folder ${page_folder}/node_modules/uplot/dist)
find_program(HEEDFUL_NPM npm DOC "Fetches uPlot for the lab's page; without it the page draws no curves")
foreach(name package.json package-lock.json)
  configure_file(web/${name} ${page_folder}/${name} COPYONLY)
endforeach()
if(HEEDFUL_NPM AND NOT EXISTS ${plot_folder}/uPlot.iife.min.js)
  execute_process(COMMAND ${HEEDFUL_NPM} ci --ignore-scripts --no-audit --no-fund
                  WORKING_DIRECTORY ${page_folder} RESULT_VARIABLE npm_result OUTPUT_QUIET ERROR_QUIET TIMEOUT 120)
endif()
set(plot_files)
if(EXISTS ${plot_folder}/uPlot.iife.min.js)
  set(plot_files ${plot_folder}/uPlot.min.css ${plot_folder}/uPlot.iife.min.js)
else()
  message(STATUS "No uPlot (npm is missing or could not fetch it): the lab's page will draw no curves")
endif()
set(page_source ${page_folder}/page_assets.cc)
add_custom_command(OUTPUT ${page_source}
                   COMMAND ${CMAKE_COMMAND} -D OUT=${page_source} -D WEB=${CMAKE_CURRENT_SOURCE_DIR}/web
                           -D "PLOT=${plot_files}" -P ${CMAKE_CURRENT_SOURCE_DIR}/cmake/embed.cmake
                   DEPENDS web/page.css web/page.js cmake/embed.cmake ${plot_files} VERBATIM)
target_sources(heedful PRIVATE ${page_source})
