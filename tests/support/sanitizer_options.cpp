// What the sanitizers' runtimes ask a test program for when it starts; linked into every one in the asan and tsan
// presets. libtorch and its OpenMP runtime (libgomp) are not built with the sanitizers.

extern "C" {

const char* __asan_default_options();
const char* __lsan_default_suppressions();
const char* __tsan_default_options();
const char* __tsan_default_suppressions();

const char* __asan_default_options() { return "detect_stack_use_after_return=1"; }

// Hides what libtorch and libgomp allocate once and keep until the process ends: registries, thread pools.
const char* __lsan_default_suppressions() {
  return "leak:libtorch_cpu.so\n"
         "leak:libc10.so\n"
         "leak:libgomp.so\n";
}

// Without instrumentation it cannot see how libtorch's threads wait for each other. Hides what these libraries do by
// themselves and races of our own code that show only inside at::parallel_for; the bitwise tests over thread counts
// stand in for them.
const char* __tsan_default_options() { return "ignore_noninstrumented_modules=1:second_deadlock_stack=1"; }
const char* __tsan_default_suppressions() {
  return "called_from_lib:libgomp.so\n"
         "called_from_lib:libtorch_cpu.so\n"
         "called_from_lib:libc10.so\n";
}

}  // extern "C"
