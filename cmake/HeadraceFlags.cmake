if(HEADRACE_CUDA)
  enable_language(CUDA)
  find_package(CUDAToolkit REQUIRED)
  # CMake 3.25.1 does not know yet that nvcc 12 and newer have C++20.
  if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
  endif()
endif()

# Flags of our own code only: warnings are errors here and silent in system headers.
add_library(headrace_flags INTERFACE)
target_compile_options(headrace_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Werror>
  # g++ 12 warns of overlapping copies in its own std::string (GCC bug 105329).
  $<$<CXX_COMPILER_ID:GNU>:$<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>>
  # Without this gcc may fuse a*b+c where one build has FMA and another has not: results must not depend on it.
  $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>
  # nvcc takes its host compiler's flags one by one; -Wpedantic trips over the code it generates itself.
  "$<$<COMPILE_LANGUAGE:CUDA>:SHELL:-Werror all-warnings -fmad=false -Xcompiler=-Wall,-Wextra,-Wshadow,-ffp-contract=off>")
target_include_directories(headrace_flags INTERFACE ${CMAKE_SOURCE_DIR})

if(HEADRACE_SANITIZE)
  target_compile_options(headrace_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${HEADRACE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=undefined>)
  # With sanitizers g++ 12 takes std::function inside <regex> for uninitialised.
  target_compile_options(headrace_flags INTERFACE
    $<$<CXX_COMPILER_ID:GNU>:$<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized>>)
  target_link_options(headrace_flags INTERFACE -fsanitize=${HEADRACE_SANITIZE})
endif()
