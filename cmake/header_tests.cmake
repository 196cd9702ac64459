# SPDX-License-Identifier: BSL-1.0
# ctest `headers`: every header compiles alone, since an include that is missing shows only when nothing else brought it
# in. Each header is a rule of the build with a dependency file: all cores work on it, a second run repeats what changed.
# The standard library and its like are read once for all of them (standard_library.hpp says what checks those includes).
set(stamps "")
set(standard "${CMAKE_CURRENT_BINARY_DIR}/headers/standard_library.hpp")
file(CREATE_LINK "${CMAKE_CURRENT_LIST_DIR}/standard_library.hpp" "${standard}" COPY_ON_ERROR SYMBOLIC)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(precompiled "${standard}.gch")
else()
  set(precompiled "${standard}.pch")
endif()
add_custom_command(OUTPUT "${precompiled}"
  COMMAND "${CMAKE_CXX_COMPILER}" ${DFDX_COMPILE_FLAGS} -x c++-header "${standard}" -o "${precompiled}"
  DEPENDS "${CMAKE_CURRENT_LIST_DIR}/standard_library.hpp" VERBATIM COMMENT "Precompiling the standard library")
foreach(header ${DFDX_HEADERS})
  cmake_path(RELATIVE_PATH header BASE_DIRECTORY "${PROJECT_SOURCE_DIR}/include" OUTPUT_VARIABLE name)
  # Not the opt-in backends: cuda_tests.cmake and the cross builds compile them with their own compilers. Nor what needs
  # a library that is not here.
  if(NOT name MATCHES "^dfdx/(cuda\\.hpp|kernels/cuda/|kernels/rvv/|program/(host_step|on_device|own_step)\\.hpp)"
     AND (ZLIB_FOUND OR NOT name MATCHES "^dfdx/(io/(idx|csv|npz|packed_file|pt|open_weights)|report/png|models|models/.*)\\.hpp$"))
    set(stamp "${CMAKE_CURRENT_BINARY_DIR}/headers/${name}.checked")
    cmake_path(GET stamp PARENT_PATH folder)
    file(MAKE_DIRECTORY "${folder}")
    add_custom_command(OUTPUT "${stamp}"
      COMMAND "${CMAKE_CXX_COMPILER}" ${DFDX_COMPILE_FLAGS} -Werror -fsyntax-only -MD -MF "${stamp}.d" -MT "${stamp}"
              -include "${standard}" -include "${name}" -x c++ /dev/null
      COMMAND "${CMAKE_COMMAND}" -E touch "${stamp}"
      DEPENDS "${header}" "${precompiled}" DEPFILE "${stamp}.d" VERBATIM COMMENT "Checking header ${name}")
    list(APPEND stamps "${stamp}")
  endif()
endforeach()
add_custom_target(headers DEPENDS ${stamps})

cmake_host_system_information(RESULT cores QUERY NUMBER_OF_LOGICAL_CORES)
add_test(NAME headers COMMAND "${CMAKE_COMMAND}" --build "${PROJECT_BINARY_DIR}" --target headers -j ${cores} -- -k 0)
set_tests_properties(headers PROPERTIES RESOURCE_LOCK build PROCESSORS ${cores})
