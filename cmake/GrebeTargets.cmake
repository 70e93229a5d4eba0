# How the project's targets are made: one object library a room, one test program a room.

set_property(GLOBAL PROPERTY GREBE_ROOMS "")

function(grebe_compile_options target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Werror=return-type
                         -Wno-unused-parameter)
  if(GREBE_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${GREBE_SANITIZE} -fno-omit-frame-pointer)
    target_link_options(${target} PRIVATE -fsanitize=${GREBE_SANITIZE})
  endif()
  # Arrow's headers are not ours to warn about.
  get_target_property(_arrow_include Arrow::core INTERFACE_INCLUDE_DIRECTORIES)
  if(_arrow_include)
    target_include_directories(${target} SYSTEM PRIVATE ${_arrow_include})
  endif()
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src
                             ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR})
endfunction()

# grebe_room(name SOURCES a.cc b.cc [LIBS lib...])
function(grebe_room name)
  cmake_parse_arguments(ROOM "" "" "SOURCES;LIBS" ${ARGN})
  add_library(grebe_${name} OBJECT ${ROOM_SOURCES})
  grebe_compile_options(grebe_${name})
  target_link_libraries(grebe_${name} PUBLIC Arrow::core ${ROOM_LIBS})
  set_property(GLOBAL APPEND PROPERTY GREBE_ROOMS grebe_${name})
endfunction()

# The library: every room's objects in one archive.
function(grebe_library)
  get_property(rooms GLOBAL PROPERTY GREBE_ROOMS)
  add_library(grebe STATIC)
  grebe_compile_options(grebe)
  foreach(room ${rooms})
    target_sources(grebe PRIVATE $<TARGET_OBJECTS:${room}>)
  endforeach()
  # zstd and xxhash by name: the installed package must not name this machine's paths.
  target_link_libraries(grebe PUBLIC Arrow::parquet Arrow::compute Arrow::core CURL::libcurl
                        OpenSSL::Crypto zstd xxhash Threads::Threads)
  target_include_directories(grebe PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
endfunction()

# A test or benchmark of a room links only the rooms it names (their objects), so that it builds
# while other rooms are being worked on: ROOMS base store ...
function(_grebe_program target)
  cmake_parse_arguments(PROG "" "" "SOURCES;ROOMS;LIBS" ${ARGN})
  add_executable(${target} ${PROG_SOURCES})
  grebe_compile_options(${target})
  foreach(room ${PROG_ROOMS})
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:grebe_${room}>)
  endforeach()
  target_link_libraries(${target} PRIVATE Arrow::parquet Arrow::compute Arrow::core CURL::libcurl
    OpenSSL::Crypto
    nlohmann_json::nlohmann_json ${ZSTD_LIBRARY} ${XXHASH_LIBRARY} Threads::Threads ${PROG_LIBS})
endfunction()

# grebe_test(name SOURCES ... ROOMS ... [LIBS ...] [LABELS fast|slow ...] [ENV VAR=value ...])
function(grebe_test name)
  if(NOT GREBE_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(TEST "" "" "SOURCES;ROOMS;LIBS;LABELS;ENV" ${ARGN})
  if(NOT TEST_LABELS)
    set(TEST_LABELS fast)
  endif()
  _grebe_program(${name} SOURCES ${TEST_SOURCES} ROOMS ${TEST_ROOMS}
                 LIBS GTest::gtest_main GTest::gmock ${TEST_LIBS})
  # Tests' own code needs no optimisation: compiling it is most of a build's time.
  target_compile_options(${name} PRIVATE ${GREBE_TEST_OPTIONS})
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 DISCOVERY_MODE PRE_TEST NO_PRETTY_VALUES
    PROPERTIES LABELS "${TEST_LABELS}"
               ENVIRONMENT "GREBE_SOURCE_DIR=${PROJECT_SOURCE_DIR};${TEST_ENV}")
endfunction()

# grebe_bench(name SOURCES ... ROOMS ...): a Google Benchmark program; ctest runs it tiny.
function(grebe_bench name)
  if(NOT GREBE_BUILD_BENCH)
    return()
  endif()
  cmake_parse_arguments(BENCH "" "" "SOURCES;ROOMS;LIBS" ${ARGN})
  _grebe_program(${name} SOURCES ${BENCH_SOURCES} ROOMS ${BENCH_ROOMS}
                 LIBS benchmark::benchmark ${BENCH_LIBS})
  if(GREBE_BUILD_TESTS)
    add_test(NAME ${name}_tiny COMMAND ${name} --benchmark_min_time=0.001)
    set_tests_properties(${name}_tiny PROPERTIES LABELS bench ENVIRONMENT GREBE_BENCH_TINY=1)
  endif()
endfunction()
