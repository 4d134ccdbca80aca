# libtorch from the PyPI wheel, through imported targets of our own: the wheel's CMake package wants CUDA at configure
# time, while a build for the CPU needs only torch_cpu and c10 (docs/architecture.md, "libtorch").
# HEADRACE_TORCH names the wheel's `torch` folder; by default the one that tools/setup installed.
if(NOT HEADRACE_TORCH)
  file(GLOB _torch_found ${CMAKE_SOURCE_DIR}/.deps/venv/lib/python3*/site-packages/torch)
  if(EXISTS ${CMAKE_SOURCE_DIR}/.deps/torch_path)
    file(STRINGS ${CMAKE_SOURCE_DIR}/.deps/torch_path _torch_found LIMIT_COUNT 1)
  endif()
  list(GET _torch_found 0 _torch_first)
  set(HEADRACE_TORCH ${_torch_first} CACHE PATH "Folder of the torch wheel (has lib/ and include/)")
endif()
if(NOT EXISTS ${HEADRACE_TORCH}/lib/libtorch_cpu.so)
  message(FATAL_ERROR "No libtorch in '${HEADRACE_TORCH}'. Run tools/setup, or pass -DHEADRACE_TORCH=<site-packages>/torch.")
endif()

function(_headrace_import name)
  add_library(torch::${name} SHARED IMPORTED)
  set_target_properties(torch::${name} PROPERTIES IMPORTED_LOCATION ${HEADRACE_TORCH}/lib/lib${name}.so)
endfunction()
_headrace_import(c10)
_headrace_import(torch_cpu)
target_include_directories(torch::c10 SYSTEM INTERFACE
  ${HEADRACE_TORCH}/include ${HEADRACE_TORCH}/include/torch/csrc/api/include)
# libtorch_cpu names CUDA's runtime as needed; it is found at run time, so the linker need not resolve it.
target_link_options(torch::torch_cpu INTERFACE -Wl,--allow-shlib-undefined -Wl,--unresolved-symbols=ignore-in-shared-libs)
target_link_libraries(torch::torch_cpu INTERFACE torch::c10)
set(HEADRACE_LIBTORCH torch::torch_cpu)  # what a room below the torch line links
if(HEADRACE_CUDA)
  _headrace_import(c10_cuda)
  _headrace_import(torch_cuda)
  # Only the linker hears of the toolkit: rooms compile as in a build without CUDA, so the compiler cache serves both.
  target_link_libraries(torch::torch_cuda INTERFACE torch::c10_cuda torch::torch_cpu $<LINK_ONLY:CUDA::cudart>)
  # Its kernels register themselves when it is loaded; no symbol of ours asks for it.
  target_link_options(torch::torch_cuda INTERFACE -Wl,--no-as-needed)
  set(HEADRACE_LIBTORCH torch::torch_cuda)
endif()
