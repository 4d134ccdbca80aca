#include "headrace/device/cores.h"

#include <gtest/gtest.h>

#include <thread>

namespace headrace::device {
namespace {

using List = std::vector<int>;

// What a thread may run on after `pin`; a thread of its own, so that the test's stays free.
template <class Pin>
List after(Pin&& pin) {
  List cores;
  std::jthread([&] {
    pin();
    cores = allowed_cores();
  }).join();
  return cores;
}

TEST(Cores, AreSplitInHalves) {
  EXPECT_EQ(split({0, 1, 4, 5}).compute, (List{0, 1}));
  EXPECT_EQ(split({0, 1, 4, 5}).host, (List{4, 5}));
  EXPECT_EQ(split({2, 3, 7}).compute, (List{2, 3}));
  EXPECT_EQ(split({2, 3, 7}).host, (List{7}));
  EXPECT_EQ(split({3}).compute, (List{3}));
  EXPECT_EQ(split({3}).host, (List{3}));
  EXPECT_TRUE(split({}).compute.empty());
}

TEST(Cores, AreReportedAsRanges) {
  EXPECT_EQ(text_of({}), "");
  EXPECT_EQ(text_of({4}), "4");
  EXPECT_EQ(text_of({0, 1, 2, 5, 7, 8}), "0-2,5,7-8");
}

TEST(Cores, HoldTheThreadThatIsPinnedToThem) {
  const List all = allowed_cores();
  ASSERT_FALSE(all.empty());
  const Cores halves = split(all);
  EXPECT_EQ(after([&] { pin_this_thread(halves.compute); }), halves.compute);
  EXPECT_EQ(after([&] { pin_this_thread(halves.host); }), halves.host);
  for (size_t nth = 0; nth < 2 * all.size(); ++nth) {
    EXPECT_EQ(after([&] { pin_this_thread_to_one(all, static_cast<int>(nth)); }), (List{all[nth % all.size()]}));
  }
}

TEST(Cores, ThatDoNotExistLeaveTheThreadFree) {
  const List all = allowed_cores();
  EXPECT_EQ(after([] { pin_this_thread({}); }), all);
  EXPECT_EQ(after([] { pin_this_thread({-1, 1 << 20}); }), all);
  EXPECT_EQ(after([] { pin_this_thread_to_one({}, 3); }), all);
}

}  // namespace
}  // namespace headrace::device
