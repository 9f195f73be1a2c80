# lockstep_room(<name> [COLD] [UNWINDS] SOURCES a.cc .. DEPS base io .. [LIBS third-party ..] [TESTS x_test.cc ..] [HOT a.cc ..])
# One folder of src/ = one static library lockstep_<name> = one namespace. Unit tests lie beside the
# code and become one executable, <name>_test, known to ctest case by case under the label "unit".
# COLD: compiled for size in release builds, which makes it little more than half as large. For rooms that run a few
# times in a job (options, rounds, reports); what sees every line of a worker or every request stays fast. HOT names
# files of a cold room that are an exception.
# UNWINDS: tests of this room end a simulated process by an exception. In release builds, all other rooms are compiled
# without exceptions and without the tables to unwind: our code throws and catches none (tools/check_calls.py), and both
# are a tenth of the binary. What a library throws ends the process either way.
function(lockstep_room name)
  cmake_parse_arguments(ROOM "COLD;UNWINDS" "" "SOURCES;DEPS;LIBS;TESTS;HOT" ${ARGN})
  add_library(lockstep_${name} STATIC ${ROOM_SOURCES})
  target_link_libraries(lockstep_${name} PUBLIC lockstep_settings)
  foreach(dep IN LISTS ROOM_DEPS)
    target_link_libraries(lockstep_${name} PUBLIC lockstep_${dep})
  endforeach()
  target_link_libraries(lockstep_${name} PUBLIC ${ROOM_LIBS})
  lockstep_precompiled(lockstep_${name} code)
  # g++ --coverage replaces execve() by a function that writes the counts and ends the counting. The child of a start
  # shares the memory of its parent until then, so nothing after the first start of a program would count. The
  # precompiled header would declare execve() as that function.
  if(name MATCHES "^(io|proc)$" AND CMAKE_CXX_FLAGS_DEBUG MATCHES "--coverage")
    target_compile_options(lockstep_${name} PRIVATE -fno-builtin-execve)
    set_target_properties(lockstep_${name} PROPERTIES DISABLE_PRECOMPILE_HEADERS ON)
  endif()
  lockstep_fuzzed(lockstep_${name})
  if(NOT ROOM_UNWINDS)
    lockstep_without_exceptions(lockstep_${name})
  endif()
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

function(lockstep_without_exceptions target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-fno-exceptions -fno-asynchronous-unwind-tables>)
endfunction()

function(lockstep_cold target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-Os>)
endfunction()

# A program of tests/support/, through which tests in Python reach our code. Optimising it would take longer than it runs.
# CI runs those tests with the release build, so the sanitizer build makes it only when asked (--target test_tools).
add_custom_target(test_tools)
function(lockstep_test_tool name)
  add_executable(${name} ${CMAKE_SOURCE_DIR}/tests/support/${name}.cc)
  target_link_libraries(${name} PRIVATE ${ARGN} nlohmann_json::nlohmann_json)
  target_compile_options(${name} PRIVATE -O0)
  lockstep_precompiled(${name} code)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  add_dependencies(test_tools ${name})
  if(LOCKSTEP_SANITIZE)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
endfunction()
