# Installs the built tree into a fresh prefix, builds examples/embed against nothing but that, and runs it.
#     cmake -D BUILD=… -D SOURCE=… -D WORK=… -P install_test.cmake
function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
run(${CMAKE_COMMAND} -G Ninja -S ${SOURCE}/examples/embed -B ${WORK}/build -D CMAKE_BUILD_TYPE=Release
    -D CMAKE_PREFIX_PATH=${WORK}/prefix)
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${WORK}/build/embed ${WORK}/copy.safetensors)
