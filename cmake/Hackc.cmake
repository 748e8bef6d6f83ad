# SPDX-License-Identifier: MIT
# The build's own vocabulary: hackc_room (a static library made of one folder) and hackc_tests (one
# GoogleTest binary made of one folder under tests/). Folders are globbed, so that adding a pass or a
# test is adding a file.
option(HACKC_BUILD_TESTS "Build the tests" ON)
set(HACKC_SANITIZE "" CACHE STRING "Sanitizers, such as address,undefined or thread")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
# -O2: nothing here is bound by vectorised loops of our own, and the whole build must fit in minutes on two cores.
set(CMAKE_CXX_FLAGS_RELEASE "-O2")

# bin/ and lib/ lie side by side in the build tree as in the bundle, and one run path serves both.
# DT_RPATH, not DT_RUNPATH: it also serves the libraries of libraries, and those opened at run time.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)
set(CMAKE_BUILD_RPATH "$ORIGIN/../lib")
add_link_options(-Wl,--disable-new-dtags)

find_program(HACKC_CCACHE ccache)
if(HACKC_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${HACKC_CCACHE})
endif()

find_package(Threads REQUIRED)
find_package(absl REQUIRED)
include(HackcCuda)

add_library(hackc_flags INTERFACE)
target_include_directories(hackc_flags INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
target_compile_options(hackc_flags INTERFACE -Wall -Wextra -Wno-missing-field-initializers -Wno-restrict -Werror=return-type)
if(HACKC_SANITIZE)
  target_compile_options(hackc_flags INTERFACE -fsanitize=${HACKC_SANITIZE} -fno-sanitize-recover=all
                         -fno-omit-frame-pointer -g1)
  target_link_options(hackc_flags INTERFACE -fsanitize=${HACKC_SANITIZE})
  if(HACKC_SANITIZE MATCHES thread)
    # Protobuf's map fields are larger where this macro is set, and the installed library is built without.
    target_compile_options(hackc_flags INTERFACE -U__SANITIZE_THREAD__ -D_GLIBCXX_TSAN=1)
  endif()
endif()

# hackc_room(NAME [DEPS ...]): static library hackc_NAME from the *.cc of the current folder.
function(hackc_room name)
  cmake_parse_arguments(ARG "" "" "DEPS;EXCLUDE" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  foreach(pattern ${ARG_EXCLUDE})
    list(FILTER sources EXCLUDE REGEX ${pattern})
  endforeach()
  if(sources)
    add_library(hackc_${name} STATIC ${sources})
    target_link_libraries(hackc_${name} PUBLIC hackc_flags ${ARG_DEPS})
  else()
    add_library(hackc_${name} INTERFACE)
    target_link_libraries(hackc_${name} INTERFACE hackc_flags ${ARG_DEPS})
  endif()
endfunction()

# hackc_tests(NAME [DEPS ...] [LABELS ...]): one GoogleTest binary from the *_test.cc of the current folder.
function(hackc_tests name)
  cmake_parse_arguments(ARG "" "" "DEPS;LABELS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*_test.cc)
  if(NOT sources)
    return()
  endif()
  add_executable(${name}_test ${sources})
  target_link_libraries(${name}_test PRIVATE ${ARG_DEPS} GTest::gmock GTest::gtest_main)
  set_target_properties(${name}_test PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  target_compile_definitions(${name}_test PRIVATE HACKC_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()
  gtest_discover_tests(${name}_test TEST_PREFIX ${name}. NO_PRETTY_VALUES PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT 300
                       DISCOVERY_TIMEOUT 60)
endfunction()
