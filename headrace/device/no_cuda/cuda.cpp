// Stands in for headrace/device/cuda/ in a build without CUDA.
#include "headrace/device/cuda.h"

#include "headrace/base/errors.h"

namespace headrace::device::cuda {
namespace {

[[noreturn]] void refuse() {
  throw DeviceError("device.cuda",
                    "this program was built without CUDA. Build the cuda preset (cmake --preset cuda && cmake --build "
                    "--preset cuda; it needs nvcc and a CUDA libtorch), or use --device cpu.");
}

}  // namespace

bool is_built() noexcept { return false; }
int num_devices() { refuse(); }
Facts facts(int) { refuse(); }
std::unique_ptr<Device> make_device(const Settings&) { refuse(); }

}  // namespace headrace::device::cuda
