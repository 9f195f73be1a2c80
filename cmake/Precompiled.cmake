# The headers that nearly every file includes, compiled once.
# Tests have them in every build, and are not optimised: what they test is, as it is shipped, but optimising the tests
# themselves was a third of all compiling. Our own code has them under LOCKSTEP_PCH only, the sanitizer build, where they
# halve the time. Optimised code can't: g++ 12 warns of overlaps that cannot be once std::string comes out of a
# precompiled header. So in the other builds a file of ours still has to include what it uses.
set(common <algorithm> <array> <chrono> <cstdint> <functional> <map> <memory> <optional> <set> <string>
    <string_view> <utility> <vector> <fmt/core.h> <tl/expected.hpp>)

# clang's precompiled headers hold the paths of the checkout, and so would no other checkout find in ccache what this one
# has compiled. So ccache is given a sum of the preprocessed headers, and users are given no absolute path.
if(CMAKE_CXX_COMPILER_ID STREQUAL Clang)
  set(CMAKE_CXX_COMPILE_OPTIONS_USE_PCH -Xclang -include-pch -Xclang <PCH_FILE>)
endif()

function(lockstep_precompiled_sum kind)
  set(header ${CMAKE_BINARY_DIR}/CMakeFiles/lockstep_pch_${kind}.dir/cmake_pch.hxx)
  add_custom_command(OUTPUT ${header}.pch.sum DEPENDS ${header}.pch VERBATIM
    COMMAND sh -ec [["$1" -std=gnu++20 -w -E -dD -P -x c++-header "$2" >"$2.text"; sha256sum <"$2.text" >"$2.pch.sum"]]
            sh ${CMAKE_CXX_COMPILER} ${header})
  add_custom_target(lockstep_pch_sum_${kind} DEPENDS ${header}.pch.sum)
endfunction()

# Users must have its definitions and options too: a precompiled header fits only where they are the same.
function(lockstep_precompiled_header kind)
  add_library(lockstep_pch_${kind} OBJECT ${CMAKE_SOURCE_DIR}/cmake/precompiled.cc)
  target_link_libraries(lockstep_pch_${kind} PRIVATE lockstep_settings)
  target_precompile_headers(lockstep_pch_${kind} PRIVATE ${ARGN})
  if(CMAKE_CXX_COMPILER_ID STREQUAL Clang)
    lockstep_precompiled_sum(${kind})
  endif()
endfunction()

add_library(lockstep_test_settings INTERFACE)
target_link_libraries(lockstep_test_settings INTERFACE GTest::gtest)
target_compile_options(lockstep_test_settings INTERFACE -O0
  $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)  # for ccache
lockstep_precompiled_header(tests ${common} <gtest/gtest.h>)
target_link_libraries(lockstep_pch_tests PRIVATE lockstep_test_settings)
if(LOCKSTEP_PCH)
  lockstep_precompiled_header(code ${common})
endif()

# What many files instantiate of the standard library is compiled once for up to ten of them that share a unit: that
# halves the time, and makes the product 4 % smaller. The preset debug compiles each file of the product by
# itself, so that it includes what it uses. Files whose own names might be the same (read roughly: a name too many only
# makes a unit more) are kept in different units.
function(lockstep_units target)
  get_target_property(sources ${target} SOURCES)
  list(LENGTH sources count)
  if(count LESS 2)
    return()
  endif()
  foreach(source IN LISTS sources)
    file(READ ${source} text)
    string(REGEX MATCHALL
      "\n(using [A-Za-z_0-9]+ =|(struct|class|enum|enum class) [A-Za-z_0-9]+|(constexpr|const) [^\n;=({[]* k[A-Za-z0-9]+|[A-Za-z_][^\n;=(#{[]*[ *&][a-z_0-9]+\\()"
      names "${text}")
    list(TRANSFORM names REPLACE ".*[ *&]([A-Za-z_0-9]+)( =|\\()?$" "\\1")
    foreach(number RANGE 0 ${count})
      set(clash FALSE)
      list(LENGTH files_${number} files)
      if(files LESS 10)
        foreach(name IN LISTS names)
          if(name IN_LIST names_${number})
            set(clash TRUE)
            break()
          endif()
        endforeach()
        if(NOT clash)
          set(unit ${number})
          break()
        endif()
      endif()
    endforeach()
    list(APPEND files_${unit} ${source})
    list(APPEND names_${unit} ${names})
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${target}_${unit})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()

# kind: code or tests.
function(lockstep_precompiled target kind)
  if(kind IN_LIST LOCKSTEP_UNITY)
    lockstep_units(${target})
  endif()
  if(kind STREQUAL tests)
    target_link_libraries(${target} PRIVATE lockstep_test_settings)
  endif()
  if(TARGET lockstep_pch_${kind})
    target_precompile_headers(${target} REUSE_FROM lockstep_pch_${kind})
    if(TARGET lockstep_pch_sum_${kind})
      add_dependencies(${target} lockstep_pch_sum_${kind})
    endif()
  endif()
endfunction()
