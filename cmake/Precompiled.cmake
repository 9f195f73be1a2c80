# LOCKSTEP_PCH compiles the headers that nearly every file includes once. It is for the sanitizer build, whose time it
# halves. With g++ 12 it can't be used: once std::string comes out of a precompiled header, g++ warns of overlaps that
# cannot be. So in the other builds a file still has to include what it uses.
if(LOCKSTEP_PCH)
  set(common <algorithm> <array> <chrono> <cstdint> <functional> <map> <memory> <optional> <set> <string>
      <string_view> <utility> <vector> <fmt/core.h> <tl/expected.hpp>)
  foreach(kind code tests)
    add_library(lockstep_pch_${kind} OBJECT ${CMAKE_SOURCE_DIR}/cmake/precompiled.cc)
    target_link_libraries(lockstep_pch_${kind} PRIVATE lockstep_settings)
  endforeach()
  # Whoever uses gtest gets its definitions too, and a precompiled header fits only where these are the same.
  target_link_libraries(lockstep_pch_tests PRIVATE GTest::gtest)
  target_precompile_headers(lockstep_pch_code PRIVATE ${common})
  target_precompile_headers(lockstep_pch_tests PRIVATE ${common} <gtest/gtest.h>)
endif()

function(lockstep_precompiled target kind)
  if(LOCKSTEP_PCH)
    target_precompile_headers(${target} REUSE_FROM lockstep_pch_${kind})
  endif()
endfunction()
