// Something for CMake to compile beside the precompiled headers.
