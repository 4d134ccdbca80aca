// How fast a device's link is: each direction alone and both at a time, from page-locked and from pageable memory, and
// what a small copy costs. Prints JSON. `link_bench cuda`; `emulated` and `cpu` show what the program itself costs.
#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstring>
#include <exception>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "bench/gpu/row.h"
#include "headrace/base/json.h"
#include "headrace/device/cpu.h"
#include "headrace/device/cuda.h"
#include "headrace/device/emulated.h"

namespace headrace {
namespace {

using device::Device;
using device::Direction;
using device::Slab;
using device::Tier;

constexpr int64_t kBytes = int64_t{256} << 20;
constexpr int64_t kSmallBytes = 4096;
constexpr int kRepeats = 7, kSmallRepeats = 201;

std::unique_ptr<Device> make_device(const std::string& word) {
  switch (device::parse(word)) {
    case device::Kind::kCpu:
      return device::make_cpu_device();
    case device::Kind::kEmulated:
      return device::make_emulated_device({});
    case device::Kind::kCuda:
      return device::cuda::make_device({});
  }
  return nullptr;
}

// One direction's two ends, all pages touched.
struct Ends {
  Ends(Device& device, Device& host_memory, Direction along)
      : direction(along), host(host_memory.allocate(Tier::kHost, kBytes)), far(device.allocate(Tier::kDevice, kBytes)) {
    std::memset(host.data(), 1, static_cast<size_t>(kBytes));
    device.copy(Direction::kToDevice, far.data(), host.data(), kBytes);
  }

  // [s] of one copy.
  double seconds(Device& device, int64_t bytes) const {
    const bool is_up = direction == Direction::kToDevice;
    const auto start = std::chrono::steady_clock::now();
    device.copy(direction, is_up ? far.data() : host.data(), is_up ? host.data() : far.data(), bytes);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  Direction direction;
  Slab host, far;
};

std::vector<double> repeated(Device& device, const Ends& ends, int64_t bytes, int repeats) {
  std::vector<double> times;
  for (int i = 0; i < repeats; ++i) times.push_back(ends.seconds(device, bytes));
  return times;
}

// Each round starts together; a direction's time is its own.
std::vector<std::vector<double>> together(Device& device, const std::vector<Ends>& all) {
  std::vector<std::vector<double>> times(all.size());
  std::barrier round(static_cast<std::ptrdiff_t>(all.size()));
  std::vector<std::jthread> lanes;
  for (size_t i = 0; i < all.size(); ++i) {
    lanes.emplace_back([&, i] {
      for (int repeat = 0; repeat < kRepeats; ++repeat) {
        round.arrive_and_wait();
        times[i].push_back(all[i].seconds(device, kBytes));
      }
    });
  }
  lanes.clear();
  return times;
}

Json rate_row(const std::string& what, std::vector<double> times) {
  for (double& value : times) value = static_cast<double>(kBytes) / value / (1 << 30);
  return row(what, "GiB/s", std::move(times));
}

Json measure(Device& device) {
  const auto pageable = device::make_cpu_device();
  Json rows = Json::array();
  for (const bool is_pageable : {false, true}) {
    std::vector<Ends> all;
    for (const Direction direction : {Direction::kToDevice, Direction::kToHost}) {
      all.emplace_back(device, is_pageable ? *pageable : device, direction);
    }
    const std::string memory =
        all[0].host.is_page_locked() && all[1].host.is_page_locked() ? "page-locked" : "pageable";
    const auto named = [&](const Ends& ends) { return std::string(name_of(ends.direction)) + ", " + memory; };
    for (const Ends& ends : all)
      rows.push_back(rate_row(named(ends) + ", alone", repeated(device, ends, kBytes, kRepeats)));
    const auto times = together(device, all);
    for (size_t i = 0; i < all.size(); ++i) rows.push_back(rate_row(named(all[i]) + ", both ways at once", times[i]));
    for (const Ends& ends : all) {
      std::vector<double> small = repeated(device, ends, kSmallBytes, kSmallRepeats);
      for (double& value : small) value *= 1e6;
      rows.push_back(row(named(ends) + ", a copy of 4 KiB", "us", std::move(small)));
    }
    if (!is_pageable && memory == "pageable") break;  // a second round would be the same
  }
  return rows;
}

int run(const std::string& word) {
  const auto device = make_device(word);
  Json rows = measure(*device);
  std::cout << Json{{"device", device->describe()}, {"rows", rows}, {"warnings", device->take_warnings()}}.dump(2)
            << "\n";
  return 0;
}

}  // namespace
}  // namespace headrace

int main(int argc, char** argv) {
  try {
    return headrace::run(argc > 1 ? argv[1] : "cuda");
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
