# SPDX-License-Identifier: BSL-1.0
# RISC-V with vectors of any length: clang 19 with the C++ library of Debian's g++-riscv64-linux-gnu (g++ 12 has no vector
# intrinsics). Programs run under qemu, which takes the vectors' length from the environment:
# QEMU_CPU=rv64,v=true,vext_spec=v1.0,vlen=256
include("${CMAKE_CURRENT_LIST_DIR}/cross.cmake")
set(CMAKE_SYSTEM_PROCESSOR riscv64)
dfdx_cross(riscv64-linux-gnu qemu-riscv64)
set(CMAKE_CXX_COMPILER clang++-19)
set(CMAKE_CXX_COMPILER_TARGET riscv64-linux-gnu)
# Without frame pointers the frame of a function that saves vectors is described by their length, which the unwinder of
# g++ 12's library does not know: it aborts when an exception passes.
set(CMAKE_CXX_FLAGS_INIT "-march=rv64gcv -mabi=lp64d -fno-omit-frame-pointer")
string(APPEND CMAKE_EXE_LINKER_FLAGS_INIT " -fuse-ld=lld-19")
