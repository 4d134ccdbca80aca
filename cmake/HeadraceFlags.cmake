# Flags of our own code only: warnings are errors here and silent in system headers.
add_library(headrace_flags INTERFACE)
target_compile_options(headrace_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Werror>
  # g++ 12 warns of overlapping copies in its own std::string (GCC bug 105329).
  $<$<CXX_COMPILER_ID:GNU>:$<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>>
  # Without this gcc may fuse a*b+c where one build has FMA and another has not: results must not depend on it.
  $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>)
target_include_directories(headrace_flags INTERFACE ${CMAKE_SOURCE_DIR})

if(HEADRACE_SANITIZE)
  target_compile_options(headrace_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${HEADRACE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=undefined>)
  target_link_options(headrace_flags INTERFACE -fsanitize=${HEADRACE_SANITIZE})
endif()
