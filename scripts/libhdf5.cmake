# How libhdf5 is compiled (.cargo/config.toml). A cached value is the only one that CMake does not append -O3 to.
set(CMAKE_C_FLAGS_RELEASE "-O1 -DNDEBUG" CACHE STRING "Flags of release builds")
