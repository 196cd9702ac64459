# SPDX-License-Identifier: BSL-1.0
# 64-bit Arm with NEON and arithmetic of half precision (Armv8.2), with Debian's g++-aarch64-linux-gnu; programs run
# under qemu.
include("${CMAKE_CURRENT_LIST_DIR}/cross.cmake")
set(CMAKE_SYSTEM_PROCESSOR aarch64)
dfdx_cross(aarch64-linux-gnu qemu-aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CXX_FLAGS_INIT "-march=armv8.2-a+fp16")
