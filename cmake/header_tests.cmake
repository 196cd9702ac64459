# SPDX-License-Identifier: BSL-1.0
# ctest `headers`: every header compiles alone (header_chains.py). The standard library and its like are read once for
# all of them (standard_library.hpp says what checks those includes).
set(names "")
foreach(header ${DFDX_HEADERS})
  cmake_path(RELATIVE_PATH header BASE_DIRECTORY "${PROJECT_SOURCE_DIR}/include" OUTPUT_VARIABLE name)
  # Not the opt-in backends: cuda_tests.cmake and the cross builds compile them with their own compilers. Nor what needs
  # a library that is not here.
  if(NOT name MATCHES "^dfdx/(cuda(_models|_ops)?\\.hpp|models/decoder_device\\.hpp|kernels/cuda/|kernels/rvv/|program/(called_[a-z_]*|host_step|on_device|own_step)\\.hpp)"
     AND (ZLIB_FOUND OR NOT name MATCHES "^dfdx/(io/(idx|csv|npz|packed_file|pt|open_weights)|report/png|models|models/.*)\\.hpp$"))
    string(APPEND names "${name}\n")
  endif()
endforeach()
file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/headers.txt" CONTENT "${names}")

# By clang++-19 where it is found: it instantiates what constants name where they stand, g++ at the end of a file, so that
# more includes are missed; and it takes less time.
set(compiler "${CMAKE_CXX_COMPILER}")
if(DFDX_CLANGXX)
  set(compiler "${DFDX_CLANGXX}")
endif()
cmake_host_system_information(RESULT cores QUERY NUMBER_OF_LOGICAL_CORES)
add_test(NAME headers
         COMMAND "${Python3_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/cmake/header_chains.py" "${PROJECT_SOURCE_DIR}/include"
                 "${CMAKE_CURRENT_BINARY_DIR}/headers.txt" "${CMAKE_CURRENT_LIST_DIR}/standard_library.hpp"
                 "${CMAKE_CURRENT_BINARY_DIR}/headers" "${compiler}" ${DFDX_COMPILE_FLAGS})
set_tests_properties(headers PROPERTIES PROCESSORS ${cores})
