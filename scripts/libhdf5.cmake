# How libhdf5 is compiled (.cargo/config.toml). A cached value is the only one that CMake does not append -O3 to. Cargo says which
# profile it builds.
if("$ENV{PROFILE}" STREQUAL "release")
    set(CMAKE_C_FLAGS_RELEASE "-O1 -DNDEBUG" CACHE STRING "Flags of release builds")
else()
    set(CMAKE_C_FLAGS_RELEASE "-O0 -DNDEBUG" CACHE STRING "Flags of release builds")
endif()
