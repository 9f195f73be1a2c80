# lockstep_room(<name> [COLD] SOURCES a.cc .. DEPS base io .. [LIBS third-party ..] [TESTS x_test.cc ..] [HOT a.cc ..])
# One folder of src/ = one static library lockstep_<name> = one namespace. Unit tests lie beside the
# code and become one executable, <name>_test, known to ctest case by case under the label "unit".
# COLD: compiled for size in release builds, which makes it little more than half as large. For rooms that run a few
# times in a job (options, rounds, reports); what sees every line of a worker or every request stays fast. HOT names
# files of a cold room that are an exception.
function(lockstep_room name)
  cmake_parse_arguments(ROOM "COLD" "" "SOURCES;DEPS;LIBS;TESTS;HOT" ${ARGN})
  add_library(lockstep_${name} STATIC ${ROOM_SOURCES})
  target_link_libraries(lockstep_${name} PUBLIC lockstep_settings)
  foreach(dep IN LISTS ROOM_DEPS)
    target_link_libraries(lockstep_${name} PUBLIC lockstep_${dep})
  endforeach()
  target_link_libraries(lockstep_${name} PUBLIC ${ROOM_LIBS})
  lockstep_precompiled(lockstep_${name} code)
  if(ROOM_COLD)
    lockstep_cold(lockstep_${name})
    set_source_files_properties(${ROOM_HOT} PROPERTIES COMPILE_OPTIONS $<$<CONFIG:Release>:-O2>)
  endif()
  if(ROOM_TESTS)
    add_executable(${name}_test ${ROOM_TESTS})
    target_link_libraries(${name}_test PRIVATE lockstep_${name} GTest::gtest GTest::gtest_main)
    lockstep_precompiled(${name}_test tests)
    gtest_discover_tests(${name}_test DISCOVERY_MODE PRE_TEST TEST_PREFIX ${name}.
                         PROPERTIES LABELS unit TIMEOUT 300)
  endif()
endfunction()

function(lockstep_cold target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-Os>)
endfunction()
