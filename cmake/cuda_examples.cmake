# SPDX-License-Identifier: BSL-1.0
# dfdx_add_cuda_program(name CUDA sources... SOURCES sources... [LIBRARIES ...]): the program of an example that trains on
# GPUs too, if DFDX_CUDA_EXAMPLES is set: nvcc compiles those of its sources in which programs are compiled.
set(DFDX_CUDA_ARCHITECTURE "90" CACHE STRING "What the examples for GPUs are compiled for, as in sm_90")
function(dfdx_add_cuda_program name)
  if(NOT DFDX_CUDA_EXAMPLES)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "CUDA;SOURCES;LIBRARIES")
  find_program(DFDX_NVCC nvcc HINTS /usr/local/cuda/bin ENV CUDA_PATH PATH_SUFFIXES bin REQUIRED)
  cmake_path(GET DFDX_NVCC PARENT_PATH toolkit)
  cmake_path(GET toolkit PARENT_PATH toolkit)
  set(flags "${DFDX_COMPILE_FLAGS}")
  list(REMOVE_ITEM flags -Wall -Wextra -Wpedantic)  # nvcc's intermediate host code is not pedantic
  set(objects "")
  foreach(source ${arg_CUDA})
    cmake_path(GET source STEM stem)
    set(object "${CMAKE_CURRENT_BINARY_DIR}/${name}_${stem}.o")
    add_custom_command(OUTPUT "${object}"
      COMMAND "${DFDX_NVCC}" ${flags} -O3 -x cu -include dfdx/cuda.hpp -arch=sm_${DFDX_CUDA_ARCHITECTURE}
              --expt-relaxed-constexpr --extended-lambda -MD -MF "${object}.d" -c
              "${CMAKE_CURRENT_SOURCE_DIR}/${source}" -o "${object}"
      DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${source}" DEPFILE "${object}.d" VERBATIM)
    list(APPEND objects "${object}")
  endforeach()
  dfdx_add_program(${name} SOURCES ${arg_SOURCES} ${objects} LIBRARIES ${arg_LIBRARIES})
  target_link_directories(${name} PRIVATE "${toolkit}/lib64")
  target_link_libraries(${name} PRIVATE cublasLt cudart_static rt dl pthread)
endfunction()
