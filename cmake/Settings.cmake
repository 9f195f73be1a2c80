# Compiler settings and warnings for our own code only; every room links both.
add_library(lockstep_settings INTERFACE)
target_compile_features(lockstep_settings INTERFACE cxx_std_20)
target_include_directories(lockstep_settings INTERFACE ${CMAKE_SOURCE_DIR}/src)
target_compile_definitions(lockstep_settings INTERFACE _GNU_SOURCE LOCKSTEP_VERSION="${PROJECT_VERSION}")
target_compile_options(lockstep_settings INTERFACE
  -ffile-prefix-map=${CMAKE_SOURCE_DIR}=. -ffunction-sections -fdata-sections
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wold-style-cast -Wextra-semi
  $<$<BOOL:${LOCKSTEP_WERROR}>:-Werror>
  # g++ 12 warns of overlaps in std::string that can't be (GCC bug 105651).
  $<$<CXX_COMPILER_ID:GNU>:-fno-coroutines -Wno-restrict>)
if(NOT CMAKE_CROSSCOMPILING)  # a cross compiler finds only its own linker
  target_link_options(lockstep_settings INTERFACE -fuse-ld=lld)
endif()
target_link_options(lockstep_settings INTERFACE -Wl,--gc-sections)
if(LOCKSTEP_SANITIZE)
  # The check of vtable pointers (vptr) is left out: it looks at memory through a pipe of its own, so where a test has
  # used up the descriptors every object looks wrong to it.
  target_compile_options(lockstep_settings INTERFACE
    -fsanitize=${LOCKSTEP_SANITIZE} -fno-sanitize=vptr -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(lockstep_settings INTERFACE -fsanitize=${LOCKSTEP_SANITIZE})
endif()

# What a fuzzer may call reports its paths to it. Not -fsanitize=fuzzer-no-link, because that instruments every function,
# and because a precompiled header must agree with it.
function(lockstep_fuzzed target)
  if(LOCKSTEP_FUZZ)
    # ccache does not know that the option has a path, so the path must be the same in all checkouts.
    file(RELATIVE_PATH list ${CMAKE_BINARY_DIR} ${CMAKE_SOURCE_DIR}/cmake/fuzzed_functions.txt)
    target_compile_options(${target} PRIVATE
      -fsanitize-coverage=inline-8bit-counters,indirect-calls,trace-cmp,pc-table
      -fsanitize-coverage-allowlist=${list})
  endif()
endfunction()
