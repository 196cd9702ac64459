# SPDX-License-Identifier: BSL-1.0
# dfdx_target_dispatch(target SOURCES a.cpp ... FUNCTIONS f g ... [LEVELS x86-64-v4 x86-64-v3 x86-64] [LIBRARIES ...])
#
# Compiles the sources once for each level of x86-64, best first, all into the target; when the program starts, each of the
# functions is bound to the best one that the processor can run. LIBRARIES are what the sources are compiled with,
# dfdx::dfdx unless said otherwise. For GNU/Linux, with binutils 2.29 or newer.
#
#   - The functions are extern "C"; they are all of the sources that the rest of the program sees. Everything else in them
#     is made local, or the linker would keep one copy of each inline function, of any level. So every level also has
#     state of its own: no_grad outside of the functions does not reach into them.
#   - No flag of the project, nor of LIBRARIES, names instructions beyond a level (-march=native, -mavx2): it would hold for
#     the lowest one too.
#   - The sources hold no variables that are initialised when the program starts: that code would run on every
#     processor. It is an error if they do (<iostream> does).
#
# Called as a script, with LEVEL, OBJECTS, OUTPUT, FUNCTIONS, LINKER, OBJCOPY and OBJDUMP, it makes the object of one level.
if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  function(run what)
    execute_process(COMMAND ${ARGN} RESULT_VARIABLE status ERROR_VARIABLE said OUTPUT_VARIABLE out)
    if(NOT status EQUAL 0)
      message(FATAL_ERROR "dfdx_target_dispatch: ${what}: ${said}")
    endif()
    set(out "${out}" PARENT_SCOPE)
  endfunction()
  # Groups of inline functions are resolved here: they could not be made local.
  run("${LEVEL}" "${LINKER}" -r --force-group-allocation -o "${OUTPUT}" ${OBJECTS})
  run("${LEVEL}" "${OBJDUMP}" -h "${OUTPUT}")
  if(out MATCHES "\\.init_array|\\.ctors")
    file(REMOVE "${OUTPUT}")
    message(FATAL_ERROR "dfdx_target_dispatch: the sources have variables that are initialised when the program starts "
                        "(<iostream> has one): code for ${LEVEL} would run on every processor")
  endif()
  string(MAKE_C_IDENTIFIER "${LEVEL}" suffix)
  # One after the other: binutils and LLVM take them in different orders.
  set(rename "")
  set(keep "")
  foreach(f ${FUNCTIONS})
    list(APPEND rename --redefine-sym ${f}=${f}_${suffix})
    list(APPEND keep --keep-global-symbol=${f}_${suffix})
  endforeach()
  run("${LEVEL}" "${OBJCOPY}" ${rename} "${OUTPUT}")
  run("${LEVEL}" "${OBJCOPY}" ${keep} "${OUTPUT}")
  return()
endif()

set(dfdx_dispatch_script "${CMAKE_CURRENT_LIST_FILE}")
function(dfdx_target_dispatch target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;FUNCTIONS;LEVELS;LIBRARIES")
  if(NOT arg_SOURCES OR NOT arg_FUNCTIONS)
    message(FATAL_ERROR "dfdx_target_dispatch: SOURCES and FUNCTIONS required")
  endif()
  if(NOT arg_LEVELS)
    set(arg_LEVELS x86-64-v4 x86-64-v3 x86-64)
  endif()
  if(NOT arg_LIBRARIES)
    set(arg_LIBRARIES dfdx::dfdx)
  endif()
  list(GET arg_LEVELS -1 last)
  if(NOT last STREQUAL "x86-64")
    message(FATAL_ERROR "dfdx_target_dispatch: the last of LEVELS must be x86-64, got ${last}")
  endif()
  foreach(tool OBJCOPY OBJDUMP LINKER)
    if(NOT CMAKE_${tool})
      message(FATAL_ERROR "dfdx_target_dispatch: binutils required, there is no ${tool}")
    endif()
  endforeach()

  set(folder "${CMAKE_CURRENT_BINARY_DIR}/${target}_dispatch")
  foreach(level ${arg_LEVELS})
    string(MAKE_C_IDENTIFIER "${level}" suffix)
    set(part ${target}_${suffix})
    add_library(${part} OBJECT ${arg_SOURCES})
    target_link_libraries(${part} PRIVATE ${arg_LIBRARIES})
    # Unique symbols cannot be made local.
    target_compile_options(${part} PRIVATE -march=${level} $<$<CXX_COMPILER_ID:GNU>:-fno-gnu-unique>)
    set_target_properties(${part} PROPERTIES INTERPROCEDURAL_OPTIMIZATION OFF)
    set_property(TARGET ${part} PROPERTY POSITION_INDEPENDENT_CODE ON)
    set(object "${folder}/${suffix}.o")
    add_custom_command(
      OUTPUT "${object}"
      COMMAND "${CMAKE_COMMAND}" -E make_directory "${folder}"
      COMMAND "${CMAKE_COMMAND}" -DLEVEL=${level} "-DOBJECTS=$<TARGET_OBJECTS:${part}>" "-DOUTPUT=${object}"
              "-DFUNCTIONS=${arg_FUNCTIONS}" "-DLINKER=${CMAKE_LINKER}" "-DOBJCOPY=${CMAKE_OBJCOPY}"
              "-DOBJDUMP=${CMAKE_OBJDUMP}" -P "${dfdx_dispatch_script}"
      DEPENDS ${part} "$<TARGET_OBJECTS:${part}>" "${dfdx_dispatch_script}"
      COMMENT "Making ${target}'s functions for ${level}" VERBATIM)
    set_source_files_properties("${object}" PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
    target_sources(${target} PRIVATE "${object}")
  endforeach()

  # What binds the functions: the loader calls choose_... once for each.
  set(text "// Written by dfdx_target_dispatch.\nextern \"C\" {\nusing chosen = void (*)();\n")
  foreach(f ${arg_FUNCTIONS})
    set(choice "")
    foreach(level ${arg_LEVELS})
      string(MAKE_C_IDENTIFIER "${level}" suffix)
      string(APPEND text "void ${f}_${suffix}();\n")
      if(level STREQUAL "x86-64")
        string(APPEND choice "  return &${f}_${suffix};\n")
      else()
        string(APPEND choice "  if (__builtin_cpu_supports(\"${level}\")) return &${f}_${suffix};\n")
      endif()
    endforeach()
    string(APPEND text "chosen choose_${target}_${f}() {\n  __builtin_cpu_init();\n${choice}}\n"
                       "void ${f}() __attribute__((ifunc(\"choose_${target}_${f}\")));\n")
  endforeach()
  string(APPEND text "}\n")
  set(source "${folder}/choose.cpp")
  file(CONFIGURE OUTPUT "${source}" CONTENT "${text}" @ONLY)
  target_sources(${target} PRIVATE "${source}")
endfunction()
