# CMake toolchain: Debian's cross compiler for aarch64, with libraries of arm64 unpacked in ATTEST_SYSROOT; programs run
# under qemu. scripts/other_machines.sh makes the folder.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES ATTEST_SYSROOT)
set(CMAKE_SYSROOT "${ATTEST_SYSROOT}")
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L "${ATTEST_SYSROOT}")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
