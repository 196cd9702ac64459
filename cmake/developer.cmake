# SPDX-License-Identifier: BSL-1.0
# What dfdx's own tests, examples and benchmarks share. A consumer of the library never sees this file.
find_package(Python3 REQUIRED COMPONENTS Interpreter)  # lint, amalgamation, compile-fail tests; standard library only

# --- how our own programs are compiled ---------------------------------------------------------------------------
add_library(dfdx_developer INTERFACE)
target_link_libraries(dfdx_developer INTERFACE dfdx)
target_compile_options(dfdx_developer INTERFACE -Wall -Wextra -Wpedantic -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # g++ 12 finds its own AVX-512 intrinsics uninitialised (gcc bug 105593).
  target_compile_options(dfdx_developer INTERFACE -Wno-uninitialized -Wno-maybe-uninitialized)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(dfdx_developer INTERFACE -Wno-psabi)  # a note per vector argument, about g++ 4.6
  # Where there is memory for it, g++ collects garbage later: a fifth of the time that large programs take to build.
  cmake_host_system_information(RESULT memory QUERY TOTAL_PHYSICAL_MEMORY)  # MiB
  cmake_host_system_information(RESULT cores QUERY NUMBER_OF_LOGICAL_CORES)
  math(EXPR heap "${memory} / ${cores} / 3 * 1000")  # kB
  if(heap GREATER 4000000)
    set(heap 4000000)
  endif()
  if(heap GREATER 1000000)
    target_compile_options(dfdx_developer INTERFACE --param=ggc-min-heapsize=${heap})
  endif()
endif()
if(DFDX_SANITIZE)
  target_compile_options(dfdx_developer INTERFACE -fsanitize=${DFDX_SANITIZE} -fno-sanitize-recover=all
                         -fno-omit-frame-pointer)
  target_link_options(dfdx_developer INTERFACE -fsanitize=${DFDX_SANITIZE})
endif()
if(DFDX_OPENMP)
  find_package(OpenMP REQUIRED)
  target_link_libraries(dfdx_developer INTERFACE OpenMP::OpenMP_CXX)
endif()

# The same for this machine's instruction set; programs with a set of their own link dfdx_developer instead.
add_library(dfdx_native INTERFACE)
target_link_libraries(dfdx_native INTERFACE dfdx_developer)
if(DFDX_NATIVE)
  target_compile_options(dfdx_native INTERFACE -march=native)
endif()

# And with the ops compiled once, for programs that need not compile them themselves (tape/separate.hpp).
file(CONFIGURE OUTPUT separate.cpp CONTENT "#include <dfdx/dfdx.hpp>\n")
add_library(dfdx_separate STATIC EXCLUDE_FROM_ALL "${CMAKE_CURRENT_BINARY_DIR}/separate.cpp")
target_link_libraries(dfdx_separate PUBLIC dfdx_native)
target_compile_definitions(dfdx_separate PUBLIC DFDX_SEPARATE PRIVATE DFDX_IMPLEMENTATION)
target_compile_options(dfdx_separate PRIVATE -UNDEBUG)
set_target_properties(dfdx_separate PROPERTIES CXX_EXTENSIONS OFF)

# For the tests that call a compiler themselves, the second one where it is found.
find_program(DFDX_CLANGXX clang++-19)
set(DFDX_COMPILE_FLAGS -std=c++20 -Wall -Wextra -Wpedantic "-I${PROJECT_SOURCE_DIR}/include")
foreach(name xsimd hana nlohmann_json)
  if(TARGET dfdx::${name})
    get_target_property(dir dfdx::${name} INTERFACE_INCLUDE_DIRECTORIES)
    if(NOT dir IN_LIST CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES)
      list(APPEND DFDX_COMPILE_FLAGS -isystem "${dir}")
    endif()
  endif()
endforeach()

# dfdx_add_program(name SOURCES ... [LIBRARIES ...] [ASSERT] [PRECOMPILED target] [TOGETHER n]): ASSERT keeps assert()
# alive in every build type; PRECOMPILED takes the precompiled headers of another target; TOGETHER compiles n sources as
# one (0: all of them), so that what they share of the library is instantiated once.
function(dfdx_add_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "ASSERT" "PRECOMPILED;TOGETHER" "SOURCES;LIBRARIES")
  add_executable(${name} ${arg_SOURCES})
  if(DFDX_TOGETHER AND DEFINED arg_TOGETHER)
    set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${arg_TOGETHER})
  endif()
  if(NOT arg_LIBRARIES)
    set(arg_LIBRARIES dfdx_native)
  endif()
  target_link_libraries(${name} PRIVATE ${arg_LIBRARIES})
  if(TARGET dfdx_io)
    target_link_libraries(${name} PRIVATE dfdx_io)
  endif()
  if(arg_ASSERT)
    target_compile_options(${name} PRIVATE -UNDEBUG)
  endif()
  if(arg_PRECOMPILED)
    target_precompile_headers(${name} REUSE_FROM ${arg_PRECOMPILED})
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # with one, g++ 12 warns of its own strings (gcc bug 105651)
      target_compile_options(${name} PRIVATE -Wno-restrict)
    endif()
  endif()
  set_target_properties(${name} PROPERTIES CXX_EXTENSIONS OFF)
endfunction()

# dfdx_find_tool(name target tag repository): a library for tests or examples, found or downloaded.
function(dfdx_find_tool name target version tag repository)
  if(TARGET ${target})  # another folder found it
    return()
  endif()
  find_package(${name} ${version} QUIET CONFIG)
  if(NOT ${name}_FOUND)
    if(NOT DFDX_FETCH_DEPENDENCIES)
      message(FATAL_ERROR "${name} ${version} not found: run cmake/install_dependencies.sh")
    endif()
    include(FetchContent)
    message(STATUS "${name} ${version} not found, downloading ${repository} ${tag}")
    FetchContent_Declare(${name} GIT_REPOSITORY ${repository} GIT_TAG ${tag} GIT_SHALLOW ON SYSTEM)
    FetchContent_MakeAvailable(${name})
  else()
    set_target_properties(${target} PROPERTIES IMPORTED_GLOBAL ON)
  endif()
endfunction()

# --- targets -----------------------------------------------------------------------------------------------------
# build/<preset>/single_header/dfdx/dfdx.hpp
set(DFDX_SINGLE_HEADER_DIR "${PROJECT_BINARY_DIR}/single_header")
set(DFDX_AMALGAMATE "${Python3_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/cmake/amalgamate.py" --version ${PROJECT_VERSION}
    --output "${DFDX_SINGLE_HEADER_DIR}/dfdx/dfdx.hpp")
add_custom_target(dfdx_single_header COMMAND ${DFDX_AMALGAMATE} VERBATIM)

if(DFDX_LINT)
  add_custom_target(lint COMMAND "${Python3_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/cmake/lint.py" VERBATIM)
  find_program(DFDX_CLANG_FORMAT NAMES clang-format-19)  # other versions format differently
  if(DFDX_CLANG_FORMAT)
    foreach(name format format-check)
      set(how -i)
      if(name STREQUAL "format-check")
        set(how --dry-run -Werror)
      endif()
      add_custom_target(${name} COMMAND "${Python3_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/cmake/lint.py" --each-source
                        "${DFDX_CLANG_FORMAT}" --style=file ${how} VERBATIM)
    endforeach()
  endif()
endif()
