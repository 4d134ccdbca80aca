#include "headrace/base/bounded_queue.h"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

namespace headrace {
namespace {

TEST(BoundedQueue, KeepsOrderAndBlocksAtCapacity) {
  BoundedQueue<int> queue(2);
  std::jthread producer([&] {
    for (int i = 0; i < 1000; ++i) queue.push(i);
    queue.close();
  });
  std::vector<int> seen;
  while (auto item = queue.pop()) seen.push_back(*item);
  ASSERT_EQ(seen.size(), 1000u);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(seen[static_cast<size_t>(i)], i);
}

TEST(BoundedQueue, CloseReleasesABlockedProducer) {
  BoundedQueue<std::unique_ptr<int>> queue(1);
  queue.push(std::make_unique<int>(1));
  bool pushed = true;
  std::jthread producer([&] { pushed = queue.push(std::make_unique<int>(2)); });
  queue.close();
  producer.join();
  EXPECT_FALSE(pushed);
  EXPECT_EQ(**queue.pop(), 1);
  EXPECT_FALSE(queue.pop().has_value());
}

TEST(BoundedQueue, FirstErrorIsKeptAndComesAfterTheItems) {
  BoundedQueue<int> queue(4);
  queue.push(1);
  queue.fail(std::make_exception_ptr(std::runtime_error("first")));
  queue.fail(std::make_exception_ptr(std::runtime_error("second")));
  EXPECT_EQ(queue.pop(), 1);
  try {
    queue.pop();
    FAIL() << "no error";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "first");
  }
}

}  // namespace
}  // namespace headrace
