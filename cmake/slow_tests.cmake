# SPDX-License-Identifier: BSL-1.0
# What `sh cmake/test.sh` leaves to `sh cmake/test.sh --full` (DFDX_SLOW_TESTS), a quarter of the time: tests that few
# changes concern, and of what is tested in several ways one. Whoever changes the CUDA backend, readers of files or
# kernels runs them.
#
# Expressions that whole names of tests match. A program none of whose tests is left is not built.
set(dfdx_slow_tests
    # Programs on the emulated device; its memory stays, and cuda/ compiles the kernels of programs.
    "cuda_emulated/(attention|called(_places)?|clusters|convolutions|decoder(_products)?|indices|kernels|loops|measured|products|programs|warpgroups)"
    "cuda/(called|bench_.*)"  # the kernels of ops that are called one by one; benchmarks
    "fuzz/.*"  # damaged files under sanitizers; io/ has damaged ones that were chosen
    "kernels[.]sse2/.*"  # two wider sets stay, and dispatch/qemu64 is a program of this one
    "optimised/words"  # optimised/10_tape has all eager ops
    "models/static_llama"  # example/llama_static_sizes is such a program
    "rvv/more"  # kernels that use those of rvv/first
    # Programs of what nn/, program/, models/ and vocabulary/ test one by one.
    "example/(autoencoder|finetune|lstm|vae)")

# dfdx_left_out(name variable): whether the test of this name is.
function(dfdx_left_out name variable)
  list(JOIN dfdx_slow_tests "|" names)
  if(NOT DFDX_SLOW_TESTS AND name MATCHES "^(${names})$")
    set(${variable} ON PARENT_SCOPE)
  else()
    set(${variable} OFF PARENT_SCOPE)
  endif()
endfunction()

# dfdx_leave_out(variable): takes the sources of such tests out of a list; tests are named after them.
function(dfdx_leave_out variable)
  set(left "")
  foreach(source IN LISTS ${variable})
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" OUTPUT_VARIABLE name)
    cmake_path(REMOVE_EXTENSION name LAST_ONLY)
    dfdx_left_out(${name} left_out)
    if(NOT left_out)
      list(APPEND left "${source}")
    endif()
  endforeach()
  set(${variable} "${left}" PARENT_SCOPE)
endfunction()
