# lockstep_room(<name> SOURCES a.cc .. DEPS base io .. [LIBS third-party ..] [TESTS x_test.cc ..])
# One folder of src/ = one static library lockstep_<name> = one namespace. Unit tests lie beside the
# code and become one executable, <name>_test, known to ctest case by case under the label "unit".
function(lockstep_room name)
  cmake_parse_arguments(ROOM "" "" "SOURCES;DEPS;LIBS;TESTS" ${ARGN})
  add_library(lockstep_${name} STATIC ${ROOM_SOURCES})
  target_link_libraries(lockstep_${name} PUBLIC lockstep_settings)
  foreach(dep IN LISTS ROOM_DEPS)
    target_link_libraries(lockstep_${name} PUBLIC lockstep_${dep})
  endforeach()
  target_link_libraries(lockstep_${name} PUBLIC ${ROOM_LIBS})
  if(ROOM_TESTS)
    add_executable(${name}_test ${ROOM_TESTS})
    target_link_libraries(${name}_test PRIVATE lockstep_${name} GTest::gtest GTest::gtest_main)
    gtest_discover_tests(${name}_test DISCOVERY_MODE PRE_TEST TEST_PREFIX ${name}.
                         PROPERTIES LABELS unit TIMEOUT 60)
  endif()
endfunction()
