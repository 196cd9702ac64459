# SPDX-License-Identifier: BSL-1.0
# All options. A project that consumes dfdx gets the library and nothing else.
option(DFDX_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(DFDX_EXAMPLES "Build the examples" ${PROJECT_IS_TOP_LEVEL})
option(DFDX_BENCH "Build the benchmarks" ${PROJECT_IS_TOP_LEVEL})
option(DFDX_LINT "Add the targets lint, format and format-check" ${PROJECT_IS_TOP_LEVEL})
option(DFDX_IO "Fetch the JSON library that dfdx::io needs when it is not found" ${PROJECT_IS_TOP_LEVEL})
option(DFDX_FETCH_DEPENDENCIES "Download dependencies that are not found" ON)

# These shape dfdx's own tests, examples and benchmarks only, never a consumer's code.
if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_CROSSCOMPILING)
  set(native ON)
else()
  set(native OFF)
endif()
option(DFDX_NATIVE "Compile for this machine's instruction set" ${native})
option(DFDX_TOGETHER "Compile sources of tests and examples some at a time; OFF is quicker when few change" ON)
option(DFDX_OPENMP "Compile with OpenMP" OFF)
set(DFDX_SANITIZE "OFF" CACHE STRING "OFF or what -fsanitize= takes, such as address,undefined")
set(DFDX_CUDA "AUTO" CACHE STRING "AUTO: compile the CUDA tests where nvcc is found; OFF: leave them out")
set_property(CACHE DFDX_CUDA PROPERTY STRINGS AUTO OFF)
option(DFDX_CUDA_EXAMPLES "Build words_cuda, fashion_cuda, gpt_cuda and llama_cuda, which use GPUs too; needs nvcc" OFF)
option(DFDX_SLOW_TESTS "Also what takes long and breaks seldom: slow_tests.cmake" ON)
option(DFDX_DEVICE_OPS "Run the compiled op suite on the emulated CUDA device too (ten minutes to build)" OFF)
