# SPDX-License-Identifier: BSL-1.0
# ctest `headers`: every header compiles alone (header_modules.py), by clang++-19, whose modules tell.
set(names "")
foreach(header ${DFDX_HEADERS})
  cmake_path(RELATIVE_PATH header BASE_DIRECTORY "${PROJECT_SOURCE_DIR}/include" OUTPUT_VARIABLE name)
  # Not the opt-in backends: cuda_tests.cmake and the cross builds compile them with their own compilers. Nor what needs
  # a library that is not here.
  if(NOT name MATCHES "^dfdx/(cuda(_models|_ops)?\\.hpp|models/decoder_(device|factor)\\.hpp|kernels/cuda/|kernels/rvv/|program/(called_[a-z_]*|host_step|on_device|own_step)\\.hpp)"
     AND (ZLIB_FOUND OR NOT name MATCHES "^dfdx/(io/(idx|csv|npz|packed_file|pt|open_weights)|report/png|models|models/.*)\\.hpp$"))
    string(APPEND names "${name}\n")
  endif()
endforeach()
file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/headers.txt" CONTENT "${names}")

if(DFDX_CLANGXX)
  add_test(NAME headers
           COMMAND "${Python3_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/cmake/header_modules.py" "${PROJECT_SOURCE_DIR}/include"
                   "${CMAKE_CURRENT_BINARY_DIR}/headers.txt" "${CMAKE_CURRENT_BINARY_DIR}/headers"
                   "${DFDX_CLANGXX}" ${DFDX_COMPILE_FLAGS} -Wshadow)
else()
  add_test(NAME headers COMMAND sh -c "echo 'headers: SKIPPED, no clang++-19' && exit 77")
  set_tests_properties(headers PROPERTIES SKIP_RETURN_CODE 77)
endif()

# ctest `header_alone`: what all programs compile of functions that they do not use stays small.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  add_test(NAME header_alone COMMAND sh "${PROJECT_SOURCE_DIR}/cmake/header_alone.sh" 870 "${CMAKE_CXX_COMPILER}"
                                     ${DFDX_COMPILE_FLAGS})
endif()
