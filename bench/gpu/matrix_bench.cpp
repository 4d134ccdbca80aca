// How fast libtorch multiplies square matrices on a device, in fp32 and in bf16. Prints JSON.
// `matrix_bench cuda [size]`; `cpu` shows what the program itself does.
#include <chrono>
#include <exception>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "bench/gpu/row.h"
#include "headrace/base/json.h"
#include "headrace/tensor/torch.h"

namespace headrace {
namespace {

constexpr int kRepeats = 7, kProducts = 10;  // a repeat is that many products queued one after another

// The device has done everything it was given when a number of its result is here.
void finish(const at::Tensor& result) { result[0][0].item<float>(); }

Json product_row(const std::string& name, at::ScalarType dtype, const std::string& device, int64_t size) {
  const auto options = at::TensorOptions().dtype(dtype).device(device);
  const at::Tensor a = at::randn({size, size}, options), b = at::randn({size, size}, options);
  at::Tensor product = at::empty({size, size}, options);
  std::vector<double> rates;
  for (int repeat = -1; repeat < kRepeats; ++repeat) {  // the first warms up
    finish(product.copy_(a));
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kProducts; ++i) at::mm_out(product, a, b);
    finish(product);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const auto edge = static_cast<double>(size);
    if (repeat >= 0) rates.push_back(2 * edge * edge * edge * kProducts / seconds / 1e12);
  }
  return row("matrix product " + name + ", " + std::to_string(size) + " square", "TFLOP/s", std::move(rates));
}

int run(const std::string& device, int64_t size) {
  Json rows = Json::array();
  rows.push_back(product_row("fp32", at::kFloat, device, size));
  rows.push_back(product_row("bf16", at::kBFloat16, device, size));
  std::cout << Json{{"device", device}, {"rows", rows}}.dump(2) << "\n";
  return 0;
}

}  // namespace
}  // namespace headrace

int main(int argc, char** argv) {
  try {
    return headrace::run(argc > 1 ? argv[1] : "cuda", argc > 2 ? std::stoll(argv[2]) : 8192);
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
