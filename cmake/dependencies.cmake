# SPDX-License-Identifier: BSL-1.0
# The libraries that dfdx's headers include, as imported targets: dfdx::xsimd, dfdx::hana, and dfdx::nlohmann_json
# (for dfdx::io). Looked for first, downloaded otherwise; the installed package uses this file too, but never downloads.
# Only include directories are taken: distributions' own targets carry dependencies and definitions we do not want
# (Debian's xsimd brings xtl), and their version files refuse a newer major.

set(DFDX_XSIMD_TAG 13.2.0)
set(DFDX_HANA_TAG boost-1.81.0)
set(DFDX_NLOHMANN_JSON_TAG v3.11.3)

# Newer headers than the system has, put there by install_dependencies.sh.
if(PROJECT_IS_TOP_LEVEL AND EXISTS "${CMAKE_CURRENT_LIST_DIR}/../build/deps/usr")
  get_filename_component(dfdx_deps "${CMAKE_CURRENT_LIST_DIR}/../build/deps/usr" ABSOLUTE)
  list(PREPEND CMAKE_PREFIX_PATH "${dfdx_deps}")
endif()

function(dfdx_check_xsimd result dir)
  file(STRINGS "${dir}/xsimd/config/xsimd_config.hpp" line REGEX "define XSIMD_VERSION_MAJOR")
  if(NOT line MATCHES "([0-9]+)$" OR CMAKE_MATCH_1 LESS 13)
    set(${result} FALSE PARENT_SCOPE)
  endif()
endfunction()

# dfdx_dependency(name header repository tag include_dir [VALIDATOR function]) makes the target dfdx::<name>, or leaves
# it out when the header is neither found nor to be downloaded.
function(dfdx_dependency name header repository tag include_dir)
  if(TARGET dfdx::${name})
    return()
  endif()
  string(TOUPPER "DFDX_${name}_INCLUDE_DIR" variable)
  find_path(${variable} ${header} ${ARGN})
  set(dir "${${variable}}")
  if(NOT dir AND DFDX_FETCH_DEPENDENCIES)
    include(FetchContent)
    message(STATUS "dfdx: ${header} not found, downloading ${repository} ${tag}")
    FetchContent_Declare(dfdx_${name} GIT_REPOSITORY ${repository} GIT_TAG ${tag} GIT_SHALLOW ON
                         SOURCE_SUBDIR headers-only)  # a folder that is not there: their CMakeLists.txt stays unread
    FetchContent_MakeAvailable(dfdx_${name})
    set(dir "${dfdx_${name}_SOURCE_DIR}/${include_dir}")
  endif()
  if(dir)
    add_library(dfdx::${name} INTERFACE IMPORTED GLOBAL)
    target_include_directories(dfdx::${name} SYSTEM INTERFACE "${dir}")
  endif()
endfunction()

dfdx_dependency(xsimd xsimd/xsimd.hpp https://github.com/xtensor-stack/xsimd.git ${DFDX_XSIMD_TAG} include
                VALIDATOR dfdx_check_xsimd)
dfdx_dependency(hana boost/hana.hpp https://github.com/boostorg/hana.git ${DFDX_HANA_TAG} include)
set(fetch ${DFDX_FETCH_DEPENDENCIES})
if(NOT DFDX_IO)
  set(DFDX_FETCH_DEPENDENCIES OFF)
endif()
dfdx_dependency(nlohmann_json nlohmann/json.hpp https://github.com/nlohmann/json.git ${DFDX_NLOHMANN_JSON_TAG}
                single_include)
set(DFDX_FETCH_DEPENDENCIES ${fetch})
