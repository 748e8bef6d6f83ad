# SPDX-License-Identifier: MIT
# Where CUDA is, asked once of deploy/find-cuda. Sets
#   HACKC_CUDA_INCLUDE_DIR  the folder with nvrtc.h and cuda.h
#   HACKC_NVRTC_LIBRARY     libnvrtc, opened at run time and never linked
# and defines hackc_cuda_headers for the few files that include them. It also carries HACKC_NVRTC_DIR,
# the folder that the toolchain searches when the machine's own places have no libnvrtc.
if(NOT HACKC_CUDA_INCLUDE_DIR OR NOT HACKC_NVRTC_LIBRARY OR NOT EXISTS "${HACKC_CUDA_INCLUDE_DIR}/nvrtc.h")
  execute_process(
    COMMAND ${PROJECT_SOURCE_DIR}/deploy/find-cuda --why ${PROJECT_BINARY_DIR}/cuda
            ${PROJECT_SOURCE_DIR}/build/cuda
    RESULT_VARIABLE find_cuda_result OUTPUT_VARIABLE find_cuda_lines ERROR_VARIABLE find_cuda_reasons
    OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT find_cuda_result EQUAL 0)
    message(FATAL_ERROR "No CUDA toolkit of 12.8 or later:\n${find_cuda_reasons}"
                        "Run deploy/install-deps (it takes NVIDIA's wheels), or set CUDA_HOME.")
  endif()
  string(REPLACE "\n" ";" find_cuda_lines "${find_cuda_lines}")
  list(GET find_cuda_lines 0 find_cuda_include)
  list(GET find_cuda_lines 1 find_cuda_library)
  set(HACKC_CUDA_INCLUDE_DIR ${find_cuda_include} CACHE PATH "Folder with nvrtc.h and cuda.h" FORCE)
  set(HACKC_NVRTC_LIBRARY ${find_cuda_library} CACHE FILEPATH "libnvrtc, opened at run time" FORCE)
  message(STATUS "NVRTC: ${HACKC_NVRTC_LIBRARY}")
endif()

cmake_path(GET HACKC_NVRTC_LIBRARY PARENT_PATH HACKC_NVRTC_DIR)
add_library(hackc_cuda_headers INTERFACE)
target_include_directories(hackc_cuda_headers SYSTEM INTERFACE ${HACKC_CUDA_INCLUDE_DIR})
target_compile_definitions(hackc_cuda_headers INTERFACE HACKC_NVRTC_DIR="${HACKC_NVRTC_DIR}")
target_link_libraries(hackc_cuda_headers INTERFACE ${CMAKE_DL_LIBS})
