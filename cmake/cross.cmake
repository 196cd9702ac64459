# SPDX-License-Identifier: BSL-1.0
# What the toolchain files of cross builds share: programs come from this machine, libraries never; headers of libraries
# that are nothing but headers (xsimd, Hana) may. dfdx_cross(triple emulator) says for what.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE BOTH)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)

macro(dfdx_cross triple emulator)
  set(CMAKE_SYSTEM_NAME Linux)
  # zlib, put there by install_dependencies.sh cross, and what the compiler brings.
  get_filename_component(dfdx_cross_libraries "${CMAKE_CURRENT_LIST_DIR}/../build/deps/cross/${triple}" ABSOLUTE)
  set(CMAKE_FIND_ROOT_PATH "${dfdx_cross_libraries}" /usr/${triple})
  if(EXISTS "${dfdx_cross_libraries}/usr/include/zlib.h")
    # Forced, for a build folder from before it was there remembers this machine's.
    set(ZLIB_INCLUDE_DIR "${dfdx_cross_libraries}/usr/include" CACHE PATH "zlib for ${triple}" FORCE)
  endif()
  set(CMAKE_EXE_LINKER_FLAGS_INIT -static)  # so that the emulator needs no libraries of the other machine
  find_program(DFDX_EMULATOR_${emulator} NAMES ${emulator}-static ${emulator})
  if(DFDX_EMULATOR_${emulator})
    set(CMAKE_CROSSCOMPILING_EMULATOR "${DFDX_EMULATOR_${emulator}}")
  endif()
endmacro()

# Catch2 has to be compiled for the other machine: from the source that install_dependencies.sh cross put there, or else
# from a download.
if(EXISTS "${CMAKE_CURRENT_LIST_DIR}/../build/deps/src/catch2/CMakeLists.txt")
  get_filename_component(FETCHCONTENT_SOURCE_DIR_CATCH2 "${CMAKE_CURRENT_LIST_DIR}/../build/deps/src/catch2" ABSOLUTE)
endif()
