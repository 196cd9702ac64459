# SPDX-License-Identifier: BSL-1.0
# ctest cuda/<name>: nvcc compiles tests/cuda/<name>.cu, and no kernel uses local memory. Nothing is run, so no GPU is
# needed, and of the host's code no object is made; without nvcc the one test cuda_compile says so and counts as skipped.
# No source asks which generation it is compiled for (lint.py sees to it), so that one PTX serves both: a quarter of the
# time. What sm_90a alone has is compiled for it by tests/cuda/warpgroups.cu.
if(DFDX_CUDA STREQUAL "OFF")
  return()
endif()
find_program(DFDX_NVCC nvcc HINTS /usr/local/cuda/bin ENV CUDA_PATH PATH_SUFFIXES bin)
if(NOT DFDX_NVCC)
  message(STATUS "dfdx: no nvcc, the CUDA tests will be skipped")
  add_test(NAME cuda_compile COMMAND sh -c "echo 'SKIPPED: no nvcc found, tests/cuda/*.cu were not compiled'; exit 77")
  set_tests_properties(cuda_compile PROPERTIES SKIP_RETURN_CODE 77)
  return()
endif()

# What the installed cuDNN says to descriptors, for a GPU that need not be there.
cmake_path(GET DFDX_NVCC PARENT_PATH toolkit)
cmake_path(GET toolkit PARENT_PATH toolkit)
find_path(DFDX_CUDNN_INCLUDE_DIR cudnn_graph.h HINTS "${toolkit}/include")
if(DFDX_CUDNN_INCLUDE_DIR AND EXISTS "${toolkit}/lib64/libcudart_static.a" AND NOT DFDX_SANITIZE)
  dfdx_add_program(test_cudnn SOURCES cuda/cudnn.cpp LIBRARIES dfdx_developer Catch2::Catch2WithMain ASSERT)
  target_include_directories(test_cudnn SYSTEM PRIVATE "${DFDX_CUDNN_INCLUDE_DIR}" "${toolkit}/include")
  target_link_libraries(test_cudnn PRIVATE "${toolkit}/lib64/libcudart_static.a" rt dl Threads::Threads)
  add_test(NAME cuda/cudnn COMMAND test_cudnn)
  set_tests_properties(cuda/cudnn PROPERTIES LABELS cuda SKIP_RETURN_CODE 4)
elseif(NOT DFDX_SANITIZE)
  add_test(NAME cuda/cudnn COMMAND sh -c "echo 'SKIPPED: no headers of cuDNN 9 found, it was not asked for plans'; exit 77")
  set_tests_properties(cuda/cudnn PROPERTIES SKIP_RETURN_CODE 77)
endif()

set(host g++)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(host "${CMAKE_CXX_COMPILER}")
endif()
set(nvcc_flags "${DFDX_COMPILE_FLAGS}")
list(REMOVE_ITEM nvcc_flags -Wall -Wextra -Wpedantic)  # nvcc's intermediate host code is not pedantic
file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/cuda/*.cu" "${PROJECT_SOURCE_DIR}/bench/cuda/*.cu")
# Of those that are about kernels alone the host's code is not compiled either: it is the same as in the others.
set(kernels_alone attention kernels loop warpgroups)
# All are compiled for two generations, but the hundreds of small kernels of ops that are called one by one for one, and
# the benchmarks.
set(one_generation called)
foreach(source ${sources})
  cmake_path(GET source STEM name)
  if(source MATCHES "/bench/")
    set(name bench_${name})
    list(APPEND one_generation ${name})
  endif()
  dfdx_left_out(cuda/${name} left_out)
  if(left_out)
    continue()
  endif()
  set(output -Xcompiler -fsyntax-only -c)
  if(name IN_LIST kernels_alone)
    set(output -fatbin)
  endif()
  set(generations sm_80,sm_90)
  if(name IN_LIST one_generation)
    set(generations sm_90)
  endif()
  set(ptx compute_80)
  if(name STREQUAL warpgroups)
    set(ptx compute_90a)
    set(generations sm_90a)
  endif()
  add_test(NAME cuda/${name}
    COMMAND sh "${PROJECT_SOURCE_DIR}/cmake/cuda_kernels.sh" "${DFDX_NVCC}" ${nvcc_flags} -ccbin ${host}
            -gencode arch=${ptx},code=[${generations}]
            --expt-relaxed-constexpr --extended-lambda -Werror all-warnings
            ${output} "${source}" -o "${CMAKE_CURRENT_BINARY_DIR}/cuda_${name}.o")
  set_tests_properties(cuda/${name} PROPERTIES LABELS cuda)
endforeach()
